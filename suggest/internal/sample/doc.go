// Package sample draws configurations: at random, from a quasi-random sequence, and in
// the neighbourhood of others. The study's seed, the trial's number and a [Purpose]
// determine every draw.
package sample

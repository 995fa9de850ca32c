// Package slot numbers the programs of one kind that run on a machine at the same time: a
// program that is started again, while the others go on, gets the number that it had.
package slot

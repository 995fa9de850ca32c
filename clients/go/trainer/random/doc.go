// Package random draws the randomness of training: a [Stream] is a sequence of
// uniform 64-bit numbers, with methods for bounded integers, normal and exponential
// numbers and samples. [Open] makes streams from the operating system's entropy, or from a seed.
//
// # Streams from the operating system
//
// [System] makes a stream of AES-256 in counter mode under a key that is drawn by crypto/rand and
// kept nowhere else. Nothing repeats it. Guarantees assume that its numbers cannot be told from
// uniform ones without the key.
//
// # Streams from a seed
//
// [New] makes a stream of the counter-based generator AES-128 in counter mode: block
// number i of a stream is the encryption of the counter (replicate, index, i) under
// the key (seed, purpose). Streams whose seeds, replicates, purposes or indices differ
// are independent for all practical purposes, however close these numbers are, so
// that every replicate, every use of randomness, and every block of parameters that a
// worker may have to itself gets its own. Salmon, Moraes, Dror and Shaw, "Parallel
// random numbers: as easy as 1, 2, 3" (SC 2011), set out what such generators are
// good for, and count this one among the best. Most processors have instructions for
// it; its results are the same on all.
//
// The sequences are pinned by tests and do not change. Anyone who knows the seed of a run, or
// tries all 2⁶⁴, can remove the noise from its model: seeds are for experiments.
//
// # Exact noise
//
// The set of values that the sum of a statistic and noise in floating point can take depends on
// the statistic, and an attacker who sees all bits of the sum can exploit that: Mironov, "On
// significance of the least significant bits for differential privacy" (CCS 2012), does so for
// Laplace noise, and later work for Gaussian noise. [AddNoise] adds to whole numbers the rounded
// normal numbers ⌊2⁴⁰·N⌋, drawn exactly by integer arithmetic and a lazy exact comparison, as
// Karney, "Sampling exactly from the normal distribution" (2016), draws them digit by digit.
//
// Why that is Gaussian noise: for whole numbers q, q + ⌊2⁴⁰·N⌋ = ⌊q + 2⁴⁰·N⌋. Let a mechanism
// have whole-number statistics, each step's possibly depending on what earlier steps gave, and
// let all that leaves it be computed from q + ⌊2⁴⁰·N⌋. Then it is computed from q + 2⁴⁰·N, the
// Gaussian mechanism on real numbers with the same statistics, and has every guarantee of that:
// by any accountant, for any adjacency and any sampling of the records. Discrete Gaussian noise is
// a different distribution, with a δ that can be larger, and its sums are not discrete Gaussian
// (Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", 2020);
// rounded Gaussian noise needs no accountant of its own.
//
// What is left are the sensitivity of whole numbers, which callers must bound in exact arithmetic
// (package model does so for clipped gradients), 2⁻¹²⁵ per number in total variation (see
// AddNoise), and the assumption on streams above. [AddNormals], [Stream.Exponential] and
// [Stream.Bernoulli] compute in floating point: the first is for first weights, and the others
// say so where a guarantee depends on them.
package random

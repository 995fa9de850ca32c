// Package random draws the randomness of training: a [Stream] is a sequence of
// uniform 64-bit numbers, with methods for bounded integers, normal numbers and
// samples.
//
// # Streams from a seed
//
// [New] makes a stream of the counter-based generator Philox4x64-10 (Salmon,
// Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// Its block number i is a fixed function of the key (seed, purpose) and the
// counter (i, a, b, replicate), so that
//
//   - streams of different seeds, replicates or purposes are independent for all
//     practical purposes, however close their numbers are;
//   - every stream has 2¹²⁸ substreams (a, b), reached in no time by [Stream.At]:
//     the noise of a step on a block of parameters can be drawn by any worker, in
//     any order, and is the same.
//
// The sequences are pinned by tests and do not change.
//
// # Streams from the operating system
//
// Philox is no cryptographic generator, and whoever knows the seed of an experiment
// can take the noise off its model again. [System] draws from crypto/rand instead.
// Nobody can repeat its streams: that is their point.
//
// # What floating-point noise means
//
// A normal number here is a float64 (or, after rounding, a float32), not a real
// number. The set of values that a sum of a statistic and such noise can take
// depends on the statistic, and an attacker who sees all the bits of the sum can
// use that: Mironov, "On significance of the least significant bits for
// differential privacy" (CCS 2012), does so for Laplace noise, and later work for
// Gaussian noise. The guarantees that package privacy computes are those of
// mechanisms over the real numbers. The gap matters to models that are released
// with all their bits; rounding the weights to a coarse grid after training,
// which costs no privacy, leaves fewer bits to use but proves nothing. It does
// not matter to a search, which publishes measured errors and no weights.
package random

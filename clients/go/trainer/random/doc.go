// Package random draws the randomness of training: a [Stream] is a sequence of
// uniform 64-bit numbers, with methods for bounded integers, normal and exponential
// numbers and samples. A [Source] decides whether streams come from a seed or from the
// operating system.
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
// The sequences are pinned by tests and do not change.
//
// # Streams from the operating system
//
// Anyone who knows the seed of an experiment can remove the noise from its model.
// [System] draws from crypto/rand instead, so that its streams cannot be repeated.
//
// # What floating-point noise means
//
// A normal number here is a float64 (or, after rounding, a float32), not a real number.
// The set of values that a sum of a statistic and such noise can take depends on the
// statistic, and an attacker who sees all bits of the sum can exploit that: Mironov, "On
// significance of the least significant bits for differential privacy" (CCS 2012), does
// so for Laplace noise, and later work for Gaussian noise. Package privacy computes
// guarantees of mechanisms over the real numbers. The gap matters for models that are
// released with all their bits. Rounding the weights to a coarse grid after training,
// which costs no privacy, leaves fewer bits to exploit but proves nothing. It does not
// matter for a search, which publishes measured errors and no weights.
package random

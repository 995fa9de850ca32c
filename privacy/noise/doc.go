// Package noise draws the randomness of releases: values and choices that are published and
// must not reveal more than their guarantee allows.
//
// # Sources
//
// [System] draws from the operating system's entropy: anyone who knows the seed of a release
// can remove its noise. [Seeded] repeats itself, for simulations and tests only.
//
// # Exact samplers
//
// Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy" (NeurIPS
// 2020), sample from integer-valued distributions with integer arithmetic alone, so that their
// probabilities are exactly as in the formulas: [Source.BernoulliExp] is their Algorithm 1,
// [Source.DiscreteLaplace] their Algorithm 2, [Source.DiscreteGaussian] their Algorithm 3.
// This holds for ideal bits: a source is assumed to draw uniformly.
//
// # Released floats
//
// The sum of a statistic and noise in floating point leaks the statistic through the set of
// values that it can take (Mironov, "On significance of the least significant bits for
// differential privacy", 2012). [Source.Laplace] and [Source.Gaussian] work differently: the
// value is rounded to a multiple of a grid g = 2^k of at most 2⁻⁴⁰ of the scale, integer noise
// is added in units of the grid, and the exact sum is rounded to a float. Grid and scale do
// not depend on the value, and results computed from the integer sum cost nothing. What
// remains, exactly:
//
//   - Rounding moves two values apart by g at most. Account the release with
//     [Sensitivity] in place of the sensitivity.
//   - Laplace: nothing else. The release is pure ε-DP with ε = Sensitivity/scale.
//   - Gaussian: no Rényi divergence exceeds the one of continuous noise (Canonne, Kamath and
//     Steinke, Theorem 4), so that a guarantee by Rényi or zero-concentrated DP needs nothing
//     else. A guarantee by Gaussian DP or by the exact privacy profile needs [GaussianDelta]
//     added to its δ, which is below 1e-20 for a sensitivity of up to 500 σ, and below the
//     precision of any δ that one would state.
//
// # Timing
//
// The time of a draw depends on the drawn value (Jin, McMurtry, Rubinstein and Ohrimenko, "Are
// we there yet? Timing and floating-point attacks on differential privacy systems", 2022). The
// guarantees are for the values alone: do not let an observer time a release, nor choose a
// value and time its noise.
package noise

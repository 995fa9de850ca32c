// Package transcript computes what it costs to publish the noisy results of a whole
// search for good hyperparameters.
//
// The search trains models, measures each on test records, and publishes nothing but the
// measured values with Gaussian noise: the transcript. Whatever is computed from it, the
// next configuration included, is post-processing. Two sets of records need protection,
// and no person may be in both:
//
//   - A test record changes every value, an average over m records of numbers in [0, 1],
//     by at most 1/m when it is replaced. N values with noise of standard deviation σ are
//     Gaussian DP with μ = √N/(mσ), exactly (Dong, Roth and Su, "Gaussian differential
//     privacy", 2022), also if each depends on those before ([Noise], [TestEpsilon]).
//   - A training record is protected by what was trained: R runs with the Rényi divergence
//     ρ(α) cost Rρ(α), or by the noise, where n values in [0, 1] are less: nα/(2σ²)
//     ([Charge]). The configurations are chosen by earlier values, so that the sum has to
//     stay within a budget for one order α that was fixed in advance (Feldman and Zrnic,
//     "Individual privacy accounting via a Rényi filter", 2021): [Order].
//
// Nothing better is to be had without knowing more of the mechanisms: an accuracy can be
// the model itself, up to rounding, and the noise that hides a test record is far too
// small to hide a model ([EffectiveMu], [Contraction]). What helps the training records is
// to train every model on another shard of them: a record is in one, so that each shard
// has a budget of its own.
package transcript

// Package transcript computes the cost of publishing the noisy results of a whole
// hyperparameter search.
//
// The search trains models, measures each on test records, and publishes only the measured
// values with Gaussian noise: the transcript. Whatever is computed from it, the next
// configuration included, is post-processing. Two sets of records need protection, and no
// person may be in both:
//
//   - A test record changes every value, an average over m records of numbers in [0, 1],
//     by at most 1/m when it is replaced. N values with noise of standard deviation σ are
//     Gaussian DP with μ = √N/(mσ), exactly (Dong, Roth and Su, "Gaussian differential
//     privacy", 2022), also if each depends on those before ([Noise], [TestEpsilon]).
//   - A training record is protected by what was trained: R runs with the Rényi divergence
//     ρ(α) cost Rρ(α), or by the noise, where n values in [0, 1] are less: nα/(2σ²)
//     ([Charge]). The configurations are chosen by earlier values, so that the sum must
//     stay within a budget for one order α that was fixed in advance (Feldman and Zrnic,
//     "Individual privacy accounting via a Rényi filter", 2021): [Order]. In the same way the
//     μ² of Gaussian DP add up ([GaussianCharge], [adaptive.GaussianBudget]).
//
// Without knowing more about the mechanisms nothing better is possible: an accuracy can be the
// model itself, up to rounding, and the noise that hides a test record is far too small to
// hide a model. What helps the training records is to train
// every model on another shard of them: a record is in one shard only, so that each shard has
// its own budget.
package transcript

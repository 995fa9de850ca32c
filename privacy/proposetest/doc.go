// Package proposetest tunes hyperparameters by proposing a utility and testing
// privately whether some candidate reaches it, with a step that doubles on success
// (Ding and Wu, "Revisiting hyperparameter tuning with differential privacy", 2022,
// Algorithm 1), in a version whose guarantee is rigorous.
//
// Every candidate s has a utility u_s in [0, 1], the mean over k models that were
// trained on k disjoint parts of the training data, so that one training record moves
// it by at most 1/k. A round proposes the threshold u_0 + (a + step)·g and asks
// AboveThreshold (Dwork and Roth, 2014, Algorithm 1) which candidate, in a fixed order,
// is the first to reach it: ε_0-DP in every round, with fresh noise. A success raises a
// by step and doubles step, a failure halves it; step 0 ends the search, as does
// a >= M = ⌈(1 − u_0)/g⌉. Counting a and step in whole numbers makes the end exact: a sum
// of steps·g in floating point may miss 1.
//
// # What differs from the paper
//
//   - The paper's ε is ε_0·Õ(√((u* − u_0)/g)). It depends on the best utility u*, hence
//     on the data, which a privacy parameter must not. Here the number of rounds has a cap
//     T that is fixed before the run, and the guarantee is the composition of T rounds,
//     however few are run. No run has more than 2M − 1.
//   - Advanced composition costs an additional δ′, which the paper leaves out. Here it is a
//     field, and the guarantee is the least of all valid rules of composition.
//   - When the first round fails the paper selects nothing; here the answer is a default
//     candidate that is named beforehand.
//   - The paper protects the records of the training set only. [Tuning.ValidationGuarantee]
//     computes what the same noise is worth to a validation record.
//
// [Tuning.PaperClaim] has the paper's own numbers, for comparison.
//
// # Whether to use it
//
// The paper's simulation has noise of scale 2 and 4 on utilities in [0, 1]: its rounds are few
// because among a hundred candidates one always passes, and the selected candidate is random.
// With the same total ε one call of report-noisy-max on the same utilities does better, and
// its cost does not depend on the number of candidates either: see package selection.
package proposetest

// Package bayesopt computes and applies the noise of differentially private Bayesian
// optimisation (Kusner, Gardner, Garnett and Weinberger, "Differentially private Bayesian
// optimization", ICML 2015), as published and with the paper's errors corrected. It protects
// records of the validation set, one of which is replaced; the training set counts as public.
//
// # What is guaranteed
//
//   - [Noisy] is Algorithm 1 and [NoiseFree] Algorithm 2. Their noise suffices with a
//     probability of 1 − δ over a draw of the utilities of all data sets from a Gaussian
//     process with kernels k_1 and k_2 that are known. For data that does not fit this model
//     there is no bound: this is not differential privacy, which holds for all data.
//     [Conditional] says so; print it with every such ε. [WorstCase] is the guarantee of the
//     same noise for all data, if scores are clipped.
//   - [Ridge] is Algorithm 3, pure ε-differential privacy in the worst case, for the
//     regularisation of a convex linear model.
//
// # Units
//
// Utilities in Algorithms 1 and 2 are in standard deviations of the Gaussian process'
// prior, k_2(λ, λ) = 1, with mean 0. Multiply by that standard deviation for units of the
// utility.
//
// # Vacuous in practice
//
// The sensitivity of a posterior mean in Algorithm 1 is above ten standard deviations of the
// prior, so that the exponential mechanism with ε = 1 chooses almost uniformly. In Algorithm 3
// it exceeds the range of the utility unless 1/λ varies little. If the candidates are fixed
// beforehand, permute-and-flip over utilities that are means over m records has a guarantee in
// the worst case and an error of order log|Λ|/(mε): see package selection.
package bayesopt

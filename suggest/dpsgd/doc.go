// Package dpsgd knows what DP-SGD has in common from one data set to another, for surrogates of the error
// of trained models.
//
// T steps of learning rate η move the weights by at most R = ηCT while gradients are clipped to the norm C.
// With lots of m records and noise of the standard deviation κσC in the sum of a lot, the sum of all noise in
// each weight has the standard deviation S = ηκσC√T/m, and S/R = κσ/(m√T) = ν. So (R, ν) says how far the
// weights can go and how noisily. C decides how many gradients are clipped, T how fine the steps are, and m
// how noisy lots are without the added noise; they matter less. The logarithms of the five are linear in the
// logarithms of η, C, σ, T and m, and determine them: nothing is lost. (That noise and lot size matter
// through their ratio: McKenna et al., "Scaling Laws for Differentially Private Language Models", ICML 2025;
// that the length of the path matters: Panda et al., "A New Linear Scaling Rule for Private Adaptive
// Hyperparameter Optimization", ICML 2024.)
package dpsgd

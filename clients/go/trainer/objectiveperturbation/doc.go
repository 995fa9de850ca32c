// Package objectiveperturbation trains linear models by minimising a randomly
// perturbed objective: Algorithm 2 of Chaudhuri, Monteleoni and Sarwate,
// "Differentially private empirical risk minimization" (JMLR 2011). Logistic
// regression and the support vector machine with the Huber loss have the model
//
//	θ = argmin (1/n) Σ ℓ(θ·z_i) + τ/2·‖θ‖² + b·θ/n
//
// for the records z_i = y_i·x_i, y_i = ±1, with the features divided by a public
// bound on their norm (those beyond it are clipped), so that ‖z_i‖ <= 1, and
// without an intercept. The noise b has a density proportional to e^(−β‖b‖₂): its
// norm is Gamma distributed with shape d, the number of features, and scale 1/β,
// and its direction is uniform. Independent Laplace coordinates are a different
// distribution with a weaker guarantee.
//
// # Privacy
//
// [Trainer.Mechanism] returns the mechanism of a configuration, a
// privacy.ObjectivePerturbation: pure ε-differential privacy under replace-one
// adjacency, for one release of one replicate. Its rule divides ε between the
// noise and the regulariser and so decides β and τ >= λ; privacy.RankOne, the
// default, adds the least noise.
//
// The guarantee is that of the exact minimiser. Newton's method stops at a
// gradient norm of 1e-10, which leaves the model within 1e-10/τ of it, beyond
// the digits of interest but no part of the proof. If a gradient norm ζ is all
// that is reached, the model is within ζ/τ of the minimiser, and so two such
// models on neighbouring records may differ by 2ζ/τ more than the minimisers do:
// ε then covers the model only after further noise for that sensitivity, at a
// further cost. The trainer does not do that. It takes the configuration for
// infeasible and says what was reached.
//
// The guarantee also is one for real numbers: noise in floating point has gaps
// that an attacker who sees all digits of a model might exploit.
//
// # Parameters
//
//	target_epsilon  float64  ε, positive; +Inf trains without privacy
//	regularization  float64  λ, positive
//	split           float64  share of ε of the regulariser, between 0 and 1; only with
//	                         the rank-one calibration, optional: 0.05
//
// # Measurements
//
// There are no checkpoints. The metric error is the fraction of the validation examples
// that the model classifies wrongly, and loss their mean loss; test_error and test_loss
// are the same on the test examples. Package experiment explains what is which, and the
// settings that decide it.
//
// # Beyond training
//
// [Objective] makes the perturbed objective of a mechanism from a noise of rate
// one, as [UnitNoise] draws it. With the same unit noise, objectives of different
// ε are coupled: the minimiser is a continuous function of ε wherever β and τ are.
// What package linear knows about an objective, its exact minimiser from a warm
// start, its gradient, and products and solutions with its Hessian, serves to
// study the utility as a function of ε. All of this is a function of the raw
// data. Two models with the same unit noise must never both be released: their
// optimality conditions are two equations from which the noise can be eliminated.
//
// # Randomness
//
// The noise comes from a stream of a counter-based generator under the seed of the run:
// whoever knows it can take the noise off again. Under the setting noise_source = os it
// comes from the operating system and nothing records it, which a model for release
// needs (package random).
package objectiveperturbation

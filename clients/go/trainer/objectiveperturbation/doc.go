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
// privacy.ObjectivePerturbation: pure ε-differential privacy under replace-one adjacency,
// for one release of one replicate. Its calibration divides ε between the noise and the
// regulariser, which fixes β and τ >= λ; privacy.RankOne, the default, adds the least
// noise.
//
// The guarantee holds for the exact minimiser. Newton's method stops at a gradient norm
// of 1e-10, which leaves the model within 1e-10/τ of it: negligible, but not covered by
// the proof. If it reaches only a gradient norm ζ, the model is within ζ/τ of the
// minimiser, so that two such models on neighbouring records may differ by 2ζ/τ more than
// the minimisers do: ε would then cover the model only after further noise for that
// sensitivity, at a further cost. Instead, the trainer reports the configuration as
// infeasible, with the gradient norm.
//
// The guarantee is also for real numbers. The noise b is drawn and the minimiser computed in
// floating point, whose gaps an attacker who sees all digits of a model might exploit: no proof
// covers the released digits. The mechanism states this among its assumptions
// (privacy.ObjectivePerturbation). Output perturbation and DP-SGD have exact noise.
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
// are the same on the test examples. Package experiment explains these examples and the
// settings that choose them.
//
// # Beyond training
//
// [Objective] makes the perturbed objective of a mechanism from noise of rate one, as
// [UnitNoise] draws it. The same unit noise couples objectives of different ε: the
// minimiser is continuous in ε wherever β and τ are. Package linear computes the
// minimiser from a warm start, the gradient, and products and solutions with the Hessian,
// to study the utility as a function of ε. All of this depends on the raw data. Two
// models with the same unit noise must never both be released: their optimality
// conditions are two equations from which the noise can be eliminated.
//
// # Randomness
//
// The noise comes from the operating system's entropy and is not recorded (package random), or
// from the seed of the run, for experiments: anyone who knows the seed can remove the noise.
package objectiveperturbation

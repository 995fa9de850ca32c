// Package outputperturbation trains logistic regression by stochastic gradient
// descent without noise and adds Gaussian noise to the result: Algorithm 2 of Wu,
// Li, Kumar, Chaudhuri, Jha and Naughton, "Bolt-on differential privacy for
// scalable stochastic gradient descent-based analytics" (SIGMOD 2017).
//
// The loss of a record (x, y), y = ±1, is log(1 + e^(−y·w·x)) + γ/2·‖w‖², without
// an intercept, with the features divided by the public bound B on their norm
// (those beyond it are clipped), so that ‖x‖ <= 1. From w = 0, each of T epochs
// visits all n records in a fresh random order; update t = 1, 2, ..., Tn is
//
//	w ← Π(w − η_t ∇ℓ(w)),  η_t = min(1/β, 1/(γt)),  β = 1 + γ,
//
// where Π is the projection to a ball, if any. The model is w + N(0, σ²I). The
// published experiments have this β; 1/4 + γ is the least that bounds the second
// derivative.
//
// # Privacy
//
// [Trainer.Mechanism] returns the mechanism of a configuration, a
// privacy.OutputPerturbation under replace-one adjacency. Whatever the order and
// the number of epochs, exchanging one record moves w by at most
//
//	2(1 + γR)/(γn)  with the projection to a ball of radius R, as published;
//	2/(γn)          without: [NoProjection], the default.
//
// Projection to R = 1/γ, as in the published experiments, never moves a model: the
// iterates stay in that ball anyway. It exists to state their ε, which is about twice as
// large as without it.
//
// The bounds hold for one release of one replicate. The noise is exact: the model is truncated
// to a grid of 2⁻⁴⁰σ and gets normal noise rounded to the grid (random.AddNoise), larger by what
// the truncation adds to the sensitivity. The bounds on the sensitivity are for descent in real
// numbers. Rounding errors of the descent in float64 are not accounted for: every update is a
// contraction that errs by about 2⁻⁵²(k + 4)(‖w‖ + 1) for records of k values, so that two
// models without projection are apart by at most about n²T·2⁻⁵²(k + 4)(1 + γ) of the bound more:
// 1e-4 of it for ten epochs on Adult.
// The number of epochs must not be chosen by looking at training on the same records: the
// measurements after each epoch are for a search among configurations, which composes
// like any other.
//
// # Parameters
//
//	epochs              int64    T, at least 1
//	regularization      float64  γ, positive
//	standard_deviation  float64  σ, at least 0, in the unit of the weights of the scaled
//	                             features; 0 trains without privacy
//
// # Measurements
//
// After every epoch and for every replicate, error is the fraction of the validation
// examples that the noisy model classifies wrongly, and loss their mean log loss in nats;
// test_error and test_loss are the same on the test examples. Package experiment explains
// these examples and the settings that choose them.
//
// Neither the steps nor the noise depend on T: the measurement after t epochs equals the
// one of the same configuration with epochs = t, for the same seed to the last bit.
//
// A configuration is infeasible when the model or its loss is not finite.
//
// # Randomness
//
// The orders of the records and the noise come from independent streams of the operating
// system's entropy and are not recorded (package random), or from the seed of the run, for
// experiments: anyone who knows the seed can remove the noise.
package outputperturbation

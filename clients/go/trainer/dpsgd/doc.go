// Package dpsgd trains logistic regression on Adult by differentially private
// stochastic gradient descent, exactly as Algorithm 3 of Avent, González,
// Diethe, Paleyes and Balle, "Automatic Discovery of Privacy-Utility Pareto
// Fronts" (PoPETs 2020), says. From w = 0, each step draws a lot S of exactly m
// of the n training examples, uniformly without replacement and independently of
// all other steps, and moves against the clipped and noisy gradient:
//
//	g = (1/m) Σ_{j∈S} ∇ℓⱼ(w) · min(1, L/‖∇ℓⱼ(w)‖) + (2L/m) · N(0, σ²I)
//	w ← w − η g
//
// The norm and the noise cover all parameters, the bias included. An epoch is
// round(n/m) steps, halves to even. Exchanging one example moves the average by
// at most 2L/m, so that σ is the noise multiplier of each step for accounting
// under the replace-one adjacency, with sampling without replacement at rate
// m/n.
//
// # Parameters
//
//	epochs            int64    T, at least 1
//	lot_size          int64    m, between 1 and n
//	learning_rate     float64  η, positive
//	clipping_norm     float64  L, positive
//	noise_multiplier  float64  σ, at least 0; 0 trains without privacy
//	noise_variance    float64  σ², in place of noise_multiplier
//
// # Measurements
//
// After every epoch the metrics error, the fraction of the test examples that
// the model classifies wrongly, and loss, their mean log loss in nats, are
// measured for every replicate. Nothing in the algorithm depends on T, so that
// the measurement after t epochs is that of the same configuration with
// epochs = t, for the same seed to the last bit.
//
// A configuration is infeasible when the weights or the loss of any replicate
// cease to be finite.
//
// # Randomness
//
// Lots and noise come from generators with a known seed, as experiments need:
// whoever knows the seed can take the noise off again. The models serve to find
// a configuration and are not kept; one for release has to be trained with
// randomness that nobody can repeat.
package dpsgd

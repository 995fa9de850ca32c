// Package dpsgd trains models by differentially private gradient descent: DP-SGD and
// DP-Adam, exactly as in Algorithms 3 and 4 of Avent, González, Diethe, Paleyes and
// Balle, "Automatic Discovery of Privacy-Utility Pareto Fronts" (PoPETs 2020). Each step
// draws a lot S of exactly m of the n training examples, uniformly without replacement
// and independently of all other steps, and takes the clipped and noisy gradient
//
//	g = (1/m) Σ_{j∈S} ∇ℓⱼ(w) · min(1, L/‖∇ℓⱼ(w)‖) + (2L/m) · N(0, σ²I)
//
// over all parameters of the model, biases included. DP-SGD moves by
//
//	w ← w − η g
//
// and DP-Adam, at its step number i, by
//
//	µ ← β₁µ + (1 − β₁)g,  ν ← β₂ν + (1 − β₂)g²
//	w ← w − η · µ/(1 − β₁ⁱ) / (√(ν/(1 − β₂ⁱ)) + κ)
//
// with β₁ = 0.9, β₂ = 0.999, κ = 1e-8. An epoch is round(n/m) steps, halves to even.
// Package model has the models.
//
// # Sampling and noise
//
// With lots of fixed size, exchanging one example moves the average by at most
// 2L/m, so that σ is the noise multiplier of each step for accounting under the
// replace-one adjacency, with sampling without replacement at rate m/n
// (privacy.FixedSizeGaussian).
//
// Under the setting sampling = poisson, each example is in a lot with probability
// m/n, independently; the size of a lot is random and secret, and the sum is divided
// by its expectation m. The probability and the number of steps follow from n, which is
// therefore public: neighbouring datasets differ in an example that is zeroed out. The noise then follows the other convention, under which
// σ is relative to the clipping norm (privacy.PoissonGaussian, add-remove
// adjacency; Abadi et al., "Deep learning with differential privacy", 2016):
//
//	g = (1/m) Σ_{j∈S} ∇ℓⱼ(w) · min(1, L/‖∇ℓⱼ(w)‖) + (L/m) · N(0, σ²I)
//
// At equal σ it has half the noise, and ε has another meaning.
//
// Under sampling = random-allocation ("balls in bins"), each epoch puts every example into one of its t = round(n/m)
// lots, uniformly and independently of the other examples and epochs. Lots have random and secret sizes, some may be
// empty, and every example counts once an epoch. The sum is divided by the expected size n/t, and the noise on the sum is
// σL. As for Poisson sampling n is public (privacy.RandomAllocation).
//
// Under adjacency = replace-one, Poisson sampling and random allocation add noise of 2σL to sums, as for lots of fixed
// size, and ε is for neighbours that exchange one example.
//
// # Correlated noise
//
// The trainer dp-mf is DP-SGD on Poisson lots with noise that later steps partly take back (DP-BandMF; Choquette-Choo,
// Ganesh, McKenna, McMahan, Rush, Thakurta and Xu, "(Amplified) banded matrix factorization", 2023). The examples are
// split into b groups of equal sizes at random, step i draws each example of group i modulo b with probability bm/n, and the
// noise of the steps is C⁻¹Z, for a lower triangular Toeplitz matrix C with b bands and columns of norm 1: Z has
// standard deviation σL and would be the noise without correlation. The mechanism is privacy.BandMF under add-remove
// adjacency with a public number of examples. The matrix minimises the noise in the sum of the gradients of 16·b
// steps; it does not depend on T. Noise takes the memory of b gradients.
//
// Under matrix = blt or tree, dp-mf samples nothing (DP-FTRL; Kairouz, McMahan, Song, Thakkar, Thakurta and Xu, "Practical
// and private (deep) learning without sampling or shuffling", 2021). A run cuts the examples at random into t = ⌊n/m⌋ lots
// of equal sizes. Every epoch takes these lots in the same order, so that an example takes part every t steps. Sums are
// divided by n/t. The mechanism is one privacy.DPFTRL under add-remove adjacency with a public number of examples, and σL is
// the standard deviation of Z.
//
//   - blt: C is a buffered linear Toeplitz matrix with c₀ = 1 and two constant buffers (correlated.BLT). Noise takes the
//     memory of three gradients.
//   - tree: every epoch has a tree of its own (correlated.Tree), and Z is the noise of its nodes. Noise takes the memory of
//     log₂(t) + 1 gradients.
//
// # Parameters
//
//	epochs            int64    T, at least 1
//	lot_size          int64    m, between 1 and n
//	learning_rate     float64  η, positive
//	clipping_norm     float64  L, positive; +Inf, for no clipping, if there is no noise
//	noise_multiplier  float64  σ, at least 0; 0 trains without privacy
//	noise_variance    float64  σ², in place of noise_multiplier
//	model             string   what is trained, in place of the setting
//	hidden            int64    width of the hidden layer of model mlp, in place of the setting;
//	                           or a string with the widths of several, "128,64"
//	features          string   raw or hog, in place of the setting: histograms of oriented gradients of images (dataset.HOG)
//	optimizer         string   sgd or adam
//	bands             int64    b, of dp-mf with matrix banded, between 1, which is dp-sgd with Poisson lots, and n/m
//	mechanism         string   of dp-mf with matrix banded: dp-mf, or dp-sgd for 1 band, in place of bands
//
// model, hidden, features and optimizer make the choice of a model, of features and of an optimizer part of a search. The features of
// an example are a fixed function of it alone, so that neighbouring datasets have neighbouring features and the same ε. mechanism does so for
// correlated noise: give bands a condition on it. Only the trainers dp-sgd and dp-mf take the optimizer; sgd is its default. learning_rate_sgd and learning_rate_adam stand for
// learning_rate in the runs of that optimizer, for studies in which each has a domain and
// a condition. normalized_learning_rate = ηL replaces learning_rate for sgd: steps have at most this length
// before noise, whatever L is, so that its good values hardly depend on L. A run's ε depends on none of these: all models and both optimizers see the training
// examples through the noisy sums of clipped gradients alone, in the same number of steps.
//
// # Measurements
//
// After every epoch and for every replicate, error is the fraction of the validation
// examples that the model classifies wrongly, and loss their mean loss, in nats where
// the loss is a log loss; test_error and test_loss are the same on the test examples.
// Package experiment explains these examples and the settings that choose them.
//
// Nothing in the algorithms depends on T: the measurement after t epochs equals the one
// of the same configuration with epochs = t, for the same seed to the last bit.
//
// A configuration is infeasible if the weights or a loss of any replicate cease to be
// finite.
//
// # Randomness
//
// Lots, noise and initial weights come from independent streams of the operating system's
// entropy (package random). Nothing records the draws, and no two runs are equal: the privacy
// computed for a run holds only while its lots and its noise are secret. A run with a seed is
// for experiments, since anyone who knows the seed can remove the noise. Its results do not
// depend on the number of processors, but may differ in the last bits between kinds of
// processors. Replicates train in parallel first; remaining processors share the work on a lot.
//
// # Exactness
//
// The noise is exact. Clipped gradients are summed as whole multiples of a grid, 2⁻⁴⁰ of the
// standard deviation of the noise, with a sensitivity of L or 2L in exact arithmetic (package
// model, Rounding), and the noise is a normal number of that standard deviation rounded to the
// grid (random.AddNoise). Everything that follows, the division by m first, is computed from the
// exact sum. So a run is a function of the mechanism on real numbers that Mechanism returns, and
// its ε holds as it is computed, but for 2⁻¹²⁵ in total variation for every number drawn. Lots of
// a fixed size, and allocated ones, are drawn exactly; the gaps between the examples of Poisson lots are computed in
// float64, which moves sampling probabilities by a few units of 2⁻⁵³. The buffers of a BLT are rounded, and its grid is
// wider by what that can cost.
//
// σ must be at least 2⁻¹⁷ (2⁻¹⁶ with Poisson sampling or random allocation), and at most 2²⁶ (2²⁷) over the root of the
// number of parameters, and L between 2⁻⁶⁰ and 2⁶⁰.
package dpsgd

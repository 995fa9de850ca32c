package adaptive

import (
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/internal/gaussian"
)

// gaussianSlackShare is the share of δ of a Gaussian filter that its accesses may take together
// beyond Gaussian DP. It costs some 0.2 % of the budget.
const gaussianSlackShare = 0.02

// maxAccesses bounds the accesses of a Gaussian filter.
const maxAccesses = 1 << 30

// GaussianBudget is what mechanisms may spend by Gaussian DP that are chosen one after another, each possibly
// from the outputs of the earlier ones, parameters included: each is admitted if its [GaussianBudget.Cost] still
// fits into Squared, and the total is then the declared one, however little is spent. It usually admits a tenth
// more than a budget of Rényi divergence; the exceptions are few steps with little noise, whose losses are far
// from normal.
//
// The cost must be a number that adds up under adaptive choices. The ε of the releases admitted so far,
// composed exactly, does not: a search that goes on in one way after a lucky output and in another after an
// unlucky one can stay within it and break it.
//
// An access that is μ-Gaussian DP but for a probability of Slack is, with the remaining
// probability, a post-processing of N(0, 1) or N(μ, 1), and hence of how far a Brownian motion with
// drift 0 or 1 goes in a time of μ². The choices of the accesses look at its past only, so that what
// all of them show is a post-processing of the path up to the time Squared, which is √Squared-Gaussian
// DP (Smith and Thakurta, "Fully adaptive composition for Gaussian differential privacy", 2022, for a
// slack of 0). The slacks add up to at most δ/50, as every access costs at least Least.
type GaussianBudget struct {
	Squared float64 // the sum of μ² that may be spent
	Slack   float64 // of each access, in (0, 1)
	Least   float64 // the least cost of an access: Squared over the number of accesses
}

// NewGaussianBudget returns the budget of at most accesses mechanisms, a number in [1, 2³⁰], that
// are (epsilon, delta)-DP together. More of them make the slack of each smaller, which costs little. The errors are
// FieldErrors for "epsilon", positive and finite, "delta", in (0, 1), and "accesses".
func NewGaussianBudget(epsilon, delta float64, accesses int64) (GaussianBudget, error) {
	if accesses < 1 || accesses > maxAccesses {
		return GaussianBudget{}, privacy.FieldErrorf("accesses", "must be in [1, %d], is %d", maxAccesses, accesses)
	}
	mu, err := privacy.GaussianMu(epsilon, delta*(1-gaussianSlackShare))
	if err != nil {
		return GaussianBudget{}, err
	}
	b := GaussianBudget{Squared: mu * mu, Slack: gaussianSlackShare * delta / float64(accesses)}
	b.Least = b.Squared / float64(accesses) * (1 - 1e-12) // so that rounding does not cost one of them
	return b, nil
}

// Cost returns what steps >= 1 runs of m cost as one access: μ² of [ApproximateMu], or Least. It
// returns ApproximateMu's errors.
func (b GaussianBudget) Cost(m privacy.Mechanism, steps int64) (float64, error) {
	mu, err := ApproximateMu(m, steps, b.Slack)
	return math.Max(b.Least, mu*mu), err
}

// Epsilon returns the ε >= 0 of accesses that cost spent together, at the δ of the whole budget.
func (b GaussianBudget) Epsilon(spent, delta float64) float64 {
	if spent == 0 {
		return 0
	}
	return gaussian.Epsilon(math.Sqrt(spent), math.Log(delta*(1-gaussianSlackShare)))
}

package transcript

import (
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/adaptive"
	"github.com/dpareto/dpareto/privacy/noise"
)

// Charge returns the cost of a trial to the training records: the smaller of two bounds on the
// Rényi divergence of the given order. The trial makes runs >= 1 runs of a mechanism with the
// divergence rho each, and publishes at most values averages, clipped to [0, 1], with Gaussian
// noise of standard deviation sigma by [noise.Source.Gaussian], whose grid moves two of them
// apart by a little more than 1. The second bound, by the noise alone, holds for every
// mechanism, also for one without a guarantee (rho = +Inf).
func Charge(order, rho float64, runs, values int64, sigma float64) float64 {
	mu := noise.Sensitivity(1, sigma) / sigma
	return math.Min(float64(runs)*rho, float64(values)*order*mu*mu/2)
}

// GaussianCharge is [Charge] for a filter of Gaussian DP: cost is the part of budget that the runs
// of a trial cost, +Inf without a bound. The noise alone is Gaussian DP but for its grid, which the
// slack of the budget must cover: δ_μ(ε) + grid ≤ slack + (1 − slack)·δ_μ(ε) for all ε if it holds
// at ε = 0.
func GaussianCharge(budget adaptive.GaussianBudget, cost float64, values int64, sigma float64) float64 {
	mu := noise.Sensitivity(1, sigma) / sigma
	squared := float64(values) * mu * mu
	if grid := float64(values) * noise.GaussianDelta(1, sigma); grid > budget.Slack*math.Erfc(math.Sqrt(squared/8)) {
		return cost
	}
	return math.Min(cost, math.Max(budget.Least, squared*(1+1e-12)))
}

// Order tries α − 1 from leastOrder to mostOrder times log(1/δ)/ε, below which the classic
// conversion leaves no budget, in geometric steps.
const (
	leastOrder = 1.0 / 32
	mostOrder  = 64.0
	orderSteps = 50
)

// MaxOrder is the largest order that [Order] chooses: the divergence of sampled Gaussian
// noise takes a time in proportion to it. It leaves a budget for any ε above about 1e-3.
const MaxOrder = 1 << 14

// Order returns the order of the Rényi filter that admits the most trials of a typical cost
// within (epsilon, delta)-DP, and its budget: the order α that maximises budget/cost among
// some 50 candidates. cost returns the divergence of a typical trial;
// orders for which it returns an error are skipped. It must not depend on the data: the order
// must be fixed before the first trial. The errors are [privacy.GaussianMu]'s, a
// privacy.FieldError for an "epsilon" that is too small, and the last one of cost if it fails
// for every order.
func Order(epsilon, delta float64, cost func(order float64) (float64, error)) (order, budget float64, err error) {
	if _, err := privacy.GaussianMu(epsilon, delta); err != nil { // it checks both
		return 0, 0, err
	}
	scale := -math.Log(delta) / epsilon
	best := 0.0
	var last error
	try := func(candidate float64) {
		b := privacy.Improved.Budget(candidate, epsilon, delta)
		if candidate > MaxOrder || !(b > 0) {
			return
		}
		c, err := cost(candidate)
		if err != nil {
			last = err
			return
		}
		// A cost of 0 would admit everything; then any order will do.
		if ratio := b / math.Max(c, math.SmallestNonzeroFloat64); ratio > best {
			best, order, budget = ratio, candidate, b
		}
	}
	for i := range orderSteps + 1 {
		try(1 + scale*leastOrder*math.Pow(mostOrder/leastOrder, float64(i)/orderSteps))
	}
	switch {
	case best == 0 && last == nil:
		return 0, 0, privacy.FieldErrorf("epsilon", "is too small for a Rényi filter")
	case best == 0:
		return 0, 0, last
	}
	return order, budget, nil
}

// TrainEpsilon returns ε of a Rényi divergence of the given order, at delta: 0 for none.
func TrainEpsilon(order, divergence, delta float64) float64 {
	if divergence == 0 {
		return 0
	}
	return privacy.Improved.Epsilon(order, divergence, delta)
}

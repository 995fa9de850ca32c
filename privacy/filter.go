package privacy

import (
	"errors"
	"math"
	"sync"
)

// Filter admits mechanisms that are chosen one after another, each possibly from the outputs
// of the earlier ones, parameters included, for as long as the sum of what they cost stays within
// a budget. The guarantee is the declared one, however little of it is spent: ordinary composition
// is for parameters that are fixed in advance. A Filter is safe for concurrent use.
//
// The cost must be a number that adds up under adaptive choices, as the Rényi divergence of one
// order ([NewFilter]) and μ² of Gaussian DP ([NewGaussianFilter]) do. The ε of what was admitted so
// far, composed exactly, does not: a search that goes on in one way after a lucky output and in
// another after an unlucky one can stay within it and break it.
type Filter struct {
	guarantee Guarantee
	budget    float64
	cost      func(m Mechanism, steps int64) (float64, error)

	mu    sync.Mutex         // guards the fields below
	costs map[string]float64 // by mechanism and steps, for a search that asks again
	spent float64
	steps int64
}

// keptCosts is the number of costs that a filter remembers.
const keptCosts = 4096

// NewFilter returns a filter of Rényi divergence (Feldman and Zrnic, "Individual privacy
// accounting via a Rényi filter", 2021, Theorem 4.3) whose total is (epsilon, delta)-DP under
// adjacency, accounted at the given Rényi order > 1. An order near 1 + √(2·log(1/δ)/ρ) suits
// mechanisms that are ρ-zCDP in total. The errors are FieldErrors for "order", "epsilon", "delta"
// and "adjacency", also if the order leaves no budget: it must exceed about 1 + log(1/δ)/ε.
func NewFilter(order, epsilon, delta float64, adjacency Adjacency) (*Filter, error) {
	var errs []error
	if !(order > 1) || math.IsInf(order, 1) {
		errs = append(errs, FieldErrorf("order", "must exceed 1 and be finite, is %g", order))
	}
	errs = append(errs, checkPositive("epsilon", epsilon), checkDelta(delta), checkAdjacency(adjacency))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	budget := epsilon - Improved.surcharge(order, math.Log(delta))
	if !(budget > 0) {
		return nil, FieldErrorf("order", "%g leaves nothing of epsilon %g for delta %g", order, epsilon, delta)
	}
	f := newFilter("rdp_filter", epsilon, delta, adjacency, budget)
	f.guarantee.Order = order
	f.cost = func(m Mechanism, steps int64) (float64, error) {
		parts, err := renyiParts(f.guarantee.Accountant, m)
		if err != nil {
			return 0, err
		}
		rho, _ := (&rdpCurve{parts: parts}).sum(order, math.Inf(1))
		return rho * float64(steps), nil
	}
	return f, nil
}

func newFilter(name string, epsilon, delta float64, adjacency Adjacency, budget float64) *Filter {
	return &Filter{
		budget: budget,
		guarantee: Guarantee{
			Epsilon: epsilon, Delta: delta, Adjacency: adjacency, Accountant: name,
			Assumptions: []string{"every access to the data was admitted by the filter before it happened"},
		},
	}
}

// Spend admits steps >= 1 runs of m and returns true, or returns false and admits none of them
// if they do not fit; later, smaller requests may. The errors are m's validation error,
// FieldErrors for "mechanism", "steps" and "adjacency", and an *UnsupportedError for an m
// of which the filter's cost is not known.
func (f *Filter) Spend(m Mechanism, steps int64) (bool, error) {
	if err := checkAccess(f.guarantee, m, steps); err != nil {
		return false, err
	}
	cost, err := f.costOf(m, steps)
	if err != nil {
		return false, err
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	if !(f.spent+cost <= f.budget) {
		return false, nil
	}
	f.spent += cost
	f.steps += steps
	return true, nil
}

// costOf returns what steps runs of m cost, from an earlier call if there was one.
func (f *Filter) costOf(m Mechanism, steps int64) (float64, error) {
	key := Part{m, steps}.Key()
	f.mu.Lock()
	cost, ok := f.costs[key]
	f.mu.Unlock()
	if ok {
		return cost, nil
	}
	cost, err := f.cost(m, steps)
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.costs == nil || len(f.costs) == keptCosts {
		f.costs = make(map[string]float64)
	}
	f.costs[key] = cost
	return cost, nil
}

// checkAccess checks that steps runs of m are valid under the adjacency of g.
func checkAccess(g Guarantee, m Mechanism, steps int64) error {
	if m == nil {
		return FieldErrorf("mechanism", "must be set")
	}
	if err := m.Validate(); err != nil {
		return err
	}
	if steps < 1 {
		return FieldErrorf("steps", "must be at least 1, is %d", steps)
	}
	if m.Adjacency() != g.Adjacency {
		return FieldErrorf("adjacency", "is %s, of the accesses so far %s", m.Adjacency(), g.Adjacency)
	}
	return nil
}

// Left returns the share of the budget that is not spent, in [0, 1].
func (f *Filter) Left() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return 1 - f.spent/f.budget
}

// Guarantee returns the declared guarantee with the number of runs so far.
func (f *Filter) Guarantee() Guarantee {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.guarantee
	g.Steps = f.steps
	return g
}

package privacy

import (
	"errors"
	"math"
	"sync"
)

// Filter admits mechanisms that are chosen one after another, each possibly from the outputs
// of the earlier ones, parameters included, for as long as their total Rényi divergence at one
// order fixed in advance stays within a budget (Feldman and Zrnic, "Individual privacy
// accounting via a Rényi filter", 2021, Theorem 4.3). The guarantee is the declared one,
// however little of it is spent: ordinary composition is for parameters that are fixed in
// advance. A Filter is safe for concurrent use.
type Filter struct {
	guarantee Guarantee
	budget    float64 // of ρ

	mu    sync.Mutex // guards spent and steps
	spent float64
	steps int64
}

// NewFilter returns a filter whose total is (epsilon, delta)-DP under adjacency, accounted at
// the given Rényi order > 1. An order near 1 + √(2·log(1/δ)/ρ) suits mechanisms that are
// ρ-zCDP in total. The errors are FieldErrors for "order", "epsilon", "delta" and "adjacency",
// also if the order leaves no budget: it must exceed about 1 + log(1/δ)/ε.
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
	return &Filter{
		budget: budget,
		guarantee: Guarantee{
			Epsilon: epsilon, Delta: delta, Adjacency: adjacency, Accountant: "rdp_filter", Order: order,
			Assumptions: []string{"every access to the data was admitted by the filter before it happened"},
		},
	}, nil
}

// Spend admits steps >= 1 runs of m and returns true, or returns false and admits none of them
// if they do not fit; later, smaller requests may. The errors are m's validation error,
// FieldErrors for "mechanism", "steps" and "adjacency", and an *UnsupportedError for an m
// without a Rényi divergence bound.
func (f *Filter) Spend(m Mechanism, steps int64) (bool, error) {
	parts, err := admissible(f.guarantee, m, steps)
	if err != nil {
		return false, err
	}
	rho, _ := (&rdpCurve{parts: parts}).sum(f.guarantee.Order, math.Inf(1))
	rho *= float64(steps)

	f.mu.Lock()
	defer f.mu.Unlock()
	if !(f.spent+rho <= f.budget) {
		return false, nil
	}
	f.spent += rho
	f.steps += steps
	return true, nil
}

// admissible returns the curves of m if steps runs of it are valid under the adjacency of g.
func admissible(g Guarantee, m Mechanism, steps int64) ([]rdpPart, error) {
	if m == nil {
		return nil, FieldErrorf("mechanism", "must be set")
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if steps < 1 {
		return nil, FieldErrorf("steps", "must be at least 1, is %d", steps)
	}
	if m.Adjacency() != g.Adjacency {
		return nil, FieldErrorf("adjacency", "is %s, of the accesses so far %s", m.Adjacency(), g.Adjacency)
	}
	return renyiParts(g.Accountant, m)
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

package privacy

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// SearchDistribution is the distribution of the number K of candidates of a random search,
// whose best candidate alone is released: see [RepeatedSelection] and [PoissonSelection],
// which are for candidates of one cost. Its Bound is for candidates that differ in cost.
type SearchDistribution struct {
	// Mean is E[K], finite: above 1, or positive for the Poisson distribution.
	Mean float64
	// Poisson takes the Poisson distribution, and not the truncated negative binomial one.
	Poisson bool
	// Eta is the shape η of the truncated negative binomial distribution, −1 < η and finite.
	Eta float64
}

// SearchBound bounds what a candidate costs, at the orders at which Papernot and Steinke
// ("Hyperparameter tuning with Rényi differential privacy", 2022) account a search. A search
// all of whose candidates it admits costs at most what [SearchDistribution.Guarantee] says.
//
// The candidate that is drawn from a distribution, and named in the output, has a Rényi
// divergence of at most the largest of those that can be drawn, since the draw does not depend
// on the data: exp((α−1)·ρ) is averaged.
type SearchBound struct {
	Order      float64 // λ > 1
	Divergence float64 // ρ(λ) of a candidate

	// For the truncated negative binomial distribution (their Theorem 2): λ̂ > 1, and ρ(λ̂) of
	// a candidate.
	SecondOrder      float64
	SecondDivergence float64

	// For the Poisson distribution (their Theorem 6): δ̂ of a candidate, which is (ε̂, δ̂)-DP
	// with ε̂ = log(1 + 1/(λ−1)).
	Delta float64
}

// costliest is the number of candidates, for each of a few orders, among which the orders
// of a bound are chosen, and whose δ̂ is computed.
const costliest = 4

// Bound returns the bound that the given candidates, each a mechanism with the number of its
// runs, attain: their largest divergences at the orders that give the least ε for delta, in
// (0, 1). Under the Poisson distribution δ̂, which is slow, is computed for the costliest
// candidates only; the bound may then not admit a few of the others. The error names an
// invalid field of the distribution, delta, or the first invalid candidate.
func (d SearchDistribution) Bound(candidates []Part, delta float64) (SearchBound, error) {
	logInverse, err := d.logInverseGamma()
	if err := errors.Join(err, checkDelta(delta)); err != nil {
		return SearchBound{}, err
	}
	if len(candidates) == 0 {
		return SearchBound{}, FieldErrorf("candidates", "must not be empty")
	}
	all := make([]*searchCandidate, len(candidates))
	for i, part := range candidates {
		c, err := newSearchCandidate(part)
		if err != nil {
			return SearchBound{}, err
		}
		all[i] = c
	}
	few := costliestOf(all)
	logDelta := math.Log(delta)
	total := func(order float64) float64 {
		rho := largestRho(few, order) + math.Max(0, math.Log(d.Mean))/(order-1)
		if d.Poisson {
			rho += d.Mean * largestDelta(few, order)
		}
		return rho
	}
	var b SearchBound
	_, b.Order = leastOverOrders(func(order, _ float64) float64 {
		return total(order) + Improved.surcharge(order, logDelta)
	})
	b.Divergence = largestRho(all, b.Order)
	if d.Poisson {
		b.Delta = largestDelta(few, b.Order)
		return b, nil
	}
	_, b.SecondOrder = leastOverOrders(func(order, _ float64) float64 {
		return (1-1/order)*largestRho(few, order) + logInverse/order
	})
	b.SecondDivergence = largestRho(all, b.SecondOrder)
	return b, nil
}

// Guarantee returns the cost, for δ in (0, 1), of a search whose candidates a bound admits.
// The caller fills in the adjacency of the candidates.
func (d SearchDistribution) Guarantee(b SearchBound, delta float64) (Guarantee, error) {
	logInverse, err := d.logInverseGamma()
	if err := errors.Join(err, checkDelta(delta), b.check()); err != nil {
		return Guarantee{}, err
	}
	rho := b.Divergence + math.Max(0, math.Log(d.Mean))/(b.Order-1)
	if d.Poisson {
		rho += d.Mean * b.Delta
	} else {
		second := (1-1/b.SecondOrder)*b.SecondDivergence + logInverse/b.SecondOrder
		rho += (1 + d.Eta) * math.Min(second, logInverse) // λ̂ = 1
	}
	g := Guarantee{
		Epsilon: Improved.Epsilon(b.Order, rho, delta), Delta: delta, Order: b.Order, Steps: 1,
		Accountant: RDP{}.Name(), Assumptions: searchAssumptions(),
	}
	if math.IsInf(g.Epsilon, 1) {
		g = g.warn(WarnVacuous, "epsilon is infinite: nothing is guaranteed")
	}
	return g, nil
}

// check reports the orders.
func (b SearchBound) check() error {
	if !(b.Order > 1) || b.SecondOrder != 0 && !(b.SecondOrder >= 1) {
		return FieldErrorf("order", "must be above 1, is %g (and %g)", b.Order, b.SecondOrder)
	}
	return nil
}

// Admits reports whether a candidate costs no more than the bound says, under a distribution.
// It does not admit one that is not valid.
func (d SearchDistribution) Admits(b SearchBound, candidate Part) bool {
	c, err := newSearchCandidate(candidate)
	if err != nil || !(c.rho(b.Order) <= b.Divergence) {
		return false
	}
	if d.Poisson {
		return c.delta(b.Order) <= b.Delta
	}
	return c.rho(b.SecondOrder) <= b.SecondDivergence
}

// logInverseGamma returns log(1/γ) of the truncated negative binomial distribution, after it
// has checked the distribution.
func (d SearchDistribution) logInverseGamma() (float64, error) {
	if d.Poisson {
		return 0, checkPositive("mean", d.Mean)
	}
	gamma, err := SelectionGamma(d.Eta, d.Mean)
	return -math.Log(gamma), err
}

// searchCandidate is a candidate of a search with what is known of it.
type searchCandidate struct {
	candidateRenyi

	part    Part
	profile *knownProfile
}

func newSearchCandidate(part Part) (*searchCandidate, error) {
	if errs := checkRenyiCandidate(PoissonSelection{}, part.Mechanism, part.Count); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	parts, err := renyiParts(PoissonSelection{}.Name(), part.Mechanism)
	if err != nil {
		return nil, err
	}
	return &searchCandidate{
		candidateRenyi: candidateRenyi{&rdpCurve{parts: parts}, float64(part.Count)}, part: part,
	}, nil
}

// delta returns δ̂ for an order.
func (c *searchCandidate) delta(order float64) float64 {
	if c.profile == nil {
		c.profile = &knownProfile{curve: profileOf(c.part.Mechanism), runs: c.part.Count, epsilons: make(map[int]float64)}
	}
	return c.profile.delta(math.Log1p(1 / (order - 1)))
}

// costliestOf returns the candidates with the largest divergences at a few orders.
func costliestOf(all []*searchCandidate) []*searchCandidate {
	var few []*searchCandidate
	rhos := make(map[*searchCandidate]float64, len(all))
	for _, order := range []float64{2, 8, 64} {
		for _, c := range all {
			rhos[c] = c.rho(order)
		}
		sorted := slices.SortedStableFunc(slices.Values(all), func(a, b *searchCandidate) int { return cmp.Compare(rhos[b], rhos[a]) })
		for _, c := range sorted[:min(costliest, len(sorted))] {
			if !slices.Contains(few, c) {
				few = append(few, c)
			}
		}
	}
	return few
}

// largestRho returns the largest divergence of the candidates at an order.
func largestRho(candidates []*searchCandidate, order float64) float64 {
	largest := 0.0
	for _, c := range candidates {
		largest = math.Max(largest, c.rho(order))
	}
	return largest
}

// largestDelta returns the largest δ̂ of the candidates for an order.
func largestDelta(candidates []*searchCandidate, order float64) float64 {
	largest := 0.0
	for _, c := range candidates {
		largest = math.Max(largest, c.delta(order))
	}
	return largest
}

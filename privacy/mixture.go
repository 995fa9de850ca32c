package privacy

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Mixture is the Mechanism that draws one of several mechanisms from a distribution that does not
// depend on the data, runs it, and names it with its output. It costs the mean of what they cost, by
// their profiles: with probabilities π
//
//	δ(ε) = Σ_j π_j·δ_j(ε),
//
// since the sum of [p − e^ε·q]₊ over the outputs of all mechanisms is the sum of their sums. The pair that
// draws j with the same π and then from the pair of mechanism j has this profile, and dominates.
// For the same reason exp((α−1)·ρ(α)) of the Rényi divergence is the mean of theirs.
//
// [NewMixture] makes one. Mechanisms need a profile; without a Rényi divergence of one of them there is none of
// the mixture.
type Mixture struct {
	choices []Choice
	pairs   []lossPair // as of lossMechanism
}

// Choice is a mechanism that a [Mixture] can draw.
type Choice struct {
	Mechanism Mechanism
	Runs      int64   // how often it runs, >= 1
	Weight    float64 // its probability relative to the others', positive and finite
}

// mixtureTail is the δ beyond which nothing is assumed of the losses: for a smaller δ ε is infinite.
const mixtureTail = 1e-18

// NewMixture returns the mixture of choices, each of which takes some milliseconds. After each, and often once all
// are done, it calls progress, which may be nil, with the number of choices that are done, and ends with its error.
// The other errors are FieldErrors for "choices".
func NewMixture(choices []Choice, progress func(done int) error) (Mixture, error) {
	m := Mixture{choices: slices.Clone(choices)}
	if err := m.check(); err != nil {
		return Mixture{}, err
	}
	if progress == nil {
		progress = func(int) error { return nil }
	}
	total := 0.0
	for _, c := range m.choices {
		total += c.Weight
	}
	var means [2]meanProfile // of both orders of the data sets
	directions := 1
	for i, c := range m.choices {
		profiles, err := newRunProfiles(c.Mechanism, c.Runs)
		if err != nil {
			return Mixture{}, FieldErrorf(fmt.Sprintf("choices[%d].mechanism", i), "has no known profile: %v", err)
		}
		forward, backward, err := profiles.quicklyDown(mixtureTail)
		if err != nil {
			return Mixture{}, err
		}
		directions = max(directions, len(profiles.directions))
		for k, points := range [2][]profilePoint{forward, backward} {
			means[k] = append(means[k], weightedProfile{c.Weight / total, lowerHull(points)})
		}
		if err := progress(i + 1); err != nil {
			return Mixture{}, err
		}
	}
	var known [2][]profilePoint
	for k := range directions {
		epsilon := func(logDelta float64) (float64, error) {
			if err := progress(len(m.choices)); err != nil {
				return 0, err
			}
			return means[k].epsilon(logDelta)
		}
		var err error
		if known[k], err = pointsOf(epsilon, mixtureTail, 4*profileNodes); err != nil {
			return Mixture{}, err
		}
	}
	forward, backward := known[0], known[directions-1]
	m.pairs = []lossPair{newAtomPair(newDiscretePair(forward, backward))}
	if directions > 1 {
		m.pairs = append(m.pairs, newAtomPair(newDiscretePair(backward, forward)))
	}
	return m, nil
}

// check reports what is wrong with the choices.
func (m Mixture) check() error {
	if len(m.choices) == 0 {
		return FieldErrorf("choices", "must not be empty")
	}
	var errs []error
	for i, c := range m.choices {
		field := fmt.Sprintf("choices[%d]", i)
		if !(c.Weight > 0 && !math.IsInf(c.Weight, 1)) {
			errs = append(errs, FieldErrorf(field+".weight", "must be positive and finite, is %g", c.Weight))
		}
		if c.Runs < 1 {
			errs = append(errs, FieldErrorf(field+".runs", "must be at least 1, is %d", c.Runs))
		}
		if c.Mechanism == nil {
			errs = append(errs, FieldErrorf(field+".mechanism", "must be set"))
		} else if err := c.Mechanism.Validate(); err != nil {
			errs = append(errs, FieldErrorf(field+".mechanism", "%v", err))
		} else if got, want := c.Mechanism.Adjacency(), m.Adjacency(); got != want {
			errs = append(errs, FieldErrorf(field+".mechanism", "is stated for %s, the first one for %s", got, want))
		}
	}
	return errors.Join(errs...)
}

// Name returns "mixture".
func (m Mixture) Name() string { return "mixture" }

// Adjacency returns the choices' adjacency, or 0 without choices.
func (m Mixture) Adjacency() Adjacency {
	if len(m.choices) == 0 || m.choices[0].Mechanism == nil {
		return 0
	}
	return m.choices[0].Mechanism.Adjacency()
}

// Validate reports a mixture that [NewMixture] did not make.
func (m Mixture) Validate() error {
	if len(m.pairs) == 0 {
		return FieldErrorf("choices", "must not be empty")
	}
	return nil
}

// Assumptions returns the assumptions of all choices, each once.
func (m Mixture) Assumptions() []string {
	all := []string{"which mechanism runs is drawn independently of the data"}
	for _, c := range m.choices {
		for _, s := range c.Mechanism.Assumptions() {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

func (m Mixture) lossPairs() []lossPair { return m.pairs }

// lowerPairs: none is known to be attained.
func (m Mixture) lowerPairs() []lossPair { return nil }

// RenyiCurve returns log(Σ π_j·exp((α−1)·ρ_j(α)))/(α−1), +Inf if one of the choices has no bound.
func (m Mixture) RenyiCurve() RenyiCurve {
	var curve mixtureRenyi
	for _, c := range m.choices {
		parts, err := renyiParts(m.Name(), c.Mechanism)
		if err != nil {
			return mixtureRenyi{}
		}
		curve = append(curve, weightedRenyi{c.Weight, candidateRenyi{&rdpCurve{parts: parts}, float64(c.Runs)}})
	}
	return curve
}

type weightedRenyi struct {
	weight float64
	candidateRenyi
}

// mixtureRenyi is the curve of a Mixture; an empty one is infinite.
type mixtureRenyi []weightedRenyi

func (c mixtureRenyi) countIn(w *Work) {
	for _, one := range c {
		one.countIn(w)
	}
}

func (c mixtureRenyi) RDP(order float64) float64 {
	if len(c) == 0 {
		return math.Inf(1)
	}
	rhos := make([]float64, len(c))
	for i, one := range c {
		rhos[i] = one.rho(order)
	}
	top := slices.Max(rhos)
	if math.IsInf(top, 1) {
		return top
	}
	sum, total := 0.0, 0.0
	for i, one := range c {
		sum += one.weight * math.Exp((order-1)*(rhos[i]-top))
		total += one.weight
	}
	return math.Max(0, top+math.Log(sum/total)/(order-1))
}

// weightedProfile is the convex hull of a profile with its probability.
type weightedProfile struct {
	probability float64
	hull        []profilePoint
}

// delta returns δ(ε) on the hull: δ is convex in e^ε, so that chords lie above it.
func (p weightedProfile) delta(epsilon float64) float64 {
	i, _ := slices.BinarySearchFunc(p.hull, epsilon, func(p profilePoint, epsilon float64) int { return cmp.Compare(p.epsilon, epsilon) })
	switch {
	case i == len(p.hull):
		return p.hull[i-1].delta
	case p.hull[i].epsilon == epsilon:
		return p.hull[i].delta
	case i == 0:
		return 1
	}
	left, right := p.hull[i-1], p.hull[i]
	share := math.Expm1(epsilon-left.epsilon) / math.Expm1(right.epsilon-left.epsilon)
	return left.delta - share*(left.delta-right.delta)
}

// meanProfile is the mean of profiles.
type meanProfile []weightedProfile

func (m meanProfile) delta(epsilon float64) float64 {
	sum := 0.0
	for _, p := range m {
		sum += p.probability * p.delta(epsilon)
	}
	return sum
}

// epsilon returns the least ε with δ(ε) <= e^logDelta, from above, or +Inf.
func (m meanProfile) epsilon(logDelta float64) (float64, error) {
	const precision = 1e-6
	delta, largest := math.Exp(logDelta), 0.0
	for _, p := range m {
		largest = math.Max(largest, p.hull[len(p.hull)-1].epsilon)
	}
	if m.delta(0) <= delta {
		return 0, nil
	}
	if m.delta(largest) > delta {
		return math.Inf(1), nil
	}
	fails, suffices := 0.0, largest
	for suffices-fails > precision*suffices {
		middle := 0.5 * (fails + suffices)
		if m.delta(middle) <= delta {
			suffices = middle
		} else {
			fails = middle
		}
	}
	return suffices, nil
}

// quicklyDown is down with points from one grid for each order of the data sets where possible. They are a
// little coarser, and take some milliseconds for DP-SGD.
func (p runProfiles) quicklyDown(least float64) (forward, backward []profilePoint, err error) {
	c := p.exact
	if c == nil {
		return p.down(least)
	}
	c.mu.Lock()
	ok := true
	known := make([][]profilePoint, len(c.upper))
	for i, sum := range c.upper {
		if known[i], ok = sum.gridPoints(float64(p.runs), math.Log(least)); !ok {
			break
		}
	}
	c.mu.Unlock()
	if !ok {
		return p.down(least)
	}
	return known[0], known[len(known)-1], nil
}

// gridPoints returns points of the profile of a number of runs from δ on, in rising order of ε, from two pessimistic
// grids: what tilts for a small δ leaves no digits of one near 1. ok is false for sums that have a closed form, and where
// a grid fails.
func (s *lossSum) gridPoints(runs, logDelta float64) (points []profilePoint, ok bool) {
	if _, normal := s.gaussian(runs); normal || s.infinite() > 0 || len(s.parts) == 1 && runs*s.parts[0].count == 1 {
		return nil, false
	}
	spacing := math.Sqrt(-logDelta) / (2 * profileNodes)
	for _, from := range [...]float64{logDelta, logDelta / 3} {
		t := s.truncate(runs, from-spill)
		b, ok := t.renyi(runs, from)
		if !ok || !(b.epsilon > 0) {
			return nil, false
		}
		g, ok := t.compose(b, runs, mesh{3e-4, maxGrid}, 0, 1)
		if !ok {
			return nil, false
		}
		g.infinite += runs * t.infinite()
		points = slices.DeleteFunc(points, func(p profilePoint) bool { return p.delta >= math.Exp(from) })
		points = g.appendPoints(points, math.Exp(from), spacing)
	}
	slices.Reverse(points)
	return points, true
}

// appendPoints appends points of the profile from δ on, in falling order of ε.
func (g composedGrid) appendPoints(points []profilePoint, delta, spacing float64) []profilePoint {
	shrink := math.Exp(-g.step)
	above, lower := 0.0, 0.0 // mass above a loss l, and Σ mass·e^{l − loss} over it
	for i := g.size - 1; i >= 0 && g.at(i) >= 0; i-- {
		at := g.at(i) + g.rounding
		n := len(points)
		if d := math.Min(1, g.infinite+above-lower); d >= delta && (n == 0 || at < points[n-1].epsilon && d >= points[n-1].delta) {
			r := math.Sqrt(-math.Log(d))
			if n == 0 || points[n-1].r-r >= spacing || g.at(i) < g.step {
				points = append(points, profilePoint{r, at, d})
			}
		}
		m := g.mass(i)
		above, lower = above+m, shrink*(lower+m)
	}
	return points
}

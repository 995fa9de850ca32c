package tuning

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/internal/pld"
	"github.com/dpareto/dpareto/privacy/internal/profile"
	"github.com/dpareto/dpareto/privacy/internal/runs"
	"github.com/dpareto/dpareto/privacy/meter"
)

// Mixture is the Mechanism that draws one of several mechanisms from a distribution that does not
// depend on the data, runs it, and names it with its output. It costs the mean of their costs, by
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
	pairs   []pld.Pair // upper ones of DominatingPairs
}

// Choice is a mechanism that a [Mixture] can draw.
type Choice struct {
	Mechanism privacy.Mechanism
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
	var means [2]profile.Mean // of both orders of the data sets
	directions := 1
	for i, c := range m.choices {
		profiles, err := runs.New(c.Mechanism, c.Runs)
		if err != nil {
			return Mixture{}, privacy.FieldErrorf(fmt.Sprintf("choices[%d].mechanism", i), "has no known profile: %v", err)
		}
		forward, backward, err := profiles.QuicklyDown(mixtureTail)
		if err != nil {
			return Mixture{}, err
		}
		directions = max(directions, len(profiles.Directions))
		for k, points := range [2][]profile.Point{forward, backward} {
			means[k] = append(means[k], profile.Weighted{Probability: c.Weight / total, Hull: profile.LowerHull(points)})
		}
		if err := progress(i + 1); err != nil {
			return Mixture{}, err
		}
	}
	var known [2][]profile.Point
	for k := range directions {
		epsilon := func(logDelta float64) (float64, error) {
			if err := progress(len(m.choices)); err != nil {
				return 0, err
			}
			return means[k].Epsilon(logDelta)
		}
		var err error
		if known[k], err = profile.Points(epsilon, mixtureTail, 4*profile.Nodes); err != nil {
			return Mixture{}, err
		}
	}
	forward, backward := known[0], known[directions-1]
	m.pairs = []pld.Pair{profile.NewDiscretePair(forward, backward).Pair()}
	if directions > 1 {
		m.pairs = append(m.pairs, profile.NewDiscretePair(backward, forward).Pair())
	}
	return m, nil
}

// check reports the faults of the choices.
func (m Mixture) check() error {
	if len(m.choices) == 0 {
		return privacy.FieldErrorf("choices", "must not be empty")
	}
	var errs []error
	for i, c := range m.choices {
		field := fmt.Sprintf("choices[%d]", i)
		if !(c.Weight > 0 && !math.IsInf(c.Weight, 1)) {
			errs = append(errs, privacy.FieldErrorf(field+".weight", "must be positive and finite, is %g", c.Weight))
		}
		if c.Runs < 1 {
			errs = append(errs, privacy.FieldErrorf(field+".runs", "must be at least 1, is %d", c.Runs))
		}
		if c.Mechanism == nil {
			errs = append(errs, privacy.FieldErrorf(field+".mechanism", "must be set"))
		} else if err := c.Mechanism.Validate(); err != nil {
			errs = append(errs, privacy.FieldErrorf(field+".mechanism", "%v", err))
		} else if got, want := c.Mechanism.Adjacency(), m.Adjacency(); got != want {
			errs = append(errs, privacy.FieldErrorf(field+".mechanism", "is stated for %s, the first one for %s", got, want))
		}
	}
	return errors.Join(errs...)
}

// Name returns "mixture".
func (m Mixture) Name() string { return "mixture" }

// Adjacency returns the choices' adjacency, or 0 without choices.
func (m Mixture) Adjacency() privacy.Adjacency {
	if len(m.choices) == 0 || m.choices[0].Mechanism == nil {
		return 0
	}
	return m.choices[0].Mechanism.Adjacency()
}

// Validate reports a mixture that [NewMixture] did not make.
func (m Mixture) Validate() error {
	if len(m.pairs) == 0 {
		return privacy.FieldErrorf("choices", "must not be empty")
	}
	return nil
}

// Assumptions returns the assumptions of all choices, each once.
func (m Mixture) Assumptions() []privacy.Assumption {
	lists := [][]privacy.Assumption{{privacy.PremiseIndependence.Assume("which mechanism runs is drawn independently of the data")}}
	for _, c := range m.choices {
		lists = append(lists, c.Mechanism.Assumptions())
	}
	return privacy.JoinAssumptions(lists...)
}

// DominatingPairs returns the pairs of [privacy.PairMechanism]. None is known to be attained.
func (m Mixture) DominatingPairs() pld.Pairs { return pld.Pairs{Upper: m.pairs} }

// RenyiCurve returns log(Σ π_j·exp((α−1)·ρ_j(α)))/(α−1), +Inf if one of the choices has no bound.
func (m Mixture) RenyiCurve() privacy.RenyiCurve {
	var curve mixtureRenyi
	for _, c := range m.choices {
		of, err := privacy.Renyi(c.Mechanism)
		if err != nil {
			return mixtureRenyi{}
		}
		curve = append(curve, weightedRenyi{c.Weight, candidateRenyi{of, float64(c.Runs)}})
	}
	return curve
}

type weightedRenyi struct {
	weight float64
	candidateRenyi
}

// mixtureRenyi is the curve of a Mixture; an empty one is infinite.
type mixtureRenyi []weightedRenyi

func (c mixtureRenyi) CountIn(w *meter.Work) {
	for _, one := range c {
		one.CountIn(w)
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

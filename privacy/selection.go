package privacy

import (
	"errors"
)

// SelectionMethod is a way to choose the best of several candidates privately,
// by scores that each change by at most Δ between adjacent data sets.
type SelectionMethod int

const (
	// Exponential draws candidate i with probability ∝ e^{ε·score_i/2Δ} (McSherry
	// and Talwar, 2007); adding Gumbel noise of scale 2Δ/ε and reporting the
	// largest is the same.
	Exponential SelectionMethod = iota + 1
	// PermuteAndFlip visits the candidates in random order and accepts i with
	// probability e^{ε·(score_i − max)/2Δ} (McKenna and Sheldon, 2020); adding
	// exponential noise of mean 2Δ/ε and reporting the largest is the same.
	PermuteAndFlip
	// ReportNoisyMax adds Laplace noise of scale 2Δ/ε and reports which is largest
	// (Dwork and Roth, 2014, §3.3).
	ReportNoisyMax
)

// Selection is one private choice of a candidate, of which only the name is
// released. It is pure ε-DP.
type Selection struct {
	Method     SelectionMethod
	Epsilon    float64   // ε > 0, finite, as in the comment of the method
	Neighbours Adjacency // the adjacency that the sensitivity Δ is stated for
}

// Name returns "exponential", "permute_and_flip" or "report_noisy_max", and
// "selection" for an unknown method.
func (m Selection) Name() string {
	switch m.Method {
	case Exponential:
		return "exponential"
	case PermuteAndFlip:
		return "permute_and_flip"
	case ReportNoisyMax:
		return "report_noisy_max"
	default:
		return "selection"
	}
}

// Adjacency returns m.Neighbours.
func (m Selection) Adjacency() Adjacency { return m.Neighbours }

// Validate reports the fields "method", "epsilon" and "adjacency".
func (m Selection) Validate() error {
	err := errors.Join(CheckPositive("epsilon", m.Epsilon), CheckAdjacency(m.Neighbours))
	if m.Name() == "selection" {
		err = errors.Join(err, FieldErrorf("method", "unknown selection method %d", int(m.Method)))
	}
	return err
}

// Assumptions returns the conditions that the scores must meet.
func (m Selection) Assumptions() []Assumption {
	return []Assumption{PremiseSensitivity.Assume("every score changes by at most the stated sensitivity between adjacent data sets, and the candidates do not depend on the data")}
}

// PureEpsilon returns m.Epsilon.
func (m Selection) PureEpsilon() float64 { return m.Epsilon }

// RenyiCurve returns ρ(α) = α·ε²/8 for Exponential, whose log-probability ratios
// lie in a range of length ε (Cesar and Rogers, "Bounding, concentrating, and
// truncating", 2021), or the bound of pure ε-DP where that is smaller or the
// method is another.
func (m Selection) RenyiCurve() RenyiCurve {
	c := selectionRenyi{pure: pureRenyi(m.Epsilon)}
	if m.Method == Exponential {
		c.rate = m.Epsilon * m.Epsilon / 8
	}
	return c
}

type selectionRenyi struct {
	rate float64 // of zero-concentrated DP, or 0
	pure RenyiCurve
}

func (c selectionRenyi) RDP(order float64) float64 {
	rho := c.pure.RDP(order)
	if c.rate > 0 {
		rho = min(rho, c.rate*order)
	}
	return rho
}

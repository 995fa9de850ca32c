package privacy

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy/internal/logexp"
	"github.com/dpareto/dpareto/privacy/internal/pld"
)

// Laplace is the Laplace mechanism: a statistic of ℓ1 sensitivity Sensitivity is
// released with independent Laplace noise of scale Scale on every coordinate
// (Dwork, McSherry, Nissim and Smith, 2006).
type Laplace struct {
	Sensitivity float64   // Δ > 0, finite, in the unit of the statistic
	Scale       float64   // b > 0, finite, same unit; the standard deviation is √2·b
	Neighbours  Adjacency // the adjacency that Sensitivity is stated for
}

// Name returns "laplace".
func (m Laplace) Name() string { return "laplace" }

// Adjacency returns m.Neighbours.
func (m Laplace) Adjacency() Adjacency { return m.Neighbours }

// Validate reports the fields "sensitivity", "scale" and "adjacency".
func (m Laplace) Validate() error {
	return errors.Join(
		CheckPositive("sensitivity", m.Sensitivity),
		CheckPositive("scale", m.Scale),
		CheckAdjacency(m.Neighbours))
}

// Assumptions returns the meaning of the sensitivity.
func (m Laplace) Assumptions() []Assumption {
	return []Assumption{PremiseSensitivity.Assume("the sensitivity bounds the sum of the absolute differences between the statistics of adjacent data sets"), assumeSecretNoise}
}

// PureEpsilon returns Sensitivity/Scale.
func (m Laplace) PureEpsilon() float64 { return m.Sensitivity / m.Scale }

// RenyiCurve returns, with x = Sensitivity/Scale,
//
//	(α−1)·ρ(α) = log(α/(2α−1)·e^{(α−1)x} + (α−1)/(2α−1)·e^{−αx})
//
// (Mironov, 2017, Proposition 6), which is for a statistic of one coordinate and
// the largest for any.
func (m Laplace) RenyiCurve() RenyiCurve { return laplaceRenyi(m.PureEpsilon()) }

type laplaceRenyi float64

func (x laplaceRenyi) RDP(order float64) float64 {
	up, down := (order-1)*float64(x), -order*float64(x)
	weight := order / (2*order - 1)
	if up > 500 {
		return float64(x) + (math.Log(weight)+math.Log1p((order-1)/order*math.Exp(down-up)))/(order-1)
	}
	// The first order terms of the exponentials cancel.
	sum := weight*logexp.Expm1MinusArg(up) + (1-weight)*logexp.Expm1MinusArg(down)
	return math.Log1p(sum) / (order - 1)
}

// DominatingPairs returns the pair of [PairMechanism].
func (m Laplace) DominatingPairs() pld.Pairs { return pld.Attained(pld.Laplace(m.PureEpsilon())) }

// RandomizedResponse releases one of Categories answers of a record: the true one
// with probability e^ε/(e^ε + Categories − 1), each other one equally likely
// (Warner, 1965). It is pure ε-DP when a record is replaced.
type RandomizedResponse struct {
	Epsilon    float64 // ε > 0, finite
	Categories int64   // number of possible answers, >= 2
}

// Name returns "randomized_response".
func (m RandomizedResponse) Name() string { return "randomized_response" }

// Adjacency returns ReplaceOne.
func (m RandomizedResponse) Adjacency() Adjacency { return ReplaceOne }

// Validate reports the fields "epsilon" and "categories".
func (m RandomizedResponse) Validate() error {
	err := CheckPositive("epsilon", m.Epsilon)
	if m.Categories < 2 {
		err = errors.Join(err, FieldErrorf("categories", "must be at least 2, is %d", m.Categories))
	}
	return err
}

// Assumptions returns the conditions that a run must meet.
func (m RandomizedResponse) Assumptions() []Assumption {
	return []Assumption{PremiseTheorem.Assume("each run answers one question about one record")}
}

// PureEpsilon returns m.Epsilon.
func (m RandomizedResponse) PureEpsilon() float64 { return m.Epsilon }

// RenyiCurve returns the exact divergence of the answers.
func (m RandomizedResponse) RenyiCurve() RenyiCurve {
	total := 1 + float64(m.Categories-1)*math.Exp(-m.Epsilon) // over e^ε
	return twoPoint{m.Epsilon, 1 / total, math.Exp(-m.Epsilon) / total}
}

// DominatingPairs returns the pair of [PairMechanism].
func (m RandomizedResponse) DominatingPairs() pld.Pairs {
	total := 1 + float64(m.Categories-1)*math.Exp(-m.Epsilon) // over e^ε
	return pld.Attained(pld.RandomizedResponse(m.Epsilon, 1/total))
}

// twoPoint is the divergence of a loss that is loss with probability up, −loss
// with probability down and 0 otherwise.
type twoPoint struct{ loss, up, down float64 }

// pureRenyi is the largest divergence of a pure ε-DP mechanism, attained by randomised
// response with two answers (Bun and Steinke, "Concentrated differential privacy", 2016,
// Proposition 3.3).
func pureRenyi(epsilon float64) RenyiCurve {
	e := math.Exp(-epsilon)
	return twoPoint{epsilon, 1 / (1 + e), e / (1 + e)}
}

func (p twoPoint) RDP(order float64) float64 {
	c := order - 1
	a := c * p.loss
	if a > 500 {
		return p.loss + math.Log(p.up)/c // up to e^−500
	}
	// E[e^{cL}] − 1 with c·E[e^{−L} − 1] = 0 added: no cancellation.
	sum := p.up*(logexp.Expm1MinusArg(a)+c*logexp.Expm1MinusArg(-p.loss)) +
		p.down*(logexp.Expm1MinusArg(-a)+c*logexp.Expm1MinusArg(p.loss))
	if p.loss > 500 { // down·e^loss = up, without the overflow
		sum = p.up*(logexp.Expm1MinusArg(a)+c*(p.loss-1)) + p.down*logexp.Expm1MinusArg(-a) + c*p.up
	}
	return math.Log1p(sum) / c
}

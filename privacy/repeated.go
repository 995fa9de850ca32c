package privacy

import (
	"errors"
	"math"
)

// RepeatedSelection is private hyperparameter tuning by random search: draw K from
// a truncated negative binomial distribution, run Base Steps times for each of K
// candidates drawn independently from a fixed distribution, and release only the
// best by the released score (Papernot and Steinke, "Hyperparameter tuning with
// Rényi differential privacy", 2022, Theorem 2). Candidates that are suggested
// from earlier results are not covered. With ρ the divergence of one candidate,
//
//	ρ′(λ) = ρ(λ) + (1+η)·min_{λ̂ >= 1} [(1 − 1/λ̂)·ρ(λ̂) + log(1/γ)/λ̂] + log E[K]/(λ−1).
type RepeatedSelection struct {
	Base  Mechanism // one step of training and scoring a candidate
	Steps int64     // runs of Base for each candidate, >= 1
	// Eta is the shape η, 0 <= η and finite: 0 is the logarithmic distribution, 1
	// the geometric one.
	Eta float64
	// Gamma is γ, 0 < γ < 1. A smaller one means more candidates.
	Gamma float64
}

// Name returns "repeated_selection".
func (m RepeatedSelection) Name() string { return "repeated_selection" }

// Adjacency returns that of the base, or 0 without one.
func (m RepeatedSelection) Adjacency() Adjacency {
	if m.Base == nil {
		return 0
	}
	return m.Base.Adjacency()
}

// Validate reports the fields "base" and those of the base as "base.field",
// "steps", "eta" and "gamma".
func (m RepeatedSelection) Validate() error {
	var errs []error
	if m.Base == nil {
		errs = append(errs, fieldErrorf("base", "must be set"))
	} else if err := m.Base.Validate(); err != nil {
		for _, fe := range FieldErrors(err) {
			errs = append(errs, &FieldError{Field: "base." + fe.Field, Message: fe.Message})
		}
	} else if _, _, err := renyiParts(m.Name(), m.Base); err != nil {
		errs = append(errs, fieldErrorf("base", "%s has no Rényi divergence bound", m.Base.Name()))
	}
	if m.Steps < 1 {
		errs = append(errs, fieldErrorf("steps", "must be at least 1, is %d", m.Steps))
	}
	if !(m.Eta >= 0) || math.IsInf(m.Eta, 1) {
		errs = append(errs, fieldErrorf("eta", "must not be negative and finite, is %g", m.Eta))
	}
	if !(m.Gamma > 0 && m.Gamma < 1) {
		errs = append(errs, fieldErrorf("gamma", "must lie strictly between 0 and 1, is %g", m.Gamma))
	}
	return errors.Join(errs...)
}

// Assumptions returns what the search has to do.
func (m RepeatedSelection) Assumptions() []string {
	own := []string{
		"candidates are independent draws from a distribution that does not depend on the data",
		"the number of candidates, all outputs but the best, and running times are secret; the choice depends on the released score alone",
	}
	return append(own, m.Base.Assumptions()...)
}

// MeanRuns returns E[K], the expected number of candidates.
func (m RepeatedSelection) MeanRuns() float64 {
	logGamma := math.Log(m.Gamma)
	if m.Eta == 0 {
		return (1/m.Gamma - 1) / -logGamma
	}
	return m.Eta * (1 - m.Gamma) / (m.Gamma * -math.Expm1(m.Eta*logGamma))
}

// RenyiCurve returns ρ′ of the formula above.
func (m RepeatedSelection) RenyiCurve() RenyiCurve {
	parts, integers, err := renyiParts(m.Name(), m.Base)
	if err != nil {
		panic("privacy: RenyiCurve of an invalid RepeatedSelection")
	}
	c := repeatedRenyi{
		base:    &rdpCurve{parts: parts},
		steps:   float64(m.Steps),
		logMean: math.Max(0, math.Log(m.MeanRuns())),
	}
	logInverse := -math.Log(m.Gamma)
	least, _ := leastOverOrders(integers, func(order, _ float64) float64 {
		return (1-1/order)*c.rho(order) + logInverse/order
	})
	c.penalty = (1 + m.Eta) * math.Min(least, logInverse) // λ̂ = 1
	if integers {
		return c
	}
	return realRepeatedRenyi{c}
}

// repeatedRenyi is the curve of RepeatedSelection.
type repeatedRenyi struct {
	base             *rdpCurve
	steps            float64
	logMean, penalty float64
}

func (c repeatedRenyi) rho(order float64) float64 {
	rho, _ := c.base.sum(order, math.Inf(1))
	return c.steps * rho
}

func (c repeatedRenyi) RDP(order float64) float64 {
	return c.rho(order) + c.penalty + c.logMean/(order-1)
}

// realRepeatedRenyi is a repeatedRenyi that is not restricted to integer orders.
type realRepeatedRenyi struct{ repeatedRenyi }

func (realRepeatedRenyi) realOrders() {}

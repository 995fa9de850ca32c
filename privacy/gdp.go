package privacy

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy/internal/gaussian"
)

// GaussianDPMechanism is a Mechanism that is μ-GDP: no easier to attack than
// telling N(0, 1) from N(μ, 1) (Dong, Roth and Su, "Gaussian differential
// privacy", 2022).
type GaussianDPMechanism interface {
	Mechanism
	// GaussianMu returns μ of one run. The parameters must be valid.
	GaussianMu() float64
}

// GDP is the accountant of Gaussian differential privacy: the squares of μ add
// up, and the conversion to (ε, δ) is exact. For Gaussian mechanisms no other
// accountant can be tighter.
type GDP struct{}

// Name returns "gdp".
func (GDP) Name() string { return "gdp" }

// Curve accounts a GaussianDPMechanism or a Composition of them.
func (a GDP) Curve(m Mechanism) (Curve, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	c := gdpCurve{base: BaseGuarantee(a, m), tight: true}
	for _, p := range Parts(m) {
		g, ok := p.Mechanism.(GaussianDPMechanism)
		if !ok {
			return nil, &UnsupportedError{a.Name(), p.Mechanism.Name(), "it has no Gaussian-DP guarantee"}
		}
		mu := g.GaussianMu()
		c.squared += float64(p.Count) * mu * mu
		_, isGaussian := p.Mechanism.(Gaussian)
		c.tight = c.tight && isGaussian
	}
	return c, nil
}

type gdpCurve struct {
	base    Guarantee
	squared float64 // μ² of one run
	tight   bool    // ε is attained
}

// Epsilon is exact to about 1e-13 relative.
func (c gdpCurve) Epsilon(steps int64, delta float64) (Guarantee, error) {
	if err := errors.Join(CheckSteps(steps), CheckDelta(delta)); err != nil {
		return Guarantee{}, err
	}
	g := c.base
	g.Delta, g.Steps = delta, steps
	if steps > 0 {
		g.Epsilon = gaussian.Epsilon(math.Sqrt(float64(steps)*c.squared), math.Log(delta))
	}
	if c.tight {
		g.EpsilonLower = g.Epsilon
	}
	if math.IsInf(g.Epsilon, 1) {
		g = g.Warn(WarnVacuous, "epsilon is infinite: nothing is guaranteed")
	}
	return g, nil
}

// GaussianMu returns the largest μ for which μ-Gaussian DP is (epsilon, delta)-DP, to a
// relative precision of about 1e-12, from below (Balle and Wang, "Improving the Gaussian
// mechanism for differential privacy", 2018, Theorem 8). The errors are FieldErrors for
// "epsilon", positive and finite, and "delta", in (0, 1).
func GaussianMu(epsilon, delta float64) (float64, error) {
	if err := errors.Join(CheckPositive("epsilon", epsilon), CheckDelta(delta)); err != nil {
		return 0, err
	}
	return gaussian.Mu(epsilon, math.Log(delta)) * (1 - 1e-12), nil
}

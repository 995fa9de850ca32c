package privacy

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy/internal/composition"
	"github.com/dpareto/dpareto/privacy/internal/pld"
	"github.com/dpareto/dpareto/privacy/meter"
)

// Exact is the tightest accountant: the (ε, δ) curve of the composed dominating
// pairs of a mechanism, by inversion of their characteristic function, which is
// precise to 1e-9. Where losses are of very different sizes, as for small sampling
// probabilities, it is precise to 1e-5 of log δ; for few steps with little noise
// it falls back on the grid of [PLD].
//
// Epsilon is the least for the pairs, plus bounds of all numerical errors, for every δ > 0. If nothing else
// resolves δ, it is Chernoff's bound, and the accountant of the guarantee is [Chernoff]. EpsilonLower bounds the ε
// of data sets that exist from below, with the same errors taken off; a grid loses about ten times as much as above.
type Exact struct {
	// UpperOnly leaves EpsilonLower out, which may take longer than ε.
	UpperOnly bool
}

// Chernoff is the accountant of guarantees of [Exact] and [PLD] that are only Chernoff's bound of the sum of losses.
const Chernoff = "chernoff"

// Name returns "exact".
func (Exact) Name() string { return "exact" }

// Curve accounts a [PairMechanism], any other [PureMechanism] but the exponential mechanism by the worst one
// of its ε, or a Composition of them. The losses of pure mechanisms have atoms and are composed as by [PLD].
func (a Exact) Curve(m Mechanism) (Curve, error) {
	return newLossCurve(a, m, composition.Exact, a.UpperOnly)
}

// WithoutLower returns Exact with UpperOnly.
func (Exact) WithoutLower() Accountant { return Exact{UpperOnly: true} }

// PLD is the accountant by discretised privacy loss distributions: losses are
// rounded pessimistically to a grid and convolved by the fast Fourier transform.
// Its ε is an upper bound, too large by about 2e-5 of it or by up to 1e-5, whichever is more.
type PLD struct {
	// UpperOnly leaves EpsilonLower out, which may take longer than ε.
	UpperOnly bool
}

// Name returns "pld".
func (PLD) Name() string { return "pld" }

// WithoutLower returns PLD with UpperOnly.
func (PLD) WithoutLower() Accountant { return PLD{UpperOnly: true} }

// Curve accounts the mechanisms that Exact does.
func (a PLD) Curve(m Mechanism) (Curve, error) {
	return newLossCurve(a, m, composition.Grid, a.UpperOnly)
}

// PairMechanism is a Mechanism with dominating pairs: [Exact], [PLD] and all that build on them account it.
// A new sampler needs no more than this method, and a pair where none of package pld fits.
type PairMechanism interface {
	Mechanism
	// DominatingPairs returns the pairs of one run. The parameters must be valid.
	DominatingPairs() pld.Pairs
}

// Losses returns the losses of one run of m, by the methods of [Exact]. It is for packages that need more
// of them than a [Curve] gives. It returns the errors of Exact's Curve.
func Losses(m Mechanism) (*composition.Losses, error) { return lossesOf(Exact{}, m) }

func lossesOf(a Accountant, m Mechanism) (*composition.Losses, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	losses := composition.New(composition.Exact)
	for _, p := range Parts(m) {
		if s, ok := p.Mechanism.(Selection); ok && s.Method == Exponential {
			return nil, &UnsupportedError{a.Name(), s.Name(), "its Rényi divergence is below the one of its pure-DP guarantee"}
		}
		switch mechanism := p.Mechanism.(type) {
		case PairMechanism:
			losses.Add(mechanism.DominatingPairs(), float64(p.Count))
		case PureMechanism:
			losses.AddPure(mechanism.PureEpsilon(), float64(p.Count))
		default:
			return nil, &UnsupportedError{a.Name(), p.Mechanism.Name(), "it has no dominating pair"}
		}
	}
	return losses, nil
}

// lossCurve is the Curve of Exact and PLD.
type lossCurve struct {
	base   Guarantee
	losses *composition.Losses
}

func newLossCurve(a Accountant, m Mechanism, methods []composition.Method, upperOnly bool) (Curve, error) {
	losses, err := lossesOf(a, m)
	if err != nil {
		return nil, err
	}
	losses.Methods = methods
	if upperOnly {
		losses.DropLower()
	}
	return &lossCurve{base: BaseGuarantee(a, m), losses: losses}, nil
}

// CountIn counts the work of the curve in w.
func (c *lossCurve) CountIn(w *meter.Work) { c.losses.CountIn(w) }

// Epsilon takes some milliseconds, less after other calls on the same curve.
func (c *lossCurve) Epsilon(steps int64, delta float64) (Guarantee, error) {
	if err := errors.Join(CheckSteps(steps), CheckDelta(delta)); err != nil {
		return Guarantee{}, err
	}
	g := c.base
	g.Delta, g.Steps = delta, steps
	if steps == 0 {
		return g, nil
	}
	runs, logDelta := float64(steps), math.Log(delta)
	epsilon, precise := c.losses.Above(runs, logDelta)
	g.Epsilon = epsilon
	g = g.WithLower(c.losses.Below(runs, logDelta))
	switch {
	case math.IsInf(g.Epsilon, 1):
		g = g.Warn(WarnVacuous, "epsilon is infinite: nothing is guaranteed")
	case !precise:
		g.Accountant = Chernoff
		g = g.Warn(WarnLooseBound, "the losses could not be composed numerically: epsilon is Chernoff's bound")
	}
	return g, nil
}

package tuning

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/meter"
)

// curvesOf returns the bounds of a valid selection of base runs that its own Rényi divergence does not give.
func curvesOf(m selectionOfRuns, upperOnly bool) []privacy.Curve {
	var curves []privacy.Curve
	if location, err := (Location{UpperOnly: upperOnly}).Curve(m); err == nil {
		curves = append(curves, location)
	}
	if shown, err := allShown(m); err == nil {
		curves = append(curves, shown)
	}
	return curves
}

// allShown accounts the selections of a bounded number of runs as if all runs were shown: the best of at
// most n runs costs no more than n runs of which everything is shown.
func allShown(m selectionOfRuns) (privacy.Curve, error) {
	var c shownCurve
	switch m := m.(type) {
	case BinomialSelection:
		c.mechanism, c.runs = m, m.Tries
	case CappedSelection:
		c.mechanism, c.runs = m, m.MostRuns
	default:
		return nil, &privacy.UnsupportedError{Accountant: privacy.Tightest{}.Name(), Mechanism: m.Name(), Reason: "its number of runs is not bounded"}
	}
	base, each := c.mechanism.candidate()
	if c.runs > math.MaxInt32/each {
		return nil, &privacy.UnsupportedError{Accountant: privacy.Tightest{}.Name(), Mechanism: m.Name(), Reason: "its runs are too many"}
	}
	c.runs *= each
	var err error
	c.all, err = privacy.Tightest{UpperOnly: true}.Curve(base)
	return c, err
}

// shownCurve is the curve of allShown.
type shownCurve struct {
	mechanism selectionOfRuns
	all       privacy.Curve // of the base
	runs      int64         // of the base
}

// CountIn counts the work of the curve in w.
func (c shownCurve) CountIn(w *meter.Work) { meter.CountIn(c.all, w) }

// Epsilon implements Curve.
func (c shownCurve) Epsilon(steps int64, delta float64) (privacy.Guarantee, error) {
	if err := errors.Join(privacy.CheckSteps(steps), privacy.CheckDelta(delta)); err != nil {
		return privacy.Guarantee{}, err
	}
	if steps > math.MaxInt64/c.runs {
		return privacy.Guarantee{}, privacy.FieldErrorf("steps", "%d steps of %d runs are too many", steps, c.runs)
	}
	g, err := c.all.Epsilon(steps*c.runs, delta)
	g.Steps, g.Assumptions = steps, c.mechanism.Assumptions()
	return g, err
}

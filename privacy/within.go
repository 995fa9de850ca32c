package privacy

import (
	"github.com/dpareto/dpareto/privacy/meter"
)

// Within returns an accountant with the results of a whose curves count their work in w, and fail
// with its error once it ends. A curve of it is not safe for concurrent use. [GDP] and [Pure] have
// closed forms, which count as nothing.
func Within(a Accountant, w *meter.Work) Accountant { return limited{a, w} }

type limited struct {
	Accountant

	work *meter.Work
}

// Curve implements Accountant.
func (l limited) Curve(m Mechanism) (Curve, error) {
	c, err := l.Accountant.Curve(m)
	if err != nil {
		return nil, err
	}
	meter.CountIn(c, l.work)
	return &limitedCurve{c}, nil
}

type limitedCurve struct{ Curve }

// Epsilon implements Curve.
func (c *limitedCurve) Epsilon(steps int64, delta float64) (g Guarantee, err error) {
	err = meter.UntilStopped(func() error {
		g, err = c.Curve.Epsilon(steps, delta)
		return err
	})
	return g, err
}

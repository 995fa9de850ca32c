package privacy

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

func TestCalibrateNoise(t *testing.T) {
	// Multi-precision bisection of the published bound, which is above the pair's.
	for _, tc := range []struct {
		n, m, epochs int64
		eps, sigma   float64
	}{
		{30956, 128, 10, 1, 1.81609}, {30956, 512, 32, 3, 2.31217}, {60000, 800, 50, 1, 6.70441},
	} {
		steps, err := Steps(tc.n, tc.m, tc.epochs)
		require.NoError(t, err)
		sigma, g, err := CalibrateNoise(RDP{}, func(x float64) Mechanism {
			return FixedSizeGaussian{tc.n, tc.m, x}
		}, steps, tc.eps, 1e-5)
		if err != nil || sigma >= tc.sigma || g.Epsilon > tc.eps || g.Epsilon < tc.eps*(1-1e-6) {
			t.Errorf("%+v: noise %g, %v, %v", tc, sigma, g, err)
		}
	}
	sigma, g, err := CalibrateNoise(GDP{}, func(x float64) Mechanism { return Gaussian{1, x, AddRemove} }, 1, 1, 1e-5)
	if err != nil || privacytest.RelErr(sigma, 3.730631634815942) > 2e-9 || g.Epsilon > 1 {
		t.Errorf("Gaussian: %g, %v, %v", sigma, g, err)
	}
	if _, _, err := CalibrateNoise(GDP{}, func(x float64) Mechanism { return Gaussian{1, x, AddRemove} }, 1, -1, 1e-5); err == nil {
		t.Error("a negative epsilon was accepted")
	}
}

func TestCalibrateNoiseInvertsEpsilon(t *testing.T) {
	for _, a := range []Accountant{RDP{}, RDP{Classic}, Exact{}} {
		for _, sigma := range []float64{0.6, 1.3, 7} {
			family := func(x float64) Mechanism { return FixedSizeGaussian{60000, 256, x} }
			target := epsilonOf(t, a, family(sigma), 2000, 1e-5).Epsilon
			got, g, err := CalibrateNoise(a, family, 2000, target, 1e-5)
			if err != nil || privacytest.RelErr(got, sigma) > 1e-7 || g.Epsilon > target {
				t.Errorf("%s, noise %g: back %.12g, %v", a.Name(), sigma, got, err)
			}
		}
	}
}

func TestDelta(t *testing.T) {
	c, err := GDP{}.Curve(Gaussian{1, 1, AddRemove})
	require.NoError(t, err)
	for _, eps := range []float64{0, 0.5, 1, 5, 20} {
		g, err := Delta(c, 1, eps)
		want := math.Erf(1 / (2 * math.Sqrt2))
		if eps > 0 {
			log, _ := gaussian.Profile(1, eps)
			want = math.Exp(log)
		}
		if err != nil || privacytest.RelErr(g.Delta, want) > 1e-8 || g.Delta < want*(1-1e-12) {
			t.Errorf("epsilon %g: delta %.12g, want %.12g, %v", eps, g.Delta, want, err)
		}
	}
	pure, err := Pure{}.Curve(SparseVector{1, 10, AddRemove})
	require.NoError(t, err)
	if g, err := Delta(pure, 1, 1); err != nil || g.Delta != 0 {
		t.Errorf("pure: %v, %v", g, err)
	}
	if _, err := Delta(pure, 1, 0.1); len(FieldErrors(err)) != 1 {
		t.Errorf("pure, out of reach: %v", err)
	}
}

// failing is an accountant whose curves fail at the call after those that are left.
type failing struct {
	GDP

	left *int
}

type failingCurve struct {
	Curve

	left *int
}

var errLater = errors.New("a curve that fails")

func (a failing) Curve(m Mechanism) (Curve, error) {
	c, err := a.GDP.Curve(m)
	return failingCurve{c, a.left}, err
}

func (c failingCurve) Epsilon(steps int64, delta float64) (Guarantee, error) {
	if *c.left--; *c.left < 0 {
		return Guarantee{}, errLater
	}
	return c.Curve.Epsilon(steps, delta)
}

// Whichever call of the curve fails, a calibration returns its error; but the first of Delta only asks
// whether δ = 0 does.
func TestCalibrationsFail(t *testing.T) {
	left := 0
	a := failing{left: &left}
	family := func(sigma float64) Mechanism { return Gaussian{1, sigma, AddRemove} }
	c, err := a.Curve(family(1))
	require.NoError(t, err)
	for name, f := range map[string]func() error{
		"small delta": func() error { _, err := Delta(c, 1, 5); return err },
		"large delta": func() error { _, err := Delta(c, 1, 0.01); return err },
		"less noise":  func() error { _, _, err := CalibrateNoise(a, family, 1, 10, 1e-5); return err },
		"more noise":  func() error { _, _, err := CalibrateNoise(a, family, 1, 0.1, 1e-5); return err },
	} {
		left = math.MaxInt
		if err := f(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		calls := math.MaxInt - left
		first := 0
		if strings.Contains(name, "delta") {
			first = 1
		}
		for n := first; n < calls; n++ {
			if left = n; !errors.Is(f(), errLater) {
				t.Errorf("%s: the error of call %d of %d is lost", name, n+1, calls)
			}
		}
	}
}

func TestCalibrationErrors(t *testing.T) {
	m := Gaussian{1, 1, AddRemove}
	c, err := GDP{}.Curve(m)
	require.NoError(t, err)
	for _, epsilon := range []float64{-1, math.NaN()} {
		_, deltaErr := Delta(c, 1, epsilon)
		_, _, noiseErr := CalibrateNoise(GDP{}, func(float64) Mechanism { return m }, 1, epsilon, 1e-5)
		for i, err := range []error{deltaErr, noiseErr} {
			if fields := FieldErrors(err); len(fields) != 1 || fields[0].Field != "epsilon" {
				t.Errorf("ε = %g, %d: %v", epsilon, i, err)
			}
		}
	}
}

package estimate

import (
	"bufio"
	"errors"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

var rules = []privacy.ObjectiveCalibration{privacy.RankOne, privacy.Chaudhuri, privacy.ContinuousChaudhuri}

func TestCalibrationValues(t *testing.T) {
	file, err := os.Open("testdata/calibration.csv")
	require.NoError(t, err)
	defer file.Close()
	rows := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var v [12]float64
		numeric := true
		for i, cell := range strings.Split(lines.Text(), ",") {
			x, err := strconv.ParseFloat(cell, 64)
			if numeric = numeric && err == nil; numeric {
				v[i] = x
			}
		}
		if !numeric {
			continue
		}
		rows++
		for i, m := range []privacy.ObjectivePerturbation{
			{Calibration: privacy.Chaudhuri}, {Calibration: privacy.ContinuousChaudhuri},
			{Calibration: privacy.RankOne, Split: 0.5}, {Calibration: privacy.RankOne, Split: 0.1},
		} {
			m.DatasetSize, m.Regularization, m.Curvature, m.Epsilon = int64(v[0]), v[1], v[2], v[3]
			c := Calibrate(m)
			// The values have eight digits.
			if beta := v[4+2*i]; math.Abs(c.Beta-beta) > 1e-7*beta {
				t.Errorf("%+v: β = %.9g, want %.8g", m, c.Beta, beta)
			}
			if delta := v[5+2*i]; math.Abs(c.Tau-v[1]-delta) > 1e-7*c.Tau {
				t.Errorf("%+v: τ − λ = %.9g, want %.8g", m, c.Tau-v[1], delta)
			}
		}
	}
	if rows != 7 {
		t.Errorf("%d rows, want 7", rows)
	}
	// In the paper's setting, n = 10,000, λ = 1e-6 and c = 1/4, no ε up to 1 is above the
	// boundary, evaluated independently as 6.516.
	boundary, continuous := Boundary(privacy.ObjectivePerturbation{DatasetSize: 10000, Regularization: 1e-6, Curvature: 0.25, Calibration: privacy.Chaudhuri})
	if math.Abs(boundary-6.516) > 5e-4 || continuous {
		t.Errorf("boundary %v, continuous %v", boundary, continuous)
	}
}

// mechanisms draws any mechanism.
func mechanisms(t *rapid.T) privacy.ObjectivePerturbation {
	return privacy.ObjectivePerturbation{
		DatasetSize:    rapid.Int64Range(1, 1e6).Draw(t, "n"),
		Regularization: math.Pow(10, rapid.Float64Range(-6, 0).Draw(t, "log λ")),
		Curvature:      rapid.Float64Range(0.1, 5).Draw(t, "c"),
		Epsilon:        math.Pow(10, rapid.Float64Range(-2, 1).Draw(t, "log ε")),
		Calibration:    rapid.SampledFrom(rules).Draw(t, "calibration"),
		Split:          rapid.SampledFrom([]float64{0, 0.02, 0.3, 0.9}).Draw(t, "split"),
	}
}

// β and τ agree with the mechanism's calibration, and the derivatives with differences of
// it within a branch.
func TestCalibrationDerivatives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := mechanisms(t)
		c := Calibrate(m)
		if beta, tau := m.Calibrate(); math.Abs(c.Beta-beta) > 1e-12*beta || math.Abs(c.Tau-tau) > 1e-12*tau {
			t.Fatalf("%+v: β, τ = %v, %v, want %v, %v", m, c.Beta, c.Tau, beta, tau)
		}
		boundary, _ := Boundary(m)
		h := 1e-3 * min(m.Epsilon, 1) // τ varies over ε near its pole, over 1/share elsewhere
		if math.Abs(m.Epsilon-boundary) <= 2*h {
			return
		}
		at := func(k float64) privacy.ObjectivePerturbation {
			moved := m
			moved.Epsilon += k * h
			return moved
		}
		difference := func(f func(m privacy.ObjectivePerturbation) float64) float64 {
			return (8*(f(at(1))-f(at(-1))) - (f(at(2)) - f(at(-2)))) / (12 * h)
		}
		check := func(name string, got, want, scale float64) {
			if math.Abs(got-want) > 1e-8*scale {
				t.Errorf("%+v: %s = %.12g, differences %.12g", m, name, got, want)
			}
		}
		check("β′", c.DBeta, difference(func(m privacy.ObjectivePerturbation) float64 { beta, _ := m.Calibrate(); return beta }), 1)
		check("τ′", c.DTau, difference(func(m privacy.ObjectivePerturbation) float64 { _, tau := m.Calibrate(); return tau }), c.Tau/m.Epsilon)
		check("τ″", c.D2Tau, difference(func(m privacy.ObjectivePerturbation) float64 { return Calibrate(m).DTau }), c.Tau/(m.Epsilon*m.Epsilon))
	})
}

// At the boundary the branches agree, but for the original rule, whose noise becomes
// infinite just above.
func TestBoundary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := mechanisms(t)
		boundary, continuous := Boundary(m)
		m.Epsilon = boundary
		below := Calibrate(m)
		m.Epsilon = boundary * (1 + 1e-9)
		above := Calibrate(m)
		if got, want := continuous, m.Calibration != privacy.Chaudhuri; got != want {
			t.Fatalf("%+v: continuous %v", m, got)
		}
		if continuous {
			if math.Abs(above.Beta-below.Beta) > 1e-7*below.Beta || math.Abs(above.Tau-below.Tau) > 1e-7*below.Tau {
				t.Errorf("%+v: %+v below the boundary, %+v above", m, below, above)
			}
		} else if above.Beta > 1e-6*below.Beta {
			t.Errorf("%+v: rate %v above the boundary", m, above.Beta)
		}
		for _, beyond := range []float64{boundary * 0.9, boundary * 1.1} {
			_, failed := errors.AsType[*DiscontinuityError](checkInterval(m, boundary, beyond))
			if want := !continuous && beyond > boundary; failed != want {
				t.Errorf("%+v: from the boundary to %v: failed %v", m, beyond/boundary, failed)
			}
		}
	})
}

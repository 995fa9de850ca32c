package inversion

import (
	"math"
	"math/cmplx"
	"testing"

	"github.com/dpareto/dpareto/privacy/internal/pld"
)

// TestContourTransform compares with the sum of e^{iyl} over the same quadrature, loss by loss.
func TestContourTransform(t *testing.T) {
	const c, step, points = 2.5, 0.4, 256
	for _, pair := range []pld.Pair{pld.FixedSize(0.003, 1), pld.FixedSize(0.2, 4), pld.Poisson(0.01, 0.6)[1]} {
		for _, runs := range []float64{3, 1000} {
			var r contourTransform
			if !r.cover(&pld.Part{Pair: pair, Count: 2}, c, runs, step*points) {
				t.Fatalf("%+v: too many nodes", pair)
			}
			logAbs, angle, noise := make([]float64, points), make([]float64, points), make([]float64, points)
			at := contourPoints{logAbs, angle, noise, points}
			r.add(at, runs, step)
			for i := range points {
				y := float64(i) * step
				sum := complex(1, y*r.rest)
				for j, l := range r.loss {
					sum += complex(r.weight[j], 0)*(cmplx.Exp(complex(0, y*l))-1) + complex(0, y*r.drift[j])
				}
				want := cmplx.Log(sum)
				tol := noise[i]/(2*runs) + 1e-14*(1+1/cmplx.Abs(sum)) // the sum has errors, too
				if tol > 1e-12*(1+1/cmplx.Abs(sum)) {
					t.Errorf("%+v, %g runs, point %d: errors of %g", pair, runs, i, tol)
				}
				if got := logAbs[i] / (2 * runs); math.Abs(got-real(want)) > tol {
					t.Errorf("%+v, %g runs, point %d: modulus e^%.17g, want e^%.17g", pair, runs, i, got, real(want))
				}
				if turn := math.Remainder(angle[i]/(2*runs)-imag(want), 2*math.Pi); math.Abs(turn) > tol {
					t.Errorf("%+v, %g runs, point %d: phase %.17g, want %.17g", pair, runs, i, angle[i]/(2*runs), imag(want))
				}
			}
		}
	}
	// A pair with a closed form: E[e^{tL}] = e^{t(t+1)·mu²/2}.
	const mu = 0.3
	var r contourTransform
	if !r.cover(&pld.Part{Pair: pld.Gaussian(mu), Count: 2}, c, 3, step*points) {
		t.Fatal("too many nodes")
	}
	logAbs, angle, noise := make([]float64, points), make([]float64, points), make([]float64, points)
	r.add(contourPoints{logAbs, angle, noise, points}, 3, step)
	for i := range points {
		at := complex(c, float64(i)*step)
		want := 6 * mu * mu / 2 * (at*(at+1) - c*(c+1))
		if got := complex(logAbs[i], angle[i]); cmplx.Abs(got-want) > 1e-13*(1+cmplx.Abs(want)) {
			t.Errorf("point %d: %v, want %v", i, got, want)
		}
	}
}

package acquisition

import (
	"math"
	"testing"
)

type value struct{ x, want float64 }

// Values to 17 digits by mpmath.
func TestSpecialFunctions(t *testing.T) {
	for _, tc := range []struct {
		name   string
		f      func(float64) float64
		values []value
	}{
		{"erfcx", erfcx, []value{
			{-3, 16205.988853999587},
			{-0.5, 1.9523604891825571},
			{0, 1},
			{1e-9, 0.99999999887162083},
			{0.3, 0.73459933456765514},
			{1, 0.427583576155807},
			{2.9999, 0.17900658856623886},
			{3, 0.17900115118138995},
			{3.0001, 0.17899571411422847},
			{7.5, 0.074573693062876683},
			{26, 0.021683584850562907},
			{1e3, 0.00056418930145338765},
			{1e8, 5.6418958354775626e-9},
		}},
		{"logPhi", logPhi, []value{
			{8, -6.2209605742717861e-16},
			{3, -0.0013508099647481938},
			{0.5, -0.36894641528865639},
			{0, -0.69314718055994531},
			{-0.5, -1.1759117615936186},
			{-1, -1.8410216450092635},
			{-1.0001, -1.8411741625414108},
			{-5, -15.064998393988726},
			{-10, -53.231285150512471},
			{-40, -804.60844201375379},
			{-200, -20006.21728089819},
			{-1e8, -5000000000000019.3},
		}},
		{"logH", func(u float64) float64 { v, _, _ := logH(u); return v }, []value{
			{30, 3.4011973816621554},
			{2, 0.69738354578822831},
			{0.1, -0.79643133955074713},
			{0, -0.91893853320467274},
			{-0.1, -1.047153314072846},
			{-1, -2.4851210257126413},
			{-3, -7.8696860596030285},
			{-10, -55.553122036122356},
			{-17.999, -168.69073365176819},
			{-18.001, -168.72695385952846},
			{-34, -585.97424692515626},
			{-100, -5010.1295788002498},
			{-1e4, -50000019.339619307},
			{-1e6, -500000000028.54996},
			{-1e8, -5000000000000037.8},
		}},
		{"log1mexp", log1mexp, []value{
			{1e-300, -690.77552789821371},
			{1e-10, -23.025850929990457},
			{0.5, -0.93275212956718857},
			{0.7, -0.68634100280838511},
			{3, -0.051069180942701587},
			{50, -1.9287498479639178e-22},
		}},
	} {
		for _, v := range tc.values {
			if got := tc.f(v.x); !(math.Abs(got-v.want) <= 1e-14*math.Abs(v.want)) {
				t.Errorf("%s(%g) = %.17g, want %.17g", tc.name, v.x, got, v.want)
			}
		}
	}
}

// Where math.Erfc does not underflow, erfcx agrees with it.
func TestErfcxOnGrid(t *testing.T) {
	for x := -5.0; x < 20; x += 1.0 / 64 { // x² is exact
		if got, want := erfcx(x), math.Exp(x*x)*math.Erfc(x); !(math.Abs(got-want) <= 1e-14*want) {
			t.Errorf("erfcx(%g) = %.17g, want %.17g", x, got, want)
		}
	}
}

// The fast exponential in expit agrees with package math up to rounding, and is package math's
// beyond its bounds.
func TestExpit(t *testing.T) {
	for z := -750.0; z <= 750; z += 0.37 {
		if got, want := expit(z), 1/(1+math.Exp(-z)); z > -700 && math.Abs(got-want) > 1e-15*want {
			t.Errorf("expit(%g) = %.17g, want %.17g", z, got, want)
		}
		if got, want := expit(z), math.Exp(z); z < -40 && math.Abs(got-want) > 1e-15*want {
			t.Errorf("expit(%g) = %.17g, want %.17g", z, got, want)
		}
	}
	if got := expit(math.Inf(-1)); got != 0 {
		t.Errorf("expit(-Inf) = %g", got)
	}
	if got := expit(math.Inf(1)); got != 1 {
		t.Errorf("expit(+Inf) = %g", got)
	}
	if got := expit(math.NaN()); !math.IsNaN(got) {
		t.Errorf("expit(NaN) = %g", got)
	}
}

func TestLogSum(t *testing.T) {
	s := newLogSum()
	if got := s.value(); !math.IsInf(got, -1) {
		t.Errorf("empty sum = %g", got)
	}
	for _, term := range []float64{math.Inf(-1), -1000, -1000 + math.Ln2, math.Inf(-1), -1100} {
		s.add(term)
	}
	if got, want := s.value(), -1000+math.Log(3); math.Abs(got-want) > 1e-12 {
		t.Errorf("sum = %.15g, want %.15g", got, want)
	}
}

package acquisition

import (
	"math"
	"math/rand/v2"
	"testing"
)

// By mpmath, 60 digits, and the standard Gaussian: ln P(lower <= U <= upper).
func TestLogFeasible(t *testing.T) {
	inf := math.Inf(1)
	for _, tc := range []struct{ lower, upper, want float64 }{
		{-1.0, 1.0, -0.38171514630212607},
		{-6.0, 3.0, -0.0013508109526694323},
		{2.0, inf, -3.7831843336820319},
		{-30.0, -29.0, -424.78741990973031},
		{-30.0, -29.9990234375, -457.83572629888404},
		{0.0, 9.5367431640625e-07, -14.781882144403731},
		{20.0, 24.0, -203.91715537109726},
		{35.0, 35.015625, -617.83886393719536},
		{-0.25, 0.125, -1.9075437876880914},
		{-inf, -25.0, -316.63940800802026},
	} {
		got, _ := LogFeasible(Distribution{Gaussian, 0, 1}, tc.lower, tc.upper)
		near(t, tc.lower, tc.upper, "LogFeasible", got, tc.want, 1e-13)
	}
}

func TestLogFeasibleDerivatives(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	for range 2000 {
		l := Distribution{families[rng.IntN(4)], rng.NormFloat64(), math.Exp(2*rng.Float64() - 2)}
		a := 5 * rng.NormFloat64()
		lower, upper := l.Quantile(a), l.Quantile(a+math.Exp(6*rng.Float64()-5))
		if lower > upper {
			lower, upper = upper, lower
		}
		switch rng.IntN(4) {
		case 0:
			lower = math.Inf(-1)
		case 1:
			upper = math.Inf(1)
		}
		if l.Family == LogitNormal && 1-lower < 1e-6 {
			continue // a rounded bound has another logit
		}
		value, d := LogFeasible(l, lower, upper)
		if p := l.Probability(lower, upper); p > 1e-3 {
			near(t, l, lower, "LogFeasible", value, math.Log(p), 1e-10)
		}
		h := 1e-5 * l.StdDev / (1 + math.Abs(a))
		mean := slope(func(x float64) float64 {
			v, _ := LogFeasible(Distribution{l.Family, x, l.StdDev}, lower, upper)
			return v
		}, l.Mean, h)
		stdDev := slope(func(x float64) float64 {
			v, _ := LogFeasible(Distribution{l.Family, l.Mean, x}, lower, upper)
			return v
		}, l.StdDev, h)
		near(t, l, lower, "derivative in Mean", d.Mean, mean, 1e-5)
		near(t, l, lower, "derivative in StdDev", d.StdDev, stdDev, 1e-5)
	}
}

func TestLogFeasibleLimits(t *testing.T) {
	inf := math.Inf(1)
	for _, tc := range []struct {
		distribution Distribution
		lower, upper float64
		want         float64
	}{
		{Distribution{Gaussian, 1, 0}, 1, 2, 0}, // closed
		{Distribution{Gaussian, 1, 0}, 0, 1, 0},
		{Distribution{Gaussian, 1, 0}, 1, 1, 0},
		{Distribution{Gaussian, 1, 0}, 1.5, 2, -inf},
		{Distribution{Gaussian, inf, 0}, -inf, 3, -inf},
		{Distribution{Gaussian, 1, 1}, -inf, inf, 0},
		{Distribution{LogNormal, 1, 1}, 0, inf, 0},
		{Distribution{LogNormal, 1, 1}, -2, 0, -inf},
		{Distribution{NegatedLogNormal, 1, 1}, -inf, 0, 0},
		{Distribution{LogitNormal, 1, 1}, 0, 1, 0},
		{Distribution{LogitNormal, 1, 1}, 1, 2, -inf},
		{Distribution{Gaussian, 1, 1}, 2, 1, -inf},
	} {
		if got, d := LogFeasible(tc.distribution, tc.lower, tc.upper); got != tc.want || d != (Partial{}) {
			t.Errorf("%v in [%g, %g]: %g, %v, want %g and no derivatives", tc.distribution, tc.lower, tc.upper, got, d, tc.want)
		}
	}
}

package acquisition

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"github.com/dpareto/dpareto/suggest/pareto"
)

func logit(p float64) float64 { return math.Log(p / (1 - p)) }

var families = []Family{Gaussian, LogNormal, NegatedLogNormal, LogitNormal}

// expectedGap returns E[(t - X)+].
func expectedGap(l Distribution, t float64) float64 {
	value, _ := l.LogShortfall(t)
	return math.Exp(value)
}

// The four-point front, in (epsilon, error), that the reference values below
// belong to.
func exampleFront() *pareto.Front {
	return pareto.NewFront([][]float64{{0.1, .40}, {0.5, .25}, {2, .20}, {8, .17}}, []float64{10, 1})
}

// Values computed independently in mpmath and checked by Monte Carlo with
// 4e5 draws.
func TestTwoObjectives(t *testing.T) {
	for _, tc := range []struct {
		epsilon, s1, err, s2    float64
		poi, hvi, hvpoi, expect float64
	}{
		{0.3, 0.2, 0.28, 0.15, 0.99532424, 0.024, 0.023887782, 0.0263873},
		{0.05, 0.3, 0.45, 0.2, 0.99116457, 0.0275, 0.027257026, 0.0277713},
		{1.0, 0.1, 0.2, 0.1, 0.99799148, 0.05, 0.049899574, 0.0863891},
		{5.0, 0.5, 0.16, 0.05, 0.91052207, 0.14, 0.12747309, 0.130588},
		{0.3, 0.0, 0.28, 0.15, 0.99983675, 0.024, 0.023996082, 0.0270876},
		{1.0, 0.1, 0.26, 0.3, 0.43035159, 0, 0, 0.0343309},
		{20.0, 0.1, 0.1, 0.1, 2.0824223e-12, 0, 0, 1.98591e-14},
	} {
		front := exampleFront()
		distributions := []Distribution{{LogNormal, math.Log(tc.epsilon), tc.s1}, {LogitNormal, logit(tc.err), tc.s2}}
		within(t, "PoI", PoI(front, distributions), tc.poi, 1e-7)
		within(t, "exp(LogPoI)", math.Exp(LogPoI(front, distributions)), tc.poi, 1e-7)
		within(t, "MedianImprovement", MedianImprovement(front, distributions), tc.hvi, 1e-12)
		within(t, "HVPoI", HVPoI(front, distributions), tc.hvpoi, 1e-7)
		within(t, "EHVI", EHVI(front, distributions), tc.expect, 1e-5)
	}
}

// Values computed independently in mpmath.
func TestThreeObjectives(t *testing.T) {
	front := pareto.NewFront([][]float64{{1, 5, 3}, {2, 3, 4}, {4, 1, 2}, {3, 4, 1}}, []float64{6, 6, 6})
	distributions := []Distribution{{Gaussian, 2.5, 1}, {Gaussian, 3.5, .8}, {Gaussian, 2.5, 1.2}}
	within(t, "PoI", PoI(front, distributions), 0.84601115, 1e-7)
	within(t, "MedianImprovement", MedianImprovement(front, distributions), 2.125, 1e-12)
	within(t, "HVPoI", HVPoI(front, distributions), 1.7977737, 1e-7)
	within(t, "EHVI", EHVI(front, distributions), 4.6400894, 1e-7)
}

func TestMonteCarlo(t *testing.T) {
	const draws = 100_000
	rng := rand.New(rand.NewPCG(1, 2))
	for m := 1; m <= 4; m++ {
		reference := make([]float64, m)
		distributions := make([]Distribution, m)
		for j := range distributions {
			distributions[j] = Distribution{families[(j+m)%len(families)], 0.3 * rng.NormFloat64(), 0.2 + rng.Float64()}
			reference[j] = inverse(distributions[j], 0.9)
		}
		points := make([][]float64, 6)
		for i := range points {
			points[i] = make([]float64, m)
			for j := range points[i] {
				points[i][j] = inverse(distributions[j], 0.1+0.8*rng.Float64())
			}
		}
		front := pareto.NewFront(points, reference)
		base := front.Hypervolume()
		var hits, sum, squares float64
		v := make([]float64, m)
		for range draws {
			for j, l := range distributions {
				v[j] = l.Quantile(rng.NormFloat64())
			}
			// Independent of the cells: a difference of two hypervolumes.
			gain := pareto.Hypervolume(append(front.Points()[:front.Len():front.Len()], v), reference) - base
			if gain > 1e-14 {
				hits++
				sum += gain
				squares += gain * gain
			}
		}
		p, mean := hits/draws, sum/draws
		if poi, se := PoI(front, distributions), math.Sqrt(p*(1-p)/draws); math.Abs(poi-p) > 5*se {
			t.Errorf("m = %d: PoI = %g, Monte Carlo %g ± %g", m, poi, p, se)
		}
		got, se := EHVI(front, distributions), math.Sqrt((squares/draws-mean*mean)/draws)
		if math.Abs(got-mean) > 5*se {
			t.Errorf("m = %d: EHVI = %g, Monte Carlo %g ± %g", m, got, mean, se)
		}
	}
}

// inverse returns the value that X is below with probability p.
func inverse(l Distribution, p float64) float64 {
	z := math.Sqrt2 * math.Erfinv(2*p-1)
	if l.Family == NegatedLogNormal {
		z = -z
	}
	return l.Quantile(z)
}

// The shortfall is the integral of the distribution function.
func TestShortfallDerivative(t *testing.T) {
	for _, l := range []Distribution{
		{Gaussian, 0.4, 0.7}, {LogNormal, -0.2, 0.5}, {NegatedLogNormal, 0.1, 0.6},
		{LogitNormal, -1.3, 0.3}, {LogitNormal, 0.5, 8}, {LogitNormal, -6, 0.02},
	} {
		for _, p := range []float64{0.001, 0.1, 0.5, 0.9, 0.999} {
			x := inverse(l, p)
			if l.Family == LogitNormal && 1-x < 1e-6 {
				continue // no room for a difference quotient
			}
			h := 1e-5 * math.Min(math.Abs(x), 1)
			if l.Family == LogitNormal {
				h = math.Min(h, 1e-2*(1-x))
			}
			slope := (expectedGap(l, x+h) - expectedGap(l, x-h)) / (2 * h)
			if !scalar.EqualWithinAbsOrRel(slope, p, 1e-7, 1e-4) {
				t.Errorf("%v: d/dt shortfall at %g = %g, want %g", l, x, slope, p)
			}
		}
	}
}

// E[(t - X)+] tends to t - E[X]; means of the log-normal are exact, the one of the
// symmetric logit-normal is 1/2.
func TestShortfallLimits(t *testing.T) {
	for _, tc := range []struct {
		distribution Distribution
		t, want      float64
	}{
		{Distribution{LogNormal, 0.3, 0.4}, 100, 100 - math.Exp(0.38)},
		{Distribution{NegatedLogNormal, 0.3, 0.4}, 0.5, 0.5 + math.Exp(0.38)},
		{Distribution{NegatedLogNormal, 0.3, 0.4}, 0, math.Exp(0.38)},
		{Distribution{Gaussian, -2, 0.1}, 5, 7},
		{Distribution{LogitNormal, 0, 1.7}, 1, 0.5},
		{Distribution{LogitNormal, 0, 40}, 1, 0.5},
		{Distribution{LogitNormal, 0, 0}, 0.75, 0.25},
		{Distribution{LogNormal, 0, 0}, 0.75, 0},
		{Distribution{LogNormal, 0, 1}, -3, 0},
		{Distribution{LogitNormal, 0, 1}, 0, 0},
		{Distribution{Gaussian, 0, 1}, math.Inf(-1), 0},
		{Distribution{Gaussian, math.Inf(1), 0}, 10, 0},
	} {
		within(t, "expectedGap", expectedGap(tc.distribution, tc.t), tc.want, 1e-11)
	}
}

func TestLogPoIBeyondUnderflow(t *testing.T) {
	front := exampleFront()
	at := func(m2 float64) []Distribution { return []Distribution{{LogNormal, 0, 0.001}, {LogitNormal, m2, 0.01}} }
	near, far := LogPoI(front, at(0)), LogPoI(front, at(1))
	if PoI(front, at(0)) != 0 || math.IsInf(far, 0) || !(near > far) {
		t.Errorf("log PoI = %g and %g, want finite and decreasing", near, far)
	}
}

// A known objective that equals a front value exactly improves only from the
// height of that front point on.
func TestKnownTie(t *testing.T) {
	front := exampleFront()
	distributions := []Distribution{{Gaussian, 0.5, 0}, {LogitNormal, logit(0.25), 0.3}}
	within(t, "PoI", PoI(front, distributions), 0.5, 1e-12)
	distributions[0].Mean = 10 // at the reference
	within(t, "PoI", PoI(front, distributions), 0, 0)
	within(t, "EHVI", EHVI(front, distributions), 0, 0)
}

func TestShapePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic for one distribution and two objectives")
		}
	}()
	PoI(exampleFront(), []Distribution{{}})
}

// within fails unless got is want to the relative tolerance given.
func within(t *testing.T, name string, got, want, tol float64) {
	t.Helper()
	if !scalar.EqualWithinRel(got, want, tol) && math.Abs(got-want) > 1e-15 {
		t.Errorf("%s = %.10g, want %.10g", name, got, want)
	}
}

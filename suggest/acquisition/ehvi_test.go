package acquisition

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/suggest/pareto"
)

// ln EHVI by the sum over strips with 700 digits in mpmath.
func TestLogEHVI(t *testing.T) {
	narrow := make([][]float64, 6) // strips of 1e-9
	for k := range narrow {
		step := math.Ldexp(float64(k), -30)
		narrow[k] = []float64{1 + step, 0.5 - step}
	}
	close2 := pareto.NewFront(narrow, []float64{2, 1})
	for _, tc := range []struct {
		front         *pareto.Front
		distributions []Distribution
		want          float64
	}{
		{exampleFront(), []Distribution{{Gaussian, 1, 0.3}, {Gaussian, 0.3, 0.05}}, -4.892748124719974},
		{exampleFront(), []Distribution{{Gaussian, 5, 0.2}, {Gaussian, 1, 0.02}}, -313.88665330879708},
		{exampleFront(), []Distribution{{Gaussian, 9, 0.05}, {Gaussian, 0.9, 0.03}}, -306.86978328596593},
		{exampleFront(), []Distribution{{Gaussian, 11, 0.1}, {Gaussian, 1.5, 0.05}}, -422.11641950976461},
		{exampleFront(), []Distribution{{Gaussian, 12, 0.1}, {Gaussian, 2, 0.06}}, -684.91643911041512},
		{exampleFront(), []Distribution{{Gaussian, 0.3, 1e-6}, {Gaussian, 0.39, 1e-6}}, -6.2146080984221908},
		{exampleFront(), []Distribution{{LogNormal, 0, 0.3}, {LogNormal, -1.5, 0.2}}, -2.6136622516736253},
		{exampleFront(), []Distribution{{LogNormal, 3, 0.05}, {LogNormal, 0.5, 0.1}}, -373.51845571371634},
		{exampleFront(), []Distribution{{LogNormal, 2.6, 0.02}, {LogNormal, 1, 0.04}}, -2489.9704498181993},
		{exampleFront(), []Distribution{{LogNormal, 3, 0.1}, {LogNormal, 0.3, 0.06}}, -566.647028659654},
		{exampleFront(), []Distribution{{Gaussian, 0.3, 0}, {Gaussian, 0.5, 0.05}}, -9.373905931374892},
		{exampleFront(), []Distribution{{Gaussian, 3, 0}, {Gaussian, 0.9, 0.03}}, -281.34352184890357},
		{exampleFront(), []Distribution{{Gaussian, 9.5, 0}, {Gaussian, 1.4, 0.035}}, -629.59596204865801},
		{exampleFront(), []Distribution{{Gaussian, 0.5, 0}, {Gaussian, 0.9, 0.02}}, -539.51580749249773},
		{close2, []Distribution{{Gaussian, 3, 0.2}, {Gaussian, 2, 0.2}}, -53.087271513418159},
		{close2, []Distribution{{Gaussian, 1, 0.1}, {Gaussian, 0.4, 0.1}}, -2.0561448166070477},
		{close2, []Distribution{{Gaussian, 6, 0.2}, {Gaussian, 3, 0.1}}, -529.99817849971944},
	} {
		near(t, tc.distributions, 0, "LogEHVI", LogEHVI(tc.front, tc.distributions, nil), tc.want, 1e-12)
	}
}

// randomCase draws distributions of mixed families, some of them known and some of them
// far beyond the reference, and a front among their likely values.
func randomCase(rng *rand.Rand, m int) (*pareto.Front, []Distribution) {
	distributions := make([]Distribution, m)
	reference := make([]float64, m)
	points := make([][]float64, rng.IntN(9))
	for i := range points {
		points[i] = make([]float64, m)
	}
	for j := range distributions {
		l := Distribution{families[rng.IntN(4)], 0.5 * rng.NormFloat64(), math.Exp(2*rng.Float64() - 2.5)}
		reference[j] = inverse(l, 0.95)
		for i := range points {
			points[i][j] = inverse(l, 0.05+0.9*rng.Float64())
		}
		shift := 10 * l.StdDev * rng.Float64() * rng.Float64()
		if l.Family == NegatedLogNormal {
			shift = -shift
		}
		l.Mean += shift
		if rng.IntN(4) == 0 {
			l.StdDev = 0
		}
		distributions[j] = l
	}
	return pareto.NewFront(points, reference), distributions
}

func TestLogEHVIDerivatives(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	possible := 0
	for range 2000 {
		m := 1 + rng.IntN(4)
		front, distributions := randomCase(rng, m)
		d := make([]Partial, m)
		value := LogEHVI(front, distributions, d)
		if got := LogEHVI(front, distributions, nil); got != value && !(math.Abs(got-value) <= 1e-14*math.Max(1, math.Abs(value))) {
			t.Errorf("%v: LogEHVI = %g without derivatives, %g with", distributions, got, value)
		}
		if math.IsInf(value, -1) {
			for _, p := range d {
				if p != (Partial{}) {
					t.Errorf("%v: derivatives %v of an impossible improvement", distributions, d)
				}
			}
			continue
		}
		possible++
		for j := range distributions {
			at := func(mean, stdDev float64) float64 {
				old := distributions[j]
				defer func() { distributions[j] = old }()
				distributions[j].Mean, distributions[j].StdDev = mean, stdDev
				return LogEHVI(front, distributions, nil)
			}
			l := distributions[j]
			mean := slope(func(x float64) float64 { return at(x, l.StdDev) }, l.Mean, 1e-6)
			near(t, distributions, float64(j), "derivative in Mean", d[j].Mean, mean, 1e-5)
			if l.StdDev > 0 {
				stdDev := slope(func(x float64) float64 { return at(l.Mean, x) }, l.StdDev, 1e-6*l.StdDev)
				near(t, distributions, float64(j), "derivative in StdDev", d[j].StdDev, stdDev, 1e-4)
			} else if d[j].StdDev != 0 {
				t.Errorf("%v: derivative in a StdDev of 0 is %g", distributions, d[j].StdDev)
			}
		}
	}
	if possible < 1000 {
		t.Errorf("only %d cases can improve", possible)
	}
}

// A worse mean, a smaller StdDev of a Gaussian and a larger front each leave less
// to expect.
func TestLogEHVIMonotone(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for range 1000 {
		m := 1 + rng.IntN(4)
		front, distributions := randomCase(rng, m)
		d := make([]Partial, m)
		value := LogEHVI(front, distributions, d)
		for j, l := range distributions {
			worse := d[j].Mean
			if l.Family == NegatedLogNormal {
				worse = -worse
			}
			if worse > 1e-9 || l.Family == Gaussian && d[j].StdDev < -1e-9 {
				t.Errorf("%v: derivatives %v", distributions, d)
			}
		}
		p := make([]float64, m)
		for j, r := range front.Reference() {
			p[j] = r - rng.ExpFloat64()
		}
		if after := LogEHVI(pareto.NewFront(append(front.Points(), p), front.Reference()), distributions, nil); after > value+1e-9 {
			t.Errorf("%v: %g, and %g with one more point", distributions, value, after)
		}
	}
}

func TestLogEHVISpecialCases(t *testing.T) {
	empty := pareto.NewFront(nil, []float64{3, 2})
	near(t, "empty front", 0, "LogEHVI", LogEHVI(empty, []Distribution{{Gaussian, 1, 0}, {Gaussian, 1.5, 0}}, nil), 0, 1e-15)
	twice := pareto.NewFront([][]float64{{1, 1}, {1, 1}, {1, 1.5}, {2, 0.5}}, []float64{3, 2})
	once := pareto.NewFront([][]float64{{1, 1}, {2, 0.5}}, []float64{3, 2})
	distributions := []Distribution{{Gaussian, 1, 0.1}, {Gaussian, 1, 0.2}}
	if got, want := LogEHVI(twice, distributions, nil), LogEHVI(once, distributions, nil); got != want {
		t.Errorf("LogEHVI = %g with duplicates, %g without", got, want)
	}
	d := make([]Partial, 2)
	for _, distributions := range [][]Distribution{
		{{Gaussian, 3, 0}, {Gaussian, 1, 0.1}},              // at the reference
		{{Gaussian, math.Inf(1), 0}, {Gaussian, 1, 0.1}},    // never known to be finite
		{{Gaussian, 1, 0.1}, {Gaussian, math.Inf(1), 0}},    // on the other axis
		{{Gaussian, 2.5, 0}, {Gaussian, 0.6, 0}},            // dominated for certain
		{{Gaussian, 2.5, 0.1}, {LogitNormal, 1, 0}},         // both beyond the points
		{{LogNormal, 5, 0}, {LogitNormal, 1, 0.1}},          // beyond
		{{Gaussian, math.Inf(1), 0}, {Gaussian, 5, 0}},      // beyond in both
		{{NegatedLogNormal, -9, 0.1}, {LogitNormal, 50, 0}}, // possible
	} {
		value := LogEHVI(once, distributions, d)
		possible := distributions[0].StdDev > 0 && !math.IsInf(distributions[1].Mean, 1)
		if math.IsNaN(value) || possible == math.IsInf(value, -1) || !possible && (d[0] != Partial{} || d[1] != Partial{}) {
			t.Errorf("%v: LogEHVI = %g, %v", distributions, value, d)
		}
	}
}

// A known objective is the limit of one with a small StdDev, on either axis.
func TestKnownIsLimit(t *testing.T) {
	front := exampleFront()
	for axis, e := range []float64{1.3, 0.22} {
		distributions := []Distribution{{LogNormal, 0.2, 0.4}, {LogitNormal, -1.4, 0.3}}
		distributions[axis] = Distribution{Gaussian, e, 0}
		exact := make([]Partial, 2)
		value := LogEHVI(front, distributions, exact)
		distributions[axis].StdDev = 1e-7
		limit := make([]Partial, 2)
		near(t, distributions, e, "LogEHVI", value, LogEHVI(front, distributions, limit), 1e-6)
		near(t, distributions, e, "known derivative", exact[axis].Mean, limit[axis].Mean, 1e-6)
		near(t, distributions, e, "other derivative", exact[1-axis].Mean, limit[1-axis].Mean, 1e-6)
	}
}

// If all outcomes are known the logarithm is of their improvement, also beyond the
// range of numbers, with and without derivatives.
func TestLogEHVIOfKnown(t *testing.T) {
	for m := 1; m <= 4; m++ {
		for _, scale := range []float64{1, 1e-80, 1e-300, 1e80, 1e300} {
			reference, point, distributions := make([]float64, m), make([]float64, m), make([]Distribution, m)
			for j := range m {
				reference[j], point[j], distributions[j] = scale, 0.75*scale, Distribution{Mean: 0.5 * scale}
			}
			front := pareto.NewFront([][]float64{point}, reference)
			want := math.Log(math.Pow(0.5, float64(m))-math.Pow(0.25, float64(m))) + float64(m)*math.Log(scale)
			near(t, m, scale, "LogEHVI", LogEHVI(front, distributions, nil), want, 1e-12)
			near(t, m, scale, "LogEHVI with derivatives", LogEHVI(front, distributions, make([]Partial, m)), want, 1e-12)
			distributions[m-1].Mean = scale
			if got := LogEHVI(front, distributions, nil); !math.IsInf(got, -1) {
				t.Errorf("m = %d, scale %g: LogEHVI = %g at the reference", m, scale, got)
			}
		}
	}
}

func TestNoAllocations(t *testing.T) {
	front := exampleFront()
	random := []Distribution{{LogNormal, 0.2, 0.4}, {LogitNormal, -1.4, 0.3}}
	known := []Distribution{{Gaussian, 1, 0}, {LogitNormal, -1.4, 0.3}}
	d := make([]Partial, 2)
	dKnown := make([]float64, 2)
	costs := []float64{0.2, 1}
	for name, f := range map[string]func(){
		"LogEHVI, one known": func() { LogEHVI(front, known, d) },
		"LogTrajectoryEHVI":  func() { LogTrajectoryEHVI(front, 0, costs, []Distribution{random[1], random[1]}, dKnown, d) },
		"LogFeasible":        func() { LogFeasible(random[1], 0.1, 0.2) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %g times", name, n)
		}
	}
}

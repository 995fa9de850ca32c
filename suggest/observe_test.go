package suggest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/space"
)

// Run error counts, records per run, and the values computed independently in
// 50-digit arithmetic. The last column is the delta-method variance alone.
func TestLatentLogit(t *testing.T) {
	for _, tc := range []struct {
		counts    []float64
		m         float64
		z         float64
		delta     float64
		fewCounts bool // in which case Jeffreys' variance replaces delta
	}{
		{[]float64{0, 0, 0, 0, 0}, 1000, -9.2104404, 5.0030006, true},
		{[]float64{3, 5, 2, 4, 6}, 1000, -5.4928607, 0.030001558, false},
		{[]float64{1000, 1000, 1000}, 1000, 8.6996814, 3.0030009, true},
		{[]float64{240}, 1605, -1.7365559, math.NaN(), false},
		{[]float64{0}, 1, -1.0986123, math.NaN(), true},
		{[]float64{10, 10, 10}, 100, -2.1825454, 0.001004964, false},
	} {
		o := &Objective{Transform: Logit, SampleSize: tc.m}
		fractions := make([]float64, len(tc.counts))
		for i, k := range tc.counts {
			fractions[i] = k / tc.m
		}
		runs := float64(len(fractions))
		mean, sd := stat.MeanStdDev(fractions, nil)
		se := sd / math.Sqrt(runs) // NaN for a single run
		z, variance := o.latent(mean, se, len(fractions))
		if !scalar.EqualWithinRel(z, tc.z, 1e-7) {
			t.Errorf("%v of %g: logit = %.9g, want %.9g", tc.counts, tc.m, z, tc.z)
		}
		switch n := runs * tc.m; {
		case math.IsNaN(tc.delta):
			if !math.IsNaN(variance) {
				t.Errorf("%v of %g: variance = %g, want NaN", tc.counts, tc.m, variance)
			}
		case tc.fewCounts:
			p := (mean*n + 0.5) / (n + 1)
			if got := deltaNoise(p, se, runs, tc.m); !scalar.EqualWithinRel(got, tc.delta, 1e-7) {
				t.Errorf("%v of %g: delta variance = %.9g, want %.9g", tc.counts, tc.m, got, tc.delta)
			}
			// ψ₁(1/2) = π²/2, and ψ₁(n + 1/2) is nearly 1/n.
			if want := math.Pi*math.Pi/2 + 1/n; !scalar.EqualWithinRel(variance, want, 1e-6) {
				t.Errorf("%v of %g: variance = %g, want %g", tc.counts, tc.m, variance, want)
			}
		default:
			if !scalar.EqualWithinRel(variance, tc.delta, 1e-7) {
				t.Errorf("%v of %g: variance = %.9g, want %.9g", tc.counts, tc.m, variance, tc.delta)
			}
		}
	}
}

// Values with noise added are modelled at their distance from 0 and 1, by hand: σ = 0.01.
func TestLatentWithNoise(t *testing.T) {
	o := &Objective{Transform: Logit, SampleSize: 10_000, Noise: 0.01}
	for _, tc := range []struct {
		v, se       float64
		runs        int
		z, variance float64
	}{
		{0.2, 0.01, 1, math.Log(0.25), 0.01 * 0.01 / (0.16 * 0.16)},
		{0.2, 0.001, 4, math.Log(0.25), 0.005 * 0.005 / (0.16 * 0.16)}, // two of four values may be equal by chance
		{0.2, 0.02, 4, math.Log(0.25), 0.02 * 0.02 / (0.16 * 0.16)},
		{-0.03, 0.01, 1, math.Log(0.01 / 0.99), 1 / (0.99 * 0.99)},
		{0.0001, 0.01, 1, math.Log(0.01 / 0.99), 1 / (0.99 * 0.99)},
		{1.2, 0.01, 1, math.Log(99), 1 / (0.99 * 0.99)},
	} {
		z, variance := o.latent(tc.v, tc.se, tc.runs)
		if !scalar.EqualWithinRel(z, tc.z, 1e-12) || !scalar.EqualWithinRel(variance, tc.variance, 1e-12) {
			t.Errorf("latent(%g, %g, %d) = %g, %g; want %g, %g", tc.v, tc.se, tc.runs, z, variance, tc.z, tc.variance)
		}
	}
	identity := &Objective{Transform: Identity, Noise: 0.01}
	if z, variance := identity.latent(0.2, 0, 1); z != 0.2 || !scalar.EqualWithinRel(variance, 1e-4, 1e-12) {
		t.Errorf("identity: %g, %g", z, variance)
	}
}

// Monte Carlo: the noise variance is that of the transformed mean.
func TestLatentVariance(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, tc := range []struct {
		objective Objective
		mean, sd  float64
	}{
		{Objective{Transform: Log}, 3, 0.6},
		{Objective{Transform: Logit}, 0.2, 0.04},
		{Objective{Transform: Logit, SampleSize: 1e9}, 0.2, 0.04},
		{Objective{}, -7, 2},
	} {
		const runs, draws = 25, 100_000
		se := tc.sd / math.Sqrt(runs)
		_, want := tc.objective.latent(tc.mean, se, runs)
		sample := make([]float64, draws)
		for i := range sample {
			sample[i], _ = tc.objective.latent(tc.mean+se*rng.NormFloat64(), se, runs)
		}
		if got := stat.Variance(sample, nil); !scalar.EqualWithinRel(got, want, 0.03) {
			t.Errorf("%v: variance %g, Monte Carlo %g", tc.objective.Transform, want, got)
		}
	}
}

func TestLatentClips(t *testing.T) {
	for _, tc := range []struct {
		objective Objective
		v, want   float64
	}{
		{Objective{Transform: Log}, 0, math.Log(1e-3)},
		{Objective{Transform: Log, Floor: 0.5}, 0.1, math.Log(0.5)},
		{Objective{Transform: Logit}, 0, math.Log(1e-3 / 0.999)},
		{Objective{Transform: Logit}, 1.5, math.Log(0.999 / 1e-3)},
		{Objective{}, -4, -4},
	} {
		if z, _ := tc.objective.latent(tc.v, 0, 1); math.Abs(z-tc.want) > 1e-12 {
			t.Errorf("%v of %g = %g, want %g", tc.objective.Transform, tc.v, z, tc.want)
		}
	}
}

// Pooling evaluations of one point gives the mean and standard error of all
// their runs together.
func TestPool(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	q := space.Point{1}
	h := &History{}
	var all []float64
	for _, runs := range []int{4, 1, 7, 1} {
		sample := make([]float64, runs)
		for i := range sample {
			sample[i] = rng.NormFloat64()
		}
		all = append(all, sample...)
		mean, sd := stat.MeanStdDev(sample, nil)
		h.Evaluations = append(h.Evaluations,
			Evaluation{Point: q, Values: []float64{mean}, StdErrors: []float64{sd / math.Sqrt(float64(runs))}, Runs: runs},
			Evaluation{Point: space.Point{float64(runs)*10 + float64(len(all))}, Values: []float64{0}, StdErrors: []float64{0.1}})
	}
	pooled := pool(h, h.indices(), 1)
	if len(pooled) != 5 {
		t.Fatalf("%d configurations, want 5", len(pooled))
	}
	c := pooled[0]
	mean, sd := stat.MeanStdDev(all, nil)
	if c.runs != 13 || len(c.evaluations) != 4 {
		t.Errorf("%d runs of %d evaluations, want 13 of 4", c.runs, len(c.evaluations))
	}
	if want := sd / math.Sqrt(13); math.Abs(c.values[0]-mean) > 1e-12 || math.Abs(c.stdErrors[0]-want) > 1e-12 {
		t.Errorf("pooled %g ± %g, want %g ± %g", c.values[0], c.stdErrors[0], mean, want)
	}
	for i, c := range pooled[1:] { // each of one evaluation, between those that are pooled
		if at := 2*i + 1; !slices.Equal(c.evaluations, []int{at}) || !slices.Equal(c.point, h.Evaluations[at].Point) {
			t.Errorf("configuration %d at %v has evaluations %v", i+1, c.point, c.evaluations)
		}
	}
}

// A pooled mean is unknown where one of the standard errors is.
func TestPoolUnknown(t *testing.T) {
	h := &History{Evaluations: []Evaluation{
		{Point: space.Point{1}, Values: []float64{1}, Runs: 3},
		{Point: space.Point{1}, Values: []float64{2}},
	}}
	c := pool(h, h.indices(), 1)[0]
	if c.values[0] != 1.25 || !math.IsNaN(c.stdErrors[0]) {
		t.Errorf("pooled %g ± %g, want 1.25 ± NaN", c.values[0], c.stdErrors[0])
	}
}

// Values, costs, laws and predictions of every goal and transform fit together:
// smaller costs are better values, and the median comes back.
func TestLawsAndPredictions(t *testing.T) {
	for _, goal := range []Goal{Minimize, Maximize} {
		for _, transform := range []Transform{Identity, Log, Logit} {
			o := &Objective{Goal: goal, Transform: transform}
			better, worse := 0.2, 0.3
			if goal == Maximize {
				better, worse = worse, better
			}
			if !(o.cost(better) < o.cost(worse)) {
				t.Errorf("%v %v: a better value costs more", goal, transform)
			}
			z, _ := o.latent(worse, 0, 1)
			l := o.law(z, 0.01)
			if math.Abs(l.Median()-o.cost(worse)) > 1e-12 {
				t.Errorf("%v %v: median cost %g, want %g", goal, transform, l.Median(), o.cost(worse))
			}
			p := o.prediction(l)
			if math.Abs(p.Median-worse) > 1e-12 || !(p.Lower < p.Median && p.Median < p.Upper) {
				t.Errorf("%v %v: prediction %+v of %g", goal, transform, p, worse)
			}
			// 90 % of the law of the value lies in the interval.
			lower, _ := o.latent(p.Lower, 0, 1)
			upper, _ := o.latent(p.Upper, 0, 1)
			mass := acquisition.Law{Mean: z, StdDev: 0.1}.Probability(lower, upper)
			if math.Abs(mass-0.9) > 1e-9 {
				t.Errorf("%v %v: the interval has mass %g", goal, transform, mass)
			}
		}
	}
}

func TestKnownLaw(t *testing.T) {
	for _, v := range []float64{math.Inf(1), math.NaN(), math.Inf(-1)} {
		o := &Objective{Goal: Maximize, Known: func(space.Point) float64 { return v }}
		if l := o.known(nil); !math.IsInf(l.Mean, 1) {
			t.Errorf("known value %g costs %g, want +Inf", v, l.Mean)
		}
	}
}

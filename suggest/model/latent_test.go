package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/acquisition"
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
		o := &suggest.Objective{Transform: suggest.Logit, SampleSize: tc.m}
		fractions := make([]float64, len(tc.counts))
		for i, k := range tc.counts {
			fractions[i] = k / tc.m
		}
		runs := float64(len(fractions))
		mean, sd := stat.MeanStdDev(fractions, nil)
		se := sd / math.Sqrt(runs) // NaN for a single run
		z, variance := latent(o, mean, se, len(fractions))
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
	o := &suggest.Objective{Transform: suggest.Logit, SampleSize: 10_000, Noise: 0.01}
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
		z, variance := latent(o, tc.v, tc.se, tc.runs)
		if !scalar.EqualWithinRel(z, tc.z, 1e-12) || !scalar.EqualWithinRel(variance, tc.variance, 1e-12) {
			t.Errorf("latent(%g, %g, %d) = %g, %g; want %g, %g", tc.v, tc.se, tc.runs, z, variance, tc.z, tc.variance)
		}
	}
	identity := &suggest.Objective{Transform: suggest.Identity, Noise: 0.01}
	if z, variance := latent(identity, 0.2, 0, 1); z != 0.2 || !scalar.EqualWithinRel(variance, 1e-4, 1e-12) {
		t.Errorf("identity: %g, %g", z, variance)
	}
}

// Where the metric has no noise, only the noise that was added counts, whatever the standard errors.
func TestLatentWithoutNoise(t *testing.T) {
	for _, o := range []suggest.Objective{
		{},
		{Transform: suggest.Log},
		{Transform: suggest.Logit},
		{Transform: suggest.Logit, SampleSize: 100},
	} {
		for _, se := range []float64{0, 0.1, math.NaN()} {
			want, _ := latent(&o, 0.02, 0, 1)
			exact := o
			exact.NoiseFree = true
			if z, variance := latent(&exact, 0.02, se, 1); z != want || variance != 0 {
				t.Errorf("%v, standard error %g: latent = %g, %g; want %g, 0", o.Transform, se, z, variance, want)
			}
		}
		noisy := o
		noisy.Noise, noisy.NoiseFree = 0.01, true
		bare := o
		bare.Noise = 0.01
		_, want := latent(&bare, 0.2, 0, 4)
		if _, variance := latent(&noisy, 0.2, 0.5, 4); variance != want {
			t.Errorf("%v: variance %g beside added noise, want %g", o.Transform, variance, want)
		}
	}
}

// Monte Carlo: the noise variance is the variance of the transformed mean.
func TestLatentVariance(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, tc := range []struct {
		objective suggest.Objective
		mean, sd  float64
	}{
		{suggest.Objective{Transform: suggest.Log}, 3, 0.6},
		{suggest.Objective{Transform: suggest.Logit}, 0.2, 0.04},
		{suggest.Objective{Transform: suggest.Logit, SampleSize: 1e9}, 0.2, 0.04},
		{suggest.Objective{}, -7, 2},
	} {
		const runs, draws = 25, 100_000
		se := tc.sd / math.Sqrt(runs)
		_, want := latent(&tc.objective, tc.mean, se, runs)
		sample := make([]float64, draws)
		for i := range sample {
			sample[i], _ = latent(&tc.objective, tc.mean+se*rng.NormFloat64(), se, runs)
		}
		if got := stat.Variance(sample, nil); !scalar.EqualWithinRel(got, want, 0.03) {
			t.Errorf("%v: variance %g, Monte Carlo %g", tc.objective.Transform, want, got)
		}
	}
}

func TestLatentClips(t *testing.T) {
	for _, tc := range []struct {
		objective suggest.Objective
		v, want   float64
	}{
		{suggest.Objective{Transform: suggest.Log}, 0, math.Log(1e-3)},
		{suggest.Objective{Transform: suggest.Log, Floor: 0.5}, 0.1, math.Log(0.5)},
		{suggest.Objective{Transform: suggest.Logit}, 0, math.Log(1e-3 / 0.999)},
		{suggest.Objective{Transform: suggest.Logit}, 1.5, math.Log(0.999 / 1e-3)},
		{suggest.Objective{}, -4, -4},
	} {
		if z, _ := latent(&tc.objective, tc.v, 0, 1); math.Abs(z-tc.want) > 1e-12 {
			t.Errorf("%v of %g = %g, want %g", tc.objective.Transform, tc.v, z, tc.want)
		}
	}
}

// Values, costs, distributions and predictions of every goal and transform fit together:
// smaller costs are better values, and the median comes back.
func TestDistributionsAndPredictions(t *testing.T) {
	for _, goal := range []suggest.Goal{suggest.Minimize, suggest.Maximize} {
		for _, transform := range []suggest.Transform{suggest.Identity, suggest.Log, suggest.Logit} {
			o := &suggest.Objective{Goal: goal, Transform: transform}
			better, worse := 0.2, 0.3
			if goal == suggest.Maximize {
				better, worse = worse, better
			}
			if !(o.Cost(better) < o.Cost(worse)) {
				t.Errorf("%v %v: a better value costs more", goal, transform)
			}
			z, _ := latent(o, worse, 0, 1)
			l := distribution(o, z, 0.01)
			if math.Abs(l.Median()-o.Cost(worse)) > 1e-12 {
				t.Errorf("%v %v: median cost %g, want %g", goal, transform, l.Median(), o.Cost(worse))
			}
			p := prediction(o, l)
			if math.Abs(p.Median-worse) > 1e-12 || !(p.Lower < p.Median && p.Median < p.Upper) {
				t.Errorf("%v %v: prediction %+v of %g", goal, transform, p, worse)
			}
			// 90 % of the distribution of the value lies in the interval.
			lower, _ := latent(o, p.Lower, 0, 1)
			upper, _ := latent(o, p.Upper, 0, 1)
			mass := acquisition.Distribution{Mean: z, StdDev: 0.1}.Probability(lower, upper)
			if math.Abs(mass-0.9) > 1e-9 {
				t.Errorf("%v %v: the interval has mass %g", goal, transform, mass)
			}
		}
	}
}

// The least noise of a fraction is half the deviation of the logit of a binomial fraction, which is drawn here. There is
// none without a number of records, on other scales, and where noise was added.
func TestNoiseFloor(t *testing.T) {
	const records, share = 2000, 0.15
	o := &suggest.Objective{Transform: suggest.Logit, SampleSize: records}
	rng := rand.New(rand.NewPCG(1, 2))
	logits := make([]float64, 4000)
	for i := range logits {
		k := 0.0
		for range records {
			if rng.Float64() < share {
				k++
			}
		}
		logits[i] = math.Log(k / (records - k))
	}
	want := stat.StdDev(logits, nil) / 2
	if got := math.Sqrt(noiseFloor(o, share)); math.Abs(got/want-1) > 0.05 {
		t.Errorf("a deviation of %g, drawn %g", got, want)
	}
	for _, other := range []*suggest.Objective{
		{Transform: suggest.Logit}, {Transform: suggest.Log}, {Transform: suggest.Logit, SampleSize: records, Noise: 0.1},
	} {
		if got := noiseFloor(other, share); got != 0 {
			t.Errorf("%+v: %g", other, got)
		}
	}
	for _, extreme := range []float64{0, 1} {
		if got := noiseFloor(o, extreme); !(got > 0) || math.IsInf(got, 0) {
			t.Errorf("at %g: %g", extreme, got)
		}
	}
}

package acquisition

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/suggest/pareto"
)

// randomDirections draws n directions uniformly.
func randomDirections(rng *rand.Rand, n, m int) [][]float64 {
	directions := make([][]float64, n)
	for i := range directions {
		u, square := make([]float64, m), 0.0
		for j := range u {
			u[j] = math.Abs(rng.NormFloat64())
			square += u[j] * u[j]
		}
		for j := range u {
			u[j] /= math.Sqrt(square)
		}
		directions[i] = u
	}
	return directions
}

// randomScalarisation is randomCase along random directions.
func randomScalarisation(rng *rand.Rand, m, directions int) (*Scalarisation, *pareto.Front, []Distribution) {
	front, distributions := randomCase(rng, m)
	scales := make([]float64, m)
	for j := range scales {
		scales[j] = 0.2 + rng.Float64()
	}
	return NewScalarisation(front.Points(), front.Reference(), scales, randomDirections(rng, directions, m)), front, distributions
}

// With many directions the improvement is the hypervolume improvement.
func TestScalarisedImprovement(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 1))
	for range 12 {
		m := 1 + rng.IntN(5)
		s, front, distributions := randomScalarisation(rng, m, 20_000)
		for range 5 {
			v := make([]float64, m)
			for j, r := range front.Reference() {
				v[j] = r - 0.5*rng.ExpFloat64()
			}
			want := front.Improvement(v)
			if got := s.Improvement(v); math.Abs(got-want) > 0.12*want+0.01 {
				t.Errorf("%d objectives, %v: %g, by boxes %g", m, distributions, got, want)
			}
		}
	}
}

// The expectation over many directions is the expected hypervolume improvement.
func TestLogScalarisedIsEHVI(t *testing.T) {
	rng := rand.New(rand.NewPCG(22, 1))
	checked := 0
	for checked < 15 {
		m := 1 + rng.IntN(4)
		s, front, distributions := randomScalarisation(rng, m, 2000)
		want := LogEHVI(front, distributions, nil)
		if want < -8 {
			continue // too few directions reach so far
		}
		checked++
		if got := LogScalarised(s, distributions, nil); math.Abs(got-want) > 0.2 {
			t.Errorf("%d objectives, %v: %g, ln EHVI %g", m, distributions, got, want)
		}
	}
}

// Along one direction the value is the mean over draws of the outcome.
func TestLogScalarisedMonteCarlo(t *testing.T) {
	const draws = 20_000
	rng := rand.New(rand.NewPCG(23, 1))
	checked := 0
	for checked < 25 {
		s, _, distributions := randomScalarisation(rng, 1+rng.IntN(6), 1)
		got := math.Exp(LogScalarised(s, distributions, nil))
		outcome := make([]float64, len(distributions))
		sum, squares, hits := 0.0, 0.0, 0
		for range draws {
			for j, l := range distributions {
				outcome[j] = l.Quantile(rng.NormFloat64())
			}
			gain := s.Improvement(outcome)
			sum += gain
			squares += gain * gain
			if gain > 0 {
				hits++
			}
		}
		if hits < 300 {
			continue
		}
		checked++
		mean := sum / draws
		if noise := 5 * math.Sqrt((squares/draws-mean*mean)/draws); math.Abs(got-mean) > noise+1e-6*mean {
			t.Errorf("%v: %g, Monte Carlo %g ± %g", distributions, got, mean, noise)
		}
	}
}

// The quadrature agrees with the definition, by the trapezoidal rule in a variable
// that makes both ends exponentially flat, also where it underflows.
func TestLogScalarisedQuadrature(t *testing.T) {
	rng := rand.New(rand.NewPCG(24, 1))
	for range 100 {
		m := 1 + rng.IntN(6)
		s, front, distributions := randomScalarisation(rng, m, 1)
		for j := range distributions { // up to far tails
			if sign := 1.0; rng.IntN(3) == 0 {
				if distributions[j].Family == NegatedLogNormal {
					sign = -1
				}
				distributions[j].Mean += sign * 20 * distributions[j].StdDev * rng.Float64()
			}
		}
		w, b := s.weights[0], s.reach[0]
		integrand := func(t float64) float64 {
			value := math.Log(float64(m)) + float64(m-1)*math.Log(t)
			for j, l := range distributions {
				if l.StdDev > 0 {
					value += logPhi(l.standardize(front.Reference()[j] - t*w[j]))
				}
			}
			return value
		}
		end := math.Inf(1)
		for j, l := range distributions {
			if l.StdDev == 0 {
				end = math.Min(end, (front.Reference()[j]-l.Median())/w[j])
			}
		}
		const step = 0.004
		sum := newLogSum()
		for x := -45.0; x < 45; x += step {
			if math.IsInf(end, 1) { // t = b + exp(x)
				sum.add(integrand(b+math.Exp(x)) + x)
			} else if end > b { // t = b + (end - b) expit(x)
				p := expit(x)
				sum.add(integrand(b+(end-b)*p) + math.Log((end-b)*p*expit(-x)))
			}
		}
		got, want := LogScalarised(s, distributions, nil), sum.value()+math.Log(step)+s.logVolume
		if math.IsInf(got, -1) && math.IsInf(want, -1) {
			continue
		}
		near(t, distributions, float64(m), "LogScalarised", got, want, 1e-6)
	}
}

func TestLogScalarisedDerivatives(t *testing.T) {
	rng := rand.New(rand.NewPCG(25, 1))
	possible := 0
	for range 600 {
		m := 1 + rng.IntN(6)
		s, _, distributions := randomScalarisation(rng, m, 3)
		d := make([]Partial, m)
		value := LogScalarised(s, distributions, d)
		if got := LogScalarised(s, distributions, nil); got != value {
			t.Errorf("%v: %g without derivatives, %g with", distributions, got, value)
		}
		if math.IsInf(value, -1) {
			continue
		}
		possible++
		for j, l := range distributions {
			at := func(mean, stdDev float64) float64 {
				defer func() { distributions[j] = l }()
				distributions[j].Mean, distributions[j].StdDev = mean, stdDev
				return LogScalarised(s, distributions, nil)
			}
			mean := slope(func(x float64) float64 { return at(x, l.StdDev) }, l.Mean, 1e-3*math.Max(l.StdDev, 0.01))
			near(t, distributions, float64(j), "derivative in Mean", d[j].Mean, mean, 2e-3)
			if l.StdDev > 0 {
				stdDev := slope(func(x float64) float64 { return at(l.Mean, x) }, l.StdDev, 1e-3*l.StdDev)
				near(t, distributions, float64(j), "derivative in StdDev", d[j].StdDev, stdDev, 2e-3)
			} else if d[j].StdDev != 0 {
				t.Errorf("%v: derivative in a StdDev of 0 is %g", distributions, d[j].StdDev)
			}
		}
	}
	if possible < 300 {
		t.Errorf("only %d cases can improve", possible)
	}
}

// More objectives than fit on the stack, an empty front, outcomes that are known
// or impossible.
func TestLogScalarisedSpecialCases(t *testing.T) {
	const m = 10
	reference, scales, distributions := make([]float64, m), make([]float64, m), make([]Distribution, m)
	for j := range distributions {
		reference[j], scales[j] = 1, 1
		distributions[j] = Distribution{Gaussian, 0.5, 0.1}
	}
	s := NewScalarisation(nil, reference, scales, randomDirections(rand.New(rand.NewPCG(26, 1)), 20, m))
	d := make([]Partial, m)
	if value := LogScalarised(s, distributions, d); math.IsInf(value, 0) || math.IsNaN(value) || !(d[m-1].Mean < 0) {
		t.Errorf("%g, %v", value, d)
	}
	medians := make([]float64, m)
	for j := range distributions {
		distributions[j].StdDev, medians[j] = 0, 0.5
	}
	near(t, "known", 0, "LogScalarised", LogScalarised(s, distributions, d), math.Log(s.Improvement(medians)), 1e-12)
	distributions[3].Mean = math.Inf(1)
	if value := LogScalarised(s, distributions, d); !math.IsInf(value, -1) || d[0] != (Partial{}) {
		t.Errorf("impossible: %g, %v", value, d)
	}
}

func BenchmarkLogScalarised(b *testing.B) {
	rng := rand.New(rand.NewPCG(27, 1))
	s, _, distributions := randomScalarisation(rng, 6, 32)
	for j := range distributions {
		distributions[j].StdDev = math.Max(distributions[j].StdDev, 0.1)
	}
	d := make([]Partial, 6)
	for b.Loop() {
		LogScalarised(s, distributions, d)
	}
}

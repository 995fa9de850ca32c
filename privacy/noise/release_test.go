package noise

import (
	"fmt"
	"math"
	"sort"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// checkKolmogorov reports an error where the distribution function of draws is farther
// from cdf than with probability 1e-6.
func checkKolmogorov(t *testing.T, what string, draws []float64, cdf func(x float64) float64) {
	t.Helper()
	sort.Float64s(draws)
	n := float64(len(draws))
	var farthest float64
	for i, x := range draws {
		p := cdf(x)
		farthest = max(farthest, p-float64(i)/n, float64(i+1)/n-p)
	}
	// P(D > d) <= 2e^{−2nd²} (Massart, 1990).
	if limit := math.Sqrt(math.Log(2e6) / (2 * n)); farthest > limit {
		t.Errorf("%s: Kolmogorov distance %g, limit %g", what, farthest, limit)
	}
}

// TestReleaseDistributions: distribution, mean and variance are as for continuous noise, from
// which the grid differs by 1e-12.
func TestReleaseDistributions(t *testing.T) {
	const runs = 100_000
	s := Seeded(21)
	for _, tc := range []struct{ value, scale float64 }{{0, 1}, {0.3, 2e-3}, {-1e9, 7e5}, {0x1p-60, 0x1p-40}} {
		for _, dist := range []struct {
			name     string
			draw     func(value, scale float64) float64
			cdf      func(x float64) float64
			variance float64
			kurtosis float64
		}{
			{"Gaussian", s.Gaussian, distuv.UnitNormal.CDF, 1, 3},
			{"Laplace", s.Laplace, distuv.Laplace{Scale: 1}.CDF, 2, 6},
		} {
			name := fmt.Sprintf("%s %+v", dist.name, tc)
			draws := make([]float64, runs)
			var mean, second float64
			for i := range draws {
				x := (dist.draw(tc.value, tc.scale) - tc.value) / tc.scale
				draws[i] = x
				mean += x / runs
				second += x * x / runs
			}
			if math.Abs(mean) > 5*math.Sqrt(dist.variance/runs) {
				t.Errorf("%s: mean %g", name, mean)
			}
			if math.Abs(second-dist.variance) > 5*dist.variance*math.Sqrt((dist.kurtosis-1)/runs) {
				t.Errorf("%s: variance %g, want %g", name, second, dist.variance)
			}
			checkKolmogorov(t, name, draws, dist.cdf)
		}
	}
}

// TestReleaseDependsOnRoundedValue: with the same numbers, the release of another value
// differs by exactly the difference of the two values on the grid, so that nothing else
// of the value is in it, and every release is a multiple of the grid.
func TestReleaseDependsOnRoundedValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		scale := math.Exp2(rapid.Float64Range(-390, 390).Draw(t, "log2 scale"))
		value := scale * rapid.Float64Range(-100, 100).Draw(t, "value")
		other := scale * rapid.Float64Range(-100, 100).Draw(t, "other")
		grid := Grid(scale)
		if !(grid <= scale*0x1p-40 && grid > scale*0x1p-41) {
			t.Fatalf("grid %g of scale %g", grid, scale)
		}
		steps := math.RoundToEven(value/grid) - math.RoundToEven(other/grid)
		if farther := math.Abs(value-other)/grid + 1; math.Abs(steps) > farther {
			t.Fatalf("%g steps apart, want at most %g", steps, farther)
		}
		for name, draw := range map[string]func(s *Source, value, scale float64) float64{
			"Laplace": (*Source).Laplace, "Gaussian": (*Source).Gaussian,
		} {
			x, y := draw(Seeded(seed), value, scale), draw(Seeded(seed), other, scale)
			if x/grid != math.Trunc(x/grid) {
				t.Fatalf("%s: %g is not a multiple of %g", name, x, grid)
			}
			if (x-y)/grid != steps {
				t.Fatalf("%s: releases %g, %g are %g steps apart, want %g", name, x, y, (x-y)/grid, steps)
			}
		}
	})
}

// TestExtremeReleases: values beyond the precision of floats swallow the noise, and
// nothing overflows.
func TestExtremeReleases(t *testing.T) {
	s := Seeded(22)
	for range 100 {
		if got := s.Gaussian(0x1p400, 0x1p-400); got != 0x1p400 {
			t.Fatalf("got %g", got)
		}
		if got := s.Laplace(-1e30, 1); got != -1e30 {
			t.Fatalf("got %g", got)
		}
		if got := s.Gaussian(-0x1p400, 0x1p400); math.IsInf(got, 0) || math.IsNaN(got) {
			t.Fatalf("got %g", got)
		}
	}
	// The sum keeps the 53 bits that the exact sum has: 2⁵³ + 1 steps round to even.
	if got := release(0x1p53, 1, 0); got != 0x1p53 {
		t.Errorf("got %g", got)
	}
	if got := release(0x1p53, 3, 0); got != 0x1p53+4 {
		t.Errorf("got %g", got)
	}
	if got := release(math.Copysign(0, -1), 0, 0); math.Signbit(got) {
		t.Error("the sign of a zero is released")
	}
}

// TestScaleIsRoundedUp: noise is never less than was asked for.
func TestScaleIsRoundedUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := math.Exp2(rapid.Float64Range(-390, 390).Draw(t, "log2 scale"))
		exponent, units := grid(scale)
		actual := math.Ldexp(float64(units), exponent)
		if actual < scale || actual > scale*(1+0x1p-39) || units < 1<<40 || units > 1<<41 {
			t.Fatalf("scale %g becomes %g, %d steps", scale, actual, units)
		}
		delta := rapid.Float64Range(0, 1e3).Draw(t, "sensitivity") * scale
		if got := Sensitivity(delta, scale); got < delta+Grid(scale) || got > delta+scale*0x1p-39+1e-15*delta {
			t.Fatalf("sensitivity %g becomes %g", delta, got)
		}
	})
}

// profileExcess returns by how much Σ(d(k) − e^ε·d(k−shift))₊ for the discrete Gaussian of
// s steps exceeds δ(ε) of the continuous one, at the same sensitivity, both summed to
// about 1e-14.
func profileExcess(s, shift, epsilon float64) float64 {
	weight := func(k float64) float64 { return math.Exp(-0.5 * k * k / (s * s)) }
	reach := math.Ceil(40*s) + shift
	var total, discrete float64
	for k := -reach; k <= reach; k++ {
		total += weight(k)
		// The exponent of e^ε·d(k − shift), without overflow.
		other := math.Exp(epsilon - 0.5*(k-shift)*(k-shift)/(s*s))
		discrete += max(0, weight(k)-other)
	}
	mu := shift / s
	phi := distuv.UnitNormal.CDF
	return discrete/total - (phi(mu/2-epsilon/mu) - math.Exp(epsilon)*phi(-mu/2-epsilon/mu))
}

// TestGaussianDeltaBoundsTheExcess sums the profiles for coarse grids. The bound is for
// the worst ε and sensitivities that need not be on the grid; that it is of the right
// order in the grid is seen by the largest excess, which falls as the bound does.
func TestGaussianDeltaBoundsTheExcess(t *testing.T) {
	worst := make(map[float64]float64)
	for _, s := range []float64{1, 2, 4, 8, 16, 64} {
		for _, mu := range []float64{0.25, 0.5, 1, 2, 5} {
			shift := s * mu
			if shift != math.Trunc(shift) {
				continue
			}
			for _, epsilon := range []float64{0, 0.01, 0.1, 0.5, 1, 2, 3, 5, 8, 13, 20, 30} {
				excess := profileExcess(s, shift, epsilon)
				if bound := gaussianDelta(mu, s); excess > bound+1e-13 {
					t.Errorf("s %g, mu %g, epsilon %g: excess %g above %g", s, mu, epsilon, excess, bound)
				}
				worst[s] = max(worst[s], excess)
			}
		}
	}
	for _, s := range []float64{8, 16, 64} {
		if ratio := worst[s] * s * s; !(ratio > 1e-3 && ratio < 1) {
			t.Errorf("s %g: the largest excess is %g/s²", s, ratio)
		}
	}
}

// TestCellRatio: the inequalities that the bound rests on, with cells by differences of
// the normal distribution function.
func TestCellRatio(t *testing.T) {
	for _, s := range []float64{1, 3, 10, 50} {
		h := 1 / s
		var total float64
		for k := 0.0; k <= 40*s; k++ {
			x := k * h
			density := h / math.Sqrt(2*math.Pi) * math.Exp(-0.5*x*x)
			total += density
			if k > 0 {
				total += density
			}
			if x > 12 {
				continue
			}
			cell := 0.5 * (math.Erfc((x-h/2)/math.Sqrt2) - math.Erfc((x+h/2)/math.Sqrt2))
			logRatio := math.Log(cell / density)
			if lower, upper := -h*h/24, x*x*h*h/24; logRatio < lower-1e-12 || logRatio > upper+1e-12 {
				t.Errorf("s %g, x %g: log of the ratio %g outside [%g, %g]", s, x, logRatio, lower, upper)
			}
		}
		if z := total - 1; z < -1e-14 || z > 3*math.Exp(-2*math.Pi*math.Pi*s*s)+1e-14 {
			t.Errorf("s %g: the densities sum to 1 + %g", s, z)
		}
	}
}

func TestGaussianDelta(t *testing.T) {
	for _, tc := range []struct{ sensitivity, sigma, limit float64 }{{0, 1, 6e-24}, {1, 1, 6e-24}, {500, 1, 1e-20}, {3e-5, 3e-5, 6e-24}, {1e9, 1.9e6, 1e-20}} {
		if got := GaussianDelta(tc.sensitivity, tc.sigma); !(got > 0 && got <= tc.limit) {
			t.Errorf("%+v: %g", tc, got)
		}
	}
}

// TestAudit attacks both mechanisms, with values that are farthest apart, and with half
// of the noise.
func TestAudit(t *testing.T) {
	const runs, scale = 200_000, 1.0
	s := Seeded(23)
	claim := func(a privacy.Accountant, m privacy.Mechanism, delta float64) privacy.Guarantee {
		g, err := privacy.Epsilon(a, m, 1, delta)
		require.NoError(t, err)
		return g
	}
	value := func(second bool) float64 {
		if second {
			return 0
		}
		return 1
	}
	sensitivity := Sensitivity(1, scale)
	laplace := claim(privacy.Pure{}, privacy.Laplace{Sensitivity: sensitivity, Scale: scale, Neighbours: privacy.ReplaceOne}, 0)
	gaussian := claim(privacy.Exact{}, privacy.Gaussian{Sensitivity: sensitivity, StandardDeviation: scale, Neighbours: privacy.ReplaceOne}, 1e-2)
	gaussianEvent := func(sigma float64) func(second bool) bool { // a loss above ε
		threshold := 0.5 + gaussian.Epsilon*sigma*sigma
		return func(second bool) bool { return s.Gaussian(value(second), sigma) > threshold }
	}
	t.Run("Laplace", func(t *testing.T) {
		privacytest.Audit{
			Epsilon: laplace.Epsilon, Runs: runs, Power: 0.85,
			Event:  func(second bool) bool { return s.Laplace(value(second), scale) >= 1 },
			Broken: func(second bool) bool { return s.Laplace(value(second), scale/2) >= 1 },
		}.Check(t)
	})
	t.Run("Gaussian", func(t *testing.T) {
		privacytest.Audit{
			Epsilon: gaussian.Epsilon, Delta: gaussian.Delta, Runs: runs, Power: 0.85,
			Event:  gaussianEvent(scale),
			Broken: gaussianEvent(scale / 2),
		}.Check(t)
	})
}

// FuzzRelease: releases of values in the range are finite multiples of the grid, and depend
// on the value by its rounding alone.
func FuzzRelease(f *testing.F) {
	f.Add(uint64(1), 0.3, 2.0)
	f.Add(uint64(2), -0x1p400, 0x1p-400)
	f.Add(uint64(3), 5e-324, 0x1p400)
	f.Fuzz(func(t *testing.T, seed uint64, value, scale float64) {
		if !(math.Abs(value) <= maxMagnitude && scale >= 1/maxMagnitude && scale <= maxMagnitude) {
			return
		}
		grid := Grid(scale)
		rounded := grid * math.RoundToEven(value/grid)
		for name, draw := range map[string]func(s *Source, value, scale float64) float64{
			"Laplace": (*Source).Laplace, "Gaussian": (*Source).Gaussian,
		} {
			x := draw(Seeded(seed), value, scale)
			if math.IsInf(x, 0) || math.IsNaN(x) || math.Mod(x, grid) != 0 {
				t.Fatalf("%s: released %g, grid %g", name, x, grid)
			}
			if y := draw(Seeded(seed), rounded, scale); x != y {
				t.Fatalf("%s: released %g, and %g for the rounded value", name, x, y)
			}
		}
	})
}

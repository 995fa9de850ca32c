package bayesopt

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/internal/require"
)

func identity(n int) *mat.SymDense {
	k := mat.NewSymDense(n, nil)
	for i := range n {
		k.SetSym(i, i, 1)
	}
	return k
}

func gain(t *testing.T, kernel mat.Symmetric, noise float64, evaluations int64, tolerance float64) InformationGain {
	t.Helper()
	g, err := BoundInformationGain(t.Context(), kernel, noise, evaluations, tolerance)
	require.NoError(t, err)
	return g
}

// Closed forms: independent candidates share the observations evenly, and candidates that
// are all the same have one variable between them.
func TestInformationGainClosedForms(t *testing.T) {
	same := mat.NewSymDense(4, nil)
	for i := range 4 {
		for j := i; j < 4; j++ {
			same.SetSym(i, j, 1)
		}
	}
	for _, test := range []struct {
		name   string
		kernel mat.Symmetric
		noise  float64
		t      int64
		want   float64
	}{
		{"one", identity(1), 0.1, 50, 0.5 * math.Log(1+50/0.01)},
		{"independent", identity(10), 0.5, 30, 5 * math.Log(1+3/0.25)},
		{"one observation each", identity(10), 0.5, 10, 5 * math.Log(1+1/0.25)},
		{"the same", same, 0.2, 7, 0.5 * math.Log(1+7/0.04)},
	} {
		g := gain(t, test.kernel, test.noise, test.t, 1e-6)
		if !(g.Upper >= test.want && g.Upper <= test.want*(1+2e-6)) || math.Abs(g.Relaxed-test.want) > 2e-6*test.want {
			t.Errorf("%s: %.9g to %.9g, want %.9g", test.name, g.Relaxed, g.Upper, test.want)
		}
		if greedy := greedyInformationGain(test.kernel, test.noise, test.t); math.Abs(greedy-test.want) > 1e-9*test.want {
			t.Errorf("%s: greedy %.9g, want %.9g", test.name, greedy, test.want)
		}
	}
}

// On random candidates, the bound is above the greedy gain and below what greediness can
// miss, and the duality gap closes. For the first case of the table of noise scales, 100
// random points of the square, it is near 69.
func TestInformationGainBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, test := range []struct {
		candidates, dim int
		noise           float64
		evaluations     int64
	}{{100, 2, 0.1, 50}, {60, 1, 0.01, 200}, {30, 3, 1, 5}, {10, 1, 0.1, 20}} {
		kernel := squaredExponential(randomPoints(rng, test.candidates, test.dim), 0.2)
		g := gain(t, kernel, test.noise, test.evaluations, 1e-2)
		greedy := greedyInformationGain(kernel, test.noise, test.evaluations)
		t.Logf("%+v: greedy %.3f, bound %.3f, greedy/(1−1/e) %.3f", test, greedy, g.Upper, greedy/(1-1/math.E))
		if !(greedy <= g.Upper && g.Upper <= greedy/(1-1/math.E)*1.01 && g.Relaxed <= g.Upper && g.Upper <= 1.0101*g.Relaxed) {
			t.Errorf("%+v: greedy %g, relaxed %g, bound %g", test, greedy, g.Relaxed, g.Upper)
		}
		sum := 0.0
		for _, w := range g.Weights {
			sum += w
		}
		if math.Abs(sum-float64(test.evaluations)) > 1e-9*sum {
			t.Errorf("%+v: weights sum to %g", test, sum)
		}
	}
}

// On few candidates, all ways to place the observations are tried.
func TestInformationGainExhaustive(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 20 {
		const noise = 0.4
		kernel := squaredExponential(randomPoints(rng, 4, 1), 0.3)
		most := 0.0
		var place func(p []int, from int)
		place = func(p []int, from int) {
			if len(p) == 5 {
				process, sum := NewProcess(kernel, noise), 0.0
				for _, i := range p {
					sum += 0.5 * math.Log1p(process.Variance(i)/(noise*noise))
					process.Observe(i, 0)
				}
				most = max(most, sum)
				return
			}
			for i := from; i < 4; i++ {
				place(append(p, i), i)
			}
		}
		place(nil, 0)
		g := gain(t, kernel, noise, 5, 1e-4)
		if greedy := greedyInformationGain(kernel, noise, 5); !(greedy <= most+1e-12 && most <= g.Upper) {
			t.Errorf("greedy %g, best %g, bound %g", greedy, most, g.Upper)
		}
	}
}

func TestInformationGainErrors(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := BoundInformationGain(ctx, identity(2), 1, 1, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want cancelled", err)
	}
	if _, err := BoundInformationGain(t.Context(), identity(2), 0, 1, 0); err == nil {
		t.Error("no noise")
	}
	if _, err := BoundInformationGain(t.Context(), identity(2), 1, 0, 0); err == nil {
		t.Error("no observations")
	}
	if _, err := BoundInformationGain(t.Context(), mat.NewSymDense(2, []float64{1, 3, 3, 1}), 0.1, 10, 0); err == nil {
		t.Error("a matrix that is no covariance")
	}
}

// greedyInformationGain returns the information gain of T observations that are each taken
// where the posterior variance is largest: at least (1 − 1/e)·γ_T and at most γ_T (Krause,
// Singh and Guestrin, "Near-optimal sensor placements in Gaussian processes", 2008). It
// takes T·|Λ|² operations. It panics unless T >= 0 and the noise is positive.
func greedyInformationGain(kernel mat.Symmetric, noise float64, evaluations int64) float64 {
	p := NewProcess(kernel, noise)
	gain := 0.0
	for range evaluations {
		most := 0
		for i := range p.Mean() {
			if p.Variance(i) > p.Variance(most) {
				most = i
			}
		}
		gain += 0.5 * math.Log1p(p.Variance(most)/(noise*noise))
		p.Observe(most, 0)
	}
	return gain
}

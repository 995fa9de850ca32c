package bayesopt

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
)

// Theorems 2 and 4, corrected, hold in simulation under Assumption 1: draws of the process, a search
// by upper confidence bounds, and both releases.
func TestUtilityOfNoisy(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	source := noise.Seeded(12)
	const n, repetitions, tail = 15, 1500, 1.5
	kernel := squaredExponential(randomPoints(rng, n, 1), 0.1)
	a := Noisy{Candidates: n, Evaluations: 10, Epsilon: 200, Delta: 0.3, Noise: 0.1, Correlation: 0.99}
	a.InformationGain = gain(t, kernel, a.Noise, a.Evaluations, 1e-2).Upper
	candidate, err := a.CandidateUtility(tail)
	require.NoError(t, err)
	maximum, err := a.MaximumUtility(tail)
	require.NoError(t, err)
	if candidate.Bound >= candidate.Paper || maximum.Bound >= 20 {
		t.Errorf("bounds %+v, %+v", candidate, maximum)
	}
	failed := [2]int{}
	for range repetitions {
		first, _ := pairs(rng, kernel, 1, 0.5, 0)
		f := first.RawRowView(0)
		posterior, best, err := a.Search(t.Context(), kernel, func(_ context.Context, c int) (float64, error) { return f[c] + a.Noise*rng.NormFloat64(), nil })
		require.NoError(t, err)
		chosen, _, err := a.ReleaseCandidate(source, posterior.Mean())
		require.NoError(t, err)
		value, _, err := a.ReleaseMaximum(source, best)
		require.NoError(t, err)
		if floats.Max(f)-posterior.Mean()[chosen] > candidate.Bound {
			failed[0]++
		}
		if math.Abs(value-floats.Max(f)) > maximum.Bound {
			failed[1]++
		}
	}
	t.Logf("Theorem 2: bound %.3g, %d of %d beyond; Theorem 4: bound %.3g, %d beyond", candidate.Bound, failed[0], repetitions, maximum.Bound, failed[1])
	for i, u := range []Utility{candidate, maximum} {
		if float64(failed[i]) > u.Failure*repetitions {
			t.Errorf("bound %d fails %d times of %d, more than %g", i, failed[i], repetitions, u.Failure)
		}
	}
}

// The errors in the proofs: the largest posterior mean is below the last observation, against
// equation 6, and the noise exceeds its bound where σ is left out, against Theorem 4.
func TestUtilityErrorsOfThePaper(t *testing.T) {
	process := NewProcess(identity(1), 1)
	process.Observe(0, 2)
	if largest := slices.Max(process.Mean()); largest != 1 {
		t.Errorf("the largest mean is %g, want 1, below the observation of 2", largest)
	}
	rng := rand.New(rand.NewPCG(13, 13))
	const evaluations, delta, sigma, repetitions = 20, 0.05, 5., 2000
	published, corrected := math.Sqrt(2*math.Log(2*evaluations/delta)), sigma*math.Sqrt(2*math.Log(2*evaluations/delta))
	beyond := [2]int{}
	for range repetitions {
		most := 0.0
		for range evaluations {
			most = math.Max(most, math.Abs(sigma*rng.NormFloat64()))
		}
		for i, bound := range []float64{published, corrected} {
			if most > bound {
				beyond[i]++
			}
		}
	}
	if beyond[0] < repetitions*99/100 || float64(beyond[1]) > delta/2*repetitions {
		t.Errorf("the noise is beyond the published bound %d times of %d, and beyond the corrected one %d times", beyond[0], repetitions, beyond[1])
	}
}

// Theorems 6 and 8 are tails of Laplace noise, which are attained.
func TestUtilityOfValues(t *testing.T) {
	source := noise.Seeded(14)
	const tail, repetitions = 2, 20_000
	free := NoiseFree{Candidates: 100, Epsilon: 0.5, Delta: 0.05, Correlation: 0.95, Dimension: 2, A: 1, Tau: 0.1}
	scales, err := free.Scales()
	require.NoError(t, err)
	u, err := free.Utility(tail)
	require.NoError(t, err)
	near(t, "the bound of Theorem 6", u.Bound, u.Paper, 6)
	ridge := Ridge{Records: 1000, Epsilon: 1, Range: 1, Lipschitz: 0.25, Least: 0.5, Most: 1}
	v, err := ridge.Utility(tail)
	require.NoError(t, err)
	failed := [2]int{}
	for range repetitions {
		// The best observation lies below the optimum by the regret at most: here by all of it.
		if math.Abs(source.Laplace(-scales.Regret, scales.LaplaceScale)) > u.Bound {
			failed[0]++
		}
		if math.Abs(source.Laplace(0, ridge.LaplaceScale())) > v.Bound {
			failed[1]++
		}
	}
	limit := math.Exp(-tail)*repetitions + 4*math.Sqrt(repetitions*math.Exp(-tail))
	if float64(failed[0]) > limit || math.Abs(float64(failed[1])-math.Exp(-tail)*repetitions) > limit-math.Exp(-tail)*repetitions {
		t.Errorf("beyond the bounds %v times of %d, at most %g", failed, repetitions, limit)
	}
	// With a small penalty the paper's bound is beyond the range of the score by far.
	ridge.Least = 1e-4
	if v, err = ridge.Utility(tail); err != nil || v.Bound > 2.0001 || v.Paper < 1000 {
		t.Errorf("bound %+v, %v", v, err)
	}
}

func TestUtilityErrors(t *testing.T) {
	noisy := Noisy{Candidates: 2, Evaluations: 1, Epsilon: 1, Delta: 0.1, Noise: 1}
	_, first := noisy.CandidateUtility(0)
	_, second := noisy.MaximumUtility(math.NaN())
	_, third := NoiseFree{Candidates: 1, Epsilon: 1, Delta: 0.1, Dimension: 1, A: 1, Tau: 1}.Utility(-1)
	_, fourth := Ridge{Records: 1, Epsilon: 1, Range: 1, Lipschitz: 1, Least: 1, Most: 1}.Utility(math.Inf(1))
	for _, err := range []error{first, second, third, fourth} {
		if fields := privacy.FieldErrors(err); len(fields) != 1 || fields[0].Field != "tail" {
			t.Errorf("want an error for tail, got %v", err)
		}
	}
}

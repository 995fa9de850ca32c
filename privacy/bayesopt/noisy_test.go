package bayesopt

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

// near fails unless got rounds to want, which has so many digits behind the point.
func near(t *testing.T, name string, got, want float64, decimals int) {
	t.Helper()
	if !(math.Abs(got-want) <= 0.5000001*math.Pow10(-decimals)) {
		t.Errorf("%s: %.9g, want %.9g", name, got, want)
	}
}

// Independent computation of the quantities of Algorithm 1 of Kusner et al. (2015), with
// bounds on the information gain for candidates drawn at random; ε = 1.
func TestNoisyPaper(t *testing.T) {
	for _, test := range []struct {
		candidates, evaluations             int64
		delta, noise, correlation           float64
		beta, twice, c, delta1              float64
		gain, c1, regret                    float64
		q, corrected, scale, scaleCorrected float64
	}{
		{100, 50, 0.05, 0.1, 0.95, 33.3108, 11.5431, 1.3191, 12.8622, 69.230, 1.7334, 8.9308, 0.4047, 0.8342, 10.6546, 11.0841},
		{100, 50, 0.05, 0.1, 0.9999, 33.3108, 11.5431, 0.0590, 11.6021, 67.877, 1.7334, 8.8431, 0.4047, 0.8342, 9.3068, 9.7363},
		{1000, 50, 0.001, 0.1, 0.95, 45.7400, 13.5263, 1.7271, 15.2534, 112.067, 1.7334, 13.3192, 0.5659, 1.0045, 15.6122, 16.0507},
		{100, 200, 0.05, 0.01, 0.95, 38.7967, 12.4574, 1.3191, 13.7765, 220.318, 0.8686, 6.0912, 0.0405, 0.0898, 7.4507, 7.5000},
		{10, 20, 0.05, 0.1, 0.95, 25.1564, 10.0312, 1.1311, 11.1623, 22.673, 1.7334, 7.0037, 0.4047, 0.7891, 8.5395, 8.9239},
		{100, 1_000_000, 0.05, 0.1, 0.99, 72.8455, 17.0699, 0.5899, 17.6598, 374.694, 1.7334, 0.2175, 0.4047, 1.2199, 1.2121, 2.0274},
	} {
		a := Noisy{
			Candidates: test.candidates, Evaluations: test.evaluations, Epsilon: 1, Delta: test.delta,
			Noise: test.noise, Correlation: test.correlation, InformationGain: test.gain,
		}
		s, err := a.Paper()
		require.NoError(t, err)
		near(t, "β", s.Beta, test.beta, 4)
		near(t, "2√β", 2*math.Sqrt(s.Beta), test.twice, 4)
		near(t, "c", s.ChoiceDistance, test.c, 4)
		near(t, "c", s.MaximumDistance, test.c, 4)
		near(t, "Δ", s.ChoiceSensitivity, test.delta1, 4)
		near(t, "C1", s.C1, test.c1, 4)
		near(t, "q", s.MaximumNoise, test.q, 4)
		// The right tail for the paper's share δ/3 of this event alone.
		q := a.largestNoise(test.delta / 3)
		near(t, "q corrected", q, test.corrected, 4)
		// The gain is rounded to three digits behind the point, and Ω ∝ √gain.
		tolerance := 0.5e-4 + s.Regret*0.5e-3/(2*test.gain)
		for name, v := range map[string][2]float64{
			"Ω/T": {s.Regret, test.regret}, "scale": {s.LaplaceScale, test.scale},
			"scale with q corrected": {s.Regret + s.MaximumDistance + q, test.scaleCorrected},
		} {
			if math.Abs(v[0]-v[1]) > tolerance {
				t.Errorf("%s: %.7g, want %.7g", name, v[0], v[1])
			}
		}
	}
}

// An exponential mechanism with ε = 1 over means that are 4 standard deviations apart is
// close to a uniform choice.
func TestMostOdds(t *testing.T) {
	s, err := Noisy{Candidates: 100, Evaluations: 50, Epsilon: 1, Delta: 0.05, Noise: 0.1, Correlation: 0.95}.Paper()
	require.NoError(t, err)
	near(t, "odds", s.MostOdds(1, 4), 1.17, 2)
}

// The events of each corrected sensitivity have probabilities that add up to δ.
func TestNoisyEvents(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		a := Noisy{
			Candidates: 1 + rng.Int64N(1000), Evaluations: 1 + rng.Int64N(1000), Epsilon: rng.ExpFloat64() + 1e-3, Delta: math.Pow(10, -0.3-6*rng.Float64()),
			Noise: rng.ExpFloat64() + 1e-3, Correlation: 0.999 * rng.Float64(), InformationGain: 100 * rng.Float64(),
		}
		s, err := a.Scales()
		require.NoError(t, err)
		lambda := float64(a.Candidates)
		// P(|Z| > x) <= e^{−x²/2}
		tail := func(x float64) float64 { return math.Exp(-0.5 * x * x) }
		sd := math.Sqrt(2 * (1 - a.Correlation))
		choice := 2*lambda*tail(math.Sqrt(s.Beta)) + lambda*tail(s.ChoiceDistance/sd)
		if !(math.Abs(choice-a.Delta) <= 1e-9*a.Delta) {
			t.Errorf("%+v: the sensitivity of the choice fails with probability %g, not δ", a, choice)
		}
		// Σ 1/t² = π²/6, and β_t exceeds β_T by what t does.
		regret := lambda * tail(math.Sqrt(s.RegretBeta)) * math.Pow(float64(a.Evaluations), 2) * math.Pi * math.Pi / 6
		maximum := 2*regret + lambda*tail(s.MaximumDistance/sd) + 2*float64(a.Evaluations)*tail(s.MaximumNoise/(2*a.Noise))
		if !(math.Abs(maximum-a.Delta) <= 1e-9*a.Delta) {
			t.Errorf("%+v: the sensitivity of the maximum fails with probability %g, not δ", a, maximum)
		}
		if p, err := a.Paper(); err != nil || !(s.Beta < p.Beta) {
			t.Errorf("%+v: β of one time is %g, of all times %g, %v", a, s.Beta, p.Beta, err)
		}
		// A known bound on what a record does replaces c where it is smaller.
		a.Difference = s.ChoiceDistance * (0.5 + rng.Float64())
		if d, err := a.Scales(); err != nil || d.ChoiceDistance != math.Min(a.Difference, s.ChoiceDistance) {
			t.Errorf("c = %g with a bound of %g, %v", d.ChoiceDistance, a.Difference, err)
		}
	}
}

func TestNoisyValidate(t *testing.T) {
	valid := Noisy{Candidates: 10, Evaluations: 5, Epsilon: 1, Delta: 0.05, Noise: 0.1, Correlation: 0.9}
	for field, change := range map[string]func(*Noisy){
		"candidates":       func(a *Noisy) { a.Candidates = 0 },
		"evaluations":      func(a *Noisy) { a.Evaluations = 0 },
		"epsilon":          func(a *Noisy) { a.Epsilon = math.Inf(1) },
		"delta":            func(a *Noisy) { a.Delta = 0 },
		"noise":            func(a *Noisy) { a.Noise = 0 },
		"correlation":      func(a *Noisy) { a.Correlation = 1.1 },
		"difference":       func(a *Noisy) { a.Difference = -1 },
		"information_gain": func(a *Noisy) { a.InformationGain = math.NaN() },
	} {
		wrong := valid
		change(&wrong)
		_, err := wrong.Paper()
		if fields := privacy.FieldErrors(err); len(fields) != 1 || fields[0].Field != field {
			t.Errorf("want an error for %s, got %v", field, err)
		}
	}
	if s := valid.Statement(); s.Condition != Conditional || s.Protects != Protects || len(s.NotCovered) == 0 || len(s.Assumptions) == 0 {
		t.Errorf("statement without its conditions: %+v", s)
	}
}

// squaredExponential is the kernel e^{−‖x−y‖²/2ℓ²}.
func squaredExponential(points [][]float64, length float64) *mat.SymDense {
	k := mat.NewSymDense(len(points), nil)
	for i := range points {
		for j := i; j < len(points); j++ {
			square := 0.0
			for d := range points[i] {
				square += (points[i][d] - points[j][d]) * (points[i][d] - points[j][d])
			}
			k.SetSym(i, j, math.Exp(-square/(2*length*length)))
		}
	}
	return k
}

func randomPoints(rng *rand.Rand, n, dim int) [][]float64 {
	points := make([][]float64, n)
	for i := range points {
		points[i] = make([]float64, dim)
		for d := range points[i] {
			points[i][d] = rng.Float64()
		}
	}
	return points
}

// The posterior after several observations, some of one candidate, has the closed form k(K +
// σ²I)⁻¹v.
func TestProcess(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	const noise = 0.3
	kernel := squaredExponential(randomPoints(rng, 7, 2), 0.4)
	p := NewProcess(kernel, noise)
	observed, values := []int{2, 5, 2, 0, 6}, []float64{0.3, -1, 0.5, 2, 0.1}
	for i, c := range observed {
		p.Observe(c, values[i])
	}
	n := len(observed)
	gram := mat.NewDense(n, n, nil)
	for i := range n {
		for j := range n {
			gram.Set(i, j, kernel.At(observed[i], observed[j]))
		}
		gram.Set(i, i, gram.At(i, i)+noise*noise)
	}
	for c := range 7 {
		k := mat.NewVecDense(n, nil)
		for i := range n {
			k.SetVec(i, kernel.At(c, observed[i]))
		}
		var weights mat.VecDense
		require.NoError(t, weights.SolveVec(gram, k))
		mean, variance := mat.Dot(&weights, mat.NewVecDense(n, values)), 1-mat.Dot(&weights, k)
		if math.Abs(p.Mean()[c]-mean) > 1e-12 || math.Abs(p.Variance(c)-variance) > 1e-12 {
			t.Errorf("candidate %d: N(%g, %g), want N(%g, %g)", c, p.Mean()[c], p.Variance(c), mean, variance)
		}
	}
}

// A search on a draw from its prior keeps its promises: the posterior means and the best
// candidate are within the bounds.
func TestSearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	points := randomPoints(rng, 40, 1)
	kernel := squaredExponential(points, 0.2)
	a := Noisy{Candidates: 40, Evaluations: 60, Epsilon: 1, Delta: 0.05, Noise: 0.1, Correlation: 0.9}
	s, err := a.Scales()
	require.NoError(t, err)
	for range 20 {
		truth := make([]float64, len(points))
		prior := NewProcess(kernel, 1e-6) // a draw, one candidate after another
		for i := range truth {
			truth[i] = prior.Mean()[i] + math.Sqrt(prior.Variance(i))*rng.NormFloat64()
			prior.Observe(i, truth[i])
		}
		highest, reached := math.Inf(-1), math.Inf(-1)
		for _, v := range truth {
			highest = max(highest, v)
		}
		evaluations := 0
		posterior, best, err := a.Search(t.Context(), kernel, func(_ context.Context, c int) (float64, error) {
			evaluations++
			reached = max(reached, truth[c])
			return truth[c] + a.Noise*rng.NormFloat64(), nil
		})
		if err != nil || evaluations != 60 {
			t.Fatal(evaluations, err)
		}
		for i, mean := range posterior.Mean() {
			if math.Abs(mean-truth[i]) > math.Sqrt(s.Beta*posterior.Variance(i))+1e-9 {
				t.Errorf("candidate %d: %g is not within √β·%g of %g", i, truth[i], math.Sqrt(posterior.Variance(i)), mean)
			}
		}
		if highest-reached > 0.1 || math.Abs(best-highest) > 0.6 {
			t.Errorf("best %g, reached %g, highest %g", best, reached, highest)
		}
	}
}

func TestSearchErrors(t *testing.T) {
	a := Noisy{Candidates: 2, Evaluations: 3, Epsilon: 1, Delta: 0.05, Noise: 0.1, Correlation: 0.9}
	kernel := mat.NewSymDense(2, []float64{1, 0, 0, 1})
	failed := errors.New("failed")
	if _, _, err := a.Search(t.Context(), kernel, func(context.Context, int) (float64, error) { return 0, failed }); !errors.Is(err, failed) {
		t.Errorf("%v, want the evaluation's", err)
	}
	if _, _, err := a.Search(t.Context(), kernel, func(context.Context, int) (float64, error) { return math.NaN(), nil }); err == nil {
		t.Error("a utility that is no number")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := a.Search(ctx, kernel, func(context.Context, int) (float64, error) { return 0, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want cancelled", err)
	}
	if _, _, err := a.Search(t.Context(), mat.NewSymDense(2, []float64{1, 0, 0, 2}), nil); err == nil {
		t.Error("a kernel that is not normalised")
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic for a kernel of another order")
		}
	}()
	_, best, err := a.Search(t.Context(), mat.NewSymDense(1, []float64{1}), nil)
	t.Errorf("%g, %v for a kernel of another order", best, err)
}

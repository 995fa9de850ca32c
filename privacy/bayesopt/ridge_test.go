package bayesopt

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// Independent computation of Algorithm 3 of Kusner et al. (2015).
func TestRidge(t *testing.T) {
	for _, test := range []struct {
		ridge                                       Ridge
		first, corrected, second, paper, use, digit float64
		vacuous                                     bool
	}{
		{Ridge{Records: 1000, Range: 1, Lipschitz: 1, Least: 0.0001, Most: 1}, 0.001, 0.001, 9999, 9999.001, 1, 1e-9, true},
		{Ridge{Records: 1000, Range: 1, Lipschitz: 1, Least: 0.1, Most: 0.2}, 0.001, 0.001, 5, 5.001, 1, 1e-9, true},
		{Ridge{Records: 1000, Range: 1, Lipschitz: 1, Least: 1, Most: 10}, 0.001, 0.001, 0.9, 0.901, 0.901, 1e-9, false},
		{Ridge{Records: 15000, Range: 1, Lipschitz: 0.25, Least: 0.5, Most: 1}, 3.3333333e-05, 6.6666667e-05, 0.25, 0.25003333, 0.25006667, 5e-9, false},
		{Ridge{Records: 1000, Range: 1, Lipschitz: 1, Least: 0.01, Most: 0.011}, 0.001, 0.001, 9.0909091, 9.0919091, 1, 5e-8, true},
		{Ridge{Records: 1000, Range: 1, Lipschitz: 1, Least: 0.999, Most: 1.0}, 0.001, 0.001, 0.001001001, 0.002001001, 0.002001001, 5e-10, false},
	} {
		a := test.ridge
		a.Epsilon = 1
		for name, v := range map[string][2]float64{
			"first term": {a.record(1), test.first}, "corrected": {a.record(2), test.corrected}, "second term": {a.path(), test.second},
			"paper": {a.Paper(), test.paper}, "sensitivity": {a.Sensitivity(), test.use},
		} {
			if math.Abs(v[0]-v[1]) > 1.01*test.digit {
				t.Errorf("%+v: %s is %.10g, want %.10g", a, name, v[0], v[1])
			}
		}
		if a.Vacuous() != test.vacuous {
			t.Errorf("%+v: vacuous %t", a, a.Vacuous())
		}
		if scale := a.LaplaceScale(); !(noise.Sensitivity(a.Sensitivity(), scale)/scale <= a.Epsilon && scale <= a.Sensitivity()*(1+1e-9)) {
			t.Errorf("%+v: scale %g", a, scale)
		}
	}
}

// The bounds of Theorem 7, beside distances and norms of logistic regression on synthetic
// data (independent computation): worst cases that are far from these.
func TestModelDistance(t *testing.T) {
	for _, test := range []struct{ lambda, other, actual, bound, norm float64 }{
		{0.001, 1, 7.5156, 999, 7.701}, {0.01, 0.1, 2.69985, 90, 3.9518}, {0.1, 0.2, 0.493768, 5, 1.2534}, {1, 2, 0.0902402, 0.5, 0.186},
	} {
		got := ModelDistance(test.lambda, test.other)
		if math.Abs(got-test.bound) > 1e-9*test.bound || got != ModelDistance(test.other, test.lambda) || !(test.actual <= got) {
			t.Errorf("λ = %g, %g: %g, want %g", test.lambda, test.other, got, test.bound)
		}
		if test.norm > 1/test.lambda {
			t.Errorf("λ = %g: ‖w‖ = %g", test.lambda, test.norm)
		}
	}
}

// The counterexample to the paper's first term: g = clip(½ − L·y·w·x, 0, 1) for weights of
// norm 1/λ and L/λ = 0.3 is 0.2 on one record and 0.8 on another.
func TestRidgeFactor(t *testing.T) {
	const lambda, lipschitz = 0.5, 0.15
	g := func(wx float64) float64 { return math.Min(1, math.Max(0, 0.5-lipschitz*wx)) }
	difference := g(-1/lambda) - g(1/lambda)
	a := Ridge{Records: 1, Epsilon: 1, Range: 1, Lipschitz: lipschitz, Least: lambda, Most: lambda}
	if !(a.Paper() < difference-0.2 && a.Sensitivity() >= difference-1e-12) {
		t.Errorf("two records differ by %g, the paper's bound is %g, ours %g", difference, a.Paper(), a.Sensitivity())
	}
}

// The sensitivity does not exceed the range, nor the paper's if its factor makes no
// difference, and falls with m and with a narrower range of λ.
func TestRidgeProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for range 500 {
		a := Ridge{
			Records: 1 + rng.Int64N(10000), Epsilon: 1, Range: rng.ExpFloat64() + 1e-3, Lipschitz: rng.ExpFloat64() + 1e-3,
			Least: math.Exp(3 * rng.NormFloat64()),
		}
		a.Most = a.Least * (1 + rng.ExpFloat64())
		require.NoError(t, a.Validate())
		s := a.Sensitivity()
		if !(s <= a.Range && a.Uncapped() >= a.Paper() && a.Uncapped() <= 2*a.Paper() && a.Vacuous() == (s == a.Range)) {
			t.Errorf("%+v: %g, uncapped %g, paper %g", a, s, a.Uncapped(), a.Paper())
		}
		larger, narrower := a, a
		larger.Records *= 2
		narrower.Most = 0.5 * (a.Least + a.Most)
		if !(larger.Sensitivity() <= s && narrower.Sensitivity() <= s) {
			t.Errorf("%+v: %g, with more records %g, with fewer penalties %g", a, s, larger.Sensitivity(), narrower.Sensitivity())
		}
	}
}

// The release is audited on two validation sets whose best scores are as far apart as the
// sensitivity allows.
func TestRidgeAudit(t *testing.T) {
	a := Ridge{Records: 1000, Epsilon: 1, Range: 1, Lipschitz: 1, Least: 1, Most: 10}
	source := noise.Seeded(8)
	event := func(a Ridge) func(bool) bool {
		sensitivity := Ridge{Records: 1000, Epsilon: 1, Range: 1, Lipschitz: 1, Least: 1, Most: 10}.Sensitivity()
		return func(second bool) bool {
			best := -0.9
			if second {
				best += sensitivity
			}
			released, _, err := a.Release(source, best)
			require.NoError(t, err)
			return released < -0.9
		}
	}
	g, err := a.Guarantee()
	require.NoError(t, err)
	if g.Delta != 0 || g.Adjacency != privacy.ReplaceOne || g.Epsilon != 1 {
		t.Errorf("guarantee %v", g)
	}
	broken := a
	broken.Epsilon = 2
	privacytest.Audit{Epsilon: g.Epsilon, Runs: 200_000, Power: 0.9, Event: event(a), Broken: event(broken)}.Check(t)
}

func TestRidgeValidate(t *testing.T) {
	valid := Ridge{Records: 10, Epsilon: 1, Range: 1, Lipschitz: 1, Least: 1, Most: 2}
	for field, change := range map[string]func(*Ridge){
		"records":   func(a *Ridge) { a.Records = 0 },
		"epsilon":   func(a *Ridge) { a.Epsilon = 0 },
		"range":     func(a *Ridge) { a.Range = 0 },
		"lipschitz": func(a *Ridge) { a.Lipschitz = math.Inf(1) },
		"least":     func(a *Ridge) { a.Least = -1 },
		"most":      func(a *Ridge) { a.Most = 0.5 },
	} {
		wrong := valid
		change(&wrong)
		_, _, err := wrong.Release(noise.Seeded(1), 0)
		if fields := privacy.FieldErrors(err); len(fields) != 1 || fields[0].Field != field {
			t.Errorf("want an error for %s, got %v", field, err)
		}
	}
	if _, _, err := valid.Release(noise.Seeded(1), math.NaN()); err == nil {
		t.Error("a score that is no number")
	}
	if len(valid.NotCovered()) == 0 {
		t.Error("nothing is left out")
	}
}

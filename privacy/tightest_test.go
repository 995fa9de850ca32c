package privacy_test

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/tuning"
)

func TestTightestChooses(t *testing.T) {
	dpsgd := privacy.FixedSizeGaussian{DatasetSize: 30956, BatchSize: 128, NoiseMultiplier: 1}
	search := tuning.RepeatedSelection{Base: dpsgd, Steps: 242, Eta: 1, Gamma: 0.1}
	for _, tc := range []struct {
		m          privacy.Mechanism
		delta      float64
		accountant string
	}{
		{privacy.SparseVector{Cutoff: 5, NoiseScale: 10, Neighbours: privacy.ReplaceOne}, 0, "pure"},
		{privacy.SparseVector{Cutoff: 5, NoiseScale: 10, Neighbours: privacy.ReplaceOne}, 1e-6, "exact"},
		{dpsgd, 1e-5, "exact"},
		{privacy.PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: 1, Neighbours: privacy.AddRemove, PublicSize: false}, 1e-5, "exact"},
		{privacy.Selection{Method: privacy.Exponential, Epsilon: 0.5, Neighbours: privacy.AddRemove}, 1e-6, "rdp"},
		{privacy.ZeroConcentrated{Rho: 0.1, Neighbours: privacy.AddRemove}, 1e-6, "rdp"},
		{search, 1e-5, "location"}, {tuning.BinomialSelection{Base: dpsgd, Steps: 242, Tries: 2, Probability: 1}, 1e-5, "exact"}, {tuning.CappedSelection{Base: dpsgd, Steps: 242, Eta: 1, Gamma: 0.1, MostRuns: 40}, 1e-5, "location"},
		{privacy.Composition{{Mechanism: dpsgd, Count: 242}, {Mechanism: privacy.Selection{Method: privacy.Exponential, Epsilon: 0.1, Neighbours: privacy.ReplaceOne}, Count: 3}}, 1e-5, "rdp"},
	} {
		g := epsilonOf(t, privacy.Tightest{}, tc.m, 1, tc.delta)
		if g.Accountant != tc.accountant || g.Adjacency != tc.m.Adjacency() || len(g.Assumptions) != len(tc.m.Assumptions()) {
			t.Errorf("%s with delta %g: %+v, want accountant %s", tc.m.Name(), tc.delta, g, tc.accountant)
		}
		for _, a := range []privacy.Accountant{privacy.Exact{}, privacy.PLD{}, privacy.RDP{}, privacy.RDP{Conversion: privacy.Classic}, tuning.Location{}, privacy.GDP{}, privacy.Pure{}, privacy.Pure{Rule: privacy.Optimal}} {
			other, err := privacy.Epsilon(a, tc.m, 1, tc.delta)
			if err == nil && g.Epsilon > other.Epsilon*(1+1e-9) {
				t.Errorf("%s with delta %g: %s gives %g, tightest %g", tc.m.Name(), tc.delta, a.Name(), other.Epsilon, g.Epsilon)
			}
		}
		if !(g.EpsilonLower <= g.Epsilon) {
			t.Errorf("%s: lower %g above %g", tc.m.Name(), g.EpsilonLower, g.Epsilon)
		}
	}
}

func TestTightestErrors(t *testing.T) {
	if _, err := privacy.Epsilon(privacy.Tightest{}, privacy.Gaussian{Sensitivity: 1, StandardDeviation: 2, Neighbours: privacy.AddRemove}, 1, 0); len(privacy.FieldErrors(err)) != 1 || privacy.FieldErrors(err)[0].Field != "delta" {
		t.Errorf("a Gaussian with delta 0: %v", err)
	}
	if _, err := privacy.Epsilon(privacy.Tightest{}, privacy.Gaussian{Sensitivity: 1, StandardDeviation: -2, Neighbours: privacy.AddRemove}, 1, 1e-5); len(privacy.FieldErrors(err)) != 1 || privacy.FieldErrors(err)[0].Field != "standard_deviation" {
		t.Errorf("negative noise: %v", err)
	}
	var unsupported *privacy.UnsupportedError
	if _, err := (privacy.Tightest{}).Curve(nameOnly{}); !errors.As(err, &unsupported) {
		t.Errorf("a mechanism of which nothing is known: %v", err)
	}
	// Noise whose double is no number any more is still accounted.
	if g := epsilonOf(t, privacy.Tightest{}, privacy.Composition{{Mechanism: privacy.FixedSizeGaussian{DatasetSize: 100, BatchSize: 1, NoiseMultiplier: math.MaxFloat64}, Count: 1}, {Mechanism: privacy.ZeroConcentrated{Rho: 0.1, Neighbours: privacy.ReplaceOne}, Count: 1}}, 1, 1e-6); math.IsNaN(g.Epsilon) {
		t.Errorf("%+v", g)
	}
}

// nameOnly is a mechanism without any divergence bound.
type nameOnly struct{}

func (nameOnly) Name() string { return "name_only" }

func (nameOnly) Adjacency() privacy.Adjacency { return privacy.AddRemove }

func (nameOnly) Validate() error { return nil }

func (nameOnly) Assumptions() []privacy.Assumption { return nil }

// Where little noise makes the exact accountant give up, the Rényi bound counts, and no
// bound is below the lower one.
func TestTightestWithLittleNoise(t *testing.T) {
	for _, sigma := range []float64{1e-2, 1e-3, 1e-6, 1e-9, 1e-12, 1e-16, 1e-20, 1e-100, 1e-300} {
		for _, m := range []privacy.Mechanism{
			privacy.FixedSizeGaussian{DatasetSize: 1000, BatchSize: 10, NoiseMultiplier: sigma}, privacy.PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: sigma, Neighbours: privacy.AddRemove, PublicSize: false}, privacy.PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: sigma, Neighbours: privacy.ReplaceOne, PublicSize: false},
		} {
			for _, steps := range []int64{1, 10, 1000} {
				tight := epsilonOf(t, privacy.Tightest{}, m, steps, 1e-5)
				rdp := epsilonOf(t, privacy.RDP{}, m, steps, 1e-5)
				if tight.Epsilon > rdp.Epsilon {
					t.Errorf("%+v, %d steps: tightest %g, RDP %g", m, steps, tight.Epsilon, rdp.Epsilon)
				}
				// One record is drawn with probability 0.01, and then seen through noise of σ
				// around a distance of one.
				if least := 0.1 / sigma; sigma < 1e-2 && tight.Epsilon < least {
					t.Errorf("%+v, %d steps: epsilon %g, at least %g expected", m, steps, tight.Epsilon, least)
				}
			}
		}
	}
}

// TestUpperOnly: without the lower bound ε is the same. Accountants that have theirs for nothing, or
// none, stay what they are.
func TestUpperOnly(t *testing.T) {
	training := privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 256, NoiseMultiplier: 4}
	best := tuning.CappedSelection{Base: training, Steps: 1270, Eta: 1, Gamma: 1.0 / 32, MostRuns: 128}
	for _, tt := range []struct {
		accountant privacy.Accountant
		mechanism  privacy.Mechanism
		leftOut    bool
	}{
		{tuning.Location{}, best, true},
		{privacy.Tightest{}, best, true},
		{privacy.Tightest{}, training, true},
		{privacy.Exact{}, training, true},
		{privacy.PLD{}, training, true},
		{privacy.RDP{Conversion: privacy.Classic}, training, false},
		{privacy.GDP{}, privacy.Gaussian{Sensitivity: 1, StandardDeviation: 4, Neighbours: privacy.AddRemove}, false},
	} {
		want := epsilonOf(t, tt.accountant, tt.mechanism, 1, 1e-6)
		if tt.leftOut {
			if !(want.EpsilonLower > 0) {
				t.Errorf("%s of %s has no lower bound", want.Accountant, tt.mechanism.Name())
			}
			want.EpsilonLower = 0
		}
		if got := epsilonOf(t, privacy.UpperOnly(tt.accountant), tt.mechanism, 1, 1e-6); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// epsilonOf returns a guarantee.
func epsilonOf(t testing.TB, a privacy.Accountant, m privacy.Mechanism, steps int64, delta float64) privacy.Guarantee {
	t.Helper()
	g, err := privacy.Epsilon(a, m, steps, delta)
	require.NoError(t, err)
	return g
}

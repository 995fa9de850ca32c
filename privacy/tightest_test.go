package privacy

import (
	"errors"
	"math"
	"reflect"
	"testing"
)

func TestTightestChooses(t *testing.T) {
	dpsgd := FixedSizeGaussian{30956, 128, 1}
	search := RepeatedSelection{dpsgd, 242, 1, 0.1}
	for _, tc := range []struct {
		m          Mechanism
		delta      float64
		accountant string
	}{
		{SparseVector{5, 10, ReplaceOne}, 0, "pure"},
		{SparseVector{5, 10, ReplaceOne}, 1e-6, "exact"},
		{dpsgd, 1e-5, "exact"},
		{PoissonGaussian{0.01, 1, AddRemove, false}, 1e-5, "exact"},
		{Selection{Exponential, 0.5, AddRemove}, 1e-6, "rdp"},
		{ZeroConcentrated{0.1, AddRemove}, 1e-6, "rdp"},
		{search, 1e-5, "location"}, {BinomialSelection{dpsgd, 242, 2, 1}, 1e-5, "exact"}, {CappedSelection{dpsgd, 242, 1, 0.1, 40}, 1e-5, "location"},
		{Composition{{dpsgd, 242}, {Selection{Exponential, 0.1, ReplaceOne}, 3}}, 1e-5, "rdp"},
	} {
		g := epsilonOf(t, Tightest{}, tc.m, 1, tc.delta)
		if g.Accountant != tc.accountant || g.Adjacency != tc.m.Adjacency() || len(g.Assumptions) != len(tc.m.Assumptions()) {
			t.Errorf("%s with delta %g: %+v, want accountant %s", tc.m.Name(), tc.delta, g, tc.accountant)
		}
		for _, a := range []Accountant{Exact{}, PLD{}, RDP{}, RDP{Classic}, Location{}, GDP{}, Pure{}, Pure{Optimal}} {
			other, err := Epsilon(a, tc.m, 1, tc.delta)
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
	if _, err := Epsilon(Tightest{}, Gaussian{1, 2, AddRemove}, 1, 0); len(FieldErrors(err)) != 1 || FieldErrors(err)[0].Field != "delta" {
		t.Errorf("a Gaussian with delta 0: %v", err)
	}
	if _, err := Epsilon(Tightest{}, Gaussian{1, -2, AddRemove}, 1, 1e-5); len(FieldErrors(err)) != 1 || FieldErrors(err)[0].Field != "standard_deviation" {
		t.Errorf("negative noise: %v", err)
	}
	var unsupported *UnsupportedError
	if _, err := (Tightest{}).Curve(nameOnly{}); !errors.As(err, &unsupported) {
		t.Errorf("a mechanism of which nothing is known: %v", err)
	}
	// Noise whose double is no number any more is still accounted.
	if g := epsilonOf(t, Tightest{}, Composition{{FixedSizeGaussian{100, 1, math.MaxFloat64}, 1}, {ZeroConcentrated{0.1, ReplaceOne}, 1}}, 1, 1e-6); math.IsNaN(g.Epsilon) {
		t.Errorf("%+v", g)
	}
}

// nameOnly is a mechanism without any divergence bound.
type nameOnly struct{}

func (nameOnly) Name() string          { return "name_only" }
func (nameOnly) Adjacency() Adjacency  { return AddRemove }
func (nameOnly) Validate() error       { return nil }
func (nameOnly) Assumptions() []string { return nil }

// Where little noise makes the exact accountant give up, the Rényi bound counts, and no
// bound is below the lower one.
func TestTightestWithLittleNoise(t *testing.T) {
	for _, sigma := range []float64{1e-2, 1e-3, 1e-6, 1e-9, 1e-12, 1e-16, 1e-20, 1e-100, 1e-300} {
		for _, m := range []Mechanism{
			FixedSizeGaussian{1000, 10, sigma}, PoissonGaussian{0.01, sigma, AddRemove, false}, PoissonGaussian{0.01, sigma, ReplaceOne, false},
		} {
			for _, steps := range []int64{1, 10, 1000} {
				tight := epsilonOf(t, Tightest{}, m, steps, 1e-5)
				rdp := epsilonOf(t, RDP{}, m, steps, 1e-5)
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
	training := FixedSizeGaussian{32561, 256, 4}
	best := CappedSelection{training, 1270, 1, 1.0 / 32, 128}
	for _, tt := range []struct {
		accountant Accountant
		mechanism  Mechanism
		leftOut    bool
	}{
		{Location{}, best, true},
		{Tightest{}, best, true},
		{Tightest{}, training, true},
		{Exact{}, training, true},
		{PLD{}, training, true},
		{RDP{Conversion: Classic}, training, false},
		{GDP{}, Gaussian{1, 4, AddRemove}, false},
	} {
		want := epsilonOf(t, tt.accountant, tt.mechanism, 1, 1e-6)
		if tt.leftOut {
			if !(want.EpsilonLower > 0) {
				t.Errorf("%s of %s has no lower bound", want.Accountant, tt.mechanism.Name())
			}
			want.EpsilonLower = 0
		}
		if got := epsilonOf(t, UpperOnly(tt.accountant), tt.mechanism, 1, 1e-6); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

package accounting

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/invalid"
)

// poissonSpec is DP-SGD with Poisson sampling under a convention.
func poissonSpec(convention string, n, m int64, sigma float64, epochs int64) string {
	return fmt.Sprintf(`{"dp_sgd":{"sampling":"SAMPLING_POISSON","convention":"CONVENTION_%s","dataset_size":"%d","batch_size":"%d","noise_multiplier":"%g","epochs":"%d"},"delta":1e-5`,
		convention, n, m, sigma, epochs) + addRemove + `}`
}

func guaranteeOf(t *testing.T, text string) *dparetov1.PrivacyGuarantee {
	t.Helper()
	return compute(t, &dparetov1.ComputeEpsilonRequest{Privacy: spec(t, text)}).GetGuarantees()[0]
}

// removal returns δ(ε) of at most two steps that draw with probability q, by a plain sum over
// the outputs: P = (1−q)N(0, σ²) + qN(1, σ²) of every step against Q = N(0, σ²).
func removal(q, sigma, epsilon float64, steps int64) float64 {
	const h = 0.02 // in standard deviations
	type output struct{ p, q float64 }
	var outputs []output
	for s := -8.0; s <= 8+4/sigma; s += h {
		density := h * math.Exp(-s*s/2) / math.Sqrt(2*math.Pi)
		outputs = append(outputs, output{density * (1 - q + q*math.Exp((s-0.5/sigma)/sigma)), density})
	}
	first := []output{{1, 1}}
	if steps == 2 {
		first = outputs
	}
	delta := 0.0
	for _, a := range first {
		for _, b := range outputs {
			delta += math.Max(0, a.p*b.p-math.Exp(epsilon)*a.q*b.q)
		}
	}
	return delta
}

// One epoch of lots of more than half the data is one step or two, with a probability that
// depends on the tool. ε is the one of that tool, for random sizes.
func TestConventions(t *testing.T) {
	rng := rand.New(rand.NewPCG(191, 4))
	for range 8 {
		n := 100 + rng.Int64N(10_000)
		m := n/2 + 1 + rng.Int64N(n/2-1)
		sigma := 0.8 + 2*rng.Float64()
		ratio := float64(m) / float64(n)
		rounded := int64(1)
		if 2*n >= 3*m {
			rounded = 2
		}
		for convention, want := range map[string]struct {
			q     float64
			steps int64
		}{
			"ROUNDED":            {ratio, rounded},
			"OPACUS":             {0.5, 2},
			"TENSORFLOW_PRIVACY": {ratio, 2},
		} {
			g := guaranteeOf(t, poissonSpec(convention, n, m, sigma, 1))
			if got := removal(want.q, sigma, g.GetEpsilon(), want.steps); g.GetSteps() != want.steps || math.Abs(got-1e-5) > 2e-3*1e-5 {
				t.Errorf("%s, %d of %d, noise %g: ε = %g for %d steps, where δ is %g", convention, m, n, sigma, g.GetEpsilon(), g.GetSteps(), got)
			}
		}
	}
}

// How far the conventions are apart: sizes of the review, 20 epochs.
func TestConventionsDiffer(t *testing.T) {
	for _, tc := range []struct {
		n, m           int64
		opacus, google float64 // least ε, relative to the one of rounded epochs
	}{{150, 101, 1.05, 1.2}, {1000, 700, 1.02, 1.2}, {1000, 100, 1, 1}} {
		rounded := guaranteeOf(t, poissonSpec("ROUNDED", tc.n, tc.m, 2, 20)).GetEpsilon()
		opacus := guaranteeOf(t, poissonSpec("OPACUS", tc.n, tc.m, 2, 20)).GetEpsilon() / rounded
		google := guaranteeOf(t, poissonSpec("TENSORFLOW_PRIVACY", tc.n, tc.m, 2, 20)).GetEpsilon() / rounded
		t.Logf("%d of %d: ε of Opacus %.4f, of TensorFlow Privacy %.4f times that of rounded epochs", tc.m, tc.n, opacus, google)
		if opacus < tc.opacus || google < tc.google || tc.n%tc.m == 0 && (opacus != 1 || google != 1) {
			t.Errorf("%d of %d: ε of Opacus %g, of TensorFlow Privacy %g times that of rounded epochs", tc.m, tc.n, opacus, google)
		}
	}
}

// A probability that is given needs no sizes, and the same one from sizes gives the same ε.
func TestSamplingProbability(t *testing.T) {
	given := func(more string) string {
		return `{"dp_sgd":{"sampling":"SAMPLING_POISSON","sampling_probability":"0.5","noise_multiplier":"2","steps":"20"` + more + `},"delta":1e-5` + addRemove + `}`
	}
	want := guaranteeOf(t, poissonSpec("OPACUS", 1000, 700, 2, 10)).GetEpsilon()
	for name, tc := range map[string]struct {
		text       string
		publicSize bool
	}{
		"settings":           {given(""), false},
		"of a number":        {given(`,"dataset_size":"1000"`), true},
		"convention":         {poissonSpec("OPACUS", 1000, 700, 2, 10), true},
		"random allocation":  {`{"dp_sgd":{"sampling":"SAMPLING_RANDOM_ALLOCATION","dataset_size":"1000","batch_size":"10","noise_multiplier":"1","epochs":"4"},"delta":1e-5` + addRemove + `}`, true},
		"in a composition":   {`{"composition":{"parts":[{"mechanism":` + strings.Replace(poissonSpec("OPACUS", 1000, 700, 2, 10), `,"delta":1e-5`+addRemove, "", 1) + `}]},"delta":1e-5` + addRemove + `}`, true},
		"of random stopping": {`{"repeated_selection":{"mean_runs":"2","eta":"1","base":` + strings.Replace(poissonSpec("OPACUS", 1000, 700, 2, 10), `,"delta":1e-5`+addRemove, "", 1) + `},"delta":1e-5` + addRemove + `}`, true},
		"replaced":           {strings.Replace(poissonSpec("OPACUS", 1000, 700, 2, 10), addRemove, replaceOne, 1), false},
	} {
		s := spec(t, tc.text)
		g := guaranteeOf(t, tc.text)
		if s.GetDpSgd().GetSampling() == dparetov1.Sampling_SAMPLING_POISSON && name != "replaced" && g.GetEpsilon() != want {
			t.Errorf("%s: ε = %g, want %g", name, g.GetEpsilon(), want)
		}
		if got := show.IsSizePublic(g.GetAssumptions()); got != tc.publicSize {
			t.Errorf("%s: the number of records is public: %t, assumptions %q", name, got, g.GetAssumptions())
		}
		var fields invalid.Fields
		_, environment := bind(&fields, nil, nil)
		if got := Compile("privacy", &fields, environment, s).PublicSize(); got != tc.publicSize {
			t.Errorf("%s: PublicSize is %t", name, got)
		}
	}
}

package price

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

const noisyTrials = "trials with 10 times the noise, one run"

// TestCheapest: over random settings of DP-SGD, noisy trials are the cheapest adaptive way; the cheapest of all are these, the
// subset or the logarithmic distribution. docs/reference/publishing.md has the numbers that it logs with the tag long.
func TestCheapest(t *testing.T) {
	rng := rand.New(rand.NewPCG(43, 1))
	between := func(lo, hi float64) float64 { return lo * math.Pow(hi/lo, rng.Float64()) }
	cheapest := make(map[string]int)
	for range privacytest.Few(3, 200) {
		base := privacy.FixedSizeGaussian{DatasetSize: int64(between(2000, 200_000)), BatchSize: int64(between(16, 1024)), NoiseMultiplier: between(0.7, 8)}
		steps, err := privacy.Steps(base.DatasetSize, base.BatchSize, int64(between(1, 30)))
		require.NoError(t, err)
		run := privacy.Part{Mechanism: base, Count: steps}
		s := Search{
			Run: run, Delta: math.Pow(10, -4-4*rng.Float64()), Runs: int64(between(2, 500)), Eta: 1, CoversStates: true,
			Subset: &Subset{Share: 0.1, Final: run},
		}
		require.NoError(t, s.Validate())
		least, leastAdaptive := math.Inf(1), math.Inf(1)
		var name, adaptive string
		for _, w := range s.ways()[1:] { // the first is no search
			g, err := w.training(privacy.Tightest{UpperOnly: true}, s.Runs)
			require.NoError(t, err)
			if g.Epsilon < least {
				name, least = w.name, g.Epsilon
			}
			if w.adaptive && g.Epsilon < leastAdaptive {
				adaptive, leastAdaptive = w.name, g.Epsilon
			}
		}
		if strings.HasSuffix(name, "one run on all") {
			name = "subset" // whose share of the records has been rounded
		}
		cheapest[name]++
		if adaptive != noisyTrials || name != noisyTrials && name != "subset" && name != "best of K, logarithmic" {
			t.Errorf("%+v, %d steps, %d runs: %s is the cheapest, and the cheapest adaptive way %s", base, steps, s.Runs, name, adaptive)
		}
	}
	t.Log(cheapest)
}

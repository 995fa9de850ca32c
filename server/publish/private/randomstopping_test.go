package private

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy/noise"
)

// Numbers of trials have the distribution that the spec asks for: their mean, and the share of
// single trials.
func TestDrawTrials(t *testing.T) {
	entropy := noise.Seeded(7)
	const draws = 20_000
	eta := func(eta float64) *dparetov1.RandomStoppingSpec {
		return &dparetov1.RandomStoppingSpec{MeanTrials: 10, Distribution: &dparetov1.RandomStoppingSpec_Eta{Eta: eta}}
	}
	for name, tc := range map[string]struct {
		asked     *dparetov1.RandomStoppingSpec
		sd, first float64 // of a draw; probability of 1
	}{
		"geometric":   {eta(1), math.Sqrt(0.9) / 0.1, 0.1},
		"logarithmic": {eta(0), math.Sqrt(10/0.0269183 - 100), 0.269183}, // E[K²] = E[K]/γ
		"poisson": {&dparetov1.RandomStoppingSpec{
			MeanTrials: 10, Distribution: &dparetov1.RandomStoppingSpec_Poisson{Poisson: new(dparetov1.PoissonDistribution)},
		}, math.Sqrt(10), 10 * math.Exp(-10)},
		"binomial": {&dparetov1.RandomStoppingSpec{
			MeanTrials: 10, Distribution: &dparetov1.RandomStoppingSpec_Binomial{Binomial: 40},
		}, math.Sqrt(7.5), 10 * math.Pow(0.75, 39)},
		"fixed":   {&dparetov1.RandomStoppingSpec{MeanTrials: 10, Distribution: &dparetov1.RandomStoppingSpec_Fixed{Fixed: new(dparetov1.FixedNumber)}}, 0, 0},
		"default": {&dparetov1.RandomStoppingSpec{MeanTrials: 10}, math.Sqrt(0.9) / 0.1, 0.1},
	} {
		dist, err := trialsDistribution(tc.asked)
		require.NoError(t, err)
		sum, ones := 0.0, 0.0
		for range draws {
			n, err := dist.Draw(entropy)
			require.NoError(t, err)
			sum += float64(n)
			if n == 1 {
				ones++
			}
		}
		if mean := sum / draws; math.Abs(mean-10) > 5*tc.sd/math.Sqrt(draws) {
			t.Errorf("%s: mean %g", name, mean)
		}
		if share := ones / draws; math.Abs(share-tc.first) > 5*math.Sqrt(tc.first*(1-tc.first)/draws) {
			t.Errorf("%s: a single trial in %g, want %g", name, share, tc.first)
		}
	}
}

// The draws of a list pass their slot of the pool on, and end with the call.
func TestSearchListPauses(t *testing.T) {
	compiled := compile(t, answers(&dparetov1.RandomStoppingSpec{MeanTrials: 10, Metric: "answer"}))
	ended := errors.New("ended")
	pauses := 0
	ctx := pause.With(t.Context(), func(context.Context) error {
		if pauses++; pauses == 3 {
			return ended
		}
		return nil
	})
	if _, err := searchList(ctx, compiled, rand.New(rand.NewPCG(1, 2))); !errors.Is(err, ended) || pauses != 3 {
		t.Errorf("%v after %d pauses", err, pauses)
	}
}

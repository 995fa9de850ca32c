//go:build long

package analysis_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/space"
)

// Runs with checkpoints, whose noise has to be learned, gain what was forecast, up to what 20
// seeds can tell.
func TestForecastOfCheckpointsHoldsLong(t *testing.T) {
	expected, gained, covered := goOn(t, simulated.EpochTraining(), func(h *suggest.History, q space.Point, rng *rand.Rand) {
		simulated.TrainEpochs(h, q, int64(h.Trials()+1), rng)
	})
	mean, deviation := stat.MeanStdDev(floats.SubTo(make([]float64, len(gained)), gained, expected), nil)
	if mean < -2*deviation/math.Sqrt(float64(len(gained))) || covered < 16 {
		t.Errorf("gained %v more than expected, ± %v; %d of %d within the interval", mean, deviation, covered, len(gained))
	}
}

package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/surrogate"
)

// A model for reading predicts a run that is left out by both explanations, and is unsure where these or the draws
// about them differ. A model for searching has one surrogate.
func TestLeaveOut(t *testing.T) {
	p := simulated.EpochTraining()
	rng, h := rand.New(rand.NewPCG(5, 4)), new(suggest.History)
	for run := range int64(8) {
		simulated.TrainEpochs(h, p.Space.Sample(rng), run+1, rng)
	}
	j := len(p.Objectives) - 1
	for _, reading := range []bool{false, true} {
		m, err := Fit(t.Context(), p, h, Options{ForReading: reading})
		require.NoError(t, err)
		var blocks [][]int // by run
		for i := range m.Observed(j).Values {
			if run := h.Evaluations[m.Configurations()[m.Observed(j).Configurations[i]].Evaluations[0]].Run; int(run) > len(blocks) {
				blocks = append(blocks, nil)
			}
			blocks[len(blocks)-1] = append(blocks[len(blocks)-1], i)
		}
		got, err := m.LeaveOut(t.Context(), j, blocks)
		require.NoError(t, err)
		means, draws, s := []*surrogate.GP{m.gps[j]}, []*surrogate.GP{m.gps[j]}, 1.0
		if reading {
			means, draws, s = m.explanations[j], m.plausible[j], m.checked.Inflation[j]
			if len(means) != 2 || len(draws) != plausible {
				t.Fatalf("%d explanations and %d draws", len(means), len(draws))
			}
		}
		of := func(gp *surrogate.GP) []surrogate.LeftOut {
			left, err := surrogate.LeaveOut(t.Context(), gp, blocks)
			require.NoError(t, err)
			return left
		}
		for b, block := range blocks {
			// Along any direction, the variance of a mixture is the mean variance of its parts plus the mean squared
			// distance of their means from its mean.
			direction := make([]float64, len(block))
			for i := range direction {
				direction[i] = rng.NormFloat64()
			}
			d := mat.NewVecDense(len(block), direction)
			along := func(left []surrogate.LeftOut) (residual, variance float64) {
				return mat.Dot(d, mat.NewVecDense(len(block), left[b].Residuals)), mat.Inner(d, left[b].Covariance, d)
			}
			residual, variance := along(got)
			want, spread := 0.0, 0.0
			for _, gp := range means {
				r, _ := along(of(gp))
				want += r / float64(len(means))
			}
			for _, gp := range draws {
				r, v := along(of(gp))
				spread += s * s * (v + (r-want)*(r-want)) / float64(len(draws))
			}
			if math.Abs(residual-want) > 1e-9*(1+math.Abs(want)) || math.Abs(variance-spread) > 1e-9*spread {
				t.Errorf("reading %t, run %d: residual %v with variance %v, want %v with %v", reading, b, residual, variance, want, spread)
			}
		}
	}
}

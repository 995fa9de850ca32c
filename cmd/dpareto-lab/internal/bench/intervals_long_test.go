//go:build long

package bench

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/surface"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
)

// tables is the environment variable with the folder of the tables of DP training.
const tables = "DPARETO_TABLES"

// On average over the surfaces in the folder of tables, 90 % intervals of the error cover about as
// often as they say, among all measured configurations and on the reported front, which is
// chosen for its values: with ends of runs alone and with checkpoints, for few and for more runs.
func TestIntervalsOfTables(t *testing.T) {
	folder := os.Getenv(tables)
	if folder == "" {
		t.Skipf("%s, the folder of the tables of dpareto-lab bench dp-table, is not set", tables)
	}
	const lower, upper = 0.82, 0.97
	sum, count := [2]float64{}, 0.0
	for _, name := range surface.Names() {
		chosen, err := surface.ByName(name)
		require.NoError(t, err)
		table, err := surface.Read(chosen, folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		s, err := OpenSurface(t.Context(), table, Variant{Smooth: true})
		require.NoError(t, err)
		for _, checkpoints := range []bool{false, true} {
			for _, runs := range []int{10, 20, 40} {
				all, front := s.coverage(t, runs, checkpoints)
				t.Logf("%s, %d runs, checkpoints %t: %.2f of all, %.2f on the front", name, runs, checkpoints, all, front)
				sum[0], sum[1], count = sum[0]+all, sum[1]+front, count+1
			}
		}
	}
	for i, where := range []string{"of all", "on the front"} {
		share := sum[i] / count
		if t.Logf("%.3f %s", share, where); !(lower <= share && share <= upper) {
			t.Errorf("%.3f of the intervals %s cover", share, where)
		}
	}
}

// coverage returns the shares of intervals of the error that hold its exact value, of all
// configurations and of those on the front of the medians, over studies of quasi-random runs.
func (s *Surface) coverage(t *testing.T, runs int, checkpoints bool) (all, front float64) {
	t.Helper()
	var inside, counted [2]float64
	for seed := range uint64(3) {
		c, p, h := newCourse(s, seed+1), s.seen(checkpoints), new(suggest.History)
		suggestions, err := quasirandom.New().Suggest(t.Context(), p, h, suggest.Request{Count: runs, Seed: seed, Number: 1})
		require.NoError(t, err)
		for _, suggestion := range suggestions {
			states := c.run(suggestion.Point)
			if !checkpoints {
				states = states[len(states)-1:]
			}
			h.Evaluations = append(h.Evaluations, states...)
		}
		p.Objectives = append([]suggest.Objective(nil), p.Objectives...)
		p.Objectives[0].Known = func(q space.Point) float64 { return c.epsilons[key(q)] } // of measured states
		m, err := model.Fit(t.Context(), p, h, model.Options{ForReading: true, Seed: seed})
		require.NoError(t, err)
		for _, e := range m.Estimates() {
			truth, interval := s.model.Error(e.Point), e.Predictions[1]
			for i, counts := range []bool{true, e.OnFront} {
				if counts {
					counted[i]++
					if interval.Lower <= truth && truth <= interval.Upper {
						inside[i]++
					}
				}
			}
		}
	}
	return inside[0] / counted[0], inside[1] / counted[1]
}

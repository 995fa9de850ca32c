package honesty

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest/space"
)

// Every surface has a valid study, and its name is its own.
func TestSurfaces(t *testing.T) {
	seen := make(map[string]bool)
	for i := range surfaces {
		s := &surfaces[i]
		if _, err := s.problem(); err != nil || seen[s.name()] {
			t.Errorf("%s: %v", s.name(), err)
		}
		seen[s.name()] = true
	}
	if _, err := byName([]string{"mnist"}); err == nil {
		t.Error("an unknown surface is known")
	}
}

// A measurement that was interrupted, also within a line, goes on with the same runs.
func TestPoolGoesOn(t *testing.T) {
	folder, small := t.TempDir(), &training{name: "small", rows: 64, epochs: 3, generated: generated{seed: 1, features: 2, outputs: 1}}
	first, err := openPool(t.Context(), small, folder, "")
	require.NoError(t, err)
	path := filepath.Join(folder, "honesty-small.jsonl")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, whole[:len(whole)/2], 0o600))
	again, err := openPool(t.Context(), small, folder, "")
	if err != nil || len(again.members) != len(first.members) {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != string(whole) {
		t.Errorf("the file differs: %v", err)
	}
}

// A study counts all that it reports, and the same study has the same record.
func TestStudy(t *testing.T) {
	small := &training{name: "small", rows: 200, epochs: 4, generated: generated{seed: 5, features: 3, outputs: 1}}
	s := &surface{training: small, metric: metricLoss, reference: 1}
	p, err := openPool(t.Context(), small, "", "")
	require.NoError(t, err)
	problem, err := s.problem()
	require.NoError(t, err)
	var before *Record
	for range 2 {
		st := newStudy(s, p, problem, 1, 1)
		require.NoError(t, st.run(t.Context()))
		r := st.record
		if r.HeldOut.Of != 2*heldOut || r.Recommended.Of+r.Refused != 2 || !(r.Observed > 0) {
			t.Errorf("%+v", r)
		}
		if before != nil && *before != *r {
			t.Errorf("%+v after %+v", r, before)
		}
		before = r
	}
	table := Table([]Record{*before})
	if last := table.Rows[len(table.Rows)-1]; last[2] != int64(1) || last[3+4*5] != int64(before.Refused) {
		t.Errorf("%v", last)
	}
}

func TestCheckpoints(t *testing.T) {
	if at := checkpoints(space.Point{epochs: 7}); len(at) != 6 || at[4] != 6 || at[5] != 7 {
		t.Errorf("%v", at)
	}
	if at := checkpoints(space.Point{epochs: 1}); len(at) != 1 || at[0] != 1 {
		t.Errorf("%v", at)
	}
}

// Of nine pairs six are in order and one is equal.
func TestAUC(t *testing.T) {
	if got := auc([]scored{{1, 0}, {1, 1}, {3, 0}, {2, 1}, {0, 0}, {9, 1}}); math.Abs(got-6.5/9) > 1e-12 {
		t.Errorf("%v", got)
	}
}

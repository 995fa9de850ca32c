package grid_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/grid"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/space"
)

func TestGridOrder(t *testing.T) {
	p := &suggest.Problem{Space: simulated.SmallSpace(), Objectives: simulated.TrainingObjectives()}
	h := &suggest.History{
		Evaluations: []suggest.Evaluation{{Point: space.Point{1, 0, 4}, Values: []float64{1, 0.5}}},
		Pending:     []space.Point{{1, 1, 0.5}},
	}
	s, err := grid.New().Suggest(t.Context(), p, h, suggest.Request{Count: 4, Number: 99})
	require.NoError(t, err)
	var got []space.Point
	for _, v := range s {
		got = append(got, v.Point)
	}
	want := []space.Point{{1, 0, 0.5}, {1, 1, 4}, {2, 0, 0.5}, {2, 0, 4}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("grid (-want +got):\n%s", diff)
	}
}

// A grid holds a configuration once, however many inactive values it has.
func TestGridOfConditionalSpace(t *testing.T) {
	p := &suggest.Problem{Space: simulated.ConditionalSpace(), Objectives: simulated.TrainingObjectives()}
	var got []space.Point
	s, err := grid.New().Suggest(t.Context(), p, &suggest.History{}, suggest.Request{Count: 100})
	if !errors.Is(err, suggest.ErrExhausted) {
		t.Fatal(err)
	}
	for _, v := range s {
		if math.Abs(v.Point[3]-1) < 1e-9 {
			got = append(got, v.Point)
		}
	}
	want := []space.Point{{1, 0, 1e-3, 1}, {1, 0, 0.0316227766016838, 1}, {1, 0, 1, 1}, {1, 1, 1e-3, 1}, {5, 1, 1e-3, 1}, {9, 1, 1e-3, 1}}
	if len(s) != 27 || len(got) != 9 {
		t.Fatalf("%d configurations, %d of them with the middle noise; want 27 and 9", len(s), len(got))
	}
	for i, q := range want {
		for j := range q {
			if math.Abs(got[i][j]-q[j]) > 1e-12 {
				t.Errorf("configuration %d is %v, want %v", i, got[i], q)
			}
		}
	}
}

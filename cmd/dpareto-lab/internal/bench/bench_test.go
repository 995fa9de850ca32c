package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset/datasettest"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/grid"
	"github.com/dpareto/dpareto/suggest/space"
)

// counting is a problem whose fronts can be drawn by hand: n in 1..9, of which a grid has
// 1, 3, 5, 7 and 9, and the point (n, -(n-1)) in a box that ends at (10, 0), with the second
// objective maximised as n-1.
func counting() *Problem {
	p := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{{Name: "n", Kind: space.Integer, Min: 1, Max: 9, Levels: 5}}},
		Objectives: []suggest.Objective{
			{Name: "loss", Goal: suggest.Minimize, Reference: 10},
			{Name: "gain", Goal: suggest.Maximize, Reference: 0},
		},
	}
	values := func(q space.Point) []float64 { return []float64{q[0], q[0] - 1} }
	return &Problem{
		Problem: p, Name: "counting", Initial: grid.New(), InitialPoints: 1, Exact: true, Truth: values,
		MaxHypervolume: 36 - 20 + 1, // 16 with the five points of the grid
		Epochs:         func(q space.Point) float64 { return q[0] },
		Start: func() Evaluator {
			return func(_ context.Context, q space.Point, _ uint64) ([]suggest.Evaluation, error) {
				if q[0] == 9 {
					return nil, nil // infeasible
				}
				return []suggest.Evaluation{{Point: q, Values: values(q)}}, nil
			}
		},
	}
}

// column returns a column of a table.
func column(t *testing.T, table *output.Table, name string) []any {
	t.Helper()
	for c := range table.Columns {
		if table.Columns[c] == name {
			var cells []any
			for _, row := range table.Rows {
				cells = append(cells, row[c])
			}
			return cells
		}
	}
	t.Fatalf("no column %s in %v", name, table.Columns)
	return nil
}

func TestScores(t *testing.T) {
	var runs atomic.Int64
	result, err := Run(t.Context(), counting(), Options{
		Designers: []string{"grid"}, Seeds: 2, Budget: 7, At: []int{4, 2}, Target: 14, Progress: func(n int) { runs.Store(int64(n)) },
	})
	require.NoError(t, err)
	table := result.Table()
	// (1, 0) has no gain. Then 7x2 + 5x2 + 3x2 for n = 3, 5, 7; 9 is infeasible; the grid ends
	// there.
	for name, want := range map[string][]any{
		"budget":                    {int64(2), int64(4), int64(7)},
		"observed_hypervolume_mean": {14.0, 30.0, 30.0},
		"observed_hypervolume_sd":   {0.0, 0.0, 0.0},
		"true_hypervolume_mean":     {14.0, 30.0, 30.0},
		"runs_to_target_median":     {2.0, 2.0, 2.0},
		"epochs_mean":               {4.0, 16.0, 25.0},
		"remeasured_hypervolume_sd": {nil, nil, nil},
		"log10_difference_mean":     {math.Log10(3), -12.0, -12.0}, // beyond the maximum that counting claims
	} {
		if diff := cmp.Diff(want, column(t, table, name), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if runs.Load() != 10 {
		t.Errorf("%d runs are told, want 10", runs.Load())
	}
}

// What does not meet the constraints counts for no front, and each seed has rows of its own.
func TestConstraintsAndSeeds(t *testing.T) {
	p := counting()
	p.Constraints = []suggest.Constraint{{Name: "odd one out", Lower: 0, Upper: 6}}
	values := p.Truth
	p.Truth = func(q space.Point) []float64 { return append(values(q), q[0]) } // 7 is too much
	p.Start = func() Evaluator {
		return func(_ context.Context, q space.Point, _ uint64) ([]suggest.Evaluation, error) {
			return []suggest.Evaluation{{Point: q, Values: p.Truth(q)}}, nil
		}
	}
	result, err := Run(t.Context(), p, Options{Designers: []string{"grid"}, Seeds: 2, Budget: 5, At: []int{3}})
	require.NoError(t, err)
	table := result.SeedTable()
	for name, want := range map[string][]any{
		"designer":             {"grid", "grid", "grid", "grid"},
		"seed":                 {int64(1), int64(1), int64(2), int64(2)},
		"budget":               {int64(3), int64(5), int64(3), int64(5)},
		"observed_hypervolume": {24.0, 24.0, 24.0, 24.0}, // 7x2 + 5x2 for n = 3 and 5
		"true_hypervolume":     {24.0, 24.0, 24.0, 24.0},
	} {
		if diff := cmp.Diff(want, column(t, table, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Without standard errors, designers learn the noise of what has none.
func TestUnknownNoise(t *testing.T) {
	p, err := Open(t.Context(), "zdt1", ProblemOptions{})
	require.NoError(t, err)
	for _, unknown := range []bool{false, true} {
		s := &study{problem: p, options: Options{Initial: 3, Batch: 1, Budget: 3, UnknownNoise: unknown}, designer: "random", done: func() {}}
		require.NoError(t, s.run(t.Context()))
		for _, e := range s.history.Evaluations {
			if got := math.IsNaN(e.StdError(0)); got != unknown {
				t.Errorf("unknown noise %t: standard error %v", unknown, e.StdError(0))
			}
		}
	}
}

func TestTargetNotReached(t *testing.T) {
	result, err := Run(t.Context(), counting(), Options{Designers: []string{"grid"}, Seeds: 1, Budget: 4, Target: 99})
	require.NoError(t, err)
	if got := column(t, result.Table(), "runs_to_target_median")[0]; got != math.Inf(1) {
		t.Errorf("runs to a target that is not reached: %v", got)
	}
}

// All designers start from the same measurements, whatever runs in parallel and however
// many are asked for at once, and everything but processor times can be repeated.
func TestRunIsFair(t *testing.T) {
	p, err := Open(t.Context(), "NoisyBraninCurrin", ProblemOptions{})
	require.NoError(t, err)
	o := Options{Designers: []string{"random", "dpareto", "nsga2"}, Seeds: 2, Budget: 11, Remeasure: 2}
	tables := make([]*output.Table, 0, 2)
	for _, parallel := range []int{1, 3} {
		o.Parallel = parallel
		result, err := Run(t.Context(), p, o)
		require.NoError(t, err)
		for seed := range o.Seeds {
			for _, d := range result.designers {
				if diff := cmp.Diff(result.designers[0].seeds[seed].trace[:p.InitialPoints], d.seeds[seed].trace[:p.InitialPoints]); diff != "" {
					t.Errorf("%s starts elsewhere under seed %d (-random +%s):\n%s", d.name, seed, d.name, diff)
				}
			}
		}
		table := result.Table()
		for _, row := range table.Rows {
			row[len(row)-1] = nil // processor time
		}
		tables = append(tables, table)
	}
	if diff := cmp.Diff(tables[0], tables[1]); diff != "" {
		t.Errorf("parallel studies differ (-one +three at a time):\n%s", diff)
	}
	s := &study{problem: p, options: Options{Budget: 14, Initial: 6, Batch: 3}, designer: "random", seed: 1, done: func() {}}
	if err := s.run(t.Context()); err != nil || len(s.history.Evaluations) != 14 || s.state(14).suggestions != 8 {
		t.Errorf("in batches of 3: %d evaluations, %d suggestions: %v", len(s.history.Evaluations), s.state(14).suggestions, err)
	}
}

// On a noisy problem the luckiest measurements promise more than there is, and fresh runs
// of the reported front, if there are many, come out at its true hypervolume.
func TestNoise(t *testing.T) {
	p, err := Open(t.Context(), "noisy_branin_currin", ProblemOptions{})
	require.NoError(t, err)
	s := &study{problem: p, options: Options{Budget: 24, Initial: 24, Remeasure: 4000}, designer: "random", seed: 2, done: func() {}}
	require.NoError(t, s.run(t.Context()))
	out, err := s.scores(t.Context())
	require.NoError(t, err)
	got := out.scores[0]
	if !(got.observed > got.truth && got.truth > 0) {
		t.Errorf("observed %v, true %v", got.observed, got.truth)
	}
	if math.Abs(got.remeasured/got.truth-1) > 0.05 {
		t.Errorf("remeasured %v, true %v", got.remeasured, got.truth)
	}
	if want := math.Log10(p.MaxHypervolume - got.truth); got.difference != want {
		t.Errorf("difference %v, want %v", got.difference, want)
	}
}

func TestSparseVector(t *testing.T) {
	p, err := Open(t.Context(), "svt", ProblemOptions{})
	require.NoError(t, err)
	result, err := Run(t.Context(), p, Options{Designers: []string{"random"}, Seeds: 1, Budget: 20})
	require.NoError(t, err)
	// The exact front has 1.541.
	if got, ok := column(t, result.Table(), "true_hypervolume_mean")[0].(float64); !ok || !(got > 0.5 && got < 1.55) {
		t.Errorf("true hypervolume %v", got)
	}
	e, err := p.Start()(t.Context(), space.Point{5, 3}, 1)
	if err != nil || len(e) != 1 || e[0].Runs != 50 || e[0].StdErrors[0] != 0 || !(e[0].StdErrors[1] > 0) {
		t.Fatalf("evaluation %+v: %v", e, err)
	}
	for j, want := range p.Truth(e[0].Point) {
		if math.Abs(e[0].Values[j]-want) > 4*e[0].StdErrors[j]+1e-9 {
			t.Errorf("objective %d: measured %v ± %v, exact %v", j, e[0].Values[j], e[0].StdErrors[j], want)
		}
	}
}

func TestAdult(t *testing.T) {
	folder := datasettest.Folder(t, "adult")
	q := space.Point{3, 256, 0.01, 1, 4} // epochs, lot size, learning rate, clipping norm, variance
	var final suggest.Evaluation
	for _, finalOnly := range []bool{true, false} {
		p, err := Open(t.Context(), "adult", ProblemOptions{DataDir: folder, FinalOnly: finalOnly})
		require.NoError(t, err)
		s := &study{problem: p}
		s.after = []state{{}}
		evaluations, err := p.Start()(t.Context(), q, 1)
		require.NoError(t, err)
		s.add(suggest.Suggestion{Point: q}, evaluations, true, 0)
		h := s.history.Evaluations
		last := h[len(h)-1]
		if s.state(1).epochs != 3 || !last.Point.Equal(q) {
			t.Errorf("the last point is %v after %v epochs", last.Point, s.state(1).epochs)
		}
		if finalOnly {
			if len(h) != 1 || p.Checkpoint != "" || last.Run != 0 {
				t.Errorf("evaluations %+v, checkpoint %q", h, p.Checkpoint)
			}
			final = last
			continue
		}
		if len(h) != 3 || p.Checkpoint != "epochs" {
			t.Fatalf("%d evaluations, checkpoint %q", len(h), p.Checkpoint)
		}
		for i, e := range h {
			if e.Run != 1 || e.Point[0] != float64(i+1) || i > 0 && !(e.Values[0] > h[i-1].Values[0]) {
				t.Errorf("checkpoint %d: %+v", i, e)
			}
		}
		if diff := cmp.Diff(final.Values, last.Values); diff != "" {
			t.Errorf("the end of the run differs (-without +with checkpoints):\n%s", diff)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		problem string
		options ProblemOptions
	}{
		{"zdt9", ProblemOptions{}}, {"zdt1", ProblemOptions{FinalOnly: true}}, {"svt", ProblemOptions{FinalOnly: true}},
	} {
		if _, err := Open(t.Context(), tc.problem, tc.options); err == nil {
			t.Errorf("problem %s with %+v is accepted", tc.problem, tc.options)
		}
	}
	for name, change := range map[string]func(*Options){
		"no designer": func(o *Options) { o.Designers = nil }, "unknown": func(o *Options) { o.Designers = []string{"oracle"} },
		"seeds": func(o *Options) { o.Seeds = 0 }, "budget": func(o *Options) { o.Budget = 0 }, "at": func(o *Options) { o.At = []int{6} },
		"remeasure": func(o *Options) { o.Remeasure = 1 }, "batch": func(o *Options) { o.Batch = -1 },
	} {
		o := Options{Designers: []string{"grid"}, Seeds: 1, Budget: 5}
		change(&o)
		if _, err := Run(t.Context(), counting(), o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, counting(), Options{Designers: []string{"grid"}, Seeds: 1, Budget: 5}); err == nil {
		t.Error("a cancelled comparison ends without an error")
	}
}

func TestWrite(t *testing.T) {
	table := &output.Table{
		Columns: []string{"designer", "seeds", "true_hypervolume_mean", "epochs_mean"},
		Rows:    [][]any{{"a", int64(2), 1.23456, nil}, {"b", int64(2), math.Inf(1), nil}},
	}
	var out bytes.Buffer
	require.NoError(t, WriteMarkdown(&out, table))
	want := "| designer | seeds | true hypervolume mean |\n| --- | --- | --- |\n| a | 2 | 1.235 |\n| b | 2 | +Inf |\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("markdown (-want +got):\n%s", diff)
	}
	out.Reset()
	require.NoError(t, table.WriteJSON(&out))
	var rows []map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &rows))
	wantRows := []map[string]any{
		{"designer": "a", "seeds": 2.0, "true_hypervolume_mean": 1.23456, "epochs_mean": nil},
		{"designer": "b", "seeds": 2.0, "true_hypervolume_mean": nil, "epochs_mean": nil},
	}
	if diff := cmp.Diff(wantRows, rows); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

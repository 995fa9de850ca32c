package privatefront

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	"github.com/dpareto/dpareto/internal/require"
)

// tiny is a small experiment on made-up data.
func tiny(store string) *Experiment {
	return &Experiment{
		Seeds: 1, Trials: 5, Mean: 5, Listed: 4, TestEpsilon: 1, TrainEpsilons: []float64{0.2}, Runs: 2, Workers: 2,
		Store: store, generated: true,
	}
}

// run runs an experiment and returns its report as CSV.
func run(t *testing.T, e *Experiment) string {
	t.Helper()
	require.NoError(t, e.Validate())
	last, all := 0, 0
	var drawn []string
	watch := reproduce.Watch{
		Progress: func(done, total int) {
			if done <= last || done > total {
				t.Errorf("progress %d of %d after %d", done, total, last)
			}
			last, all = done, total
		},
		Draw: func(f reproduce.Figure) error {
			drawn = append(drawn, f.Name)
			return nil
		},
	}
	result, err := e.Run(t.Context(), watch)
	require.NoError(t, err)
	if !slices.Equal(drawn, []string{name, "paid"}) {
		t.Errorf("drawn %q", drawn)
	}
	if last != all {
		t.Errorf("ended at %d of %d", last, all)
	}
	var text bytes.Buffer
	require.NoError(t, result.Report.Write(&text, output.CSV))
	return text.String()
}

// All ways run and publish something, and what they state is what they were asked for. An experiment that
// was interrupted goes on, and comes to the same report.
func TestRun(t *testing.T) {
	store := filepath.Join(t.TempDir(), "results")
	e := tiny(store)
	first := run(t, e)
	known, err := openRecords(store)
	require.NoError(t, err)
	for _, s := range e.collect(e.ways(), known) {
		o := s.outcomes[0]
		if o == nil {
			t.Fatalf("%s: not in the store", s.way.name)
		}
		check(t, &s.way, o)
	}

	lines := strings.SplitAfter(string(readFile(t, store)), "\n")
	kept := slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, `"way":"best curve"`) })
	if len(kept) == 0 {
		t.Fatal("nothing is left")
	}
	broken := strings.Join(kept, "") + `{"key":{"way":"best cur` // as after a crash
	require.NoError(t, os.WriteFile(store, []byte(broken), 0o600))
	if again := run(t, tiny(store)); again != first {
		t.Errorf("the same seed gives\n%s\nand\n%s", first, again)
	}
}

// Ways with several budgets are one line over the ε of everything; a free search has the ε of its runs, where it is as good.
func TestPaid(t *testing.T) {
	made := func(name string, epsilon float64, errors ...float64) series {
		s := series{way: way{name: name}}
		for _, e := range errors {
			s.outcomes = append(s.outcomes, &outcome{TrainEpsilon: epsilon, Points: []point{{Epsilon: 0.1, Actual: 0.9}, {Epsilon: 0.2, Actual: e}}})
		}
		return s
	}
	nothing := made("best curve", 3)
	nothing.outcomes = []*outcome{{TrainEpsilon: 3}}
	picture := (&Experiment{}).paid([]series{
		made(openName, 0, 0.2), made("slots, ε = 1", 1, 0.4, 0.2), made("slots, exact errors, ε = 1", 1, 0.1), made("slots, ε = 2", 2, 0.2), nothing,
	})
	got := make(map[string][]plot.Point)
	for _, f := range picture.Fronts {
		got[f.Name] = f.Front
	}
	want := map[string][]plot.Point{
		openName: {{X: 0.2, Y: 0.2}}, "slots": {{X: 1, Y: 0.3}, {X: 2, Y: 0.2}}, "best curve": nil,
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// check compares an outcome with its way.
func check(t *testing.T, w *way, o *outcome) {
	t.Helper()
	if len(o.Points) == 0 && w.trainEpsilon == 0 {
		t.Errorf("%s: nothing is published", w.name)
	}
	for _, p := range o.Points {
		if !(p.Epsilon > 0) || !(p.Actual > 0 && p.Actual < 1) {
			t.Errorf("%s: point %+v", w.name, p)
		}
	}
	if o.Trainings < 1 {
		t.Errorf("%s: no training", w.name)
	}
	switch {
	case w.name == open().name:
		if o.TrainEpsilon != 0 || o.TestEpsilon != 0 || o.Noise != 0 || o.Trainings != 5 || o.End != "budget spent" {
			t.Errorf("%s: %+v", w.name, o)
		}
	case w.trainEpsilon > 0:
		if !(o.TrainEpsilon > 0.99*w.trainEpsilon && o.TrainEpsilon <= w.trainEpsilon) || !(o.SpentTrain > 0 && o.SpentTrain <= w.trainEpsilon) || (o.Trainings == 5) != (o.End == "budget spent") || (o.Trainings < 5) != (o.End == "privacy budget spent") {
			t.Errorf("%s: %+v", w.name, o)
		}
		if o.Chosen > o.Made {
			t.Errorf("%s: chosen runs have the hypervolume %g, all %g", w.name, o.Chosen, o.Made)
		}
	default: // the search costs more than the dearest run that it publishes
		if o.TestEpsilon != 1 || !(o.Noise > 0) || o.Made != 0 || !(o.TrainEpsilon > o.Points[len(o.Points)-1].Epsilon) {
			t.Errorf("%s: %+v", w.name, o)
		}
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return content
}

// A file with something else is no store, and is left as it is.
func TestStoreOfSomethingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes")
	require.NoError(t, os.WriteFile(path, []byte("buy milk\n"), 0o600))
	if _, err := openRecords(path); err == nil || !strings.Contains(err.Error(), "holds no results of private-front") {
		t.Errorf("error %v", err)
	}
	if content := string(readFile(t, path)); content != "buy milk\n" {
		t.Errorf("the file is %q", content)
	}
}

// stages is a trainer whose error after e epochs of a run with learning rate r is r/(1+e), and as much more
// as the run has replicates.
type stages struct {
	trainer.Trainer
	runs int
}

func (s *stages) Train(_ context.Context, run trainer.Run, report trainer.Report) (m trainer.Measurement, err error) {
	s.runs++
	epochs, isSet := run.Parameters["epochs"].(int64)
	if !isSet {
		epochs = 3
	}
	for step := int64(1); step <= epochs; step++ {
		value := run.Parameters["rate"].(float64) / float64(1+step)
		m = trainer.Measurement{Step: step, Metrics: map[string][]float64{errorMetric: {value, value + 0.02}}}
		if err := report(m); err != nil {
			return m, err
		}
	}
	return m, nil
}

// The states of a run are measured in one run, which is the longest; a run without the parameter is
// measured at its end.
func TestTrainAgain(t *testing.T) {
	o := &outcome{Points: []point{
		{parameters: trainer.Parameters{"rate": 0.2, "epochs": int64(1)}},
		{parameters: trainer.Parameters{"rate": 0.6, "epochs": int64(2)}},
		{parameters: trainer.Parameters{"rate": 0.2, "epochs": int64(4)}},
		{parameters: trainer.Parameters{"rate": 0.4}},
	}}
	s := new(stages)
	require.NoError(t, o.trainAgain(t.Context(), s, 2, 1))
	for i, want := range []float64{0.11, 0.21, 0.05, 0.11} {
		if got := o.Points[i].Actual; math.Abs(got-want) > 1e-12 {
			t.Errorf("point %d: %g, want %g", i, got, want)
		}
	}
	if s.runs != 3 {
		t.Errorf("%d runs", s.runs)
	}
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*Experiment){
		"--seeds":                   func(e *Experiment) { e.Seeds = 0 },
		"--trials":                  func(e *Experiment) { e.Trials = 0 },
		"--mean-runs":               func(e *Experiment) { e.Mean = 4 },
		"--listed":                  func(e *Experiment) { e.Listed = 0 },
		"--test-epsilon":            func(e *Experiment) { e.TestEpsilon = exactTestEpsilon },
		"--train-epsilon must have": func(e *Experiment) { e.TrainEpsilons = nil },
		"--train-epsilon must be":   func(e *Experiment) { e.TrainEpsilons = []float64{1, math.NaN()} },
		"--way":                     func(e *Experiment) { e.Ways = []string{"best guess"} },
		"--runs":                    func(e *Experiment) { e.Runs = 0 },
		"--workers":                 func(e *Experiment) { e.Workers = -1 },
	} {
		e := tiny("")
		change(e)
		if err := e.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}

// Only the ways that are named are run, and the one that all are compared with.
func TestSomeWays(t *testing.T) {
	e := tiny("")
	e.Ways = []string{"best value"}
	require.NoError(t, e.Validate())
	if got := names(e.ways()); !slices.Equal(got, []string{openName, "best value"}) {
		t.Errorf("runs %q", got)
	}
	e.Ways = nil
	if got := names(e.ways()); len(got) != 10 {
		t.Errorf("runs %q", got)
	}
}

// A third of the slots each has the same noise, as little as the budget pays for, and what it does not pay
// for is refused.
func TestSlots(t *testing.T) {
	slots, err := declareSlots(7, 2, 1e-6)
	require.NoError(t, err)
	total := int64(0)
	for _, s := range slots {
		total += s.GetCount()
	}
	if total != 7 || len(slots) != 3 {
		t.Errorf("%d slots of %d kinds", total, len(slots))
	}
	if _, err := declareSlots(1000, 0.01, 1e-6); err == nil || !strings.Contains(err.Error(), "--train-epsilon 0.01 does not pay for 1000 slots") {
		t.Errorf("too many: %v", err)
	}
}

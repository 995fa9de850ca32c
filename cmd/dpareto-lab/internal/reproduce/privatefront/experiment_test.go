package privatefront

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/internal/output"
)

// A small experiment on made-up data: both studies run, the private one is refused when its
// budget is spent, and the same seed gives the same report.
func TestRun(t *testing.T) {
	report := func() string {
		e := &Experiment{Trials: 6, TestEpsilon: 1, TrainEpsilon: 0.08, Runs: 2, Seed: 1, Generated: true}
		if err := e.Validate(); err != nil {
			t.Fatal(err)
		}
		last, all := 0, 0
		result, err := e.Run(t.Context(), func(done, total int) {
			if done < last || done > total {
				t.Errorf("progress %d of %d after %d", done, total, last)
			}
			last, all = done, total
		})
		if err != nil {
			t.Fatal(err)
		}
		if last != all {
			t.Errorf("ended at %d of %d", last, all)
		}
		var text bytes.Buffer
		if err := result.Report.Write(&text, output.CSV); err != nil {
			t.Fatal(err)
		}
		return text.String()
	}
	first := report()
	for _, want := range []string{"private", "not private", "privacy budget spent", "budget spent"} {
		if !strings.Contains(first, want) {
			t.Errorf("%q is missing in\n%s", want, first)
		}
	}
	if again := report(); again != first {
		t.Errorf("the same seed gives\n%s\nand\n%s", first, again)
	}
}

func TestValidate(t *testing.T) {
	for name, e := range map[string]Experiment{
		"trials": {TestEpsilon: 1, TrainEpsilon: 1, Runs: 1},
		"ε":      {Trials: 1, TrainEpsilon: 1, Runs: 1},
		"runs":   {Trials: 1, TestEpsilon: 1, TrainEpsilon: 1},
		"filter": {Trials: 1, TestEpsilon: 1, TrainEpsilon: 1, Runs: 1, TrainFilter: "natural"},
	} {
		if e.Validate() == nil {
			t.Errorf("no %s: accepted", name)
		}
	}
}

// Slots take the whole budget, and no more; the study ends with them.
func TestRunWithSlots(t *testing.T) {
	slots, err := declareSlots(7, 2, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
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
	e := &Experiment{Trials: 4, TestEpsilon: 1, TrainEpsilon: 1, TrainFilter: "slots", Runs: 1, Seed: 1, Generated: true}
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	result, err := e.Run(t.Context(), func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := result.Report.Write(&text, output.CSV); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "private") {
		t.Errorf("the report is %s", text.String())
	}
}

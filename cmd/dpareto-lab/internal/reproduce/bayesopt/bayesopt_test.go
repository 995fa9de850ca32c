package bayesopt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/clients/go/dataset"
)

func small() *Experiment {
	return &Experiment{Linear: true, Machines: 100, TrainRows: 500, Side: 4, Runs: 20, Sizes: []int{100, 1000}, Pairs: 20, Records: 1000, Generated: true, Seed: 1}
}

// On generated data of a small size: k_1 is beyond the paper's grid, Algorithms 1 and 3 are
// vacuous, and permute-and-flip loses less than a random choice.
func TestExperiment(t *testing.T) {
	e := small()
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	runs := 0
	result, err := e.Run(t.Context(), func(done, total int) {
		if runs++; done != runs || total != 16 {
			t.Errorf("progress %d of %d", done, total)
		}
	})
	if err != nil || runs != 16 {
		t.Fatal(runs, err)
	}
	if !strings.Contains(result.Report.Title, "generated data") {
		t.Errorf("%q does not say that the data are made up", result.Report.Title)
	}
	correlations, comparison := result.Report.Sections[0].Table, result.Report.Sections[1].Table
	if len(correlations.Rows) != len(e.Sizes)*len(noises) {
		t.Fatalf("%d estimates", len(correlations.Rows))
	}
	for _, row := range correlations.Rows {
		if row[3] != 0.95 {
			t.Errorf("k1 on the paper's grid is %v, want its end", row[3])
		}
	}
	losses := make(map[string][]float64)
	for _, row := range comparison.Rows {
		name, vacuous := row[0].(string), row[len(row)-1] == "true"
		if want := strings.HasPrefix(name, "Algorithm"); vacuous != want {
			t.Errorf("%v: vacuous %t", row, vacuous)
		}
		if loss, ok := row[5].(float64); ok {
			losses[name] = append(losses[name], loss)
			if random := row[6].(float64); !(loss < random) {
				t.Errorf("%s loses %g, a random choice %g", name, loss, random)
			}
		}
	}
	for i, loss := range losses["permute-and-flip"] {
		if !(loss < losses["Algorithm 1"][i]) {
			t.Errorf("permute-and-flip loses %g, Algorithm 1 %g", loss, losses["Algorithm 1"][i])
		}
	}

	file := filepath.Join(t.TempDir(), "figure.svg")
	if _, err := result.Draw(file); err != nil {
		t.Fatal(err)
	}
	if svg, err := os.ReadFile(file); err != nil || !strings.Contains(string(svg), "1000 records") {
		t.Errorf("no picture of the likelihoods, %v", err)
	}
	again, err := small().Run(t.Context(), func(int, int) {})
	if err != nil || !reflect.DeepEqual(again.Report, result.Report) {
		t.Errorf("the same seed gives another result, %v", err)
	}
}

// On kernel machines the search of Algorithm 1 finds a good one, and its release loses it again.
func TestKernelMachines(t *testing.T) {
	e := small()
	e.Linear, e.Machines, e.TrainRows, e.Runs = false, 20, 200, 50
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	result, err := e.Run(t.Context(), func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range result.Report.Sections[1].Table.Rows {
		if row[0] == "Algorithm 3" {
			t.Errorf("Algorithm 3 has no bound for machines with two hyperparameters: %v", row)
		}
	}
	loop := result.Report.Sections[2].Table
	if len(loop.Rows) != len(epsilons) {
		t.Fatalf("%d rows", len(loop.Rows))
	}
	for _, row := range loop.Rows {
		searched, lost, random := row[3].(float64), row[4].(float64), row[5].(float64)
		if !(searched < 0.3*random) || !(lost > 2*searched) {
			t.Errorf("the search loses %g, the release %g, a random choice %g", searched, lost, random)
		}
		if theorem := row[8].(float64); !(row[6].(float64) < theorem) {
			t.Errorf("the mean error of the value is %v, the bound of Theorem 4 %g", row[6], theorem)
		}
	}
}

func TestExperimentErrors(t *testing.T) {
	for name, change := range map[string]func(*Experiment){
		"train-rows": func(e *Experiment) { e.TrainRows = 10 },
		"side":       func(e *Experiment) { e.Side = 1 },
		"machines":   func(e *Experiment) { e.Machines = 1 },
		"runs":       func(e *Experiment) { e.Runs = 0 },
		"sizes":      func(e *Experiment) { e.Sizes = []int{5} },
		"pairs":      func(e *Experiment) { e.Pairs = 1 },
		"records":    func(e *Experiment) { e.Records = 0 },
	} {
		e := small()
		change(e)
		if err := e.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want an error for %s, got %v", name, err)
		}
	}
	e := small()
	if e.Sizes = nil; e.Validate() == nil {
		t.Error("no sizes")
	}
	e = small()
	e.Records = dataset.AdultRows
	if _, err := e.Run(t.Context(), func(int, int) {}); err == nil || !strings.Contains(err.Error(), "too few") {
		t.Errorf("more records than there are: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := small().Run(ctx, func(int, int) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want cancelled", err)
	}
}

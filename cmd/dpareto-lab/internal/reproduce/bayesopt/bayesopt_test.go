package bayesopt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/internal/require"
)

func small() *Experiment {
	return &Experiment{Linear: true, Machines: 100, TrainRows: 500, Side: 4, Runs: 20, Sizes: []int{100, 1000}, Pairs: 20, Records: 1000, Generated: true, Seed: 1}
}

// On generated data of a small size: k_1 is beyond the paper's grid, Algorithms 1 and 3 are
// vacuous, and permute-and-flip loses less than a random choice.
func TestExperiment(t *testing.T) {
	e := small()
	require.NoError(t, e.Validate())
	runs := 0
	file := filepath.Join(t.TempDir(), "figure.svg")
	result, err := e.Run(t.Context(), reproduce.Watch{Draw: reproduce.NewDrawer(file, nil).Draw, Progress: func(done, total int) {
		if runs++; done != runs || total != 16 {
			t.Errorf("progress %d of %d", done, total)
		}
	}})
	if err != nil || runs != 16 {
		t.Fatal(runs, err)
	}
	if !strings.Contains(result.Report.Title, "generated data") {
		t.Errorf("%q does not say that the data are made up", result.Report.Title)
	}
	correlations, comparison := result.Report.Sections[0].Table, result.Report.Sections[1].Table
	estimates := len(e.Sizes) * len(noises)
	if len(correlations.Rows) != estimates+len(paperSizes)+1 {
		t.Fatalf("%d estimates", len(correlations.Rows))
	}
	for _, row := range correlations.Rows[:estimates+len(paperSizes)] {
		if row[4] != 0.95 {
			t.Errorf("k1 on the paper's grid is %v, want its end", row[4])
		}
	}
	if last := correlations.Rows[estimates+len(paperSizes)]; last[0] != "covertype, not run" || last[4] != nil {
		t.Errorf("the paper's dataset was not run, and has the row %v", last)
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

	if svg, err := os.ReadFile(file); err != nil || !strings.Contains(string(svg), "1000 records") {
		t.Errorf("no picture of the likelihoods, %v", err)
	}
	again, err := small().Run(t.Context(), reproduce.Watch{})
	if err != nil || !reflect.DeepEqual(again.Report, result.Report) {
		t.Errorf("the same seed gives another result, %v", err)
	}
}

// On kernel machines the search of Algorithm 1 finds a good one, and its release loses it again.
func TestKernelMachines(t *testing.T) {
	e := small()
	e.Linear, e.Machines, e.TrainRows, e.Runs = false, 20, 200, 50
	require.NoError(t, e.Validate())
	result, err := e.Run(t.Context(), reproduce.Watch{})
	require.NoError(t, err)
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

// The experiment runs on records in the format of Forest, the paper's dataset, and then lists no run that is missing. The
// command itself takes the whole file only.
func TestForest(t *testing.T) {
	var cells strings.Builder
	for i := range 400 {
		kind, soil := 1+i%2, make([]string, 44)
		for k := range soil {
			soil[k] = "0"
		}
		soil[0], soil[4+i%7] = "1", "1"
		fmt.Fprintf(&cells, "%d,%d,3,258,0,510,221,232,148,%d,%s,%d\n", 2400+600*kind+i%50, i%360, 10*i, strings.Join(soil, ","), kind)
	}
	path := filepath.Join(t.TempDir(), "covtype.data")
	require.NoError(t, os.WriteFile(path, []byte(cells.String()), 0o600))
	all, err := dataset.LoadCovertype(path)
	require.NoError(t, err)
	parts, err := dataset.Shuffle(all, 1, 150)
	require.NoError(t, err)
	e := &Experiment{Dataset: dataset.NameCovertype, Machines: 8, TrainRows: 150, Side: 2, Runs: 2, Sizes: []int{100}, Pairs: 10, Records: 100, Seed: 1}
	r, err := e.begin(t.Context())
	require.NoError(t, err)
	result, err := r.run(t.Context(), parts, reproduce.Watch{})
	require.NoError(t, err)
	var names []string
	for _, row := range result.Report.Sections[0].Table.Rows {
		names = append(names, row[0].(string))
	}
	if want := append(slices.Repeat([]string{"covertype"}, len(noises)), slices.Repeat([]string{"covertype, published"}, len(paperSizes))...); !slices.Equal(names, want) {
		t.Errorf("rows %q, want %q", names, want)
	}
}

// Without data the noise of the releases is the same, and the rest is named.
func TestWithoutData(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	with, err := small().Run(t.Context(), reproduce.Watch{})
	require.NoError(t, err)
	e := small()
	e.Generated, e.DataDir = false, t.TempDir()
	result, err := e.Run(t.Context(), reproduce.Watch{})
	if err != nil || len(result.Missing) != 1 || !strings.HasPrefix(result.Missing[0], "all that is trained on adult was not run") {
		t.Fatal(result, err)
	}
	section := func(r *reproduce.Result) *output.Table {
		return r.Report.Sections[len(r.Report.Sections)-1].Table
	}
	if diff := cmp.Diff(section(with), section(result)); diff != "" {
		t.Errorf("the noise with and without data:\n%s", diff)
	}
	// For 16 candidates, δ = 1e-6 and a deviation of 0.03 the posterior means of Algorithm 1 move by at most
	// 2·√(2·log(3·16/1e-6)) = 11.895112 deviations and 1/1000.
	for _, row := range section(result).Rows {
		if row[0] == 1.0 && row[1] == "Algorithm 1" && row[2] == 0.03 {
			if got, want := row[3].(float64), 0.03*11.895112+0.001; math.Abs(got-want) > 1e-6 {
				t.Errorf("sensitivity %g, want %g", got, want)
			}
			if got := float64(row[4].(output.Bound)) * row[3].(float64); math.Abs(got-1) > 1e-9 {
				t.Errorf("the worst case is not ε·1/Δ: %v", row)
			}
			return
		}
	}
	t.Error("no row of Algorithm 1")
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
	e.Records = 48842
	if _, err := e.Run(t.Context(), reproduce.Watch{}); err == nil || !strings.Contains(err.Error(), "too few") {
		t.Errorf("more records than there are: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := small().Run(ctx, reproduce.Watch{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want cancelled", err)
	}
}

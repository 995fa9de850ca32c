package fronts

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	"github.com/dpareto/dpareto/internal/require"
)

// The intervals of the published Table 2 give the published significances, but for the first row: the paper
// says p < .001 of all.
func TestPublishedSignificance(t *testing.T) {
	for i, want := range []float64{0.0056, 3.3e-5, 1.1e-4} {
		if p := publishedTable2[i].p(); math.Abs(p-want) > 0.05*want {
			t.Errorf("row %d: p = %g, want %g", i, p, want)
		}
	}
}

// The tests agree with values computed by R 4.3: t.test(3 - x) and t.test(y, x).
func TestComparisons(t *testing.T) {
	x, y := []float64{1, 2, 4, 2.5}, []float64{3, 5, 4.5}
	one := compareOne(3, x)
	two := compareTwo(y, x)
	// mean(x) = 2.375, sd(x) = 1.25, so that t = .625/.625 = 1 with 3 degrees of freedom: p = .391002.
	if diff := cmp.Diff(comparison{0.625, 0.625 - 3.182446*0.625, 0.625 + 3.182446*0.625, 1, 0.391002}, one,
		cmp.AllowUnexported(comparison{}), cmpopts.EquateApprox(0, 1e-5)); diff != "" {
		t.Errorf("one sample (-want +got):\n%s", diff)
	}
	// var(y)/3 = .361111, var(x)/4 = .390625, 4.78 degrees of freedom.
	if math.Abs(two.difference-1.791667) > 1e-6 || math.Abs(two.t-1.791667/math.Sqrt(0.361111+0.390625)) > 1e-5 || !(0.09 < two.p && two.p < 0.11) {
		t.Errorf("two samples: %+v", two)
	}
}

// The interval of compareOne covers in 95 of 100 samples.
func TestIntervalCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	covered := 0
	const samples = 2000
	for range samples {
		sample := make([]float64, publishedParts)
		for i := range sample {
			sample[i] = 2 + rng.NormFloat64()
		}
		if c := compareOne(3, sample); c.lower < 1 && 1 < c.upper {
			covered++
		}
	}
	if share := float64(covered) / samples; math.Abs(share-0.95) > 0.02 {
		t.Errorf("the interval covers in %g of the samples", share)
	}
}

// Random sampling and grids on Adult have the learning rates of Table 4, the optimiser the ones of the published code.
func TestLearningRates(t *testing.T) {
	e := &Experiment{Seeds: 1}
	for _, tt := range []struct {
		series      series
		least, most float64
	}{
		{e.modelled(adultSGD, methodDPareto)[0], 5e-4, 5e-2},
		{e.modelled(adultSVM, methodDefault)[0], 5e-4, 5e-2},
		{e.random(adultSGD)[0], 1e-3, 1e-1},
		{e.grids(adultSGD)[1], 1e-3, 1e-1},
		{e.random(mnistMLP2)[0], 1e-3, 0.5},
	} {
		file, err := tt.series.file()
		require.NoError(t, err)
		if d := parameter(file.Study.GetSpec(), "learning_rate").GetDoubleDomain(); d.GetMin() != tt.least || d.GetMax() != tt.most {
			t.Errorf("%s: learning rates in [%g, %g], want [%g, %g]", tt.series.studyID(), d.GetMin(), d.GetMax(), tt.least, tt.most)
		}
	}
}

func TestDominated(t *testing.T) {
	front := []outcome{{epsilon: 1, mean: 0.3}, {epsilon: 2, mean: 0.2}, {epsilon: 3, mean: 0.25}, {epsilon: 20, mean: 0.1}}
	by := []outcome{{epsilon: 1, mean: 0.3}, {epsilon: 2.5, mean: 0.1}}
	if got := dominated(front, by); got != 0.5 {
		t.Errorf("dominated = %g, want one of two points", got)
	}
	if n := reached(front, hypervolume(front[:2])); n != 2 {
		t.Errorf("reached after %d", n)
	}
	if n := reached(front, 9.9); n != 0 {
		t.Errorf("9.9 reached after %d", n)
	}
}

// A small experiment on made-up data makes every figure and table, and one that goes on with its store runs nothing
// again and reports the same.
func TestRun(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store.db")
	report := func(parts []string, seeds int) (text string, trained int) {
		e := &Experiment{Parts: parts, Store: store, Seeds: seeds, Workers: 2, generated: true}
		require.NoError(t, e.Validate())
		first, calls := -1, 0
		drawer := reproduce.NewDrawer(t.TempDir(), nil)
		watch := reproduce.Watch{Draw: drawer.Draw, Progress: func(done, total int) {
			if calls++; first < 0 {
				first = done
			}
			if done > total {
				t.Errorf("%d of %d done", done, total)
			}
		}}
		result, err := e.Run(t.Context(), watch)
		require.NoError(t, err)
		files := drawer.Files()
		for _, file := range files { // what costs nothing is in every picture of fronts
			if svg, err := os.ReadFile(file); err != nil || !strings.Contains(string(svg), "majority, ε = 0") {
				t.Errorf("%s shows no majority class, %v", file, err)
			}
		}
		if len(parts) == len(Parts()) && len(files) != 4 {
			t.Errorf("figures %q, want 4", files)
		}
		var out bytes.Buffer
		require.NoError(t, result.Report.Write(&out, output.CSV))
		return out.String(), calls
	}
	part, _ := report([]string{"fig7", "fig8"}, 1)
	if part == "" {
		t.Error("no report")
	}
	whole, calls := report(Parts(), 2)
	again, callsAgain := report(Parts(), 2)
	if diff := cmp.Diff(whole, again); diff != "" {
		t.Errorf("the same store gives other numbers (-first +second):\n%s", diff)
	}
	if callsAgain*4 > calls {
		t.Errorf("%d steps with a full store, %d before", callsAgain, calls)
	}
}

// An experiment that is interrupted has drawn the figures whose studies had run, and goes on with its store.
func TestInterrupted(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store.db")
	e := &Experiment{Parts: []string{"fig6", "fig7"}, Store: store, Seeds: 1, Workers: 1, generated: true}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var drawn []string
	result, err := e.Run(ctx, reproduce.Watch{Draw: func(f reproduce.Figure) error {
		drawn = append(drawn, f.Name)
		cancel()
		return nil
	}})
	if result != nil || err == nil || len(drawn) != 1 {
		t.Fatalf("drawn %q, %v, %v", drawn, result, err)
	}
	first, names := -1, []string(nil)
	require.NoError(t, require.ErrOf(e.Run(t.Context(), reproduce.Watch{
		Progress: func(done, _ int) {
			if first < 0 {
				first = done
			}
		},
		Draw: func(f reproduce.Figure) error {
			names = append(names, f.Name)
			return nil
		},
	})))
	slices.Sort(names)
	if want := []string{"figure6", "figure7"}; first < 1 || !slices.Equal(names, want) {
		t.Errorf("it goes on after %d trials, and draws %q", first, names)
	}
}

// On MNIST random sampling and a method with a model of the same seed begin with the same configurations, and
// train them alike.
func TestSharedFirstPoints(t *testing.T) {
	e := &Experiment{Seeds: 1, generated: true}
	client, stop, err := e.serve(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, stop()) }()
	r := newRunner("", "")
	r.client, r.workers, r.progress = client, 1, func(int, int) {}
	found, err := r.run(t.Context(), slices.Concat(e.random(mnistMLP2), e.modelled(mnistMLP2, methodDPareto)))
	require.NoError(t, err)
	initial := testMNIST.initial
	if diff := cmp.Diff(found[0][:initial], found[1][:initial], cmp.AllowUnexported(outcome{}), cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("the first points (-random +DPareto):\n%s", diff)
	}
}

// A study is finished by the version that began it, and its report names that version.
func TestVersions(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store.db")
	run := func(version string, watch reproduce.Watch) (*reproduce.Result, error) {
		e := &Experiment{Parts: []string{"fig6"}, Store: store, Seeds: 1, Workers: 1, Version: version, generated: true}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if watch.Progress == nil {
			watch.Progress = func(done, _ int) {
				if done == 1 {
					cancel()
				}
			}
		}
		return e.Run(ctx, watch)
	}
	whole := reproduce.Watch{Progress: func(int, int) {}}
	if _, err := run("1", reproduce.Watch{}); err == nil {
		t.Fatal("not interrupted")
	}
	if _, err := run("2", whole); err == nil || !strings.Contains(err.Error(), "begun by version 1, and this is 2") {
		t.Errorf("another version goes on: %v", err)
	}
	_, err := run("1", whole)
	require.NoError(t, err)
	result, err := run("2", whole) // which only draws
	require.NoError(t, err)
	if notes := strings.Join(result.Report.Notes, "\n"); !strings.Contains(notes, "run by version 1.") {
		t.Errorf("notes %q", notes)
	}
}

// What finished studies have measured is drawn again from their records, without their store.
func TestRecords(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "records")
	run := func(version string) string {
		e := &Experiment{Parts: []string{"fig6"}, Records: folder, Seeds: 1, Workers: 1, Version: version, generated: true}
		result, err := e.Run(t.Context(), reproduce.Watch{})
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, result.Report.Write(&out, output.Text))
		return out.String()
	}
	if diff := cmp.Diff(run("1"), run("2")); diff != "" { // it names version 1
		t.Errorf("the records give other numbers (-first +second):\n%s", diff)
	}
	of := (&Experiment{Seeds: 1, generated: true}).modelled(adultSGD, methodDPareto)[0]
	path := recordPath(folder, &of)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	for name, wrong := range map[string]string{
		"version": strings.TrimPrefix(string(content), recordedBy),
		"trials":  string(content) + "1,1,1,1,1\n",
		"number":  strings.Replace(string(content), "\n0", "\nx", 1),
		"columns": recordedBy + "1\nepsilon,error\n",
	} {
		require.NoError(t, os.WriteFile(path, []byte(wrong), 0o600))
		if _, _, err := readRecord(folder, &of); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Of a front by the searched examples the errors on others count, whether they are on a front or not.
func TestUntouchedHypervolume(t *testing.T) {
	all := []outcome{{epsilon: 1, mean: .3, untouched: .5}, {epsilon: 2, mean: .2, untouched: .6}, {epsilon: 3, mean: .4, untouched: .1}}
	if got, want := untouchedHypervolume(all), 9*.5; math.Abs(got-want) > 1e-12 {
		t.Errorf("hypervolume %g, want %g", got, want)
	}
	all[0].untouched = math.NaN()
	if got := untouchedHypervolume(all); !math.IsNaN(got) {
		t.Errorf("hypervolume %g without errors on others", got)
	}
}

func TestAttainment(t *testing.T) {
	studies := [][]outcome{
		{{epsilon: 1, mean: .3}, {epsilon: 3, mean: .1}},
		{{epsilon: 2, mean: .2}, {epsilon: 2, mean: .25}},
		{{epsilon: 1, mean: .4}, {epsilon: 20, mean: .01}},
	}
	median, worst, best := attainment(studies)
	for name, both := range map[string][2][]plot.Point{
		"median": {median, {{X: 1, Y: .4}, {X: 2, Y: .3}, {X: 3, Y: .2}}},
		"worst":  {worst, {{X: 2, Y: .4}, {X: 3, Y: .4}}},
		"best":   {best, {{X: 1, Y: .3}, {X: 2, Y: .2}, {X: 3, Y: .1}}},
	} {
		if diff := cmp.Diff(both[1], both[0]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Courses of random samples are of distinct ones, so that all of them together are certain.
func TestResampled(t *testing.T) {
	all := []outcome{{epsilon: 1, mean: .5}, {epsilon: 2, mean: .25}, {epsilon: 9, mean: .1}}
	b := bandOf(resampled(all, len(all)), 0.025, 0.975)
	if want := hypervolume(all); math.Abs(b.lower[2]-want) > 1e-12 || math.Abs(b.upper[2]-want) > 1e-12 {
		t.Errorf("[%g, %g], want %g", b.lower[2], b.upper[2], want)
	}
	first := (hypervolume(all[:1]) + hypervolume(all[1:2]) + hypervolume(all[2:])) / 3
	if math.Abs(b.mean[0]-first) > .2 || b.lower[0] != hypervolume(all[2:]) {
		t.Errorf("after one: %g from %g, want about %g from %g", b.mean[0], b.lower[0], first, hypervolume(all[2:]))
	}
}

func TestValidate(t *testing.T) {
	for name, e := range map[string]Experiment{
		"part":    {Parts: []string{"fig9"}, Seeds: 1},
		"no part": {Seeds: 1},
		"seeds":   {Parts: Parts()},
		"workers": {Parts: Parts(), Seeds: 1, Workers: -1},
		"both":    {Parts: Parts(), Seeds: 1, Quick: true, WholeMNIST: true, Store: "store.db"},
		"hours":   {Parts: Parts(), Seeds: 1, WholeMNIST: true}, // without a store
	} {
		if e.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

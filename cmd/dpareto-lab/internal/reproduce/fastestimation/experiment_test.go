package fastestimation

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/internal/require"
)

// Adult and KDD Cup 99 are made up: Load accepts their real files only.
func TestMain(m *testing.M) {
	sources[0].read = func(_ context.Context, _ dataset.Source, seed uint64, train int) (*dataset.Parts, error) {
		return dataset.Shuffle(dataset.Generated(32561+16281, 1), seed, train)
	}
	sources[1].read = func(_ context.Context, from dataset.Source, seed uint64, train int) (*dataset.Parts, error) {
		made, err := dataset.LoadKDDCup99(filepath.Join(from.DataDir, "kddcup.data_10_percent"))
		if err != nil {
			return nil, err
		}
		return dataset.Shuffle(made, seed, train)
	}
	m.Run()
}

// dataDir returns a folder with made-up data in the files of KDD Cup 99.
func dataDir(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	// Attacks come from fewer services and send less.
	rng := rand.New(rand.NewPCG(1, 2))
	var connections strings.Builder
	for range 600 {
		label, services, bytes := "normal.", []string{"http", "smtp", "ftp"}, 5000
		if rng.IntN(5) > 0 {
			label, services, bytes = "smurf.", []string{"ecr_i", "http"}, 300
		}
		fmt.Fprintf(&connections, "%d,tcp,%s,SF,%d,%d%s,%d,%d%s,%s\n", rng.IntN(100), services[rng.IntN(len(services))],
			rng.IntN(bytes), rng.IntN(bytes), strings.Repeat(",0", 16), rng.IntN(500), rng.IntN(500),
			strings.Repeat(fmt.Sprintf(",0.%02d", rng.IntN(100)), 17), label)
	}
	for name, content := range map[string]string{
		"kddcup.data_10_percent": connections.String(), "corrected": "",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	return folder
}

// small is an experiment of a second.
func small(t *testing.T) *Experiment {
	return &Experiment{Datasets: DatasetNames(), Losses: LossNames(), Rows: 200, Draws: 1, Seed: 1, DataDir: dataDir(t)}
}

func mustRun(t *testing.T, e *Experiment) *reproduce.Result {
	t.Helper()
	result, _ := mustDraw(t, e)
	return result
}

// mustDraw also returns the figures.
func mustDraw(t *testing.T, e *Experiment) (result *reproduce.Result, figures []reproduce.Figure) {
	t.Helper()
	require.NoError(t, e.Validate())
	last := 0
	watch := reproduce.Watch{
		Progress: func(done, total int) {
			if done != last+1 || done > total {
				t.Errorf("%d of %d runs after %d", done, total, last)
			}
			if last = done; done == total {
				last = -1 // no more
			}
		},
		Draw: func(f reproduce.Figure) error {
			figures = append(figures, f)
			return nil
		},
	}
	result, err := e.Run(t.Context(), watch)
	require.NoError(t, err)
	if last != -1 {
		t.Errorf("the progress ended at %d", last)
	}
	return result, figures
}

func printed(t *testing.T, r *reproduce.Result, format output.Format) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, r.Report.Write(&out, format))
	return out.String()
}

// section returns the rows of a section by the dataset, loss and training that they are
// about, as numbers by column.
func section(t *testing.T, r *reproduce.Result, name string) map[string]map[string]float64 {
	t.Helper()
	for _, s := range r.Report.Sections {
		if s.Name != name {
			continue
		}
		rows := make(map[string]map[string]float64)
		for _, row := range s.Table.Rows {
			var about []string
			numbers := make(map[string]float64)
			for i, cell := range row {
				switch v := cell.(type) {
				case string:
					about = append(about, v)
				case float64:
					numbers[s.Table.Columns[i]] = v
				case output.Bound:
					numbers[s.Table.Columns[i]] = float64(v)
				}
			}
			rows[strings.Join(about, " ")] = numbers
		}
		if len(rows) != len(s.Table.Rows) {
			t.Errorf("%s: rows about the same", name)
		}
		return rows
	}
	t.Fatalf("no section %s", name)
	return nil
}

func TestRun(t *testing.T) {
	r, pictures := mustDraw(t, small(t))

	// Shape.
	rows := make(map[string]int)
	for _, s := range r.Report.Sections {
		rows[s.Name] = len(s.Table.Rows)
	}
	want := map[string]int{
		"table1": 4*(1+5+2) + 2*2 + 2, "theorem3": 2*3*3 + 2*3*2,
		"estimators": 4 * 3, "figure2": 4 * 4, "losses": 4 * 5, "held_out": 4 * 5, "guarantees": 4 * 5,
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	var figures []string
	for _, f := range pictures {
		figures = append(figures, f.Name)
	}
	wantFigures := []string{
		"figure1-gamma", "figure1-rank-one", "figure1-laplace", "figure1-steps", "figure1-passes",
		"figure2-gamma", "figure2-rank-one", "figure2-laplace", "figure2-steps",
	}
	if diff := cmp.Diff(wantFigures, figures); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	if _, err := csv.NewReader(strings.NewReader(printed(t, r, output.CSV))).ReadAll(); err != nil {
		t.Error(err)
	}

	// What must hold whatever the data are.
	table1, estimators, figure2 := section(t, r, "table1"), section(t, r, "estimators"), section(t, r, "figure2")
	for about, e := range estimators {
		if e["newton"] > 1e-6 {
			t.Errorf("%s: the exact method errs by %g", about, e["newton"])
		}
		for _, d := range drawn {
			if line := e["line_"+epsilonColumn(d)]; !(e["groups_4"] < line) {
				t.Errorf("%s: lines for four groups err by %g, one through %s by %g", about, e["groups_4"], epsilonColumn(d), line)
			}
		}
		if !(e["hermite_3"] < e["line_0.75"]) {
			t.Errorf("%s: interpolation errs by %g, a line by %g", about, e["hermite_3"], e["line_0.75"])
		}
		for _, m := range []string{"0.10", "0.25", "0.75"} {
			if e["line_"+m] != table1[about][m] {
				t.Errorf("%s: line through %s: %g and, in table 1, %g", about, m, e["line_"+m], table1[about][m])
			}
		}
	}
	for about, f := range figure2 {
		if got, want := f["n=200"], table1[about][strconv.FormatFloat(f["epsilon"], 'f', 2, 64)]; got != want {
			t.Errorf("%s: figure 2 has %g, table 1 %g", about, got, want)
		}
	}
	for about, row := range table1 {
		least, spread := table1[about+", least"]
		for _, m := range measuring {
			x := row[epsilonColumn(m)]
			if anyLine, ok := row["any_line"]; ok && !(x >= anyLine) {
				t.Errorf("%s: a line errs by %g, less than any line, %g", about, x, anyLine)
			}
			if spread && !(least[epsilonColumn(m)] <= x && x <= table1[about+", greatest"][epsilonColumn(m)]) {
				t.Errorf("%s: %g is not between the least and the greatest", about, x)
			}
		}
	}
	// Privacy costs something, and the rank-one calibration less than the paper's.
	for about, row := range section(t, r, "losses") {
		if !(row["1.00"] > row["free"] && row["zero"] > row["free"]) {
			t.Errorf("%s: losses %v", about, row)
		}
		if other, ok := strings.CutSuffix(about, "rank-one"); ok {
			if gamma := section(t, r, "losses")[other+"gamma"]; !(row["1.00"] < gamma["1.00"]) {
				t.Errorf("%s: loss %g, with the paper's calibration %g", about, row["1.00"], gamma["1.00"])
			}
		}
	}
}

// The numbers are functions of the seed, however many processors there are.
func TestRunIsDeterministic(t *testing.T) {
	e := small(t)
	e.Rows, e.Datasets, e.Losses = 100, []string{"adult"}, []string{"lr"}
	once := printed(t, mustRun(t, e), output.JSON)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if diff := cmp.Diff(once, printed(t, mustRun(t, e), output.JSON)); diff != "" {
		t.Errorf("the second run (-first +second):\n%s", diff)
	}
	e.Seed = 2
	if printed(t, mustRun(t, e), output.JSON) == once {
		t.Error("the seed has no effect")
	}
}

// Wherever an experiment is interrupted, it ends with the context's error, not with means of the draws that
// there are.
func TestInterrupted(t *testing.T) {
	e := &Experiment{Datasets: []string{"adult"}, Losses: []string{"lr"}, Rows: 100, Draws: 3, Seed: 1, DataDir: dataDir(t)}
	total := 0
	for last := 1; total == 0 || last < total; last += 1 + last/3 {
		ctx, cancel := context.WithCancel(t.Context())
		result, err := e.Run(ctx, reproduce.Watch{
			Progress: func(done, all int) {
				if total = all; done >= last {
					cancel()
				}
			},
			Draw: func(f reproduce.Figure) error {
				t.Errorf("after %d of %d runs %s is drawn", last, total, f.Name)
				return nil
			},
		})
		cancel()
		if result != nil || !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d of %d runs: %v, %v", last, total, result, err)
		}
	}
}

func TestRunErrors(t *testing.T) {
	e := small(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Run(ctx, reproduce.Watch{}); err == nil {
		t.Error("a cancelled run ended well")
	}
	e.Rows, e.Datasets = 400, []string{"kddcup99"} // 800 of 600
	if _, err := e.Run(t.Context(), reproduce.Watch{}); err == nil || !strings.Contains(err.Error(), "600") {
		t.Errorf("too few records: %v", err)
	}
	e.Rows = 290 // 580 and 73 to test with
	if _, err := e.Run(t.Context(), reproduce.Watch{}); err == nil || !strings.Contains(err.Error(), "too few records to train on 580 and test with 73") {
		t.Errorf("too few records to test with: %v", err)
	}
}

func TestValidate(t *testing.T) {
	good := Experiment{Datasets: []string{"adult"}, Losses: []string{"svm", "lr"}, Rows: 10000, Draws: 10}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Experiment){
		"--dataset is required": func(e *Experiment) { e.Datasets = nil },
		`--dataset must be some of adult, kddcup99, gisette, covertype, is "mnist"`: func(e *Experiment) { e.Datasets = []string{"adult", "mnist"} },
		`dataset "adult" is given twice`:                                            func(e *Experiment) { e.Datasets = []string{"adult", "adult"} },
		`--loss must be some of lr, svm, is "hinge"`:                                func(e *Experiment) { e.Losses = []string{"hinge"} },
		"--rows must be at least 100, is 99":                                        func(e *Experiment) { e.Rows = 99 },
		"--draws must be at least 1, is 0":                                          func(e *Experiment) { e.Draws = 0 },
		"pole at ε = 0.971":                                                         func(e *Experiment) { e.Rows = 200000 }, // 2·log(1 + 0.25/0.4)
	} {
		e := good
		change(&e)
		if err := e.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// losses returns a curve of losses without slopes.
func lossCurve(loss func(epsilon float64) float64) curve {
	c := make(curve, len(targets))
	for i, epsilon := range targets {
		c[i] = point{loss: loss(epsilon), slope: math.NaN()}
	}
	return c
}

func TestMean(t *testing.T) {
	a, b := lossCurve(func(x float64) float64 { return x }), lossCurve(func(x float64) float64 { return 3 * x })
	a[3].slope, b[3].slope, a[3].heldOut.Error, b[3].heldOut.Error = 1, 2, 0.25, 0.5
	got := mean([]curve{a, b})[3] // x = 0.2
	if math.Abs(got.loss-0.4) > 1e-15 || math.Abs(got.spread-0.2*math.Sqrt2) > 1e-15 || got.slope != 1.5 || got.heldOut.Error != 0.375 {
		t.Errorf("%+v", got)
	}
	if got := mean([]curve{a})[3]; got.loss != a[3].loss || !math.IsNaN(got.spread) {
		t.Errorf("of one: %+v", got)
	}
}

func TestLineError(t *testing.T) {
	// The tangent at a of x² is below it by (x − a)².
	c := lossCurve(func(x float64) float64 { return x * x })
	for _, through := range measuring {
		a := targets[through]
		c[through].slope = 2 * a
		var want float64
		for _, x := range targets {
			want += (x - a) * (x - a) / float64(len(targets))
		}
		if got := c.lineError(through); math.Abs(got-want) > 1e-14 {
			t.Errorf("line through %v: %v, want %v", a, got, want)
		}
		if got := c.line(through)[through]; got != c[through].loss {
			t.Errorf("the line through %v has %v there, want %v", a, got, c[through].loss)
		}
	}
}

func TestGroupedError(t *testing.T) {
	c := lossCurve(func(x float64) float64 { return x * x })
	for _, through := range grouped {
		c[through].slope = 2 * targets[through]
	}
	// In each group the distances are (0.05·k)² for k = 2, 1, 0, 1, 2.
	if got := c.groupedError(); math.Abs(got-0.005) > 1e-14 {
		t.Errorf("%v, want 0.005", got)
	}
}

func TestLeastLineError(t *testing.T) {
	if got := lossCurve(func(x float64) float64 { return 3 - 2*x }).leastLineError(); got > 1e-14 {
		t.Errorf("of a line: %v", got)
	}
	// No line errs less on a convex curve, and the best one is found: small changes of it
	// do not help.
	rng := rand.New(rand.NewPCG(3, 4))
	c := lossCurve(func(x float64) float64 { return 1 / x })
	least := c.leastLineError()
	reached := math.Inf(1)
	for range 200000 {
		a, b := 12*rng.Float64(), -14*rng.Float64()
		line := values(lossCurve(func(x float64) float64 { return a + b*x }), func(p point) float64 { return p.loss })
		reached = min(reached, distance(line, c.losses()))
	}
	if !(least <= reached) || !(reached < 1.05*least) {
		t.Errorf("%v, and %v by trial", least, reached)
	}
}

// addWide adds made-up records in the files of Gisette and Covertype to a folder.
func addWide(t *testing.T, folder string, rows int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	var pixels, labels, cells strings.Builder
	for range rows {
		label := rng.IntN(2)
		fmt.Fprintln(&labels, 2*label-1)
		for j := range dataset.GisetteDim {
			pixel := 0
			if j%50 < 1+label {
				pixel = 1 + rng.IntN(999)
			}
			fmt.Fprintf(&pixels, "%d ", pixel)
		}
		pixels.WriteByte('\n')
		fmt.Fprintf(&cells, "%d,%d,%d,%d,%d,%d,%d,%d,%d,%d", 2000+rng.IntN(1000)+500*label, rng.IntN(360), rng.IntN(60), rng.IntN(1400),
			rng.IntN(700)-150, rng.IntN(7000), rng.IntN(256), rng.IntN(256), rng.IntN(256), rng.IntN(7000))
		area, soil := rng.IntN(4), rng.IntN(40)
		for j := range 44 {
			indicator := 0
			if j == area || j == 4+soil {
				indicator = 1
			}
			fmt.Fprintf(&cells, ",%d", indicator)
		}
		fmt.Fprintf(&cells, ",%d\n", 1+label)
	}
	for name, content := range map[string]string{
		"gisette_train.data": pixels.String(), "gisette_train.labels": labels.String(),
		"gisette_valid.data": "", "gisette_valid.labels": "", "covtype.data": cells.String(),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
}

func TestRunForest(t *testing.T) {
	folder := t.TempDir()
	addWide(t, folder, 300)
	t.Setenv("XDG_CACHE_HOME", folder)
	e := &Experiment{Datasets: []string{"covertype"}, Losses: []string{"lr"}, Rows: 100, Draws: 1, Seed: 1, DataDir: folder}
	r := mustRun(t, e)
	table1 := section(t, r, "table1")
	if len(table1) != 7 { // 5 trainings and a range; nothing is published
		t.Errorf("rows %v", table1)
	}
	// Theorem 3 in numbers: what is proved is no less than what is measured.
	bounds := section(t, r, "theorem3")
	for _, name := range []string{"gamma", "rank-one", "laplace"} {
		for _, m := range measuring {
			bound, measured := bounds["covertype lr "+name+" bound"][epsilonColumn(m)], bounds["covertype lr "+name+" measured"][epsilonColumn(m)]
			if measured != table1["covertype lr "+name][epsilonColumn(m)] || !(bound >= measured) || !(measured > 0) {
				t.Errorf("%s at %s: error %v, bound %v", name, epsilonColumn(m), measured, bound)
			}
		}
	}
	// Without data the same is proved, of the same guarantees.
	e.DataDir = t.TempDir()
	t.Setenv("XDG_CACHE_HOME", e.DataDir)
	without := mustRun(t, e)
	if len(without.Missing) != 1 {
		t.Errorf("missing %q", without.Missing)
	}
	maps.DeleteFunc(bounds, func(about string, _ map[string]float64) bool { return strings.HasSuffix(about, "measured") })
	if diff := cmp.Diff(bounds, section(t, without, "theorem3")); diff != "" {
		t.Errorf("Theorem 3 with and without data:\n%s", diff)
	}
	if diff := cmp.Diff(section(t, r, "guarantees"), section(t, without, "guarantees")); diff != "" {
		t.Errorf("guarantees with and without data:\n%s", diff)
	}
}

// Without files a dataset is named, and its rows say so.
func TestRunWithoutFiles(t *testing.T) {
	e := &Experiment{Datasets: []string{"gisette", "covertype"}, Losses: LossNames(), Rows: 100, Draws: 1, DataDir: t.TempDir()}
	r, figures := mustDraw(t, e)
	out := printed(t, r, output.CSV)
	for _, want := range []string{"gisette,lr,not run: no files,", "gisette,svm,published,,0.00571", "covertype,svm,not run: no files,"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if notes := strings.Join(r.Missing, "\n"); !strings.Contains(notes, "no file gisette_train.data") ||
		!strings.Contains(notes, "no file covtype.data.gz") {
		t.Errorf("notes %s", notes)
	}
	if len(figures) != 0 {
		t.Errorf("%d figures of nothing", len(figures))
	}
}

// The bounds by which guarantees are computed hold for the records.
func TestNorms(t *testing.T) {
	folder := dataDir(t)
	addWide(t, folder, 500)
	for _, s := range sources {
		records, err := s.open(t.Context(), dataset.Source{DataDir: folder}, 1, 400, 100)
		require.NoError(t, err)
		p, err := records.problem(losses[0].loss, 400)
		require.NoError(t, err)
		if p.dim() != s.dim {
			t.Errorf("%s: %d features, want %d", s.name, p.dim(), s.dim)
		}
		for i := range 400 {
			z := make([]float64, p.dim())
			p.train.Examples.AddScaled(z, 1, i)
			var one, two float64
			for _, x := range z {
				one += math.Abs(x)
				two += x * x
			}
			if two > 1+1e-9 || one > s.kappa+1e-9 {
				t.Fatalf("%s: record %d has norms %v and %v, want at most 1 and %v", s.name, i, math.Sqrt(two), one, s.kappa)
			}
			if s.bound == 1 && two < 1-1e-9 {
				t.Fatalf("%s: record %d has norm %v, want 1", s.name, i, math.Sqrt(two))
			}
		}
	}
}

func TestGuarantee(t *testing.T) {
	for _, s := range sources {
		for _, tr := range trainings {
			got, ok := tr.guarantee(s)
			want := map[string]float64{"gamma": 1, "rank-one": 1, "adult laplace": (1 + 3.7416573868) / 2, "kddcup99 laplace": (1 + 6.4031242374) / 2,
				"gisette laplace": (1 + 70.7106781187) / 2, "covertype laplace": (1 + 3.4641016151) / 2}
			expected, known := want[tr.name]
			if !known {
				expected, known = want[s.name+" "+tr.name]
			}
			if ok != known || math.Abs(got-expected) > 1e-9 {
				t.Errorf("%s, %s: %v, %v, want %v, %v", s.name, tr.name, got, ok, expected, known)
			}
		}
	}
	// Without a bound on ‖x‖₁ it is the dimension that counts.
	if got, _ := trainings[2].guarantee(&source{dim: 105, kappa: math.Inf(1)}); math.Abs(got-5.62347538) > 1e-8 {
		t.Errorf("105 features: %v", got)
	}
}

func TestPublished(t *testing.T) {
	for about, want := range map[[2]int]float64{{0, 0}: 0.25, {0, 1}: 0.45, {1, 0}: 0.45, {1, 1}: 0.85} {
		o := &outcome{source: sources[about[0]], loss: losses[about[1]]}
		if got := targets[o.through()]; got != want { // the caption of Figure 2
			t.Errorf("%s, %s: measured at %v, want %v", o.source.name, o.loss.name, got, want)
		}
	}
	var at []float64
	for _, m := range measuring {
		at = append(at, targets[m])
	}
	if !slices.Equal(at, []float64{0.10, 0.25, 0.30, 0.35, 0.45, 0.75, 0.85}) {
		t.Errorf("measuring points %v", at)
	}
}

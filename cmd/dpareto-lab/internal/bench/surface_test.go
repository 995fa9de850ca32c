package bench

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/lines"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/surface"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/surface/surfacetest"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest/space"
)

// surfaces are the made-up surfaces by variant: a model takes a second to fit.
var surfaces = make(map[Variant]*Surface)

// opened returns a made-up surface.
func opened(t *testing.T, v Variant) *Surface {
	t.Helper()
	if s, ok := surfaces[v]; ok {
		return s
	}
	s, err := surface.ByName(surfacetest.Name)
	require.NoError(t, err)
	table, err := surface.Read(s, surfacetest.Write(t, 60))
	require.NoError(t, err)
	if surfaces[v], err = OpenSurface(t.Context(), table, v); err != nil {
		t.Fatal(err)
	}
	return surfaces[v]
}

// area returns the hypervolume of points below a reference, by columns between their abscissas.
func area(points [][2]float64, reference [2]float64) float64 {
	edges := []float64{reference[0]}
	for _, p := range points {
		if p[0] < reference[0] && p[1] < reference[1] {
			edges = append(edges, p[0])
		}
	}
	slices.Sort(edges)
	sum := 0.0
	for i := range edges[:len(edges)-1] {
		low := reference[1]
		for _, p := range points {
			if p[0] <= edges[i] {
				low = min(low, p[1])
			}
		}
		sum += (edges[i+1] - edges[i]) * (reference[1] - low)
	}
	return sum
}

// Every epoch of every run counts, by its exact values, whatever the designer was shown.
func TestRecordHarvests(t *testing.T) {
	s := opened(t, Variant{Noiseless: true, Smooth: true})
	c := newCourse(s, 1)
	var points [][2]float64
	var trained float64
	for n, q := range []space.Point{{30, 20, 0.05, 1, 4}, {4, 100, 0.3, 0.5, 2}, {64, 64, 0.01, 2, 9}} {
		evaluations := c.run(q)
		trained += q[0]
		if len(evaluations) != int(q[0]) {
			t.Fatalf("run %d has %d evaluations, want %v", n+1, len(evaluations), q[0])
		}
		for epoch := 1.0; epoch <= q[0]; epoch++ {
			state := slices.Clone(q)
			state[0] = epoch
			points = append(points, [2]float64{s.problem.Objectives[0].Known(state), s.model.Error(state)})
		}
		r, err := c.record(t.Context(), "by hand", 0)
		require.NoError(t, err)
		want := area(points, [2]float64{10, 0.4})
		if got := r.Observed[n]; math.Abs(got-want) > 1e-9 || want == 0 {
			t.Errorf("after run %d the hypervolume is %v, want %v", n+1, got, want)
		}
		if r.Reported[n] != r.Observed[n] || r.Epochs[n] != trained {
			t.Errorf("record %+v, want %v epochs", r, trained)
		}
	}
}

// With noise the fronts are chosen by what was measured and judged by what is true.
func TestRecordNoise(t *testing.T) {
	s := opened(t, Variant{Smooth: true})
	c := newCourse(s, 4)
	var measured, exact [][2]float64
	for _, q := range []space.Point{{20, 20, 0.05, 1, 4}, {16, 100, 0.3, 0.5, 2}} {
		for _, e := range c.run(q) {
			measured = append(measured, [2]float64{e.Values[0], e.Values[1]})
			exact = append(exact, [2]float64{e.Values[0], s.model.Error(e.Point)})
		}
	}
	var chosen [][2]float64
	for i, p := range measured {
		dominated := slices.ContainsFunc(measured, func(o [2]float64) bool { return o[0] <= p[0] && o[1] <= p[1] && o != p })
		if !dominated && p[1] < 0.4 && p[0] < 10 {
			chosen = append(chosen, exact[i])
		}
	}
	reference := [2]float64{10, 0.4}
	want := area(chosen, reference)
	if math.Abs(want-area(measured, reference)) < 1e-6 {
		t.Fatal("there is no noise: this tests nothing")
	}
	r, err := c.record(t.Context(), "by hand", 0)
	require.NoError(t, err)
	if got := r.Observed[1]; math.Abs(got-want) > 1e-9 {
		t.Errorf("observed %v, want %v", got, want)
	}
	if got, most := r.Reported[1], area(exact, reference); got <= 0 || got > most+1e-9 {
		t.Errorf("reported %v, want up to %v", got, most)
	}
}

func compareOptions(methods ...string) CompareOptions {
	return CompareOptions{Methods: methods, Seeds: 2, Budget: 5, Initial: 3}
}

// compare runs studies and returns their records.
func compare(t *testing.T, s *Surface, o CompareOptions, known ...*Record) []*Record {
	t.Helper()
	var records []*Record
	require.NoError(t, Compare(t.Context(), s, o, known, func(r *Record) error {
		records = append(records, r)
		return nil
	}))
	return records
}

func TestCompare(t *testing.T) {
	s := opened(t, Variant{Smooth: true})
	records := compare(t, s, compareOptions("default", "default_final", "random"))
	if len(records) != 6 {
		t.Fatalf("%d records, want 6", len(records))
	}
	for i, r := range records {
		if want := []string{"default", "default_final", "random"}[i%3]; r.Method != want || r.Seed != uint64(i/3+1) || r.Surface != surfacetest.Name {
			t.Errorf("record %d is of %s, seed %d", i, r.Method, r.Seed)
		}
		if err := r.validate(); err != nil || len(r.Epochs) != 5 {
			t.Errorf("record %+v: %v", r, err)
		}
		// All methods begin with the same three runs, under the same noise.
		if first := records[i-i%3]; !slices.Equal(r.Epochs[:3], first.Epochs[:3]) || !slices.Equal(r.Observed[:3], first.Observed[:3]) {
			t.Errorf("%s, seed %d, does not share the initial points", r.Method, r.Seed)
		}
	}
	if slices.Equal(records[0].Epochs, records[2].Epochs) || slices.Equal(records[0].Epochs, records[3].Epochs) {
		t.Error("another designer, or another seed, makes no difference")
	}
	// What is there is not run again, and what is run again is the same.
	again := compare(t, s, compareOptions("default", "default_final", "random"), records[:5]...)
	if len(again) != 1 || cmp.Diff(records[5], again[0], cmpopts.IgnoreFields(Record{}, "Seconds")) != "" {
		t.Errorf("continued: %v", cmp.Diff(records[5:], again))
	}
	longer := compareOptions("random")
	longer.Budget = 6
	again = compare(t, s, longer, records...)
	if len(again) != 2 || !slices.Equal(again[0].Reported[:5], records[2].Reported) {
		t.Errorf("with a larger budget: %+v, before %+v", again, records[2])
	}
	refused := errors.New("full")
	if err := Compare(t.Context(), s, compareOptions("random"), nil, func(*Record) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("an error of the keeper: %v", err)
	}
}

// A designer that pays for epochs trains fewer.
func TestCompareEpochCost(t *testing.T) {
	o := compareOptions("default", "default_epochs")
	o.Seeds, o.Budget = 1, 6
	records := compare(t, opened(t, Variant{Smooth: true}), o)
	if runs, epochs := records[0].Epochs[5], records[1].Epochs[5]; epochs >= runs {
		t.Errorf("%v epochs, counting runs %v", epochs, runs)
	}
}

// A designer that has to model ε suggests other configurations.
func TestCompareReported(t *testing.T) {
	computed, reported := opened(t, Variant{Smooth: true}), opened(t, Variant{Smooth: true, Reported: true})
	o := compareOptions("default")
	o.Seeds, o.Initial = 1, 4
	a, b := compare(t, computed, o), compare(t, reported, o)
	if !slices.Equal(a[0].Observed[:4], b[0].Observed[:4]) || slices.Equal(a[0].Observed, b[0].Observed) {
		t.Errorf("computed %v, reported %v", a[0].Observed, b[0].Observed)
	}
}

func TestCompareRefuses(t *testing.T) {
	for want, change := range map[string]func(*CompareOptions){
		`is "oracle"`:                    func(o *CompareOptions) { o.Methods = []string{"oracle"} },
		`is "random_final"`:              func(o *CompareOptions) { o.Methods = []string{"random_final"} },
		`is "default_final_epochs"`:      func(o *CompareOptions) { o.Methods = []string{"default_final_epochs"} },
		`is "default_raw_alone"`:         func(o *CompareOptions) { o.Methods = []string{"default_raw_alone"} },
		"--seeds must be at least 1":     func(o *CompareOptions) { o.Seeds = 0 },
		"--budget must be at least 1":    func(o *CompareOptions) { o.Budget = 0 },
		"--initial must be 0 to 5, the ": func(o *CompareOptions) { o.Initial = 6 },
	} {
		o := compareOptions("random")
		change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestFound(t *testing.T) {
	for _, tt := range []struct {
		hypervolumes []float64
		want         int
	}{
		{[]float64{0, 0, 0}, 0},
		{[]float64{1}, 1},
		{[]float64{0.5, 0.989, 0.991, 1}, 3},
		{[]float64{0.995, 0.9, 1, 1}, 3}, // luck that does not last
		{[]float64{1, 1.2, 1}, 1},
		{[]float64{0, 0, 1}, 3},
	} {
		if got := found(tt.hypervolumes); got != tt.want {
			t.Errorf("%v: found after %d, want %d", tt.hypervolumes, got, tt.want)
		}
	}
}

func TestReport(t *testing.T) {
	record := func(method string, seed uint64, reported ...float64) *Record {
		r := &Record{Surface: "s", Method: method, Seed: seed, Seconds: float64(seed), StandIns: int(seed)}
		for i, v := range reported {
			r.Reported = append(r.Reported, v)
			r.Observed = append(r.Observed, v/2)
			r.Epochs = append(r.Epochs, float64(10*(i+1)))
		}
		return r
	}
	table := Report([]*Record{
		record("b", 1, 0.5, 0.8, 0.9), record("b", 2, 0.9, 0.9, 0.9), record("b", 3, 0, 0, 0), record("a", 1, 0.5, 0.6),
	}, []int{2, 3}, []int{25}, 1, "b")
	for name, want := range map[string][]any{
		"method":                 {"a", "b", "b", "b"},
		"variant":                {"noise", "noise", "noise", "noise"},
		"budget":                 {int64(2), int64(2), int64(3), int64(25)}, // a has trained 20 epochs only
		"unit":                   {"runs", "runs", "runs", "epochs"},
		"seeds":                  {int64(1), int64(3), int64(3), int64(3)},
		"reported_mean":          {0.6, 1.7 / 3, 0.6, 1.7 / 3},
		"observed_mean":          {0.3, 1.7 / 6, 0.3, 1.7 / 6},
		"log10_missing_mean":     {math.Log10(0.4), (math.Log10(0.2) - 1) / 3, -2.0 / 3, (math.Log10(0.2) - 1) / 3},
		"runs_to_99_median":      {2.0, 2.0, 3.0, 2.0},
		"epochs_to_99_median":    {20.0, 20.0, 30.0, 20.0},
		"runs_mean":              {2.0, 2.0, 3.0, 2.0},
		"epochs_mean":            {20.0, 20.0, 30.0, 20.0},
		"seconds_per_suggestion": {1.0, 2.0, 2.0, 2.0},
		"stand_ins":              {int64(1), int64(6), int64(6), int64(6)},
		"difference_mean":        {math.Log10(2), nil, nil, nil}, // 0.4 is missing, and 0.2 with the same seed
		"difference_lower":       {nil, nil, nil, nil},
	} {
		if diff := cmp.Diff(want, column(t, table, name), cmpopts.EquateApprox(0, 1e-12)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if sd := column(t, table, "reported_sd"); sd[0] != nil || sd[1] == nil {
		t.Errorf("deviations %v: one seed has none", sd)
	}
}

// Three differences, by scipy.stats.ttest_1samp(x, 0).confidence_interval().
func TestDifference(t *testing.T) {
	group := func(method string, missing ...float64) []*Record {
		var all []*Record
		for i, v := range missing {
			all = append(all, &Record{Method: method, Seed: uint64(i), Epochs: []float64{1}, Reported: []float64{1 - math.Pow(10, v)}})
		}
		return all
	}
	got := difference(group("a", -1, -2, -1.5, -9), group("b", -0.9, -1.5, -1.6), 1, (*Record).withinRuns, 1)
	if diff := cmp.Diff([]any{-1.0 / 6, -0.925583, 0.592250}, got, cmpopts.EquateApprox(0, 1e-5)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	if records, err := ReadRecords(path); err != nil || records != nil {
		t.Errorf("no file: %v, %v", records, err)
	}
	s := opened(t, Variant{Smooth: true})
	mine := &Record{
		Surface: surfacetest.Name, Table: s.digest, Variant: s.Variant, Method: "m", Seed: 1, Initial: 2,
		Epochs: []float64{3}, Reported: []float64{0.5}, Observed: []float64{0.25}, Seconds: 2,
	}
	other := *mine
	other.Variant = Variant{Noiseless: true, Reported: true}
	for _, r := range []*Record{mine, &other} {
		require.NoError(t, lines.Append(path, r))
	}
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	killed := string(content) + `{"surface":"dig` // while it wrote a third record
	require.NoError(t, os.WriteFile(path, []byte(killed), 0o600))
	records, err := ReadRecords(path)
	if err != nil || cmp.Diff([]*Record{mine, &other}, records) != "" {
		t.Errorf("%v: %s", err, cmp.Diff([]*Record{mine, &other}, records))
	}
	if own, err := s.Own(records, 0); err != nil || len(own) != 0 {
		t.Errorf("records with other initial points %v: %v", own, err)
	}
	longer := *mine
	longer.Epochs = []float64{3, 5}
	if own, err := s.Own(append(records, &longer, mine), 2); err != nil || len(own) != 1 || own[0] != &longer {
		t.Errorf("own records %v: %v", own, err)
	}
	records[0].Table = "another"
	if _, err := s.Own(records, 2); err == nil || !strings.Contains(err.Error(), "another table") {
		t.Errorf("another table: %v", err)
	}
	for _, r := range []*Record{{}, {Surface: "s", Method: "m"}, {Surface: "s", Method: "m", Epochs: []float64{1}}} {
		require.NoError(t, lines.Append(path, r))
		if _, err := ReadRecords(path); err == nil || !strings.Contains(err.Error(), "line 3") {
			t.Errorf("record %+v: %v", r, err)
		}
	}
}

package surface

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/surface/surfacetest"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// random returns a configuration of a surface.
func random(s *Surface, rng *rand.Rand) space.Point {
	lower, upper := s.bounds()
	q := make(space.Point, dimension)
	for i := range q {
		if q[i] = lower[i] * math.Pow(upper[i]/lower[i], rng.Float64()); i == epochs || i == lotSize {
			q[i] = math.Round(q[i])
		}
	}
	return q
}

func TestByName(t *testing.T) {
	for _, name := range Names() {
		s, err := ByName(name)
		if err != nil || s.Name != name {
			t.Errorf("%s: %v", name, err)
		}
		for _, smooth := range []bool{false, true} {
			if p, err := s.Problem(smooth); err != nil || p.CheckpointIndex() != epochs {
				t.Errorf("problem of %s: %v", name, err)
			}
		}
	}
	if _, err := ByName("adult"); err == nil || !strings.Contains(err.Error(), "--surface must be one of adult-logistic-sgd") {
		t.Errorf("unknown surface: %v", err)
	}
}

// A longer step with gradients clipped as much shorter goes as far; noise and lot size together
// leave its ratio to the path as it is.
func TestCoordinates(t *testing.T) {
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }
	sgd, _ := ByName("adult-logistic-sgd")
	adam, _ := ByName("adult-logistic-adam")
	q := space.Point{10, 100, 0.02, 1, 2}
	traded := space.Point{10, 100, 0.04, 0.5, 2}
	a, b := sgd.coordinates(q, 4), sgd.coordinates(traded, 4)
	if !near(a[0], b[0]) || !near(a[1], b[1]) || near(a[2], b[2]) {
		t.Errorf("SGD: %v and %v, want the same R and ν", a, b)
	}
	if want := math.Log(0.02 * 1 * 4 * 326); !near(a[0], want) { // 32561/100 is nearest to 326
		t.Errorf("log R is %v, want %v", a[0], want)
	}
	if want := math.Log(2 * 2 / (100 * math.Sqrt(4*326))); !near(a[1], want) {
		t.Errorf("log ν is %v, want %v", a[1], want)
	}
	a, b = adam.coordinates(q, 4), adam.coordinates(space.Point{10, 100, 0.02, 0.5, 2}, 4)
	if !near(a[0], b[0]) || !near(a[1], b[1]) {
		t.Errorf("Adam: %v and %v, want the same R and ν whatever the clipping norm", a, b)
	}
}

// All configurations are in the unit cube, and the cube is not much larger than it has to be.
func TestFrame(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, s := range surfaces {
		f := s.frame()
		least, most := [dimension]float64{1, 1, 1, 1, 1}, [dimension]float64{}
		for range 20_000 {
			q := random(s, rng)
			x := f.scale(s.coordinates(q, 1+rng.Int64N(int64(q[epochs]))))
			for i, v := range x {
				if v < -1e-3 || v > 1+1e-3 {
					t.Fatalf("%s: input %d of %v is %v", s.Name, i, q, v)
				}
				least[i], most[i] = min(least[i], v), max(most[i], v)
			}
		}
		for i := range least {
			if least[i] > 0.2 || most[i] < 0.8 {
				t.Errorf("%s: inputs %d are in [%.2f, %.2f] only", s.Name, i, least[i], most[i])
			}
		}
	}
}

// ε of a whole run is the problem's after every epoch; smooth ε has no steps.
func TestEpsilons(t *testing.T) {
	s, _ := ByName(surfacetest.Name)
	for _, smooth := range []bool{false, true} {
		p, err := s.Problem(smooth)
		require.NoError(t, err)
		q := space.Point{5, 50, 0.1, 1, 4}
		for i, got := range s.Epsilons(p, smooth, q) {
			state := space.Point{float64(i + 1), 50, 0.1, 1, 4}
			if want := p.Objectives[0].Known(state); got != want || !(got > 0) {
				t.Errorf("smooth %t: ε after %d epochs is %v, want %v", smooth, i+1, got, want)
			}
		}
		// Far beyond the reference ε is cheap, and still about right.
		far := space.Point{40, 50, 0.1, 1, 0.9}
		all := s.Epsilons(p, smooth, far)
		if last, want := all[39], p.Objectives[0].Known(far); !(want > 2*referenceEpsilon) || math.Abs(last/want-1) > 0.1 || !slices.IsSorted(all) {
			t.Errorf("smooth %t: ε far beyond the reference is %v, want %v", smooth, last, want)
		}
		// 455/50 and 455/52 are both nearest to 9 steps, and 455/54 to 8: the number of steps falls, the
		// rate rises.
		at := func(lot float64) float64 { return p.Objectives[0].Known(space.Point{5, lot, 0.1, 1, 4}) }
		rise, jump := at(52)-at(51), at(54)-at(53)
		if jumps := jump < 0; rise <= 0 || jumps == smooth {
			t.Errorf("smooth %t: ε changes by %v between lots and by %v where the steps change", smooth, rise, jump)
		}
	}
	// The two differ by little.
	exact, _ := s.Problem(false)
	smooth, _ := s.Problem(true)
	q := space.Point{20, 65, 0.1, 1, 6} // 455/65 = 7
	if a, b := exact.Objectives[0].Known(q), smooth.Objectives[0].Known(q); math.Abs(a/b-1) > 0.02 {
		t.Errorf("ε is %v, smooth %v", a, b)
	}
}

// tiny is a surface that trains in no time.
func tiny() *Surface {
	return &Surface{
		Name: "tiny", Summary: "generated examples", TrainRows: 300, TestRows: 48542, ReferenceError: 0.4, optimizer: dpsgd.SGD,
		settings: trainer.Settings{"generated": "true", "train_rows": "300", "split": "shuffled", "evaluation": "test"},
		limits:   limits{4, 8, 64},
	}
}

func TestMake(t *testing.T) {
	whole, parts := t.TempDir(), t.TempDir()
	options := MakeOptions{Folder: whole, Configurations: 4, Replicates: 2}
	require.NoError(t, Make(t.Context(), tiny(), options))
	want, err := os.ReadFile(filepath.Join(whole, "tiny.csv"))
	require.NoError(t, err)
	sum, err := os.ReadFile(filepath.Join(whole, "tiny.csv.sha256"))
	if err != nil || string(sum) != fmt.Sprintf("%x  tiny.csv\n", sha256.Sum256(want)) {
		t.Errorf("digest %q: %v", sum, err)
	}

	// Interrupted after two configurations, with half a configuration behind them.
	ctx, cancel := context.WithCancel(t.Context())
	options.Folder = parts
	options.Progress = func(done int) {
		if done == 2 {
			cancel()
		}
	}
	if err := Make(ctx, tiny(), options); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
	path := filepath.Join(parts, "tiny.csv")
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	if _, err := os.Stat(path + ".sha256"); err == nil {
		t.Error("an incomplete table has a digest")
	}
	require.NoError(t, os.WriteFile(path, append(written, want[len(written):len(written)+20]...), 0o600))
	var progress []int
	options.Progress = func(done int) { progress = append(progress, done) }
	require.NoError(t, Make(t.Context(), tiny(), options))
	if got, err := os.ReadFile(path); err != nil || string(got) != string(want) {
		t.Errorf("the continued table is another: %v\n%s\n%s", err, got, want)
	}
	if fmt.Sprint(progress) != "[2 3 4]" {
		t.Errorf("progress %v, want 2, 3 and 4", progress)
	}

	table, err := Read(tiny(), parts)
	if err != nil || !table.Checked || len(table.Runs) != 8 {
		t.Fatalf("%v: %+v", err, table)
	}
	first, second := table.Runs[0], table.Runs[1]
	if first.Number != 0 || second.Number != 0 || table.Runs[2].Number != 1 || len(first.Errors) != int(first.Point[epochs]) {
		t.Errorf("runs %+v and %+v", first, second)
	}
	distinct := false
	for _, r := range table.Runs {
		for _, v := range r.Errors {
			distinct = distinct || v != first.Errors[0]
		}
	}
	if !distinct {
		t.Error("all errors are the same: nothing was trained")
	}

	options.Replicates = 3
	if err := Make(t.Context(), tiny(), options); err == nil || !strings.Contains(err.Error(), "other settings") {
		t.Errorf("other settings: %v", err)
	}
	wrong := tiny()
	wrong.TrainRows = 299
	if err := Make(t.Context(), wrong, options); err == nil || !strings.Contains(err.Error(), "has 299 training records, the data have 300") {
		t.Errorf("other rows: %v", err)
	}
	wrong = tiny()
	wrong.TestRows++
	if err := Make(t.Context(), wrong, options); err == nil || !strings.Contains(err.Error(), "test records") {
		t.Errorf("other test rows: %v", err)
	}
}

func TestMakeRefuses(t *testing.T) {
	for want, o := range map[string]MakeOptions{
		"--tables is required":         {Configurations: 1, Replicates: 1},
		"--configurations must be at":  {Folder: "x", Replicates: 1},
		"--replicates must be at leas": {Folder: "x", Configurations: 1},
	} {
		if err := Make(t.Context(), tiny(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestDigits(t *testing.T) {
	s, _ := ByName("digits-softmax-sgd")
	folder := t.TempDir()
	if err := Make(t.Context(), s, MakeOptions{Folder: folder, DataDir: folder, Configurations: 1, Replicates: 1}); err == nil ||
		!strings.Contains(err.Error(), "scikit-learn") {
		t.Errorf("without the file: %v", err)
	}
	// 1797 made-up digits: pixel d is dark in digit d.
	var rows strings.Builder
	for i := range 1797 {
		for pixel := range 64 {
			fmt.Fprintf(&rows, "%d,", map[bool]int{true: 16}[pixel == i%10])
		}
		fmt.Fprintf(&rows, "%d\n", i%10)
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, digitsFile), []byte(rows.String()), 0o600))
	if err := Make(t.Context(), s, MakeOptions{Folder: folder, DataDir: folder, Configurations: 1, Replicates: 1}); err != nil {
		t.Error(err)
	}
}

func TestRead(t *testing.T) {
	const header = "run,replicate,epochs,lot_size,learning_rate,clipping_norm,noise_multiplier,epoch,error\n"
	s := tiny()
	folder := t.TempDir()
	write := func(content string) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, "tiny.csv"), []byte(content), 0o600))
	}
	if _, err := Read(s, folder); err == nil || !strings.Contains(err.Error(), "dp-table makes it") {
		t.Errorf("no table: %v", err)
	}
	const one = "0,0,2,16,.1,1,1,1,.5\n0,0,2,16,.1,1,1,2,.25\n"
	write("# comment\n" + header + one + "0,1,2,16,.1,1,1,1,.5\n")
	table, err := Read(s, folder)
	if err != nil || len(table.Runs) != 1 || table.Checked || table.Runs[0].Errors[1] != 0.25 {
		t.Errorf("a table with an incomplete end: %v, %+v", err, table)
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "tiny.csv.sha256"), []byte(strings.Repeat("0", 64)+"  tiny.csv\n"), 0o600))
	if _, err := Read(s, folder); err == nil || !strings.Contains(err.Error(), "was changed") {
		t.Errorf("a changed table: %v", err)
	}
	require.NoError(t, os.Remove(filepath.Join(folder, "tiny.csv.sha256")))
	for content, want := range map[string]string{
		"":                    "line 1",
		"run,epoch\n":         "column epochs is missing",
		header:                "no complete run",
		header + "0,0,2,16\n": "wrong number of fields",
		header + "0,0,2,16,.1,1,1,1,.5\n1,0,1,16,.1,1,1,1,.5\n": "line 3: run 0,0 lacks its last 1 epochs",
		header + "0,0,2,16,.1,1,1,2,.5\n":                       "line 2: epoch must be 1, is 2",
		header + one + "0,0,2,16,.1,1,1,3,.5\n":                 "line 4: epoch must be 3, is 3",
		header + "0,0,2,16,.1,1,1,1,1.5\n":                      "error must be 0 to 1, is 1.5",
		header + "0,0,2,16,.1,1,1,1,NaN\n":                      "error must be a number",
		header + "0,0,2,128,.1,1,1,1,.5\n":                      "lot_size must be 8 to 64 on surface tiny, is 128",
		header + "0,0,2,16.5,.1,1,1,1,.5\n":                     "lot_size must be whole, is 16.5",
	} {
		write(content)
		if _, err := Read(s, folder); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", content, err, want)
		}
	}
}

// fit returns the model of a made-up table.
func fit(t *testing.T) *Model {
	t.Helper()
	s, err := ByName(surfacetest.Name)
	require.NoError(t, err)
	table, err := Read(s, surfacetest.Write(t, 150))
	require.NoError(t, err)
	m, err := Fit(t.Context(), table)
	require.NoError(t, err)
	return m
}

func closedForm(q space.Point) float64 { return surfacetest.Logit(q[0], q[1], q[2], q[3], q[4]) }

// The model finds the closed form behind a table between its points, and says by how much it errs.
func TestFit(t *testing.T) {
	m := fit(t)
	rng := rand.New(rand.NewPCG(9, 9))
	squares := 0.0
	const points = 500
	for range points {
		q := random(m.Surface, rng)
		d := m.logit(m.Error(q)) - m.logit(surfacetest.Error(closedForm(q)))
		squares += d * d
	}
	deviation := math.Sqrt(squares / points)
	v, err := m.Validate(t.Context())
	require.NoError(t, err)
	// Single runs are off by .05.
	if deviation > 0.03 || v.Spread < 0.15 {
		t.Errorf("the model is off by %.3f of %.3f", deviation, v.Spread)
	}
	if v.Noise < 0.6*surfacetest.Noise || v.Noise > 1.5*surfacetest.Noise {
		t.Errorf("the noise is estimated at %.3f, is %.3f", v.Noise, surfacetest.Noise)
	}
	// A prediction from other configurations errs by the noise of the measurement and by its own.
	if want := math.Hypot(deviation, surfacetest.Noise); v.Residual < 0.7*want || v.Residual > 1.5*want {
		t.Errorf("cross-validation says %.3f, fresh points %.3f", v.Residual, want)
	}
	if v.Configurations != 150 || v.Observations <= 150 || v.Error <= 0 {
		t.Errorf("validation %+v", v)
	}
}

func TestTrain(t *testing.T) {
	m := fit(t)
	q := space.Point{12, 32, 0.05, 1, 1}
	exact := m.Train(q, false, 1)
	for i, v := range exact {
		state := space.Point{float64(i + 1), 32, 0.05, 1, 1}
		if v != m.Error(state) {
			t.Errorf("epoch %d: %v, want %v", i+1, v, m.Error(state))
		}
	}
	first := m.Train(q, true, 3)
	if again := m.Train(q, true, 3); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Error("the same seed gives another run")
	}
	// Noise: unbiased, of the size that was learned, shared by neighbouring epochs, in whole records.
	last, before := make([]float64, 400), make([]float64, 400)
	for seed := range last {
		run := m.Train(q, true, uint64(seed))
		for _, v := range run {
			if records := v * 114; math.Abs(records-math.Round(records)) > 1e-9 {
				t.Fatalf("error %v is no number of records", v)
			}
		}
		last[seed], before[seed] = m.logit(run[11]), m.logit(run[10])
	}
	mean, sd := stat.MeanStdDev(last, nil)
	want := math.Sqrt(m.full.Noise(m.input(q, 12)))
	rounding := 1 / (114 * exact[11] * (1 - exact[11]) * math.Sqrt(12)) // of a whole record, on the logit scale
	if math.Abs(mean-m.logit(exact[11])) > 4*sd/20 || sd < 0.8*want || sd > 1.25*math.Hypot(want, rounding) {
		t.Errorf("logits have mean %v and deviation %v, want %v and %v", mean, sd, m.logit(exact[11]), want)
	}
	if r := stat.Correlation(last, before, nil); r < 0.3 {
		t.Errorf("neighbouring epochs have the correlation %v", r)
	}
}

// The best front is at least as good as that of very many random configurations, and in the bounds of
// the surface.
func TestBest(t *testing.T) {
	m := fit(t)
	p, err := m.Surface.Problem(true)
	require.NoError(t, err)
	best, err := m.Best(t.Context(), p)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(2, 2))
	var costs [][]float64
	least := 1.0
	for range 3000 {
		q := random(m.Surface, rng)
		failed := m.Error(q)
		least = min(least, failed)
		if failed < m.Surface.ReferenceError && m.Surface.centralMu(q) < bestMu {
			costs = append(costs, []float64{p.Objectives[0].Known(q), failed})
		}
	}
	found := pareto.Hypervolume(costs, p.ReferenceCosts())
	if most := referenceEpsilon * (m.Surface.ReferenceError - least + 0.01); best < found || best > most {
		t.Errorf("the best hypervolume is %v, want at least %v and at most %v", best, found, most)
	}
	if _, err := (&Model{Surface: m.Surface}).Best(t.Context(), &suggest.Problem{}); err == nil {
		t.Error("a problem without a space is accepted")
	}
}

// A state that the search for the best front leaves out by the central limit has too large an ε.
func TestCentralMu(t *testing.T) {
	for _, name := range []string{"adult-logistic-sgd", surfacetest.Name} {
		s, _ := ByName(name)
		p, err := s.Problem(true)
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(3, 3))
		tried := 0
		for tried < 10 {
			q := random(s, rng)
			if mu := s.centralMu(q); mu < bestMu || mu > 4*bestMu {
				continue
			}
			tried++
			if got := p.Objectives[0].Known(q); got < referenceEpsilon {
				t.Errorf("%s: ε of %v is %v, below the reference", name, q, got)
			}
		}
	}
}

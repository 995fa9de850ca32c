package price_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/meter"
	"github.com/dpareto/dpareto/privacy/price"
	"github.com/dpareto/dpareto/privacy/slots"
	"github.com/dpareto/dpareto/privacy/tuning"
)

// gaussianSearch is a search with runs of μ = 0.25 and δ = 1e-6.
func gaussianSearch() price.Search {
	run := privacy.Gaussian{Sensitivity: 1, StandardDeviation: 4, Neighbours: privacy.ReplaceOne}
	return price.Search{Run: privacy.Part{Mechanism: run, Count: 1}, Delta: 1e-6, Runs: 10, Eta: 1, Portfolios: []int64{2, 4}, CoversStates: true}
}

// exampleSearch has runs of DP-SGD with ε = 0.3037, of ten scores each.
func exampleSearch() price.Search {
	run := privacy.Part{Mechanism: privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 256, NoiseMultiplier: 4}, Count: 1270}
	return price.Search{
		Run: run, Delta: 1e-6, Runs: 32, Eta: 1, CoversStates: true,
		Subset: &price.Subset{Share: 0.1, Epochs: 10, Final: run},
		Test:   &price.Test{Records: 16281, Noise: 0.005, Checkpoints: 10},
	}
}

// prices returns the ways by their names.
func prices(t *testing.T, s price.Search) map[string]price.Way {
	t.Helper()
	ways, err := s.Prices(new(meter.Work))
	require.NoError(t, err)
	all := make(map[string]price.Way)
	for _, w := range ways {
		if _, twice := all[w.Name]; twice {
			t.Errorf("%s twice", w.Name)
		}
		all[w.Name] = w
	}
	return all
}

// TestReference compares with an independent program (numpy, with its own privacy loss
// distributions), whose numbers have three digits.
func TestReference(t *testing.T) {
	example := prices(t, exampleSearch())
	logarithmic := exampleSearch()
	logarithmic.Eta = 0
	other := prices(t, logarithmic)
	gaussian := prices(t, gaussianSearch())
	for _, test := range []struct {
		name      string
		got, want float64
	}{
		{"training, one run", example["one run, no search"].Training.Epsilon, 0.3037},
		{"training, geometric", example["best of K, geometric"].Training.Epsilon, 0.533},
		{"training, capped", example["best of K, geometric, capped"].Training.Epsilon, 0.5332},
		{"training, exactly 32", example["best of exactly so many"].Training.Epsilon, 1.492},
		{"test, one run", example["one run, no search"].Test.Epsilon, 0.1445},
		{"test, curve, geometric", example["best curve of K, geometric"].Test.Epsilon, 0.259},
		{"test, curve, logarithmic", other["best curve of K, logarithmic"].Test.Epsilon, 0.236},
		{"μ = 0.25, logarithmic", gaussian["best of K, logarithmic"].Training.Epsilon, 1.4742},
		{"μ = 0.25, geometric", gaussian["best of K, geometric"].Training.Epsilon, 1.5567},
		{"μ = 0.25, Poisson", gaussian["best of K, Poisson"].Training.Epsilon, 1.9702},
		{"mean with a cap", example["best of K, geometric, capped"].MeanRuns, 29.8},
	} {
		if math.Abs(test.got-test.want) > 2e-3*math.Max(1, test.want*0.7) {
			t.Errorf("%s: %.4f, want %g", test.name, test.got, test.want)
		}
	}
	for name, w := range example {
		if w.Test.Adjacency != privacy.ReplaceOne || w.Training.Adjacency != privacy.ReplaceOne || w.Training.Delta != 1e-6 || w.Test.Delta != 1e-6 {
			t.Errorf("%s: %v and %v", name, w.Training, w.Test)
		}
		if len(w.Training.Assumptions) == 0 || !slices.ContainsFunc(w.Test.Assumptions, func(a privacy.Assumption) bool { return a.Premise == privacy.PremiseScores }) {
			t.Errorf("%s: assumes %q and %q", name, w.Training.Assumptions, w.Test.Assumptions)
		}
	}
}

// TestTestRecords: of the best model one score is released, of curves all, of portfolios those of all
// their runs; the noise that an ε needs has this ε.
func TestTestRecords(t *testing.T) {
	s := gaussianSearch()
	s.Test = &price.Test{Records: 1000, Noise: 0.01, Checkpoints: 4}
	known := prices(t, s)
	scores := func(n int64) price.Search {
		one := gaussianSearch()
		one.Run = privacy.Part{Mechanism: privacy.Gaussian{Sensitivity: 0.001, StandardDeviation: 0.01, Neighbours: privacy.ReplaceOne}, Count: n}
		return one
	}
	one, four := prices(t, scores(1)), prices(t, scores(4))
	for name, want := range map[string]float64{
		"one run, no search":                   four["one run, no search"].Training.Epsilon,
		"all shown, fixed beforehand":          four["all shown, fixed beforehand"].Training.Epsilon,
		"all shown, adaptive, Gaussian filter": four["all shown, fixed beforehand"].Training.Epsilon,
		"best of K, geometric":                 one["best of K, geometric"].Training.Epsilon,
		"best of exactly so many":              one["best of exactly so many"].Training.Epsilon,
		"best curve of K, geometric":           four["best curve of K, geometric"].Training.Epsilon,
		"best portfolio of 2, geometric":       four["best portfolio of 2, geometric"].Training.Epsilon,
	} {
		if got := known[name].Test.Epsilon; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %.9f, want %.9f", name, got, want)
		}
	}
	s.Test.Noise, s.Test.Epsilon = 0, 0.5
	for name, w := range prices(t, s) {
		if !(w.Test.Epsilon <= 0.5 && w.Test.Epsilon > 0.4999) {
			t.Errorf("%s: ε = %.6f", name, w.Test.Epsilon)
		}
		again := s
		again.Test = &price.Test{Records: 1000, Noise: w.TestNoise, Checkpoints: 4}
		if name == "best curve of K, geometric" {
			if got := prices(t, again)[name].Test.Epsilon; math.Abs(got-w.Test.Epsilon) > 1e-9 {
				t.Errorf("%s: with the noise ε = %.9f, want %.9f", name, got, w.Test.Epsilon)
			}
		}
	}
}

// TestDistribution: the chosen distribution is that of the cap, curves, portfolios and subsets, and a
// named one equals the other's row for its shape.
func TestDistribution(t *testing.T) {
	s := gaussianSearch()
	geometric := prices(t, s)
	s.Poisson = true
	poisson := prices(t, s)
	if _, ok := poisson["best of K, Poisson, capped"]; ok || len(poisson) != len(geometric)-1 {
		t.Errorf("%d ways, %d with the geometric distribution, whose number has a cap", len(poisson), len(geometric))
	}
	if got, want := poisson["best curve of K, Poisson"].Training.Epsilon, geometric["best of K, Poisson"].Training.Epsilon; got != want {
		t.Errorf("Poisson: the curve costs %g, the best model %g", got, want)
	}
	s.Poisson, s.Eta, s.MaxRuns = false, 0.5, 12
	half := prices(t, s)
	least, most := geometric["best of K, logarithmic"].Training.Epsilon, geometric["best of K, geometric"].Training.Epsilon
	if got := half["best of K, η = 0.5"].Training.Epsilon; !(got > least && got < most) {
		t.Errorf("η = 0.5: ε = %g, want between %g and %g", got, least, most)
	}
	if w := half["best of K, η = 0.5, capped"]; w.MaxRuns != 12 || !(w.MeanRuns < 10) {
		t.Errorf("%g runs on average, %d at most", w.MeanRuns, w.MaxRuns)
	}
	s.Runs, s.MaxRuns = 3, 0
	if _, ok := prices(t, s)["best portfolio of 4, η = 0.5"]; ok {
		t.Error("a portfolio of 4 of 3 runs")
	}
}

// TestSubset: on all records the search costs what it costs without a subset, together with the final
// run; a final run that costs nothing leaves the search.
func TestSubset(t *testing.T) {
	s := exampleSearch()
	s.Test, s.Runs = nil, 8
	s.Subset.Share = 1
	nothing := privacy.Gaussian{Sensitivity: 1e-9, StandardDeviation: 1, Neighbours: privacy.ReplaceOne}
	s.Subset.Final = privacy.Part{Mechanism: nothing, Count: 1}
	all := prices(t, s)
	got, want := all["best of K on 100 %, geometric; one run on all"], all["best of K, geometric"]
	if math.Abs(got.Training.Epsilon-want.Training.Epsilon) > 2e-3 || got.MeanRuns != 9 {
		t.Errorf("ε = %.5f for %g runs, want %.5f", got.Training.Epsilon, got.MeanRuns, want.Training.Epsilon)
	}
}

// TestBudget: the runs that a budget affords cost no more, and 2 % more runs cost more.
func TestBudget(t *testing.T) {
	s := gaussianSearch()
	s.Budget = 3
	for name, w := range prices(t, s) {
		if name == "one run, no search" {
			if w.RunsForBudget != nil {
				t.Errorf("one run: %d runs", *w.RunsForBudget)
			}
			continue
		}
		runs := *w.RunsForBudget
		limit := int64(price.MaxMeanRuns)
		if name == "best of K, geometric, capped" {
			limit = tuning.MaxMostRuns / 4
		}
		for _, n := range []int64{runs, runs + 1 + runs/50} {
			if n > limit {
				continue
			}
			again := s
			again.Budget, again.Runs = 0, n
			if got := prices(t, again)[name].Training.Epsilon; (got <= 3) != (n == runs) {
				t.Errorf("%s: %d of %d runs cost %.4f", name, n, runs, got)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	for field, change := range map[string]func(s *price.Search){
		"delta":             func(s *price.Search) { s.Delta = 0 },
		"runs":              func(s *price.Search) { s.Runs = 0 },
		"eta":               func(s *price.Search) { s.Eta = -0.99 },
		"max_runs":          func(s *price.Search) { s.MaxRuns = 31 },
		"budget":            func(s *price.Search) { s.Budget = math.Inf(1) },
		"portfolios":        func(s *price.Search) { s.Portfolios = []int64{2, 1} },
		"subset_share":      func(s *price.Search) { s.Subset.Share = 1.5 },
		"subset_batch_size": func(s *price.Search) { s.Subset.BatchSize = 3257 },
		"final_run": func(s *price.Search) {
			s.Subset.Final.Mechanism = privacy.FixedSizeGaussian{DatasetSize: 9, BatchSize: 1, NoiseMultiplier: 1}
		},
		"test_records":     func(s *price.Search) { s.Test.Records = 0 },
		"test_noise":       func(s *price.Search) { s.Test.Noise = math.NaN() },
		"test_epsilon":     func(s *price.Search) { s.Test.Epsilon = -1 },
		"checkpoints":      func(s *price.Search) { s.Test.Checkpoints = -1 },
		"noise_multiplier": func(s *price.Search) { s.Run.Mechanism = privacy.FixedSizeGaussian{DatasetSize: 9, BatchSize: 1} },
	} {
		s := exampleSearch()
		change(&s)
		_, err := s.Prices(new(meter.Work))
		found := privacy.FieldErrors(err)
		if len(found) != 1 || found[0].Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	s := exampleSearch()
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

// TestWork: prices end with the error of their work.
func TestWork(t *testing.T) {
	s := exampleSearch()
	if _, err := s.Prices(&meter.Work{Limit: 1 << 20}); !errors.As(err, new(*meter.LimitError)) {
		t.Errorf("little work: %v", err)
	}
	cancelled := errors.New("cancelled")
	if _, err := s.Prices(&meter.Work{Pause: func() error { return cancelled }}); !errors.Is(err, cancelled) {
		t.Errorf("a pause that ends it: %v", err)
	}
}

// A mechanism that covers no state but the last has no curves to release, and one score a run.
func TestResultsAlone(t *testing.T) {
	s := price.Search{
		Run:   privacy.Part{Mechanism: privacy.Gaussian{Sensitivity: 1, StandardDeviation: 10, Neighbours: privacy.ReplaceOne}, Count: 1},
		Delta: 1e-6, Runs: 8, Eta: 1, Portfolios: []int64{2}, Test: &price.Test{Records: 1000, Noise: 0.01, Checkpoints: 1},
	}
	for name, w := range prices(t, s) {
		if strings.Contains(name, "curve") || strings.Contains(w.Released, "checkpoints") {
			t.Errorf("%s releases %s", name, w.Released)
		}
	}
	s.Test.Checkpoints = 2
	if _, err := s.Prices(new(meter.Work)); err == nil || !strings.Contains(err.Error(), "checkpoints") {
		t.Errorf("two scores a run: %v", err)
	}
}

// TestNoisyTrials: trials and the run cost what the slots cost that a study declares for them, and with lots of all
// records what Gaussian noise costs; the test records pay for the scores of all.
func TestNoisyTrials(t *testing.T) {
	const way = "trials with 10 times the noise, one run"
	s := exampleSearch()
	got := prices(t, s)[way]
	run := s.Run.Mechanism.(privacy.FixedSizeGaussian)
	trial := run
	trial.NoiseMultiplier = 40
	declared, err := slots.NewSlots([]slots.Slot{{Mechanism: run, Steps: 1270, Count: 1}, {Mechanism: trial, Steps: 1270, Count: 32}}, 1e-6)
	require.NoError(t, err)
	if want := declared.Price().Epsilon; !(got.Training.Epsilon <= want && got.Training.Epsilon > want*(1-1e-3)) {
		t.Errorf("ε = %.6f, as slots %.6f", got.Training.Epsilon, want)
	}
	if !got.Adaptive || got.MeanRuns != 33 || got.MaxRuns != 33 {
		t.Errorf("%+v", got)
	}
	if !slices.ContainsFunc(got.Training.Assumptions, func(a privacy.Assumption) bool { return a.Premise == privacy.PremiseFixedInAdvance }) {
		t.Errorf("assumes %q", got.Training.Assumptions)
	}
	s.Runs = 33
	if want := prices(t, s)["all shown, fixed beforehand"].Test; got.Test.Epsilon != want.Epsilon {
		t.Errorf("test records: ε = %.6f, want %.6f", got.Test.Epsilon, want.Epsilon)
	}

	gaussian := gaussianSearch()
	gaussian.Run = privacy.Part{Mechanism: privacy.FixedSizeGaussian{DatasetSize: 100, BatchSize: 100, NoiseMultiplier: 20}, Count: 25} // μ = 0.25
	gaussian.Runs, gaussian.Portfolios = 21, nil
	together := privacy.Gaussian{Sensitivity: 0.25 * 1.1, StandardDeviation: 1, Neighbours: privacy.ReplaceOne} // 1.1² = 1 + 21/100
	want, err := privacy.Epsilon(privacy.Exact{}, together, 1, 1e-6)
	require.NoError(t, err)
	if got := prices(t, gaussian)[way].Training.Epsilon; math.Abs(got-want.Epsilon) > 1e-6*want.Epsilon {
		t.Errorf("lots of all records: ε = %.9f, want %.9f", got, want.Epsilon)
	}
	gaussian.Run.Mechanism = privacy.Gaussian{Sensitivity: 1, StandardDeviation: 4, Neighbours: privacy.ReplaceOne}
	if _, ok := prices(t, gaussian)[way]; ok {
		t.Error("noisy trials of what is no DP-SGD")
	}
}

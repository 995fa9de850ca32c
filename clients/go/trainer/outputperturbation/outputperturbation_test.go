package outputperturbation

import (
	"context"
	"errors"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

func newTrainer(t testing.TB, changes func(*dataset.Parts, *Options)) *Trainer {
	t.Helper()
	parts := &dataset.Parts{Train: dataset.Generated(500, 1), Test: dataset.Generated(300, 2)}
	o := Options{FeatureNorm: math.Sqrt(14)}
	if changes != nil {
		changes(parts, &o)
	}
	made, err := New(parts, o)
	require.NoError(t, err)
	return made
}

// parameters returns a good configuration with some of its parameters changed;
// nil removes one.
func parameters(changes trainer.Parameters) trainer.Parameters {
	p := trainer.Parameters{
		ParameterEpochs:            int64(3),
		ParameterRegularization:    0.01,
		ParameterStandardDeviation: 0.5,
	}
	maps.Copy(p, changes)
	maps.DeleteFunc(p, func(_ string, v any) bool { return v == nil })
	return p
}

// metrics trains and returns the metrics of every epoch.
func metrics(t *testing.T, made *Trainer, run trainer.Run) []map[string][]float64 {
	t.Helper()
	var reported []map[string][]float64
	m, err := made.Train(t.Context(), run, func(m trainer.Measurement) error {
		reported = append(reported, m.Metrics)
		if want := int64(len(reported)); m.Step != want {
			t.Errorf("step %d, want %d", m.Step, want)
		}
		return nil
	})
	require.NoError(t, err)
	if diff := cmp.Diff(reported[len(reported)-1], m.Metrics); diff != "" {
		t.Errorf("the measurement returned is not the last reported (-reported +returned):\n%s", diff)
	}
	return reported
}

func TestTrainLearns(t *testing.T) {
	made := newTrainer(t, func(p *dataset.Parts, _ *Options) {
		p.Train, p.Test = dataset.Generated(20000, 1), dataset.Generated(5000, 2)
	})
	p := parameters(trainer.Parameters{ParameterRegularization: 1e-4, ParameterStandardDeviation: 0.0})
	last := metrics(t, made, trainer.Run{Parameters: p, Replicates: 2, Seed: new(uint64(0))})[2]
	for r := range 2 {
		// The hidden model's error is about 0.148, the constant one's 0.24.
		if last[experiment.MetricError][r] > 0.165 {
			t.Errorf("error %v after 3 epochs without noise, want at most 0.165", last[experiment.MetricError][r])
		}
	}
	p[ParameterStandardDeviation] = 1e4
	noisy := metrics(t, made, trainer.Run{Parameters: p, Replicates: 2, Seed: new(uint64(0))})[2]
	for r := range 2 {
		if noisy[experiment.MetricError][r] < 0.2 || noisy[experiment.MetricLoss][r] < 100 {
			t.Errorf("error %v and loss %v under noise of 1e4", noisy[experiment.MetricError][r], noisy[experiment.MetricLoss][r])
		}
	}
}

func TestTrainIsReproducible(t *testing.T) {
	made := newTrainer(t, func(p *dataset.Parts, _ *Options) { p.Validation = dataset.Generated(100, 3) })
	run := trainer.Run{Parameters: parameters(nil), Replicates: 5, Seed: new(uint64(7))}
	want := metrics(t, made, run)
	for _, name := range []string{experiment.MetricError, experiment.MetricLoss, experiment.MetricTestError, experiment.MetricTestLoss} {
		if len(want[0][name]) != 5 {
			t.Errorf("%d values of %s, want 5", len(want[0][name]), name)
		}
	}
	for _, procs := range []int{1, 2, 7} {
		previous := runtime.GOMAXPROCS(procs)
		got := metrics(t, made, run)
		runtime.GOMAXPROCS(previous)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("GOMAXPROCS %d (-before +now):\n%s", procs, diff)
		}
	}

	// A replicate does not depend on the others, nor an epoch on those after it.
	run.Replicates = 2
	run.Parameters = parameters(trainer.Parameters{ParameterEpochs: int64(2)})
	got := metrics(t, made, run)
	for e := range got {
		for name := range got[e] {
			if diff := cmp.Diff(want[e][name][:2], got[e][name]); diff != "" {
				t.Errorf("%s after %d epochs (-of 5 replicates +of 2):\n%s", name, e+1, diff)
			}
		}
	}

	// Replicates and seeds have streams of their own.
	losses := make(map[float64]bool)
	for seed := range uint64(4) {
		run.Seed = &seed
		for _, loss := range metrics(t, made, run)[0][experiment.MetricLoss] {
			losses[loss] = true
		}
	}
	if len(losses) != 8 {
		t.Errorf("4 seeds with 2 replicates give %d different losses, want 8", len(losses))
	}
}

// Randomness from the operating system differs every time: the noise, and the orders.
func TestOSNoise(t *testing.T) {
	made := newTrainer(t, nil)
	for _, deviation := range []float64{0.5, 0} {
		run := trainer.Run{
			Parameters: parameters(trainer.Parameters{ParameterStandardDeviation: deviation}), Replicates: 2,
		}
		losses := make(map[float64]bool)
		for range 2 {
			for _, loss := range metrics(t, made, run)[2][experiment.MetricLoss] {
				losses[loss] = true
			}
		}
		if len(losses) != 4 {
			t.Errorf("σ = %v: 2 runs with 2 replicates give %d different losses, want 4", deviation, len(losses))
		}
	}
}

func newReplicate(t *testing.T, made *Trainer, c configuration, seed *uint64, number int) *replicate {
	t.Helper()
	r, err := made.newReplicate(c, seed, number)
	if err != nil {
		t.Error(err)
	}
	return r
}

// The model differs from that without noise by independent normal numbers.
func TestNoiseDistribution(t *testing.T) {
	made := newTrainer(t, nil)
	for source, seed := range map[string]*uint64{"seed": new(uint64(3)), "system": nil} {
		var draws []float64
		for r := range 200 {
			replicate := newReplicate(t, made, configuration{gamma: 0.1, deviation: 2}, seed, r)
			if !replicate.Epoch(t.Context()) {
				t.Fatal("the epoch was not finished")
			}
			for _, w := range replicate.model {
				if units := w / replicate.grid; units != math.Trunc(units) {
					t.Fatalf("weight %v is %v units of the grid", w, units)
				}
			}
			noise := slices.Clone(replicate.model)
			floats.Sub(noise, replicate.descent.weights())
			draws = append(draws, noise...)
		}
		// Kolmogorov and Smirnov: √n·D exceeds 2.2 once in 8000 times.
		slices.Sort(draws)
		n, largest := float64(len(draws)), 0.0
		for i, x := range draws {
			u := distuv.Normal{Sigma: 2}.CDF(x)
			largest = max(largest, math.Abs(u-float64(i)/n), math.Abs(u-float64(i+1)/n))
		}
		if largest*math.Sqrt(n) > 2.2 {
			t.Errorf("source %s: distance from the normal distribution %v/√n", source, largest*math.Sqrt(n))
		}
	}
}

func TestParameterErrors(t *testing.T) {
	made := newTrainer(t, nil)
	for _, tt := range []struct {
		changes trainer.Parameters
		want    string
	}{
		{trainer.Parameters{ParameterEpochs: nil}, `parameter "epochs" is missing`},
		{trainer.Parameters{ParameterEpochs: int64(0)}, `parameter "epochs" is 0, want at least 1`},
		{trainer.Parameters{ParameterEpochs: 2.0}, `parameter "epochs" is 2 (float64), want an int64`},
		{trainer.Parameters{ParameterRegularization: 0.0}, `parameter "regularization" is 0, want a positive`},
		{trainer.Parameters{ParameterRegularization: math.Inf(1)}, `parameter "regularization" is +Inf`},
		{trainer.Parameters{ParameterStandardDeviation: -1.0}, `parameter "standard_deviation" is -1, want a finite number of at least 0`},
		{trainer.Parameters{ParameterStandardDeviation: math.NaN()}, `parameter "standard_deviation" is NaN`},
		{trainer.Parameters{"sigma": 1.0}, `parameter "sigma" is unknown`},
	} {
		p := parameters(tt.changes)
		_, err := made.Train(t.Context(), trainer.Run{Parameters: p, Replicates: 1, Seed: new(uint64(0))}, nil)
		if _, ok := errors.AsType[*trainer.ParameterError](err); !ok || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("Train: error %v\nwant  %s", err, tt.want)
		}
		if _, err := made.Mechanism(p); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("Mechanism: error %v\nwant  %s", err, tt.want)
		}
	}
	if _, err := made.Train(t.Context(), trainer.Run{Parameters: parameters(nil), Seed: new(uint64(0))}, nil); err == nil {
		t.Error("no replicates: no error")
	}
	p := parameters(trainer.Parameters{ParameterStandardDeviation: 0.0})
	if _, err := made.Mechanism(p); err == nil || !strings.Contains(err.Error(), "no privacy") {
		t.Errorf("mechanism without noise: error %v", err)
	}
}

func TestTrainEnds(t *testing.T) {
	made := newTrainer(t, nil)
	run := trainer.Run{Parameters: parameters(nil), Replicates: 2, Seed: new(uint64(0))}
	reports := 0
	m, err := made.Train(t.Context(), run, func(trainer.Measurement) error { reports++; return trainer.ErrStop })
	if err != nil || m.Step != 1 || reports != 1 {
		t.Errorf("stopped: step %d after %d reports, %v", m.Step, reports, err)
	}
	broken := errors.New("broken")
	if _, err := made.Train(t.Context(), run, func(trainer.Measurement) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v, want the report's", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	run.Parameters = parameters(trainer.Parameters{ParameterEpochs: int64(math.MaxInt64)})
	if _, err := made.Train(ctx, run, func(trainer.Measurement) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	run.Parameters = parameters(trainer.Parameters{ParameterStandardDeviation: 1e308})
	if _, err := made.Train(t.Context(), run, nil); err == nil || !strings.HasPrefix(err.Error(), `parameter "standard_deviation" is 1e+308, want one between`) {
		t.Errorf("error %v, want that the noise is too large", err)
	}
}

func TestNewErrors(t *testing.T) {
	for want, change := range map[string]func(*dataset.Parts, *Options){
		"feature norm is -1":  func(_ *dataset.Parts, o *Options) { o.FeatureNorm = -1 },
		"feature norm is NaN": func(_ *dataset.Parts, o *Options) { o.FeatureNorm = math.NaN() },
		`projection "x" is unknown, want none, published or small`: func(_ *dataset.Parts, o *Options) { o.Projection = "x" },
		"is empty": func(p *dataset.Parts, _ *Options) { p.Validation = dataset.Generated(0, 1) },
	} {
		parts := &dataset.Parts{Train: dataset.Generated(5, 1), Test: dataset.Generated(5, 2)}
		var o Options
		change(parts, &o)
		if _, err := New(parts, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// The ε of stated values: n = 30,956, δ = 1e-6. With the published projection they match
// the code published with Avent et al. (PoPETs 2020); without, the analytic Gaussian
// mechanism (Balle and Wang 2018) at half of the sensitivity, to 50 digits by mpmath.
func TestMechanism(t *testing.T) {
	for _, tt := range []struct{ gamma, sigma, published, without float64 }{
		{1e-4, 0.1, 144.054439184, 50.833944},
		{1e-3, 0.1, 6.55928949623, 2.9915242},
		{1e-3, 1, 0.522068143107, 0.2488235},
		{0.1, 0.1, 0.0443812100201, 0.021003746},
		{1, 10, 1.3418596e-5, 4.2143819e-06},
	} {
		for projection, want := range map[Projection]float64{PublishedProjection: tt.published, NoProjection: tt.without} {
			made := newTrainer(t, func(p *dataset.Parts, o *Options) { p.Train, o.Projection = dataset.Generated(30956, 1), projection })
			mechanism, err := made.Mechanism(parameters(trainer.Parameters{
				ParameterRegularization: tt.gamma, ParameterStandardDeviation: tt.sigma,
			}))
			require.NoError(t, err)
			require.NoError(t, mechanism.Validate())
			g, err := privacy.Epsilon(privacy.GDP{}, mechanism, 1, 1e-6)
			require.NoError(t, err)
			if math.Abs(g.Epsilon-want) > 2e-7*want || g.Adjacency != privacy.ReplaceOne {
				t.Errorf("γ = %v, σ = %v, projection %s: ε = %v under %v, want %v under replace-one",
					tt.gamma, tt.sigma, projection, g.Epsilon, g.Adjacency, want)
			}
		}
	}
	// √(2·log 2/γ) = 37.232974 for γ = 1e-3, and 1/γ = 1 for γ = 1.
	if r := SmallProjection.radius(1e-3); math.Abs(r-37.232974) > 1e-6 {
		t.Errorf("small radius %v, want 37.232974", r)
	}
	if r := SmallProjection.radius(1); r != 1 {
		t.Errorf("small radius %v, want 1", r)
	}
}

func TestDefinition(t *testing.T) {
	var registry trainer.Registry
	registry.Register(Definition(dataset.NewCache()))
	settings := func(changes map[string]string) trainer.Options {
		all := map[string]string{experiment.SettingGenerated: "true", experiment.SettingTrainRows: "100"}
		maps.Copy(all, changes)
		return trainer.Options{Settings: all}
	}
	made, err := registry.New(t.Context(), Name, settings(map[string]string{
		SettingProjection: "small", "feature_norm": "2.5",
	}))
	require.NoError(t, err)
	got := made.(*Trainer)
	want := Options{Projection: SmallProjection, FeatureNorm: 2.5}
	if diff := cmp.Diff(want, got.options); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	if split := got.Parts().Split; split.Train != 90 || split.Validation != 10 || got.Name() != Name {
		t.Errorf("trainer %s on %v, want 90 training and 10 validation examples", got.Name(), split)
	}
	for want, changes := range map[string]map[string]string{
		`setting projection is "ball"`:                         {SettingProjection: "ball"},
		`setting feature_norm is "0"`:                          {"feature_norm": "0"},
		`setting train_rows is "few"`:                          {experiment.SettingTrainRows: "few"},
		`setting split_seed is "-1"`:                           {experiment.SettingSplitSeed: "-1"},
		`setting generated is "maybe"`:                         {experiment.SettingGenerated: "maybe"},
		"dataset mnist-generated-train has 10 classes, want 2": {experiment.SettingDataset: "mnist", experiment.SettingTrainRows: ""},
		`split "none" is unknown`:                              {experiment.SettingSplit: "none"},
	} {
		if _, err := registry.New(t.Context(), Name, settings(changes)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	// Every default may be given.
	defaults := make(map[string]string)
	for _, s := range Definition(nil).Settings {
		defaults[s.Name] = s.Default
	}
	defaults[experiment.SettingGenerated] = "true"
	if _, err := registry.New(t.Context(), Name, trainer.Options{Settings: defaults}); err != nil {
		t.Errorf("defaults: %v", err)
	}
}

// Sweep measures the models that Train trains: the same one without noise and for the first noise, and
// models with other noise of the same size after it.
func TestSweep(t *testing.T) {
	made := newTrainer(t, nil)
	const runs = 200
	errs, err := made.Sweep(t.Context(), 3, 0.01, []float64{0.5, 0, 0.5}, runs, 7)
	require.NoError(t, err)
	for i, deviation := range []float64{0.5, 0} {
		run := trainer.Run{Parameters: parameters(trainer.Parameters{ParameterStandardDeviation: deviation}), Replicates: runs, Seed: new(uint64(7))}
		if diff := cmp.Diff(metrics(t, made, run)[2][experiment.MetricError], errs[i]); diff != "" {
			t.Errorf("σ = %g (-train +sweep):\n%s", deviation, diff)
		}
	}
	first, firstDeviation := stat.MeanStdDev(errs[0], nil)
	other, otherDeviation := stat.MeanStdDev(errs[2], nil)
	if slices.Equal(errs[0], errs[2]) || math.Abs(first-other) > 4*math.Hypot(firstDeviation, otherDeviation)/math.Sqrt(runs) {
		t.Errorf("errors %g and %g with two noises of one size", first, other)
	}
	for name, sweep := range map[string]func() ([][]float64, error){
		ParameterEpochs:            func() ([][]float64, error) { return made.Sweep(t.Context(), 0, 0.01, []float64{1}, 1, 7) },
		ParameterRegularization:    func() ([][]float64, error) { return made.Sweep(t.Context(), 1, 0, []float64{1}, 1, 7) },
		ParameterStandardDeviation: func() ([][]float64, error) { return made.Sweep(t.Context(), 1, 0.01, []float64{-1}, 1, 7) },
	} {
		var wrong *trainer.ParameterError
		if _, err := sweep(); !errors.As(err, &wrong) || wrong.Name != name {
			t.Errorf("a wrong %s: %v", name, err)
		}
	}
}

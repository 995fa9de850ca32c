package objectiveperturbation

import (
	"context"
	"errors"
	"maps"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset/datasettest"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
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
	p := trainer.Parameters{ParameterTargetEpsilon: 1.0, ParameterRegularization: 1e-3}
	maps.Copy(p, changes)
	maps.DeleteFunc(p, func(_ string, v any) bool { return v == nil })
	return p
}

func train(t *testing.T, made *Trainer, run trainer.Run) map[string][]float64 {
	t.Helper()
	m, err := made.Train(t.Context(), run, func(trainer.Measurement) error {
		t.Error("a trainer without checkpoints reports")
		return nil
	})
	require.NoError(t, err)
	if m.Step != 1 {
		t.Errorf("step %d, want 1", m.Step)
	}
	return m.Metrics
}

func TestTrainLearns(t *testing.T) {
	for _, loss := range []linear.Loss{linear.Logistic{}, linear.Huber{Width: 0.5}} {
		made := newTrainer(t, func(p *dataset.Parts, o *Options) {
			p.Train, p.Test, o.Loss = dataset.Generated(5000, 1), dataset.Generated(5000, 2), loss
		})
		errorAt := func(epsilon float64) float64 {
			return stat.Mean(train(t, made, trainer.Run{
				Parameters: parameters(trainer.Parameters{ParameterTargetEpsilon: epsilon, ParameterRegularization: 1e-4}), Replicates: 2, Seed: new(uint64(0)),
			})[experiment.MetricError], nil)
		}
		// The hidden model's error is about 0.148, the constant one's 0.24.
		best, good, bad := errorAt(math.Inf(1)), errorAt(10), errorAt(0.001)
		if best > 0.165 || good < best || good > 0.185 || bad < 0.23 {
			t.Errorf("%T: errors %v without privacy, %v at ε = 10, %v at ε = 0.001", loss, best, good, bad)
		}
	}
}

func TestTrainIsReproducible(t *testing.T) {
	made := newTrainer(t, func(p *dataset.Parts, _ *Options) { p.Validation = dataset.Generated(100, 3) })
	run := trainer.Run{Parameters: parameters(nil), Replicates: 5, Seed: new(uint64(7))}
	want := train(t, made, run)
	for _, name := range []string{experiment.MetricError, experiment.MetricLoss, experiment.MetricTestError, experiment.MetricTestLoss} {
		if len(want[name]) != 5 {
			t.Errorf("%d values of %s, want 5", len(want[name]), name)
		}
	}
	for _, procs := range []int{1, 2, 7} {
		previous := runtime.GOMAXPROCS(procs)
		got := train(t, made, run)
		runtime.GOMAXPROCS(previous)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("GOMAXPROCS %d (-before +now):\n%s", procs, diff)
		}
	}
	run.Replicates = 2
	for name, values := range train(t, made, run) {
		if diff := cmp.Diff(want[name][:2], values); diff != "" {
			t.Errorf("%s (-of 5 replicates +of 2):\n%s", name, diff)
		}
	}
	losses := make(map[float64]bool)
	for seed := range uint64(4) {
		run.Seed = &seed
		for _, loss := range train(t, made, run)[experiment.MetricLoss] {
			losses[loss] = true
		}
	}
	if len(losses) != 8 {
		t.Errorf("4 seeds with 2 replicates give %d different losses, want 8", len(losses))
	}
}

func TestOSNoise(t *testing.T) {
	made := newTrainer(t, nil)
	losses := make(map[float64]bool)
	for range 2 {
		for _, loss := range train(t, made, trainer.Run{Parameters: parameters(nil), Replicates: 2})[experiment.MetricLoss] {
			losses[loss] = true
		}
	}
	if len(losses) != 4 {
		t.Errorf("2 runs with 2 replicates give %d different losses, want 4", len(losses))
	}
}

func TestParameterErrors(t *testing.T) {
	rankOne := newTrainer(t, nil)
	original := newTrainer(t, func(_ *dataset.Parts, o *Options) { o.Calibration = privacy.Chaudhuri })
	for _, tt := range []struct {
		made    *Trainer
		changes trainer.Parameters
		want    string
	}{
		{rankOne, trainer.Parameters{ParameterTargetEpsilon: nil}, `parameter "target_epsilon" is missing`},
		{rankOne, trainer.Parameters{ParameterTargetEpsilon: 0.0}, `parameter "target_epsilon" is 0, want a positive number`},
		{rankOne, trainer.Parameters{ParameterTargetEpsilon: math.NaN()}, `parameter "target_epsilon" is NaN`},
		{rankOne, trainer.Parameters{ParameterRegularization: -1.0}, `parameter "regularization" is -1, want a positive finite`},
		{rankOne, trainer.Parameters{ParameterRegularization: math.Inf(1)}, `parameter "regularization" is +Inf`},
		{rankOne, trainer.Parameters{ParameterSplit: 1.0}, `parameter "regularizer_share" is 1, want a number strictly between 0 and 1`},
		{rankOne, trainer.Parameters{ParameterSplit: 0.0}, `parameter "regularizer_share" is 0, want a number strictly between 0 and 1`},
		{rankOne, trainer.Parameters{"lambda": 1.0}, `parameter "lambda" is unknown, want one of target_epsilon, regularization, regularizer_share`},
		{original, trainer.Parameters{ParameterSplit: 0.1}, `parameter "regularizer_share" is unknown, want one of target_epsilon, regularization`},
	} {
		p := parameters(tt.changes)
		_, err := tt.made.Train(t.Context(), trainer.Run{Parameters: p, Replicates: 1, Seed: new(uint64(0))}, nil)
		if _, ok := errors.AsType[*trainer.ParameterError](err); !ok || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("Train: error %v\nwant  %s", err, tt.want)
		}
		if _, err := tt.made.Mechanism(p); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("Mechanism: error %v\nwant  %s", err, tt.want)
		}
	}
	if _, err := rankOne.Train(t.Context(), trainer.Run{Parameters: parameters(nil), Seed: new(uint64(0))}, nil); err == nil {
		t.Error("no replicates: no error")
	}
	p := parameters(trainer.Parameters{ParameterTargetEpsilon: math.Inf(1)})
	if _, err := rankOne.Mechanism(p); err == nil || !strings.Contains(err.Error(), "no privacy") {
		t.Errorf("mechanism at ε = +Inf: error %v", err)
	}
}

func TestTrainFailures(t *testing.T) {
	made := newTrainer(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := made.Train(ctx, trainer.Run{Parameters: parameters(nil), Replicates: 2, Seed: new(uint64(0))}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
	// At ε = 1e-14 the noise is so large that rounding exceeds the gradient norm.
	for epsilon, want := range map[float64]string{
		1e-14:  "infeasible: replicate 0 has no minimiser to release: gradient norm",
		1e-320: "infeasible: replicate 0 has no minimiser to release",
	} {
		run := trainer.Run{Parameters: parameters(trainer.Parameters{ParameterTargetEpsilon: epsilon}), Replicates: 1, Seed: new(uint64(0))}
		_, err := made.Train(t.Context(), run, nil)
		if _, ok := errors.AsType[*trainer.InfeasibleError](err); !ok || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("ε = %v: error %v, want %s", epsilon, err, want)
		}
	}
}

// The declared mechanism costs the ε of the parameters and has the constants of
// the loss.
func TestMechanism(t *testing.T) {
	for _, loss := range []linear.Loss{linear.Logistic{}, linear.Huber{Width: 2}, linear.Huber{Width: 0.1}} {
		for _, rule := range []privacy.ObjectiveCalibration{privacy.RankOne, privacy.Chaudhuri, privacy.ContinuousChaudhuri} {
			made := newTrainer(t, func(_ *dataset.Parts, o *Options) { o.Loss, o.Calibration = loss, rule })
			for _, epsilon := range []float64{0.01, 1, 20} {
				mechanism, err := made.Mechanism(parameters(trainer.Parameters{ParameterTargetEpsilon: epsilon}))
				require.NoError(t, err)
				want := privacy.ObjectivePerturbation{
					DatasetSize: 500, Regularization: 1e-3, Curvature: loss.Curvature(), Epsilon: epsilon, Calibration: rule,
				}
				if diff := cmp.Diff(want, mechanism); diff != "" {
					t.Errorf("mechanism (-want +got):\n%s", diff)
				}
				g, err := privacy.Epsilon(privacy.Pure{}, mechanism, 1, 0)
				require.NoError(t, err)
				if g.Epsilon != epsilon || g.Delta != 0 || g.Adjacency != privacy.ReplaceOne {
					t.Errorf("ε = %v, δ = %v under %v, want %v under replace-one", g.Epsilon, g.Delta, g.Adjacency, epsilon)
				}
			}
		}
	}
	made := newTrainer(t, nil)
	mechanism, err := made.Mechanism(parameters(trainer.Parameters{ParameterSplit: 0.02}))
	if err != nil || mechanism.(privacy.ObjectivePerturbation).Split != 0.02 {
		t.Errorf("split: %+v, %v", mechanism, err)
	}
}

func TestNewErrors(t *testing.T) {
	for want, change := range map[string]func(*dataset.Parts, *Options){
		"feature norm is -1":            func(_ *dataset.Parts, o *Options) { o.FeatureNorm = -1 },
		"curvature of the loss is +Inf": func(_ *dataset.Parts, o *Options) { o.Loss = linear.Huber{} },
		"calibration 7 is unknown":      func(_ *dataset.Parts, o *Options) { o.Calibration = 7 },
		"is empty":                      func(p *dataset.Parts, _ *Options) { p.Test = dataset.Generated(0, 1) },
	} {
		parts := &dataset.Parts{Train: dataset.Generated(5, 1), Test: dataset.Generated(5, 2)}
		var o Options
		change(parts, &o)
		if _, err := New(parts, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
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
		SettingLoss: LossHuber, SettingHuberWidth: "2", SettingCalibration: CalibrationContinuous,
	}))
	require.NoError(t, err)
	got := made.(*Trainer)
	want := Options{Loss: linear.Huber{Width: 2}, Calibration: privacy.ContinuousChaudhuri}
	if diff := cmp.Diff(want, got.options); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	if split := got.Parts().Split; split.Train != 90 || split.Validation != 10 || got.Name() != Name {
		t.Errorf("trainer %s on %v, want 90 training and 10 validation examples", got.Name(), split)
	}
	for want, changes := range map[string]map[string]string{
		`setting loss is "hinge"`:                                  {SettingLoss: "hinge"},
		`setting huber_width is "0"`:                               {SettingLoss: LossHuber, SettingHuberWidth: "0"},
		`setting huber_width is "1", want none without loss huber`: {SettingHuberWidth: "1"},
		`setting calibration is "best"`:                            {SettingCalibration: "best"},
		`setting "huber" of trainer`:                               {"huber": "1"},
	} {
		if _, err := registry.New(t.Context(), Name, settings(changes)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// On Adult with 10,000 training records and λ = 1e-6 an independent
// implementation in Python found test errors of 0.180 at ε = 1 with the rank-one
// calibration and a split of 0.02, 0.251 with the original one and 0.156 without
// privacy, over ten draws of the noise. Another in NumPy, on the first 10,000 rows of
// a1a.t and tested on a1a, found 0.184 ± 0.002 and 0.234 ± 0.005 over fifteen.
func TestAdult(t *testing.T) {
	adult, err := dataset.Load(t.Context(), dataset.NameAdult, dataset.Division{Split: dataset.SplitShuffled, TrainRows: 10000, Seed: 1},
		dataset.Source{DataDir: datasettest.Folder(t, "adult")})
	require.NoError(t, err)
	for _, tt := range []struct {
		name        string
		rule        privacy.ObjectiveCalibration
		changes     trainer.Parameters
		least, most float64
	}{
		{"rank-one", privacy.RankOne, trainer.Parameters{ParameterSplit: 0.02}, 0.165, 0.185},
		{"original", privacy.Chaudhuri, nil, 0.225, 0.265},
		{"not private", privacy.RankOne, trainer.Parameters{ParameterTargetEpsilon: math.Inf(1)}, 0.15, 0.16},
	} {
		made := newTrainer(t, func(p *dataset.Parts, o *Options) { p.Train, p.Test, o.Calibration = adult.Train, adult.Test, tt.rule })
		p := parameters(tt.changes)
		p[ParameterRegularization] = 1e-6
		const replicates = 10
		errs := train(t, made, trainer.Run{Parameters: p, Replicates: replicates, Seed: new(uint64(1))})[experiment.MetricError]
		mean, deviation := stat.MeanStdDev(errs, nil)
		t.Logf("%s: error %.4f ± %.4f", tt.name, mean, deviation/math.Sqrt(replicates))
		if mean < tt.least || mean > tt.most {
			t.Errorf("%s: error %.4f, want between %v and %v", tt.name, mean, tt.least, tt.most)
		}
	}
}

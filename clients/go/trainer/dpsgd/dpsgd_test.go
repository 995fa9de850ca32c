package dpsgd

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
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/internal/require"
)

func newTrainer(t *testing.T, trainRows, testRows int) *Trainer {
	t.Helper()
	made, err := New(&dataset.Parts{Train: dataset.Generated(trainRows, 1), Test: dataset.Generated(testRows, 2)}, Options{})
	require.NoError(t, err)
	return made
}

// parameters returns a good configuration with some of its parameters changed;
// nil removes one.
func parameters(changes trainer.Parameters) trainer.Parameters {
	p := trainer.Parameters{
		ParameterEpochs:          int64(3),
		ParameterLotSize:         int64(16),
		ParameterLearningRate:    0.1,
		ParameterClippingNorm:    1.0,
		ParameterNoiseMultiplier: 1.0,
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
	made := newTrainer(t, 20000, 5000)
	reported := metrics(t, made, trainer.Run{
		Parameters: parameters(trainer.Parameters{ParameterEpochs: int64(5), ParameterNoiseMultiplier: 0.0}),
		Replicates: 2, Seed: new(uint64(0)),
	})
	if len(reported) != 5 {
		t.Fatalf("%d reports, want 5", len(reported))
	}
	for r := range 2 {
		first, last := reported[0], reported[4]
		if last[MetricLoss][r] >= first[MetricLoss][r] {
			t.Errorf("loss went from %v to %v", first[MetricLoss][r], last[MetricLoss][r])
		}
		// The hidden model's error is about 0.148, the constant one's 0.24.
		if last[MetricError][r] > 0.165 {
			t.Errorf("error %v after 5 epochs without noise, want at most 0.165", last[MetricError][r])
		}
	}
}

func TestTrainIsReproducible(t *testing.T) {
	made := newTrainer(t, 500, 300)
	run := trainer.Run{Parameters: parameters(nil), Replicates: 5, Seed: new(uint64(7))}
	want := metrics(t, made, run)

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
		for _, loss := range metrics(t, made, run)[0][MetricLoss] {
			losses[loss] = true
		}
	}
	if len(losses) != 8 {
		t.Errorf("4 seeds with 2 replicates give %d different losses, want 8", len(losses))
	}
}

// The losses below may not change: stored results depend on them. The tolerance
// is for processors that fuse multiplications and additions.
func TestTrainGolden(t *testing.T) {
	made := newTrainer(t, 500, 300)
	reported := metrics(t, made, trainer.Run{Parameters: parameters(nil), Replicates: 2, Seed: new(uint64(42))})
	want := [][]float64{
		{0.567764175503, 0.532039738115},
		{0.593572021290, 0.557187667281},
		{0.611106309331, 0.589974751292},
	}
	if len(reported) != len(want) {
		t.Fatalf("%d epochs, want %d", len(reported), len(want))
	}
	for e := range want {
		for r, loss := range reported[e][MetricLoss] {
			if math.Abs(loss-want[e][r]) > 1e-10 {
				t.Errorf("loss of replicate %d after %d epochs is %.12f, want %.12f", r, e+1, loss, want[e][r])
			}
		}
	}
}

func TestNoiseVarianceIsTheSquareOfTheMultiplier(t *testing.T) {
	made := newTrainer(t, 200, 100)
	multiplier := metrics(t, made, trainer.Run{
		Parameters: parameters(trainer.Parameters{ParameterNoiseMultiplier: 3.0}), Replicates: 1, Seed: new(uint64(0)),
	})
	variance := metrics(t, made, trainer.Run{
		Parameters: parameters(trainer.Parameters{ParameterNoiseMultiplier: nil, ParameterNoiseVariance: 9.0}), Replicates: 1, Seed: new(uint64(0)),
	})
	if diff := cmp.Diff(multiplier, variance); diff != "" {
		t.Errorf("metrics (-multiplier 3 +variance 9):\n%s", diff)
	}
}

func TestStepsPerEpoch(t *testing.T) {
	for _, tt := range []struct {
		rows    int
		lotSize int64
		want    int64
	}{{20, 8, 2}, {28, 8, 4}, {30956, 8, 3870}, {30956, 128, 242}, {40000, 512, 78}, {40, 40, 1}, {40, 30, 1}} {
		c, err := parseParameters(parameters(trainer.Parameters{ParameterLotSize: tt.lotSize}), SGD, tt.rows)
		require.NoError(t, err)
		if c.stepsPerEpoch != tt.want {
			t.Errorf("%d rows in lots of %d: %d steps, want %d", tt.rows, tt.lotSize, c.stepsPerEpoch, tt.want)
		}
	}
}

func TestTrainBadParameters(t *testing.T) {
	made := newTrainer(t, 50, 50)
	for _, tt := range []struct {
		name   string
		change trainer.Parameters
		want   string // the parameter named by the error
	}{
		{"no epochs", trainer.Parameters{ParameterEpochs: nil}, ParameterEpochs},
		{"zero epochs", trainer.Parameters{ParameterEpochs: int64(0)}, ParameterEpochs},
		{"fractional epochs", trainer.Parameters{ParameterEpochs: 2.0}, ParameterEpochs},
		{"zero lot", trainer.Parameters{ParameterLotSize: int64(0)}, ParameterLotSize},
		{"lot above the data", trainer.Parameters{ParameterLotSize: int64(51)}, ParameterLotSize},
		{"no learning rate", trainer.Parameters{ParameterLearningRate: nil}, ParameterLearningRate},
		{"zero learning rate", trainer.Parameters{ParameterLearningRate: 0.0}, ParameterLearningRate},
		{"infinite norm", trainer.Parameters{ParameterClippingNorm: math.Inf(1)}, ParameterClippingNorm},
		{"NaN norm", trainer.Parameters{ParameterClippingNorm: math.NaN()}, ParameterClippingNorm},
		{"no noise", trainer.Parameters{ParameterNoiseMultiplier: nil}, ParameterNoiseMultiplier},
		{"negative noise", trainer.Parameters{ParameterNoiseMultiplier: -1.0}, ParameterNoiseMultiplier},
		{"noise twice", trainer.Parameters{ParameterNoiseVariance: 1.0}, ParameterNoiseVariance},
		{"negative variance", trainer.Parameters{ParameterNoiseMultiplier: nil, ParameterNoiseVariance: -1.0}, ParameterNoiseVariance},
		{"unknown", trainer.Parameters{"momentum": 0.9}, "momentum"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := trainer.Run{Parameters: parameters(tt.change), Replicates: 1, Seed: new(uint64(0))}
			_, err := made.Train(t.Context(), run, nil)
			if pe, ok := errors.AsType[*trainer.ParameterError](err); !ok || pe.Name != tt.want {
				t.Errorf("error %v, want one about %q", err, tt.want)
			}
		})
	}
	if _, err := made.Train(t.Context(), trainer.Run{Parameters: parameters(nil), Seed: new(uint64(0))}, nil); err == nil {
		t.Error("no replicates: no error")
	}
}

func TestTrainDiverged(t *testing.T) {
	made := newTrainer(t, 50, 50)
	run := trainer.Run{
		Parameters: parameters(trainer.Parameters{ParameterLearningRate: 1e300, ParameterClippingNorm: 1e15}),
		Replicates: 2, Seed: new(uint64(0)),
	}
	_, err := made.Train(t.Context(), run, func(m trainer.Measurement) error {
		t.Errorf("reported %v", m)
		return nil
	})
	if infeasible, ok := errors.AsType[*trainer.InfeasibleError](err); !ok || !strings.Contains(infeasible.Reason, "after epoch 1") {
		t.Errorf("error %v, want an *InfeasibleError after epoch 1", err)
	}
}

func TestTrainCancelled(t *testing.T) {
	made := newTrainer(t, 50, 50)
	ctx, cancel := context.WithCancel(t.Context())
	run := trainer.Run{Parameters: parameters(trainer.Parameters{ParameterEpochs: int64(math.MaxInt64)}), Replicates: 2, Seed: new(uint64(0))}
	reports := 0
	_, err := made.Train(ctx, run, func(trainer.Measurement) error {
		reports++
		if reports == 3 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || reports != 3 {
		t.Errorf("error %v after %d reports, want %v after 3", err, reports, context.Canceled)
	}
}

// The context is looked at between steps, not only between epochs.
func TestEpochCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := newLinear(t, dataset.Generated(50, 1), Options{}, testConfiguration(50, 5), 0)
	if r.Epoch(ctx) {
		t.Error("the epoch was finished")
	}
	for _, w := range r.model.Weights() {
		if w != 0 {
			t.Fatal("a step was taken")
		}
	}
}

func TestNewRefuses(t *testing.T) {
	good := dataset.Generated(10, 1)
	bad := *good
	bad.Labels = append([]float32{0}, good.Labels[1:]...)
	ten := digits(10, good.Dim, 1)
	for _, tt := range []struct {
		name    string
		data    *dataset.Parts
		options Options
		want    string
	}{
		{"no test rows", &dataset.Parts{Train: good, Test: dataset.Generated(0, 1)}, Options{}, "is empty"},
		{"label 0", &dataset.Parts{Train: &bad, Test: good}, Options{}, "label of row 0 is 0"},
		{"other classes", &dataset.Parts{Train: good, Test: ten}, Options{}, "dataset digits has 10 classes, want the 2 of"},
		{"ten classes", &dataset.Parts{Train: ten, Test: ten}, Options{}, "model logistic-regression is for 2 classes, dataset digits has 10"},
		{"model", &dataset.Parts{Train: good, Test: good}, Options{Model: model.Spec{Kind: "tree"}}, `model "tree" is unknown`},
		{"optimizer", &dataset.Parts{Train: good, Test: good}, Options{Optimizer: "lbfgs"}, `optimizer "lbfgs" is unknown, want sgd or adam`},
		{"sampling", &dataset.Parts{Train: good, Test: good}, Options{Sampling: "shuffle"}, `sampling "shuffle" is unknown`},
		{
			"zero MLP", &dataset.Parts{Train: good, Test: good},
			Options{Model: model.Spec{Kind: model.MLP, Hidden: []int{3}}, Initialization: model.InitializeZero}, "without gradients",
		},
	} {
		if _, err := New(tt.data, tt.options); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

// The validation examples are measured apart from the test examples.
func TestValidation(t *testing.T) {
	train, validation, test := dataset.Generated(300, 1), dataset.Generated(200, 2), dataset.Generated(100, 3)
	run := trainer.Run{Parameters: parameters(nil), Replicates: 2, Seed: new(uint64(1))}
	measure := func(data *dataset.Parts) map[string][]float64 {
		made, err := New(data, Options{})
		require.NoError(t, err)
		return metrics(t, made, run)[2]
	}
	both := measure(&dataset.Parts{Train: train, Validation: validation, Test: test})
	onValidation := measure(&dataset.Parts{Train: train, Test: validation})
	onTest := measure(&dataset.Parts{Train: train, Test: test})
	want := map[string][]float64{
		MetricError: onValidation[MetricError], MetricLoss: onValidation[MetricLoss],
		experiment.MetricTestError: onTest[MetricError], experiment.MetricTestLoss: onTest[MetricLoss],
	}
	if diff := cmp.Diff(want, both); diff != "" {
		t.Errorf("metrics (-apart +together):\n%s", diff)
	}
	if len(onTest) != 2 {
		t.Errorf("without validation examples the metrics are %v, want error and loss", onTest)
	}
}

// All models learn, with both optimizers, on sparse and on dense rows.
func TestModelsLearn(t *testing.T) {
	adult := &dataset.Parts{Train: dataset.Generated(4000, 1), Test: dataset.Generated(2000, 2)}
	ten := &dataset.Parts{Train: digits(2000, 30, 1), Test: digits(1000, 30, 2)}
	for _, tt := range []struct {
		data *dataset.Parts
		spec model.Spec
		most float64 // the constant model's error is about 0.24 and 0.9
	}{
		{adult, model.Spec{Kind: model.LogisticRegression}, 0.19},
		{adult, model.Spec{Kind: model.LinearSVM}, 0.19},
		{adult, model.Spec{Kind: model.HuberSVM}, 0.19},
		{adult, model.Spec{Kind: model.SoftmaxRegression}, 0.19},
		{adult, model.Spec{Kind: model.MLP, Hidden: []int{16}}, 0.2},
		{ten, model.Spec{Kind: model.SoftmaxRegression}, 0.25},
		{ten, model.Spec{Kind: model.MLP, Hidden: []int{32, 16}}, 0.4},
	} {
		for optimizer, rate := range map[Optimizer]float64{SGD: 0.5, Adam: 0.01} {
			made, err := New(tt.data, Options{Model: tt.spec, Optimizer: optimizer, Initialization: model.InitializeHe})
			require.NoError(t, err)
			m, err := made.Train(t.Context(), trainer.Run{
				Parameters: parameters(trainer.Parameters{
					ParameterEpochs: int64(10), ParameterLotSize: int64(64), ParameterLearningRate: rate, ParameterNoiseMultiplier: 0.5,
				}),
				Replicates: 2, Seed: new(uint64(1)),
			}, nil)
			require.NoError(t, err)
			for _, e := range m.Metrics[MetricError] {
				if !(e <= tt.most) {
					t.Errorf("%s by %s: error %v, want at most %v", tt.spec.Kind, optimizer, e, tt.most)
				}
			}
		}
	}
}

// Networks, too, train to the same bits at any number of processors, whether these
// are shared among the replicates or work on the same lot.
func TestNetworkIsReproducible(t *testing.T) {
	for _, replicates := range []int{1, 3} {
		made, err := New(&dataset.Parts{Train: digits(700, 200, 1), Test: digits(300, 200, 2)},
			Options{Model: model.Spec{Kind: model.MLP, Hidden: []int{50, 20}}, Optimizer: Adam})
		require.NoError(t, err)
		run := trainer.Run{
			Parameters: parameters(trainer.Parameters{ParameterLotSize: int64(300), ParameterLearningRate: 0.01}),
			Replicates: replicates, Seed: new(uint64(7)),
		}
		want := metrics(t, made, run)
		for _, procs := range []int{1, 2, 7} {
			previous := runtime.GOMAXPROCS(procs)
			got := metrics(t, made, run)
			runtime.GOMAXPROCS(previous)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%d replicates, GOMAXPROCS %d (-before +now):\n%s", replicates, procs, diff)
			}
		}
	}
}

// The losses below may not change either. The tolerance is for the kernels of other
// CPUs, which round differently; on amd64 they differ by less than 1e-7 here.
func TestNetworkGolden(t *testing.T) {
	made, err := New(&dataset.Parts{Train: digits(500, 40, 1), Test: digits(300, 40, 2)},
		Options{Model: model.Spec{Kind: model.MLP, Hidden: []int{20, 10}}, Optimizer: Adam})
	require.NoError(t, err)
	reported := metrics(t, made, trainer.Run{
		Parameters: parameters(trainer.Parameters{ParameterLearningRate: 0.01, ParameterLotSize: int64(50)}), Replicates: 2, Seed: new(uint64(42)),
	})
	want := [][]float64{{3.03422522, 2.79863546}, {2.76478971, 2.57692376}, {2.60919455, 2.46387740}}
	for e := range want {
		for r, loss := range reported[e][MetricLoss] {
			if math.Abs(loss-want[e][r]) > 1e-5 {
				t.Errorf("loss of replicate %d after %d epochs is %.8f, want %.8f", r, e+1, loss, want[e][r])
			}
		}
	}
}

// TestMNIST trains MLP2 of Avent et al. (2020) on the real digits for an epoch. Its error
// after one epoch without privacy is known to be a few percent, and with a lot of noise
// it is still far better than guessing.
func TestMNIST(t *testing.T) {
	parts, err := dataset.Load(t.Context(), dataset.NameMNIST, dataset.Division{ValidationRows: 5000, Seed: 1},
		dataset.Source{DataDir: datasettest.Folder(t, dataset.NameMNIST)})
	require.NoError(t, err)
	made, err := New(parts, Options{Model: model.Spec{Kind: model.MLP, Hidden: []int{128, 64}}})
	require.NoError(t, err)
	for _, tt := range []struct{ clippingNorm, noiseMultiplier, most float64 }{
		{math.Inf(1), 0, 0.15}, {1, 4, 0.35},
	} {
		m, err := made.Train(t.Context(), trainer.Run{
			Parameters: parameters(trainer.Parameters{
				ParameterEpochs: int64(1), ParameterLotSize: int64(600), ParameterLearningRate: 0.3,
				ParameterClippingNorm: tt.clippingNorm, ParameterNoiseMultiplier: tt.noiseMultiplier,
			}),
			Replicates: 1, Seed: new(uint64(1)),
		}, nil)
		require.NoError(t, err)
		for _, name := range []string{MetricError, experiment.MetricTestError} {
			for _, e := range m.Metrics[name] {
				if e > tt.most || e < 0.01 {
					t.Errorf("σ = %v: %s %v, want at most %v", tt.noiseMultiplier, name, e, tt.most)
				}
			}
		}
		t.Logf("σ = %v: %v", tt.noiseMultiplier, m.Metrics)
	}
}

// Without clipping and noise, training is not private, by the same code.
func TestTrainWithoutPrivacy(t *testing.T) {
	made := newTrainer(t, 500, 300)
	unclipped := parameters(trainer.Parameters{ParameterNoiseMultiplier: 0.0, ParameterClippingNorm: math.Inf(1)})
	wide := parameters(trainer.Parameters{ParameterNoiseMultiplier: 0.0, ParameterClippingNorm: 1e9})
	got := metrics(t, made, trainer.Run{Parameters: unclipped, Replicates: 1, Seed: new(uint64(1))})
	want := metrics(t, made, trainer.Run{Parameters: wide, Replicates: 1, Seed: new(uint64(1))})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-wide +unclipped):\n%s", diff)
	}
}

// Without a seed the randomness is the operating system's, and no run is repeated.
func TestSystemNoise(t *testing.T) {
	made, err := New(&dataset.Parts{Train: dataset.Generated(500, 1), Test: dataset.Generated(300, 2)}, Options{})
	require.NoError(t, err)
	run := trainer.Run{Parameters: parameters(nil), Replicates: 2}
	losses := make(map[float64]bool)
	for range 3 {
		for _, loss := range metrics(t, made, run)[0][MetricLoss] {
			losses[loss] = true
		}
	}
	if len(losses) != 6 {
		t.Errorf("3 runs of 2 replicates have %d different losses, want 6", len(losses))
	}
}

// TestAdult compares the mean accuracy on the published split with an independent
// implementation, in Python, of the authors' code: mean and standard deviation over 40
// runs.
func TestAdult(t *testing.T) {
	train, test := adult(t, dataset.Division{Split: dataset.SplitPublished})
	const logistic, svm = model.LogisticRegression, model.LinearSVM
	const zero, published = model.InitializeZero, model.InitializePublished
	for _, tt := range []struct {
		kind            model.Kind
		initialization  model.Initialization
		epochs, lotSize int64
		clippingNorm    float64
		noiseMultiplier float64
		replicates      int
		mean, deviation float64
	}{
		{logistic, zero, 1, 64, 2, 1, 20, 0.8227, 0.0034},
		{logistic, published, 1, 64, 2, 1, 20, 0.8150, 0.0113},
		{logistic, zero, 10, 64, 1, 1, 8, 0.8308, 0.0022},
		{logistic, zero, 10, 256, 1, 1, 8, 0.8226, 0.0011},
		{logistic, published, 10, 256, 1, 1, 8, 0.8179, 0.0029},
		{logistic, zero, 30, 256, 1, 4, 3, 0.8293, 0.0016},
		{logistic, zero, 64, 512, 1, 8, 3, 0.8295, 0.0019},
		{svm, zero, 1, 64, 2, 1, 20, 0.8234, 0.0033},
		{svm, published, 1, 64, 2, 1, 20, 0.8166, 0.0076},
		{svm, zero, 10, 64, 1, 1, 8, 0.8335, 0.0020},
	} {
		made, err := New(&dataset.Parts{Train: train, Test: test},
			Options{Model: model.Spec{Kind: tt.kind}, Initialization: tt.initialization})
		require.NoError(t, err)
		m, err := made.Train(t.Context(), trainer.Run{
			Parameters: trainer.Parameters{
				ParameterEpochs:          tt.epochs,
				ParameterLotSize:         tt.lotSize,
				ParameterLearningRate:    0.05,
				ParameterClippingNorm:    tt.clippingNorm,
				ParameterNoiseMultiplier: tt.noiseMultiplier,
			},
			Replicates: tt.replicates,
			Seed:       new(uint64(1)),
		}, nil)
		require.NoError(t, err)
		mean, deviation := stat.MeanStdDev(m.Metrics[MetricError], nil)
		standardError := math.Hypot(tt.deviation/math.Sqrt(40), max(tt.deviation, deviation)/math.Sqrt(float64(tt.replicates)))
		if math.Abs(1-mean-tt.mean) > 3*standardError {
			t.Errorf("%s from %s, %d epochs, lot %d: accuracy %v, want %v ± %v",
				tt.kind, tt.initialization, tt.epochs, tt.lotSize, 1-mean, tt.mean, standardError)
		}
		t.Logf("%s from %s, %d epochs, lot %d: accuracy %.4f (deviation %.4f), reference %.4f (%.4f)",
			tt.kind, tt.initialization, tt.epochs, tt.lotSize, 1-mean, deviation, tt.mean, tt.deviation)
	}
}

// adult returns a split of Adult, or skips the test where its files are missing.
func adult(t *testing.T, split dataset.Division) (train, test *dataset.Dataset) {
	t.Helper()
	parts, err := dataset.Load(t.Context(), dataset.NameAdult, split, dataset.Source{DataDir: datasettest.Folder(t, "adult")})
	require.NoError(t, err)
	return parts.Train, parts.Test
}

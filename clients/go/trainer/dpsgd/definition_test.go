package dpsgd

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

// cache is shared by the tests: to generate the rows of Adult takes most of the time.
// Nothing changes a dataset.
var cache = dataset.NewCache()

func load(t *testing.T, optimizer Optimizer, settings map[string]string) (*Trainer, error) {
	t.Helper()
	var registry trainer.Registry
	definition := Definition(cache, optimizer)
	registry.Register(definition)
	made, err := registry.New(t.Context(), definition.Name, trainer.Options{Settings: settings, DataDir: "unused"})
	if err != nil {
		return nil, err
	}
	return made.(*Trainer), nil
}

// The five settings of Avent et al. (2020) and others are made by name.
func TestDefinitionOptions(t *testing.T) {
	for _, tt := range []struct {
		optimizer Optimizer
		settings  map[string]string
		want      Options
	}{
		{SGD, nil, Options{
			Model: model.Spec{Kind: model.LogisticRegression}, Optimizer: SGD,
			Initialization: model.InitializeZero, Sampling: FixedSize, Adjacency: ReplaceOne, Features: Raw,
		}},
		{Adam, map[string]string{SettingInitialization: "published"}, Options{
			Model: model.Spec{Kind: model.LogisticRegression}, Optimizer: Adam,
			Initialization: model.InitializePublished, Sampling: FixedSize, Adjacency: ReplaceOne, Features: Raw,
		}},
		{SGD, map[string]string{SettingModel: "huber-svm", SettingHuberWidth: "0.3", SettingSampling: "poisson"}, Options{
			Model: model.Spec{Kind: model.HuberSVM, HuberWidth: 0.3}, Optimizer: SGD,
			Initialization: model.InitializeZero, Sampling: Poisson, Adjacency: AddRemove, Features: Raw,
		}},
		{SGD, map[string]string{SettingModel: "mlp"}, Options{
			Model: model.Spec{Kind: model.MLP, Hidden: []int{128, 64}}, Optimizer: SGD,
			Initialization: model.InitializePublished, Sampling: FixedSize, Adjacency: ReplaceOne, Features: Raw,
		}},
		{SGD, map[string]string{SettingModel: "mlp", SettingHidden: "1000", SettingInitialization: "he"}, Options{
			Model: model.Spec{Kind: model.MLP, Hidden: []int{1000}}, Optimizer: SGD,
			Initialization: model.InitializeHe, Sampling: FixedSize, Adjacency: ReplaceOne, Features: Raw,
		}},
	} {
		settings := map[string]string{SettingGenerated: "true", SettingTrainRows: "100"}
		maps.Copy(settings, tt.settings)
		made, err := load(t, tt.optimizer, settings)
		require.NoError(t, err)
		if diff := cmp.Diff(tt.want, made.Options()); diff != "" {
			t.Errorf("%v: options (-want +got):\n%s", tt.settings, diff)
		}
	}
}

func TestDefinitionErrors(t *testing.T) {
	for _, tt := range []struct {
		settings map[string]string
		want     string
	}{
		{map[string]string{SettingSplit: "paper"}, `split "paper" is unknown`},
		{map[string]string{SettingDataset: "mnist"}, "model logistic-regression is for 2 classes, dataset mnist-generated-train has 10"},
		{map[string]string{SettingModel: "tree"}, `model "tree" is unknown, want one of logistic-regression`},
		{map[string]string{SettingHidden: "10"}, `setting hidden is "10", want none, since model logistic-regression has no hidden layers`},
		{map[string]string{SettingModel: "mlp", SettingHidden: "10,,3"}, `setting hidden is "10,,3", want widths`},
		{map[string]string{SettingHuberWidth: "0.5"}, `setting huber_width is "0.5"`},
		{map[string]string{SettingModel: "huber-svm", SettingHuberWidth: "2"}, `setting huber_width is "2"`},
		{map[string]string{SettingModel: "mlp", SettingInitialization: "zero"}, "without gradients"},
		{map[string]string{SettingSampling: "shuffle"}, `sampling "shuffle" is unknown`},
		{map[string]string{SettingAdjacency: "add-remove"}, `adjacency "add-remove" is unknown, want replace-one`},
		{map[string]string{SettingSampling: "poisson", SettingAdjacency: "zero-out"}, `adjacency "zero-out" is unknown, want add-remove or replace-one`},
	} {
		if _, ok := tt.settings[SettingGenerated]; !ok {
			tt.settings[SettingGenerated] = "true"
		}
		if _, err := load(t, SGD, tt.settings); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: error %v, want one with %q", tt.settings, err, tt.want)
		}
	}
}

// The defaults that the definition states are those that are used.
func TestDefinitionDefaults(t *testing.T) {
	defaults := map[string]string{}
	for _, s := range Definition(nil, SGD).Settings {
		defaults[s.Name] = s.Default
	}
	defaults[SettingGenerated] = "true"
	stated, err := load(t, SGD, defaults)
	require.NoError(t, err)
	used, err := load(t, SGD, map[string]string{SettingGenerated: "true"})
	require.NoError(t, err)
	if diff := cmp.Diff(stated.Options(), used.Options()); diff != "" {
		t.Errorf("options (-stated +used):\n%s", diff)
	}
	if !reflect.DeepEqual(stated.Parts(), used.Parts()) {
		t.Error("the data stated are not those used")
	}
}

// The declared domains are from Table 1 of Avent et al. (2020), with the distributions of
// Tables 4 (Adult) and 3 (MNIST).
func TestDeclaration(t *testing.T) {
	type domain struct {
		min, max float64
		dist     trainer.Distribution
	}
	normal := func(mean, deviation float64) trainer.Distribution {
		return trainer.Distribution{Kind: trainer.DistributionNormal, Mean: mean, StandardDeviation: deviation}
	}
	exponential := func(rate, shift float64) trainer.Distribution {
		return trainer.Distribution{Kind: trainer.DistributionShiftedExponential, Rate: rate, Shift: shift}
	}
	uniform := trainer.Distribution{Kind: trainer.DistributionUniform}
	for kind, want := range map[model.Kind]map[string]domain{
		model.LogisticRegression: {
			"epochs": {1, 64, uniform}, "lot_size": {8, 512, normal(128, 64)},
			"learning_rate": {5e-4, 5e-2, exponential(10, 1e-3)}, "clipping_norm": {0.1, 4, exponential(0.1, 0.1)},
			"noise_multiplier": {0.1, 16, exponential(0.1, 0.1)},
		},
		model.MLP: {
			"epochs": {1, 400, uniform}, "lot_size": {16, 4000, normal(800, 800)},
			"learning_rate": {1e-3, 0.5, exponential(10, 1e-3)}, "clipping_norm": {0.1, 12, exponential(0.5, 0.1)},
			"noise_multiplier": {0.1, 16, exponential(0.5, 0.1)},
		},
	} {
		made, err := load(t, SGD, map[string]string{SettingGenerated: "true", SettingModel: string(kind)})
		require.NoError(t, err)
		d := made.Declaration()
		got := make(map[string]domain)
		for _, p := range d.Parameters {
			got[p.Name] = domain{p.Min, p.Max, p.Design}
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(domain{})); diff != "" {
			t.Errorf("%s: domains (-want +got):\n%s", kind, diff)
		}
		if got := d.Privacy.Fields["dataset_size"]; got != "35000" || d.Privacy.Adjacency != "REPLACE_ONE" {
			t.Errorf("%s: dataset size %s, adjacency %s, want 35000 and REPLACE_ONE", kind, got, d.Privacy.Adjacency)
		}
		if got := d.Metrics[0].SampleSize; got != 5000 {
			t.Errorf("%s: sample size %d, want 5000", kind, got)
		}
	}
}

// The Poisson trainer computes its probability and steps from the number of examples: its
// mechanism and its study name the convention, and say that the number is public.
func TestPoissonIsStated(t *testing.T) {
	made, err := load(t, SGD, map[string]string{SettingSampling: "poisson", SettingGenerated: "true"})
	require.NoError(t, err)
	if d := made.Declaration().Privacy; d.Fields["sampling"] != "POISSON" || d.Fields["convention"] != "ROUNDED" || d.Adjacency != "ADD_REMOVE" {
		t.Errorf("declared %+v", d)
	}
	rows := int64(made.Parts().Train.Rows)
	for _, lot := range []int64{1, rows / 3, rows*2/3 + 1, rows} {
		m, err := made.Mechanism(parameters(trainer.Parameters{ParameterLotSize: lot}))
		require.NoError(t, err)
		q, err1 := privacy.RoundedEpochs.SamplingProbability(rows, lot)
		steps, err2 := privacy.RoundedEpochs.Steps(rows, lot, 3)
		want := privacy.Composition{{Mechanism: privacy.PoissonGaussian{
			SamplingProbability: q, NoiseMultiplier: 1, Neighbours: privacy.AddRemove, PublicSize: true,
		}, Count: steps}}
		if diff := cmp.Diff(privacy.Mechanism(want), m); diff != "" || err1 != nil || err2 != nil {
			t.Errorf("lots of %d of %d: %v, %v, (-want +got):\n%s", lot, rows, err1, err2, diff)
		}
		if !slices.Contains(m.Assumptions(), privacy.PublicSizeAssumption) {
			t.Errorf("assumptions %q", m.Assumptions())
		}
	}
}

// Random allocation has round(n/m) steps an epoch. The study declares what the trainer's mechanism is, under either
// adjacency, and the noise is relative to its sensitivity.
func TestRandomAllocationIsStated(t *testing.T) {
	for adjacency, neighbours := range map[string]privacy.Adjacency{"add-remove": privacy.AddRemove, "replace-one": privacy.ReplaceOne} {
		made, err := load(t, Adam, map[string]string{
			SettingSampling: "random-allocation", SettingAdjacency: adjacency, SettingGenerated: "true", SettingTrainRows: "1000",
		})
		require.NoError(t, err)
		d := made.Declaration().Privacy
		if d.Fields["sampling"] != "RANDOM_ALLOCATION" || d.Fields["convention"] != "" || !strings.EqualFold(d.Adjacency, strings.ReplaceAll(adjacency, "-", "_")) {
			t.Errorf("declared %+v", d)
		}
		for lot, steps := range map[int64]int64{1: 900, 300: 3, 400: 2, 900: 1} { // of 900 rows
			m, err := made.Mechanism(parameters(trainer.Parameters{ParameterLotSize: lot}))
			require.NoError(t, err)
			want := privacy.RandomAllocation{
				Steps: steps, Picks: 1, NoiseMultiplier: float64(neighbours), Epochs: 3, Neighbours: neighbours, PublicSize: neighbours == privacy.AddRemove,
			}
			if diff := cmp.Diff(privacy.Mechanism(want), m); diff != "" {
				t.Errorf("lots of %d (-want +got):\n%s", lot, diff)
			}
		}
	}
	made := makeTrainer(t, Options{Sampling: RandomAllocation})
	if _, err := made.Mechanism(parameters(trainer.Parameters{ParameterEpochs: int64(2_000_000)})); err == nil || !strings.Contains(err.Error(), "must lie in [1, 1000000], is 2000000") {
		t.Errorf("2,000,000 epochs: error %v", err)
	}
}

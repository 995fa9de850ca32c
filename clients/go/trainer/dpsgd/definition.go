package dpsgd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/dpareto/dpareto/clients/go/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
)

// Names of the settings.
const (
	SettingModel          = "model"
	SettingHidden         = "hidden"
	SettingHuberWidth     = "huber_width"
	SettingInitialization = "initialization"
	SettingSampling       = "sampling"
	SettingNoiseSource    = "noise_source"

	SettingDataset        = "dataset"
	SettingSplit          = "split"
	SettingTrainRows      = "train_rows"
	SettingSplitSeed      = "split_seed"
	SettingGenerated      = "generated"
	SettingEvaluation     = "evaluation"
	SettingValidationRows = "validation_rows"
)

// Values of the setting evaluation.
const (
	EvaluationValidation = "validation" // error on examples held out of the training ones
	EvaluationTest       = "test"       // the paper's protocol
)

// DatasetAdult is the value of the setting dataset for UCI Adult.
const DatasetAdult = "adult"

// defaultHidden are the hidden layers of an MLP: MLP2 of Avent et al. (2020).
const defaultHidden = "128,64"

// Definition describes a trainer to a registry. The trainers made from one
// definition share the data in the cache.
func Definition(cache *dataset.Cache, optimizer Optimizer) trainer.Definition {
	name, summary := Name, "DP-SGD on Adult or MNIST: logistic regression, SVMs, softmax regression, MLPs"
	if optimizer == Adam {
		name, summary = NameAdam, "DP-Adam on the models and data of "+Name
	}
	open := func(ctx context.Context, options trainer.Options) (*Trainer, error) {
		s, err := parseSettings(options.Settings)
		if err != nil {
			return nil, err
		}
		s.options.Optimizer = optimizer
		data, err := s.load(ctx, cache, dataset.Source{DataDir: options.DataDir, Progress: options.Progress})
		if err != nil {
			return nil, err
		}
		return New(data, s.options)
	}
	return trainer.Definition{
		Name:    name,
		Summary: summary,
		Settings: []trainer.Setting{
			{Name: SettingModel, Default: string(model.LogisticRegression), Usage: "what is trained: " + list(model.Kinds())},
			{Name: SettingHidden, Default: "", Usage: "widths of the hidden layers of model mlp, from the input on; " + defaultHidden + " by default"},
			{Name: SettingHuberWidth, Default: "", Usage: "half width h of the rounded corner of model huber-svm, in (0, 1]; 0.5 by default"},
			{Name: SettingInitialization, Default: "", Usage: "first weights: zero, published (normal, also the biases) or he; zero by default, published for mlp"},
			{Name: SettingSampling, Default: string(FixedSize), Usage: "lots: fixed-size (without replacement) or poisson, " +
				"for which noise_multiplier is relative to the clipping norm"},
			{Name: SettingNoiseSource, Default: string(NoiseSeed), Usage: "randomness: seed, or os for models that are released, which no seed repeats"},
			{Name: SettingDataset, Default: DatasetAdult, Usage: "data: adult (UCI census income, 123 binary features)"},
			{Name: SettingSplit, Default: dataset.SplitShuffled, Usage: "division into training and test examples: " +
				"published (30956 and 1605), uci (32561 and 16281) or shuffled (all 48842, pooled)"},
			{Name: SettingTrainRows, Default: strconv.Itoa(dataset.DefaultTrainRows),
				Usage: "training examples of the shuffled split, at least 1; the others are test examples"},
			{Name: SettingSplitSeed, Default: "1", Usage: "seed of the shuffled split, of the validation examples and of generated examples"},
			{Name: SettingGenerated, Default: "false", Usage: "true for generated examples in place of Adult's"},
			{Name: SettingEvaluation, Default: EvaluationValidation, Usage: "what error is measured on: validation (examples held out of the " +
				"training ones, with test_error beside it) or test (the paper's protocol)"},
			{Name: SettingValidationRows, Default: "", Usage: "validation examples, taken from the training ones; a tenth of these by default"},
		},
		New: func(ctx context.Context, options trainer.Options) (trainer.Trainer, error) {
			return open(ctx, options)
		},
		Declare: func(ctx context.Context, options trainer.Options) (trainer.Declaration, error) {
			t, err := open(ctx, options)
			if err != nil {
				return trainer.Declaration{}, err
			}
			return t.Declaration(), nil
		},
	}
}

// settings are what the settings of a trainer say.
type settings struct {
	options        Options
	dataset        string
	split          dataset.AdultSplit
	evaluation     string
	validationRows int // 0 for the default
}

func parseSettings(values map[string]string) (settings, error) {
	s := settings{
		dataset: DatasetAdult, evaluation: EvaluationValidation,
		split: dataset.AdultSplit{Name: dataset.SplitShuffled, Seed: 1},
	}
	s.options.Model.Kind = model.LogisticRegression
	hidden := ""
	text := func(name string, set func(string)) {
		if value, ok := values[name]; ok {
			set(value)
		}
	}
	text(SettingModel, func(v string) { s.options.Model.Kind = model.Kind(v) })
	text(SettingHidden, func(v string) { hidden = v })
	text(SettingInitialization, func(v string) { s.options.Initialization = model.Initialization(v) })
	text(SettingSampling, func(v string) { s.options.Sampling = Sampling(v) })
	text(SettingNoiseSource, func(v string) { s.options.NoiseSource = NoiseSource(v) })
	text(SettingDataset, func(v string) { s.dataset = v })
	text(SettingSplit, func(v string) { s.split.Name = v })
	text(SettingEvaluation, func(v string) { s.evaluation = v })

	var err error
	if s.options.Model.Hidden, err = parseHidden(s.options.Model.Kind, hidden); err != nil {
		return s, err
	}
	if value := values[SettingHuberWidth]; value != "" {
		width, err := strconv.ParseFloat(value, 64)
		if err != nil || !(width > 0 && width <= 1) || s.options.Model.Kind != model.HuberSVM {
			return s, fmt.Errorf("setting %s is %q, want a number in (0, 1], and model %s", SettingHuberWidth, value, model.HuberSVM)
		}
		s.options.Model.HuberWidth = width
	}
	for name, rows := range map[string]*int{SettingTrainRows: &s.split.TrainRows, SettingValidationRows: &s.validationRows} {
		if value := values[name]; value != "" {
			if *rows, err = strconv.Atoi(value); err != nil || *rows < 1 {
				return s, fmt.Errorf("setting %s is %q, want a whole number of at least 1", name, value)
			}
		}
	}
	if value, ok := values[SettingSplitSeed]; ok {
		if s.split.Seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			return s, fmt.Errorf("setting %s is %q, want a whole number between 0 and 2⁶⁴−1", SettingSplitSeed, value)
		}
	}
	if value, ok := values[SettingGenerated]; ok {
		if s.split.Generated, err = strconv.ParseBool(value); err != nil {
			return s, fmt.Errorf("setting %s is %q, want true or false", SettingGenerated, value)
		}
	}
	switch {
	case s.dataset != DatasetAdult:
		return s, fmt.Errorf("setting %s is %q, want %s", SettingDataset, s.dataset, DatasetAdult)
	case s.evaluation != EvaluationValidation && s.evaluation != EvaluationTest:
		return s, fmt.Errorf("setting %s is %q, want %s or %s",
			SettingEvaluation, s.evaluation, EvaluationValidation, EvaluationTest)
	case s.evaluation == EvaluationTest && s.validationRows != 0:
		return s, fmt.Errorf("setting %s is given for %s %s, which holds no examples out",
			SettingValidationRows, SettingEvaluation, EvaluationTest)
	}
	_, err = s.options.normal()
	return s, err
}

func parseHidden(kind model.Kind, hidden string) ([]int, error) {
	if kind != model.MLP {
		if hidden != "" {
			return nil, fmt.Errorf("setting %s is %q, but model %s has no hidden layers", SettingHidden, hidden, kind)
		}
		return nil, nil
	}
	if hidden == "" {
		hidden = defaultHidden
	}
	var widths []int
	for part := range strings.SplitSeq(hidden, ",") {
		width, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || width < 1 {
			return nil, fmt.Errorf("setting %s is %q, want widths of at least 1 with commas between them", SettingHidden, hidden)
		}
		widths = append(widths, width)
	}
	return widths, nil
}

// load returns the data that the settings name.
func (s settings) load(ctx context.Context, cache *dataset.Cache, source dataset.Source) (Data, error) {
	train, test, err := cache.Adult(ctx, s.split, source)
	if err != nil || s.evaluation == EvaluationTest {
		return Data{Train: train, Test: test}, err
	}
	rows := s.validationRows
	if rows == 0 {
		rows = train.Rows / 10
	}
	if rows < 1 || rows >= train.Rows {
		return Data{}, fmt.Errorf("setting %s is %d, want between 1 and %d, one less than the training examples of %s",
			SettingValidationRows, rows, train.Rows-1, train.Name)
	}
	train, validation := holdOut(train, rows, s.split.Seed)
	return Data{Train: train, Validation: validation, Test: test}, nil
}

// holdOut takes a uniform sample of rows out of the dataset, by a seed.
func holdOut(d *dataset.Dataset, rows int, seed uint64) (rest, sample *dataset.Dataset) {
	order := rand.New(rand.NewPCG(seed, 0x7a11da7e)).Perm(d.Rows)
	base := strings.TrimSuffix(d.Name, "-train")
	return d.Select(d.Name, order[rows:]), d.Select(base+"-validation", order[:rows])
}

// Declaration returns what a study of the trainer consists of: the domains of Table
// 1 of Avent et al. (2020), those of Adult for linear models and those of MNIST for
// networks, with the laws of Tables 4 and 3, and σ in [0.1, 16]. The table calls that
// range one of the variance; in the code published with the paper it is one of
// the standard deviation.
func (t *Trainer) Declaration() trainer.Declaration {
	exponential := func(rate, shift float64) trainer.Law {
		return trainer.Law{Kind: trainer.LawShiftedExponential, Rate: rate, Shift: shift}
	}
	rows := float64(t.train.Data().Rows)
	epochs := trainer.ParameterDeclaration{
		Name: ParameterEpochs, Usage: "passes over the training examples", Integer: true,
		Min: 1, Max: 64, Law: trainer.Law{Kind: trainer.LawUniform},
	}
	lotSize := trainer.ParameterDeclaration{
		Name: ParameterLotSize, Usage: "training examples per step", Integer: true,
		Min: min(8, rows), Max: min(512, rows), Law: trainer.Law{Kind: trainer.LawNormal, Mean: 128, StandardDeviation: 64},
	}
	learningRate := trainer.ParameterDeclaration{
		Name: ParameterLearningRate, Usage: "factor of a step along the gradient",
		Min: 5e-4, Max: 5e-2, Logarithmic: true, Law: exponential(10, 1e-3),
	}
	clippingNorm := trainer.ParameterDeclaration{
		Name: ParameterClippingNorm, Usage: "largest norm of one example's gradient",
		Min: 0.1, Max: 4, Logarithmic: true, Law: exponential(0.1, 0.1),
	}
	noise := trainer.ParameterDeclaration{
		Name: ParameterNoiseMultiplier, Usage: "standard deviation of the noise over the sensitivity",
		Min: 0.1, Max: 16, Logarithmic: true, Law: exponential(0.1, 0.1),
	}
	if !t.options.Model.Linear() {
		epochs.Max = 400
		lotSize.Min, lotSize.Max = min(16, rows), min(4000, rows)
		lotSize.Law.Mean, lotSize.Law.StandardDeviation = 800, 800
		learningRate.Min, learningRate.Max = 1e-3, 0.5
		clippingNorm.Max, clippingNorm.Law = 12, exponential(0.5, 0.1)
		noise.Law = exponential(0.5, 0.1)
	}
	sampling, adjacency := "FIXED_SIZE", "REPLACE_ONE"
	if t.options.Sampling == Poisson {
		sampling, adjacency = "POISSON", "ADD_REMOVE"
	}
	return trainer.Declaration{
		Parameters: []trainer.ParameterDeclaration{epochs, lotSize, learningRate, clippingNorm, noise},
		Metrics:    t.metrics(),
		Privacy: &trainer.PrivacyDeclaration{
			Mechanism: "dp_sgd",
			Fields: map[string]string{
				"sampling":         sampling,
				"dataset_size":     strconv.Itoa(t.train.Data().Rows),
				"batch_size":       ParameterLotSize,
				"noise_multiplier": ParameterNoiseMultiplier,
				"epochs":           ParameterEpochs,
			},
			Delta:      1e-5,
			Adjacency:  adjacency,
			Accountant: "RDP",
			Conversion: "IMPROVED",
		},
		CheckpointParameter: ParameterEpochs,
	}
}

func (t *Trainer) metrics() []trainer.MetricDeclaration {
	first, second := t.evaluated()
	where := "validation"
	if second == nil {
		where = "test"
	}
	unit := ""
	if k := t.options.Model.Kind; k != model.LinearSVM && k != model.HuberSVM {
		unit = "nats"
	}
	metrics := []trainer.MetricDeclaration{
		{
			Name: MetricError, Usage: "fraction of the " + where + " examples classified wrongly", Unit: "ratio",
			Objective: true, Transform: trainer.TransformLogit, Reference: 1, SampleSize: first.Data().Rows,
		},
		{Name: MetricLoss, Usage: "mean loss on the " + where + " examples", Unit: unit},
	}
	if second == nil {
		return metrics
	}
	return append(metrics,
		trainer.MetricDeclaration{
			Name: MetricTestError, Usage: "fraction of the test examples classified wrongly", Unit: "ratio",
		},
		trainer.MetricDeclaration{Name: MetricTestLoss, Usage: "mean loss on the test examples", Unit: unit})
}

func list[T ~string](values []T) string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = string(v)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

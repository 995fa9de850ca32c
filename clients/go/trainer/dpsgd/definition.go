package dpsgd

import (
	"context"
	"fmt"
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

// defaultValidationRows is the number of validation examples where it is not given:
// usual for MNIST, and enough to tell errors of 15 and 16 percent apart.
const defaultValidationRows = 5000

// defaultHidden are the hidden layers of an MLP: MLP2 of Avent et al. (2020).
const defaultHidden = "128,64"

// Definition describes a trainer to a registry. The trainers made from one
// definition share the data in the cache.
func Definition(cache *dataset.Cache, optimizer Optimizer) trainer.Definition {
	name, summary := Name, "DP-SGD for logistic regression, SVMs, softmax regression and MLPs on Adult, MNIST and others"
	if optimizer == Adam {
		name, summary = NameAdam, "DP-Adam on the models and data of "+Name
	}
	open := func(ctx context.Context, options trainer.Options) (*Trainer, error) {
		s, err := parseSettings(options.Settings)
		if err != nil {
			return nil, err
		}
		s.options.Optimizer = optimizer
		source := dataset.Source{DataDir: options.DataDir, Progress: options.Progress}
		parts, err := cache.Load(ctx, s.dataset, s.division, source)
		if err != nil {
			return nil, err
		}
		return New(parts, s.options)
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
			{Name: SettingDataset, Default: dataset.NameAdult, Usage: "data: " + list(names())},
			{Name: SettingSplit, Default: "", Usage: "division into training and test examples: published, uci (of adult) or shuffled (all " +
				"pooled); shuffled by default of adult, otherwise the dataset's own"},
			{Name: SettingTrainRows, Default: "", Usage: "training and validation examples of the shuffled split, the others being test " +
				"examples; 40000 of adult by default"},
			{Name: SettingSplitSeed, Default: "1", Usage: "seed of the shuffled split, of the validation examples and of generated examples"},
			{Name: SettingGenerated, Default: "false", Usage: "true for generated examples in the shape of adult or mnist"},
			{Name: SettingEvaluation, Default: EvaluationValidation, Usage: "what error is measured on: validation (examples held out of the " +
				"training ones, with test_error beside it) or test (the paper's protocol)"},
			{Name: SettingValidationRows, Default: "", Usage: "validation examples, taken from the training ones; 5000 by default, or a tenth " +
				"of train_rows if that is less"},
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
	options  Options
	dataset  string
	division dataset.Division
}

func parseSettings(values map[string]string) (settings, error) {
	s := settings{dataset: dataset.NameAdult, division: dataset.Division{Seed: 1}}
	evaluation := EvaluationValidation
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
	text(SettingSplit, func(v string) { s.division.Split = v })
	text(SettingEvaluation, func(v string) { evaluation = v })

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
	for name, rows := range map[string]*int{SettingTrainRows: &s.division.TrainRows, SettingValidationRows: &s.division.ValidationRows} {
		if value := values[name]; value != "" {
			if *rows, err = strconv.Atoi(value); err != nil || *rows < 1 {
				return s, fmt.Errorf("setting %s is %q, want a whole number of at least 1", name, value)
			}
		}
	}
	if value, ok := values[SettingSplitSeed]; ok {
		if s.division.Seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			return s, fmt.Errorf("setting %s is %q, want a whole number between 0 and 2⁶⁴−1", SettingSplitSeed, value)
		}
	}
	if value, ok := values[SettingGenerated]; ok {
		if s.division.Generated, err = strconv.ParseBool(value); err != nil {
			return s, fmt.Errorf("setting %s is %q, want true or false", SettingGenerated, value)
		}
	}
	if s.division.Split == "" && s.dataset == dataset.NameAdult {
		s.division.Split = dataset.SplitShuffled
	}
	switch {
	case evaluation != EvaluationValidation && evaluation != EvaluationTest:
		return s, fmt.Errorf("setting %s is %q, want %s or %s",
			SettingEvaluation, evaluation, EvaluationValidation, EvaluationTest)
	case evaluation == EvaluationTest && s.division.ValidationRows != 0:
		return s, fmt.Errorf("setting %s is given for %s %s, which holds no examples out",
			SettingValidationRows, SettingEvaluation, EvaluationTest)
	case evaluation == EvaluationValidation && s.division.ValidationRows == 0:
		s.division.ValidationRows = defaultValidationRows
		if rows := s.division.TrainRows; rows > 0 {
			s.division.ValidationRows = min(defaultValidationRows, max(1, rows/10))
		}
	}
	_, err = s.options.normal()
	return s, err
}

// names returns the names of the datasets.
func names() []string {
	catalog := dataset.Catalog()
	all := make([]string, len(catalog))
	for i, info := range catalog {
		all[i] = info.Name
	}
	return all
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

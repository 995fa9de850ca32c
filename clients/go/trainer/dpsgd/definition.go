package dpsgd

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
)

// Names of the settings.
const (
	SettingModel          = "model"
	SettingHidden         = "hidden"
	SettingFeatures       = "features"
	SettingHuberWidth     = "huber_width"
	SettingInitialization = "initialization"
	SettingSampling       = "sampling"
	SettingAdjacency      = "adjacency"
	SettingMatrix         = "matrix"
)

// Names of settings of package experiment, and a value of SettingEvaluation.
const (
	SettingDataset    = experiment.SettingDataset
	SettingSplit      = experiment.SettingSplit
	SettingTrainRows  = experiment.SettingTrainRows
	SettingGenerated  = experiment.SettingGenerated
	SettingEvaluation = experiment.SettingEvaluation

	EvaluationTest = experiment.EvaluationTest
)

// defaultHidden are the hidden layers of an MLP: MLP2 of Avent et al. (2020).
var defaultHidden = []int{128, 64}

// Definition describes a trainer to a registry. The trainers made from one
// definition share the data in the cache.
func Definition(cache *dataset.Cache, optimizer Optimizer) trainer.Definition {
	if optimizer == Adam {
		return define(cache, NameAdam, "DP-Adam on the models and data of "+Name, Options{Optimizer: Adam}, lotSettings...)
	}
	return define(cache, Name, "DP-SGD for logistic regression, SVMs, softmax regression and MLPs on Adult, MNIST and others", Options{Optimizer: SGD}, lotSettings...)
}

// DefinitionMF describes the trainer with correlated noise, like Definition.
func DefinitionMF(cache *dataset.Cache) trainer.Definition {
	return define(cache, NameMF, "DP-SGD with correlated noise (DP-BandMF, DP-FTRL) on the models and data of "+Name, Options{Optimizer: SGD, Matrix: Banded},
		trainer.Setting{Name: SettingMatrix, Default: string(Banded), Usage: "correlation of the noise: banded (with parameter bands and Poisson lots), " +
			"blt (two buffers) or tree (both with lots in an order that stays)"})
}

var lotSettings = []trainer.Setting{
	{Name: SettingSampling, Default: string(FixedSize), Usage: "lots: fixed-size (without replacement), poisson or random-allocation"},
	{Name: SettingAdjacency, Default: "", Usage: "neighbouring datasets: add-remove or replace-one; replace-one for fixed-size lots, and by default " +
		"add-remove for others; noise_multiplier is relative to the clipping norm, or twice that for replace-one"},
}

// define describes a trainer with some options and settings of its own.
func define(cache *dataset.Cache, name, summary string, fixed Options, own ...trainer.Setting) trainer.Definition {
	open := func(ctx context.Context, options trainer.Options) (*Trainer, error) {
		o, err := parseSettings(options.Settings, fixed)
		if err != nil {
			return nil, err
		}
		parts, err := experiment.Load(ctx, cache, options)
		if err != nil {
			return nil, err
		}
		return New(parts, o)
	}
	return trainer.Definition{
		Name:    name,
		Summary: summary,
		Subsets: true,
		Settings: slices.Concat([]trainer.Setting{
			{Name: SettingModel, Default: string(model.LogisticRegression), Usage: "model to train: " + trainer.Enumerate(model.Kinds()...)},
			{Name: SettingHidden, Default: "", Usage: "widths of the hidden layers of model mlp, from the input on; 128,64 by default"},
			{Name: SettingFeatures, Default: string(Raw), Usage: "inputs of models: raw, or hog (histograms of oriented gradients of images)"},
			{Name: SettingHuberWidth, Default: "", Usage: "half width h of the rounded corner of model huber-svm, in (0, 1]; 0.5 by default"},
			{Name: SettingInitialization, Default: "", Usage: "first weights: zero, published (normal, also the biases) or he; zero by default, published for mlp"},
		}, own, experiment.Settings()),
		New: func(ctx context.Context, options trainer.Options) (trainer.Trainer, error) {
			return open(ctx, options)
		},
		Declare: func(ctx context.Context, options trainer.Options) (trainer.Declaration, error) {
			t, err := open(ctx, options)
			if err != nil {
				return trainer.Declaration{}, err
			}
			declaration := t.Declaration()
			declaration.Constants = experiment.Constants(t.parts, options)
			return declaration, nil
		},
	}
}

// parseSettings returns the options that the settings name, in place of those given.
func parseSettings(settings trainer.Settings, o Options) (_ Options, err error) {
	o.Model.Kind = model.Kind(settings.Text(SettingModel, string(model.LogisticRegression)))
	o.Initialization = model.Initialization(settings.Text(SettingInitialization, ""))
	o.Features = Features(settings.Text(SettingFeatures, string(Raw)))
	o.Sampling = Sampling(settings.Text(SettingSampling, string(o.Sampling)))
	o.Adjacency = Adjacency(settings.Text(SettingAdjacency, ""))
	o.Matrix = Matrix(settings.Text(SettingMatrix, string(o.Matrix)))
	if o.Model.Hidden, err = parseHidden(o.Model.Kind, settings); err != nil {
		return o, err
	}
	if o.Model.HuberWidth, err = settings.Positive(SettingHuberWidth, 0); err != nil {
		return o, err
	}
	if o.Model.HuberWidth > 1 || o.Model.HuberWidth > 0 && o.Model.Kind != model.HuberSVM {
		return o, settings.Mismatch(SettingHuberWidth, "a number in (0, 1], and model "+string(model.HuberSVM))
	}
	_, err = o.normal()
	return o, err
}

func parseHidden(kind model.Kind, settings trainer.Settings) ([]int, error) {
	hidden := settings.Text(SettingHidden, "")
	if kind != model.MLP {
		if hidden != "" {
			return nil, settings.Mismatch(SettingHidden, "none, since model "+string(kind)+" has no hidden layers")
		}
		return nil, nil
	}
	if hidden == "" {
		return defaultHidden, nil
	}
	widths, ok := parseWidths(hidden)
	if !ok {
		return nil, settings.Mismatch(SettingHidden, wantWidths)
	}
	return widths, nil
}

// wantWidths says what parseWidths reads.
const wantWidths = "widths of at least 1 with commas between them"

// parseWidths reads the widths of hidden layers, such as "128,64".
func parseWidths(text string) (widths []int, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		width, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || width < 1 {
			return nil, false
		}
		widths = append(widths, width)
	}
	return widths, true
}

// isOfPaper reports whether the examples are Adult or MNIST, encoded as in Avent et al. (2020), or generated like them.
func (t *Trainer) isOfPaper() bool {
	name := t.parts.Split.Dataset
	return t.parts.Train.FeatureNorm == 0 && (name == dataset.NameAdult || name == dataset.NameMNIST)
}

// Declaration returns the domains of Table 1 of Avent et al. (2020), of Adult for linear
// models and of MNIST for networks, with the distributions of Tables 4 and 3, and σ in
// [0.1, 16]. All scales are logarithmic, since the order of magnitude matters. The table
// gives that range for the variance; the code published with the paper uses it for the
// standard deviation.
//
// For other data the rate is normalised, for SGD, and lots are up to a tenth of the training
// examples: steps that are larger than the paper's, where there is noise to average.
func (t *Trainer) Declaration() trainer.Declaration {
	exponential := func(rate, shift float64) trainer.Distribution {
		return trainer.Distribution{Kind: trainer.DistributionShiftedExponential, Rate: rate, Shift: shift}
	}
	rows := float64(t.parts.Train.Rows)
	epochs := trainer.ParameterDeclaration{
		Name: ParameterEpochs, Usage: "passes over the training examples", Integer: true,
		Min: 1, Max: 64, Logarithmic: true, Design: trainer.Distribution{Kind: trainer.DistributionUniform},
	}
	lotSize := trainer.ParameterDeclaration{
		Name: ParameterLotSize, Usage: "training examples per step", Integer: true,
		Min: min(8, rows), Max: min(512, rows), Logarithmic: true, Design: trainer.Distribution{Kind: trainer.DistributionNormal, Mean: 128, StandardDeviation: 64},
	}
	learningRate := trainer.ParameterDeclaration{
		Name: ParameterLearningRate, Usage: "factor of a step along the gradient",
		Min: 5e-4, Max: 5e-2, Logarithmic: true, Design: exponential(10, 1e-3),
	}
	clippingNorm := trainer.ParameterDeclaration{
		Name: ParameterClippingNorm, Usage: "largest norm of one example's gradient",
		Min: 0.1, Max: 4, Logarithmic: true, Design: exponential(0.1, 0.1),
	}
	noise := trainer.ParameterDeclaration{
		Name: ParameterNoiseMultiplier, Usage: "standard deviation of the noise over the sensitivity",
		Min: 0.1, Max: 16, Logarithmic: true, Design: exponential(0.1, 0.1),
	}
	if !t.options.Model.Linear() {
		epochs.Max = 400
		lotSize.Min, lotSize.Max = min(16, rows), min(4000, rows)
		lotSize.Design.Mean, lotSize.Design.StandardDeviation = 800, 800
		learningRate.Min, learningRate.Max = 1e-3, 0.5
		clippingNorm.Max, clippingNorm.Design = 12, exponential(0.5, 0.1)
		noise.Design = exponential(0.5, 0.1)
	}
	rate := ParameterLearningRate
	if !t.isOfPaper() {
		clippingNorm.Max, clippingNorm.Design = 4, trainer.Distribution{}
		noise.Min, noise.Design = 0.3, trainer.Distribution{}
		lotSize.Min, lotSize.Max = min(max(16, math.Floor(rows/500)), rows), min(max(64, math.Floor(rows/10)), rows)
		lotSize.Design = trainer.Distribution{}
		epochs.Max = 64
		learningRate.Design = trainer.Distribution{}
		if t.options.Optimizer == SGD {
			learningRate.Name, learningRate.Usage = ParameterNormalizedRate, "learning rate times clipping norm: the most by which a step without noise moves the weights"
			learningRate.Min, learningRate.Max = 0.05, 8
			rate = ParameterNormalizedRate + " / " + ParameterClippingNorm
		}
	}
	lossUnit := "nats"
	if k := t.options.Model.Kind; k == model.LinearSVM || k == model.HuberSVM || k == model.LinearRegression {
		lossUnit = ""
	}
	mechanism := map[string]string{
		"sampling":         "FIXED_SIZE",
		"dataset_size":     strconv.Itoa(t.parts.Train.Rows),
		"batch_size":       ParameterLotSize,
		"noise_multiplier": ParameterNoiseMultiplier,
		"epochs":           ParameterEpochs,
		"learning_rate":    rate,
		"clipping_norm":    ParameterClippingNorm,
	}
	if t.options.Optimizer == Adam {
		mechanism["optimizer"] = "NORMALIZED"
	}
	switch t.options.Sampling {
	case Poisson:
		mechanism["sampling"], mechanism["convention"] = "POISSON", "ROUNDED"
	case RandomAllocation:
		mechanism["sampling"] = "RANDOM_ALLOCATION"
	case FixedSize, FixedOrder: // the latter is of dp_ftrl, below
	}
	adjacency := "REPLACE_ONE"
	if t.options.Adjacency == AddRemove {
		adjacency = "ADD_REMOVE"
	}
	parameters := []trainer.ParameterDeclaration{epochs, lotSize, learningRate, clippingNorm, noise}
	if t.options.Matrix == Banded {
		const most = 16
		mechanism["bands"] = ParameterBands
		delete(mechanism, "learning_rate") // named for models of runs with independent noise
		delete(mechanism, "clipping_norm")
		parameters[1].Max = min(lotSize.Max, math.Floor(rows/most)) // every group has a lot
		parameters[1].Min = min(lotSize.Min, parameters[1].Max)
		parameters = append(parameters, trainer.ParameterDeclaration{
			Name: ParameterBands, Usage: "steps over which noise is correlated; 1 is DP-SGD", Integer: true, Min: 1, Max: most, Logarithmic: true,
		})
	}
	private := &trainer.PrivacyDeclaration{
		Mechanism: "dp_sgd",
		Fields:    mechanism,
		Delta:     experiment.Delta(t.parts.Train.Rows, 1e-5),
		Adjacency: adjacency,
	}
	if t.options.Sampling == FixedOrder {
		lots := fmt.Sprintf("%d / %s", t.parts.Train.Rows, ParameterLotSize)
		private.Mechanism = "dp_ftrl"
		private.Fields = map[string]string{
			"steps":            ParameterEpochs + " * (" + lots + ")",
			"separation":       lots,
			"noise_multiplier": ParameterNoiseMultiplier,
			"matrix":           strings.ToUpper(string(t.options.Matrix)),
		}
		if t.options.Matrix == BLT {
			private.Lists = map[string][]float64{"buffer_scale": buffers.Scale, "buffer_decay": buffers.Decay}
		}
		// Without sampling the same ε takes more noise.
		parameters[4].Min, parameters[4].Max, parameters[4].Design = 1, 256, trainer.Distribution{}
		parameters[0].Max = min(epochs.Max, 64)
		parameters[1].Min = max(lotSize.Min, math.Ceil(rows*parameters[0].Max*parameters[0].Max/mostSteps))
		parameters[1].Max = max(lotSize.Max, parameters[1].Min)
	}
	return trainer.Declaration{
		Parameters:          parameters,
		Metrics:             slices.Concat(experiment.Metrics(t.parts, lossUnit), experiment.DetailMetrics(t.parts, t.options.Model), experiment.CostMetrics(t.parts)),
		Privacy:             private,
		CheckpointParameter: ParameterEpochs,
	}
}

package surface

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest"
	coordinates "github.com/dpareto/dpareto/suggest/dpsgd"
	"github.com/dpareto/dpareto/suggest/space"
)

// The coordinates of a configuration, in the order of the parameters of a surface.
const (
	epochs = iota
	lotSize
	learningRate
	clippingNorm
	noiseMultiplier
	dimension
)

// names are the parameters' names, by coordinate.
var names = [dimension]string{
	dpsgd.ParameterEpochs, dpsgd.ParameterLotSize, dpsgd.ParameterLearningRate,
	dpsgd.ParameterClippingNorm, dpsgd.ParameterNoiseMultiplier,
}

// delta is δ of the surfaces' ε.
const delta = 1e-5

// referenceEpsilon is the anti-ideal ε of the surfaces.
const referenceEpsilon = 10

// Surface is one setting of DP training: data, model, optimizer and the domain of its parameters.
type Surface struct {
	Name    string
	Summary string // one line

	// TrainRows and TestRows are the numbers of records behind ε and the error.
	TrainRows, TestRows int64

	// ReferenceError is the anti-ideal error: a little less than the error of a constant model of
	// two classes, one half for ten.
	ReferenceError float64

	optimizer dpsgd.Optimizer
	settings  trainer.Settings
	limits    limits
	// open, if not nil, makes the trainer in place of the optimizer's with the settings.
	open func(dataDir string) (trainer.Trainer, error)
}

// limits are the domain's bounds that differ between surfaces.
type limits struct {
	epochs     int64
	minimalLot int64
	maximalLot int64
}

// bounds returns the least and the largest value of every parameter.
func (s *Surface) bounds() (lower, upper [dimension]float64) {
	l := s.limits
	return [dimension]float64{1, float64(l.minimalLot), 5e-4, 0.1, 0.1},
		[dimension]float64{float64(l.epochs), float64(l.maximalLot), 0.5, 4, 16}
}

// surfaces are all surfaces. Those of one line of work are beside each other.
var surfaces = []*Surface{
	{
		Name: "adult-logistic-sgd", Summary: "logistic regression by DP-SGD on Adult", TrainRows: 32561, TestRows: 16281, ReferenceError: 0.23,
		optimizer: dpsgd.SGD,
		settings:  trainer.Settings{dpsgd.SettingSplit: dataset.SplitUCI, dpsgd.SettingEvaluation: dpsgd.EvaluationTest},
		limits:    limits{64, 8, 512},
	},
	{
		Name: "adult-svm-sgd", Summary: "Huber's support vector machine by DP-SGD on Adult", TrainRows: 32561, TestRows: 16281, ReferenceError: 0.23,
		optimizer: dpsgd.SGD,
		settings:  trainer.Settings{dpsgd.SettingSplit: dataset.SplitUCI, dpsgd.SettingEvaluation: dpsgd.EvaluationTest, dpsgd.SettingModel: string(model.HuberSVM)},
		limits:    limits{64, 8, 512},
	},
	{
		Name: "adult-logistic-adam", Summary: "logistic regression by DP-Adam on Adult", TrainRows: 32561, TestRows: 16281, ReferenceError: 0.23,
		optimizer: dpsgd.Adam,
		settings:  trainer.Settings{dpsgd.SettingSplit: dataset.SplitUCI, dpsgd.SettingEvaluation: dpsgd.EvaluationTest},
		limits:    limits{64, 8, 512},
	},
	{
		Name: "mnist-softmax-sgd", Summary: "softmax regression by DP-SGD on MNIST", TrainRows: 60000, TestRows: 10000, ReferenceError: 0.5,
		optimizer: dpsgd.SGD,
		settings:  trainer.Settings{dpsgd.SettingDataset: dataset.NameMNIST, dpsgd.SettingEvaluation: dpsgd.EvaluationTest, dpsgd.SettingModel: string(model.SoftmaxRegression)},
		limits:    limits{16, 32, 1024},
	},
	{
		Name: "mnist-softmax-adam", Summary: "softmax regression by DP-Adam on MNIST", TrainRows: 60000, TestRows: 10000, ReferenceError: 0.5,
		optimizer: dpsgd.Adam,
		settings:  trainer.Settings{dpsgd.SettingDataset: dataset.NameMNIST, dpsgd.SettingEvaluation: dpsgd.EvaluationTest, dpsgd.SettingModel: string(model.SoftmaxRegression)},
		limits:    limits{16, 32, 1024},
	},
	{
		Name: "breast-cancer-logistic-sgd", Summary: "logistic regression by DP-SGD on breast cancer (diagnostic)", TrainRows: 455, TestRows: 114, ReferenceError: 0.4,
		optimizer: dpsgd.SGD,
		settings:  trainer.Settings{dpsgd.SettingDataset: dataset.NameBreastCancer, dpsgd.SettingTrainRows: "455", dpsgd.SettingEvaluation: dpsgd.EvaluationTest},
		limits:    limits{64, 8, 128},
	},
	{
		Name: "breast-cancer-logistic-adam", Summary: "logistic regression by DP-Adam on breast cancer (diagnostic)", TrainRows: 455, TestRows: 114, ReferenceError: 0.4,
		optimizer: dpsgd.Adam,
		settings:  trainer.Settings{dpsgd.SettingDataset: dataset.NameBreastCancer, dpsgd.SettingTrainRows: "455", dpsgd.SettingEvaluation: dpsgd.EvaluationTest},
		limits:    limits{64, 8, 128},
	},
	{
		Name: "kddcup99-logistic-sgd", Summary: "logistic regression by DP-SGD on KDD Cup 99", TrainRows: 494021, TestRows: 311029, ReferenceError: 0.19,
		optimizer: dpsgd.SGD,
		settings:  trainer.Settings{dpsgd.SettingDataset: dataset.NameKDDCup99, dpsgd.SettingEvaluation: dpsgd.EvaluationTest},
		limits:    limits{8, 64, 4096},
	},
	{
		Name: "kddcup99-logistic-adam", Summary: "logistic regression by DP-Adam on KDD Cup 99", TrainRows: 494021, TestRows: 311029, ReferenceError: 0.19,
		optimizer: dpsgd.Adam,
		settings:  trainer.Settings{dpsgd.SettingDataset: dataset.NameKDDCup99, dpsgd.SettingEvaluation: dpsgd.EvaluationTest},
		limits:    limits{8, 64, 4096},
	},
	{
		Name: "digits-softmax-sgd", Summary: "softmax regression by DP-SGD on scikit-learn's digits", TrainRows: 1437, TestRows: 360, ReferenceError: 0.5,
		optimizer: dpsgd.SGD, limits: limits{64, 8, 256}, open: openDigits(dpsgd.SGD),
	},
	{
		Name: "digits-softmax-adam", Summary: "softmax regression by DP-Adam on scikit-learn's digits", TrainRows: 1437, TestRows: 360, ReferenceError: 0.5,
		optimizer: dpsgd.Adam, limits: limits{64, 8, 256}, open: openDigits(dpsgd.Adam),
	},
}

// Names returns the names of all surfaces.
func Names() []string {
	all := make([]string, len(surfaces))
	for i, s := range surfaces {
		all[i] = s.Name
	}
	return all
}

// ByName returns the surface of a name. The error lists the names.
func ByName(name string) (*Surface, error) {
	for _, s := range surfaces {
		if s.Name == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("--surface must be one of %s, is %q", strings.Join(Names(), ", "), name)
}

// digitsFile is the file of scikit-learn's digits, in its folder sklearn/datasets/data.
const digitsFile = "digits.csv.gz"

// openDigits returns how to open the trainer on scikit-learn's digits with an optimizer: 64 pixels between 0 and 16
// and the digit in each line of the file in dataDir.
func openDigits(optimizer dpsgd.Optimizer) func(dataDir string) (trainer.Trainer, error) {
	return func(dataDir string) (trainer.Trainer, error) {
		options := dataset.CSVOptions{Features: 64, Max: 16}
		for digit := range 10 {
			options.Labels = append(options.Labels, strconv.Itoa(digit))
		}
		path := filepath.Join(dataDir, digitsFile)
		rows, err := dataset.LoadCSV(path, options)
		if err != nil {
			return nil, fmt.Errorf("%w (the file comes with scikit-learn, in sklearn/datasets/data; --data-dir names its folder)", err)
		}
		parts, err := dataset.Shuffle(rows, 1, 1437)
		if err != nil {
			return nil, err
		}
		return dpsgd.New(parts, dpsgd.Options{Model: model.Spec{Kind: model.SoftmaxRegression}, Optimizer: optimizer})
	}
}

// trainer returns the surface's trainer, with the data in dataDir or downloaded.
func (s *Surface) trainer(ctx context.Context, dataDir string, progress func(done, total int64)) (trainer.Trainer, error) {
	if s.open != nil {
		return s.open(dataDir)
	}
	name := dpsgd.Name
	if s.optimizer == dpsgd.Adam {
		name = dpsgd.NameAdam
	}
	return builtin.Registry().New(ctx, name, trainer.Options{DataDir: dataDir, Settings: s.settings, Progress: progress})
}

// study is the study of a surface. Its verbs are the bounds, the rows and the references.
const study = `
study_id: surface
spec:
  parameters:
    - {id: epochs, integer_domain: {min: %g, max: %g}, scale: LOG, design: {log_uniform: {}}}
    - {id: lot_size, integer_domain: {min: %g, max: %g}, scale: LOG, design: {log_uniform: {}}}
    - {id: learning_rate, double_domain: {min: %g, max: %g}, scale: LOG}
    - {id: clipping_norm, double_domain: {min: %g, max: %g}, scale: LOG}
    - {id: noise_multiplier, double_domain: {min: %g, max: %g}, scale: LOG}
  metrics:
    - id: epsilon
      role: OBJECTIVE
      goal: MINIMIZE
      transform: LOG
      reference_value: %d
      computed:
        privacy:
          dp_sgd: {sampling: FIXED_SIZE, dataset_size: "%d", batch_size: lot_size, epochs: epochs, noise_multiplier: noise_multiplier}
          delta: %g
          adjacency: REPLACE_ONE
    - id: error
      role: OBJECTIVE
      goal: MINIMIZE
      transform: LOGIT
      reference_value: %g
      reported: {sample_size: %d}
  checkpoint_parameter: epochs
  algorithm: {dp_sgd_features: {learning_rate: learning_rate, clipping_norm: clipping_norm, optimizer: %s}}
`

// dataset returns the name of the surface's data.
func (s *Surface) dataset() string {
	if s.open != nil {
		return nameDigits
	}
	return cmp.Or(s.settings[dpsgd.SettingDataset], dataset.NameAdult)
}

// nameDigits is the name of scikit-learn's digits.
const nameDigits = "digits"

// Problem returns the study of the surface as a designer sees it. What public runs say leaves out those on the
// surface's data. ε is for the replacement of one
// record and δ = 1e-5, of lots of a fixed size. If smooth, a run has epochs·n/m steps, which need
// not be whole, and ε is interpolated; otherwise ε is the accountant's for round(n/m) steps an
// epoch, which jumps where the number of steps does.
func (s *Surface) Problem(smooth bool) (*suggest.Problem, error) {
	var arguments []any
	lower, upper := s.bounds()
	for i := range lower {
		arguments = append(arguments, lower[i], upper[i])
	}
	arguments = append(arguments, referenceEpsilon, s.TrainRows, delta, s.ReferenceError, s.TestRows, s.optimizerName())
	file, err := studyfile.Parse(fmt.Appendf(nil, study, arguments...))
	if err != nil {
		return nil, err
	}
	compiled, err := spec.Compile("study.spec", file.Study.GetSpec())
	if err != nil {
		return nil, err
	}
	problem := compiled.Problem
	problem.Features.Mean = coordinates.PublicMean(s.isNormalized(), s.dataset())
	if !smooth {
		return problem, nil
	}
	interpolant, err := privacy.InterpolateFixedSize(privacy.Tightest{}, delta, referenceEpsilon)
	if err != nil {
		return nil, err
	}
	problem.Objectives = slices.Clone(problem.Objectives)
	problem.Objectives[0].Search = nil
	problem.Objectives[0].Known = func(q space.Point) float64 {
		rate := q[lotSize] / float64(s.TrainRows)
		return interpolant.Epsilon(rate, q[noiseMultiplier], q[epochs]/rate)
	}
	return problem, nil
}

// isNormalized reports whether the optimizer divides a gradient by its size.
func (s *Surface) isNormalized() bool { return s.optimizer == dpsgd.Adam }

// optimizerName returns the optimizer as a study declares it.
func (s *Surface) optimizerName() dparetov1.DpSgdOptimizer {
	if s.isNormalized() {
		return dparetov1.DpSgdOptimizer_DP_SGD_OPTIMIZER_NORMALIZED
	}
	return dparetov1.DpSgdOptimizer_DP_SGD_OPTIMIZER_SGD
}

// noiseScale is κ of DP-SGD with lots of a fixed size: noise has the standard deviation κCσ/m.
const noiseScale = 2

// frame scales the inputs of a model to [0, 1] over the domain of a surface.
type frame struct{ least, most [dimension]float64 }

// frame returns the frame of the surface's coordinates.
//
// Each of them is a sum of functions of single parameters, all monotone but for rounding: its
// extremes are at corners of the domain.
func (s *Surface) frame() frame {
	var f frame
	lower, upper := s.bounds()
	for corner := range 1 << dimension {
		point := make(space.Point, dimension)
		for i := range point {
			if point[i] = lower[i]; corner>>i&1 == 1 {
				point[i] = upper[i]
			}
		}
		c := s.coordinates(point, int64(point[epochs]))
		if corner == 0 {
			f.least, f.most = c, c
		}
		for i, v := range c {
			f.least[i], f.most[i] = min(f.least[i], v), max(f.most[i], v)
		}
	}
	return f
}

// scale returns coordinates as inputs.
func (f *frame) scale(c [dimension]float64) []float64 {
	x := make([]float64, dimension)
	for i := range x {
		x[i] = (c[i] - f.least[i]) / (f.most[i] - f.least[i])
	}
	return x
}

// coordinates returns the coordinates of a configuration after a number of epochs.
func (s *Surface) coordinates(q space.Point, passed int64) [dimension]float64 {
	return s.run(q, passed).Coordinates(s.isNormalized())
}

// run returns the run of a configuration after a number of epochs.
func (s *Surface) run(q space.Point, passed int64) coordinates.Run {
	return coordinates.Run{
		LearningRate: q[learningRate], ClippingNorm: q[clippingNorm], Noise: noiseScale * q[noiseMultiplier], LotSize: q[lotSize],
		Steps: float64(passed) * max(1, math.RoundToEven(float64(s.TrainRows)/q[lotSize])),
	}
}

package dpsgd

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/clients/go/trainer/internal/parallel"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/privacy"
)

// Names under which the trainers are registered.
const (
	Name     = "dp-sgd"
	NameAdam = "dp-adam"
	NameMF   = "dp-mf"
)

// Names of the metrics, which package experiment explains.
const (
	MetricError = experiment.MetricError
	MetricLoss  = experiment.MetricLoss
)

// Optimizer is a rule by which weights move along noisy gradients.
type Optimizer string

// The optimizers.
const (
	SGD  Optimizer = "sgd"  // Algorithm 3 of Avent et al. (2020)
	Adam Optimizer = "adam" // Algorithm 4
)

// Sampling is a rule by which lots are drawn.
type Sampling string

// The samplings, which the package comment explains.
const (
	FixedSize        Sampling = "fixed-size"
	Poisson          Sampling = "poisson"
	RandomAllocation Sampling = "random-allocation"
	FixedOrder       Sampling = "fixed-order" // of BLT and Tree, and of these alone
)

// Matrix is a matrix that correlates the noise of steps.
type Matrix string

// The matrices, which the package comment explains.
const (
	Banded Matrix = "banded"
	BLT    Matrix = "blt"
	Tree   Matrix = "tree"
)

// Adjacency says which datasets are neighbours.
type Adjacency string

// The adjacencies.
const (
	AddRemove  Adjacency = "add-remove"
	ReplaceOne Adjacency = "replace-one"
)

// sensitivity returns by how many clipping norms neighbours can move a sum of clipped gradients.
func (a Adjacency) sensitivity() float64 {
	if a == ReplaceOne {
		return 2
	}
	return 1
}

// independent reports whether lots take each record by a draw of its own, so that adding a record changes nothing
// else.
func (s Sampling) independent() bool { return s != FixedSize }

// Features are what models see of an example.
type Features string

// The features. None is learned from examples: they change no guarantee.
const (
	Raw Features = "raw"
	HOG Features = "hog" // dataset.HOG, of images
)

// Options choose the model and the method of training. The zero value is logistic regression by DP-SGD from w = 0,
// on lots of fixed size.
type Options struct {
	// Model. No kind means logistic regression.
	Model model.Spec
	// Optimizer. Empty means SGD.
	Optimizer Optimizer
	// Initialization of the weights. Empty means zero, or published for an MLP.
	Initialization model.Initialization
	// Sampling of the lots. Empty means FixedSize.
	Sampling Sampling
	// Adjacency of the guarantee, to whose sensitivity the noise is relative: L for AddRemove, 2L for ReplaceOne. Empty
	// means ReplaceOne for FixedSize, which has no other, and otherwise AddRemove.
	Adjacency Adjacency
	// Features that models see. Empty means Raw.
	Features Features
	// Matrix of correlated noise (DP-MF). Sampling is Poisson for Banded, which takes ParameterBands, and FixedOrder for
	// others. Empty means independent noise.
	Matrix Matrix
}

// normal fills in the defaults and checks the options.
func (o Options) normal() (Options, error) {
	if o.Model.Kind == "" {
		o.Model.Kind = model.LogisticRegression
	}
	if err := o.Model.Validate(); err != nil {
		return o, err
	}
	if o.Initialization == "" {
		o.Initialization = model.InitializeZero
		if o.Model.Kind == model.MLP {
			o.Initialization = model.InitializePublished
		}
	}
	if err := o.Initialization.Check(o.Model); err != nil {
		return o, err
	}
	samplings := []Sampling{FixedSize, Poisson, RandomAllocation}
	switch o.Matrix {
	case "":
	case Banded:
		samplings = []Sampling{Poisson}
	case BLT, Tree:
		samplings = []Sampling{FixedOrder}
	default:
		return o, choose(SettingMatrix, &o.Matrix, Banded, BLT, Tree)
	}
	if err := errors.Join(
		choose("optimizer", &o.Optimizer, SGD, Adam),
		choose(SettingFeatures, &o.Features, Raw, HOG),
		choose(SettingSampling, &o.Sampling, samplings...)); err != nil {
		return o, err
	}
	switch {
	case o.Sampling == FixedSize:
		return o, choose(SettingAdjacency, &o.Adjacency, ReplaceOne)
	case o.Matrix != "": // a record that is left out must not move others to another group
		return o, choose(SettingAdjacency, &o.Adjacency, AddRemove)
	}
	return o, choose(SettingAdjacency, &o.Adjacency, AddRemove, ReplaceOne)
}

// choose sets an empty value to the first of the choices and checks others.
func choose[T ~string](name string, value *T, choices ...T) error {
	if *value == "" {
		*value = choices[0]
	}
	if !slices.Contains(choices, *value) {
		return fmt.Errorf("%s %q is unknown, want %s", name, *value, trainer.Enumerate(choices...))
	}
	return nil
}

// Trainer implements trainer.PrivateTrainer. One step of training is one epoch.
type Trainer struct {
	options Options // of a run whose parameters replace none
	parts   *dataset.Parts
	raw     view
	hog     func() (view, error) // made once, for the first run that asks for it
	// initialization as it was given: empty for the default of each model.
	initialization model.Initialization
}

// view is the part of the examples that a run sees.
type view struct {
	train     *model.Examples
	evaluator experiment.Evaluator[*model.Examples]
}

// newView prepares examples for models.
func newView(parts *dataset.Parts) (v view, err error) {
	if v.train, err = model.NewExamples(parts.Train); err == nil {
		v.evaluator, err = experiment.NewEvaluator(parts, model.NewExamples)
	}
	return v, err
}

// newHOGView is newView of the histograms of images.
func newHOGView(parts *dataset.Parts) (view, error) {
	made := *parts
	for _, part := range []**dataset.Dataset{&made.Train, &made.Validation, &made.Test} {
		if *part == nil {
			continue
		}
		var err error
		if *part, err = dataset.HOG(*part); err != nil {
			return view{}, err
		}
	}
	return newView(&made)
}

// view returns the part that a run sees.
func (t *Trainer) view(f Features) (view, error) {
	if f == HOG {
		return t.hog()
	}
	return t.raw, nil
}

var _ trainer.PrivateTrainer = (*Trainer)(nil)

// New returns a trainer on the parts of a dataset. Without a validation part it follows
// the protocol of the paper and measures the error on the test part. The labels of the
// examples are −1 and 1 or, with more than two classes, 0 to Classes−1; the model is not
// linear then. It is an error if there are no test examples.
func New(parts *dataset.Parts, options Options) (*Trainer, error) {
	normal, err := options.normal()
	if err != nil {
		return nil, err
	}
	t := &Trainer{options: normal, parts: parts, initialization: options.Initialization}
	if t.raw, err = newView(parts); err != nil {
		return nil, err
	}
	if err := t.checkClasses(normal.Model); err != nil {
		return nil, err
	}
	if err := t.checkFeatures(normal.Features); err != nil {
		return nil, err
	}
	t.hog = sync.OnceValues(func() (view, error) { return newHOGView(parts) })
	return t, nil
}

// checkClasses returns an error if a model is for other labels than the examples have.
func (t *Trainer) checkClasses(m model.Spec) error {
	switch classes := t.raw.train.Classes(); {
	case (m.Kind == model.LinearRegression) != (classes == 1):
		return fmt.Errorf("model %s cannot predict the labels of dataset %s: %s is for numbers, the others for classes",
			m.Kind, t.parts.Train.Name, model.LinearRegression)
	case m.Linear() && classes > 2:
		return fmt.Errorf("model %s is for 2 classes, dataset %s has %d, want %s or %s",
			m.Kind, t.parts.Train.Name, classes, model.SoftmaxRegression, model.MLP)
	}
	return nil
}

// checkFeatures returns an error if the examples have no such features. Rows of a user's own table are no images.
func (t *Trainer) checkFeatures(f Features) error {
	train := t.parts.Train
	if f == HOG && train.FeatureNorm > 0 {
		return fmt.Errorf("features %s are for images, dataset %s has a schema", f, train.Name)
	}
	if f == HOG {
		return dataset.CheckHOG(train)
	}
	return nil
}

// Name implements trainer.Trainer.
func (t *Trainer) Name() string {
	switch {
	case t.options.Matrix != "":
		return NameMF
	case t.options.Optimizer == Adam:
		return NameAdam
	default:
		return Name
	}
}

// Parts returns the examples, and how they were divided.
func (t *Trainer) Parts() *dataset.Parts { return t.parts }

// Options returns the options, with the defaults filled in. Parameters of a run may replace
// some of them.
func (t *Trainer) Options() Options { return t.options }

// Mechanism implements trainer.PrivateTrainer: all steps of one run, each a privacy.FixedSizeGaussian
// or, with Poisson sampling, a privacy.PoissonGaussian; with random allocation, a
// privacy.RandomAllocation of all epochs; with banded noise, rounds of privacy.BandMF, and with other correlated noise
// one privacy.DPFTRL. The number of records is public. It does not depend on the model and the optimizer: both see the data through the noisy
// sums of clipped gradients alone.
func (t *Trainer) Mechanism(p trainer.Parameters) (privacy.Mechanism, error) {
	_, c, err := t.parse(p)
	if err != nil {
		return nil, err
	}
	if c.noiseMultiplier == 0 {
		return nil, &trainer.ParameterError{Name: noiseName(p), Reason: "is 0, which gives no privacy"}
	}
	n, m := int64(c.rows), int64(c.lotSize)
	steps, err := privacy.Steps(n, m, c.epochs)
	if err != nil {
		return nil, &trainer.ParameterError{Name: ParameterEpochs, Reason: fmt.Sprintf("is %d: %v", c.epochs, err)}
	}
	neighbours := privacy.AddRemove
	if t.options.Adjacency == ReplaceOne {
		neighbours = privacy.ReplaceOne
	}
	relative := c.noiseMultiplier * t.options.Adjacency.sensitivity() // to the clipping norm
	var step privacy.Mechanism
	switch {
	case t.options.Sampling == FixedOrder:
		return privacy.DPFTRL{
			Sensitivity:     t.options.Matrix.noiseMatrix().Sensitivity(int(c.epochs*c.stepsPerEpoch), int(c.stepsPerEpoch), int(c.epochs)),
			NoiseMultiplier: relative, Neighbours: neighbours,
		}, nil
	case c.bands > 1:
		step = privacy.BandMF{
			Bands: int64(c.bands), SamplingProbability: c.probability(), NoiseMultiplier: c.noiseMultiplier, Neighbours: privacy.AddRemove, PublicSize: true,
		}
		steps = (steps-1)/int64(c.bands) + 1
	case t.options.Sampling == RandomAllocation:
		whole := privacy.RandomAllocation{
			Steps: c.stepsPerEpoch, Picks: 1, NoiseMultiplier: relative, Epochs: c.epochs,
			Neighbours: neighbours, PublicSize: neighbours == privacy.AddRemove,
		}
		if err := whole.Validate(); err != nil {
			return nil, &trainer.ParameterError{Name: ParameterEpochs, Reason: fmt.Sprintf("is %d, of %d steps each: %v", c.epochs, c.stepsPerEpoch, err)}
		}
		return whole, nil
	case t.options.Sampling == Poisson:
		step = privacy.PoissonGaussian{
			SamplingProbability: c.probability(), NoiseMultiplier: relative,
			Neighbours: neighbours, PublicSize: neighbours == privacy.AddRemove,
		}
	default:
		step = privacy.FixedSizeGaussian{DatasetSize: n, BatchSize: m, NoiseMultiplier: c.noiseMultiplier}
	}
	return privacy.Composition{{Mechanism: step, Count: steps}}, nil
}

// Train implements trainer.Trainer. The replicates train in parallel, each with its own
// random streams, and wait for one another after every epoch; remaining processors share
// the work on a lot. When the context is done, training ends within a step.
func (t *Trainer) Train(ctx context.Context, run trainer.Run, report trainer.Report) (trainer.Measurement, error) {
	if err := run.Validate(); err != nil {
		return trainer.Measurement{}, err
	}
	options, c, err := t.parse(run.Parameters)
	if err != nil {
		return trainer.Measurement{}, err
	}
	if c.column, err = columnOf(ctx, c.bands); err != nil {
		return trainer.Measurement{}, err
	}
	seen, err := t.view(options.Features)
	if err != nil {
		return trainer.Measurement{}, err
	}
	learners := make([]experiment.Learner[*model.Examples], run.Replicates)
	workers := max(1, runtime.GOMAXPROCS(0)/run.Replicates)
	for r := range learners {
		pool := parallel.New(workers)
		defer pool.Close()
		if learners[r], err = newLearner(seen.train, options, c, run.Seed, r, pool); err != nil {
			return trainer.Measurement{}, err
		}
	}
	evaluator := seen.evaluator.WithDetails(t.parts, options.Model, t.options.Model)
	last, err := experiment.Train(ctx, learners, evaluator, c.epochs, report)
	if err == nil && run.Fitted != nil {
		for r, learner := range learners {
			run.Fitted(r, learner.(interface{ Layers() []trainer.Layer }).Layers())
		}
	}
	return last, err
}

// newLearner makes replicate number r of a run.
func newLearner(
	train *model.Examples, o Options, c configuration, seed *uint64, r int, workers model.Workers,
) (experiment.Learner[*model.Examples], error) {
	if o.Model.Linear() {
		return newReplicate(model.NewLinear(o.Model, train), o, c, seed, r, workers)
	}
	return newReplicate(model.NewNetwork(o.Model, train, workers), o, c, seed, r, workers)
}

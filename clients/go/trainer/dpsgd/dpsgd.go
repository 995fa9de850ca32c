package dpsgd

import (
	"context"
	"errors"
	"fmt"
	"runtime"

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
)

// Names of the metrics, which package experiment explains.
const (
	MetricError     = experiment.MetricError
	MetricLoss      = experiment.MetricLoss
	MetricTestError = experiment.MetricTestError
	MetricTestLoss  = experiment.MetricTestLoss
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
	FixedSize Sampling = "fixed-size"
	Poisson   Sampling = "poisson"
)

// Options say what is trained, and how. The zero value is logistic regression by
// DP-SGD from w = 0, on lots of fixed size.
type Options struct {
	// Model. No kind means logistic regression.
	Model model.Spec
	// Optimizer. Empty means SGD.
	Optimizer Optimizer
	// Initialization of the weights. Empty means zero, or published for an MLP.
	Initialization model.Initialization
	// Sampling of the lots. Empty means FixedSize.
	Sampling Sampling
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
	err := errors.Join(
		choose("optimizer", &o.Optimizer, SGD, Adam),
		choose(SettingSampling, &o.Sampling, FixedSize, Poisson))
	return o, err
}

// choose sets an empty value to the first of two choices and checks others.
func choose[T ~string](name string, value *T, first, second T) error {
	switch *value {
	case first, second:
		return nil
	case "":
		*value = first
		return nil
	default:
		return fmt.Errorf("%s %q is unknown, want %s or %s", name, *value, first, second)
	}
}

// Trainer implements trainer.PrivateTrainer. One step of training is one epoch.
type Trainer struct {
	options   Options // of a run whose parameters replace none
	parts     *dataset.Parts
	train     *model.Examples
	evaluator experiment.Evaluator[*model.Examples]
	// initialization as it was given: empty for the default of each model.
	initialization model.Initialization
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
	if t.train, err = model.NewExamples(parts.Train); err != nil {
		return nil, err
	}
	if err := t.checkClasses(normal.Model); err != nil {
		return nil, err
	}
	if t.evaluator, err = experiment.NewEvaluator(parts, model.NewExamples); err != nil {
		return nil, err
	}
	return t, nil
}

// checkClasses returns an error if a model is for fewer classes than the examples have.
func (t *Trainer) checkClasses(m model.Spec) error {
	if m.Linear() && t.train.Classes() != 2 {
		return fmt.Errorf("model %s is for 2 classes, dataset %s has %d, want %s or %s",
			m.Kind, t.parts.Train.Name, t.train.Classes(), model.SoftmaxRegression, model.MLP)
	}
	return nil
}

// Name implements trainer.Trainer.
func (t *Trainer) Name() string {
	if t.options.Optimizer == Adam {
		return NameAdam
	}
	return Name
}

// Parts returns the examples, and how they were divided.
func (t *Trainer) Parts() *dataset.Parts { return t.parts }

// Options returns the options, with the defaults filled in. Parameters of a run may replace
// some of them.
func (t *Trainer) Options() Options { return t.options }

// Mechanism implements trainer.PrivateTrainer: all steps of one run, each a
// privacy.FixedSizeGaussian under replace-one adjacency or, with Poisson sampling, a
// privacy.PoissonGaussian under add-remove adjacency whose number of records is public. It does
// not depend on the model and the optimizer: both see the data through the noisy sums of
// clipped gradients alone.
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
	var step privacy.Mechanism = privacy.FixedSizeGaussian{DatasetSize: n, BatchSize: m, NoiseMultiplier: c.noiseMultiplier}
	if t.options.Sampling == Poisson {
		step = privacy.PoissonGaussian{
			SamplingProbability: float64(m) / float64(n), NoiseMultiplier: c.noiseMultiplier, Neighbours: privacy.AddRemove, PublicSize: true,
		}
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
	learners := make([]experiment.Learner[*model.Examples], run.Replicates)
	workers := max(1, runtime.GOMAXPROCS(0)/run.Replicates)
	for r := range learners {
		pool := parallel.New(workers)
		defer pool.Close()
		if learners[r], err = t.learner(options, c, run.Seed, r, pool); err != nil {
			return trainer.Measurement{}, err
		}
	}
	last, err := experiment.Train(ctx, learners, t.evaluator, c.epochs, report)
	if err == nil && run.Fitted != nil {
		for r, learner := range learners {
			run.Fitted(r, learner.(interface{ Layers() []trainer.Layer }).Layers())
		}
	}
	return last, err
}

// learner makes replicate number r of a run.
func (t *Trainer) learner(o Options, c configuration, seed *uint64, r int, workers model.Workers) (experiment.Learner[*model.Examples], error) {
	if o.Model.Linear() {
		return newReplicate(model.NewLinear(o.Model, t.train), o, c, seed, r, workers)
	}
	return newReplicate(model.NewNetwork(o.Model, t.train, workers), o, c, seed, r, workers)
}

package dpsgd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/dpareto/dpareto/clients/go/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/internal/parallel"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
)

// Names under which the trainers are registered.
const (
	Name     = "dp-sgd"
	NameAdam = "dp-adam"
)

// Names of the metrics.
const (
	MetricError     = "error"      // fraction of the validation examples classified wrongly
	MetricLoss      = "loss"       // mean loss on the validation examples
	MetricTestError = "test_error" // fraction of the test examples classified wrongly
	MetricTestLoss  = "test_loss"  // mean loss on the test examples
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

// NoiseSource says where randomness comes from.
type NoiseSource string

// The sources.
const (
	NoiseSeed NoiseSource = "seed" // the seed of the run
	NoiseOS   NoiseSource = "os"   // the operating system's entropy
)

// Options say what is trained, and how. The zero value is logistic regression by
// DP-SGD from w = 0, on lots of fixed size, under a seed.
type Options struct {
	// Model. No kind means logistic regression.
	Model model.Spec
	// Optimizer. Empty means SGD.
	Optimizer Optimizer
	// Initialization of the weights. Empty means zero, or published for an MLP.
	Initialization model.Initialization
	// Sampling of the lots. Empty means FixedSize.
	Sampling Sampling
	// NoiseSource of all randomness. Empty means NoiseSeed.
	NoiseSource NoiseSource
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
		choose(SettingSampling, &o.Sampling, FixedSize, Poisson),
		choose(SettingNoiseSource, &o.NoiseSource, NoiseSeed, NoiseOS))
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

// Trainer implements trainer.Trainer. One step of training is one epoch.
type Trainer struct {
	options                 Options
	parts                   *dataset.Parts
	train, validation, test *model.Examples // validation may be nil
}

var _ trainer.Trainer = (*Trainer)(nil)

// New returns a trainer on the parts of a dataset. Without a validation part it follows
// the protocol of the paper, and measures error on the test part. The labels of the
// examples are −1 and 1 or, with more than two classes, 0 to Classes−1; the model is not
// linear then. It is an error if there are no test examples.
func New(parts *dataset.Parts, options Options) (*Trainer, error) {
	options, err := options.normal()
	if err != nil {
		return nil, err
	}
	if parts.Test == nil {
		return nil, fmt.Errorf("dataset %s has no test examples", parts.Train.Name)
	}
	t := &Trainer{options: options, parts: parts}
	for _, part := range []struct {
		data     *dataset.Dataset
		examples **model.Examples
	}{{parts.Train, &t.train}, {parts.Validation, &t.validation}, {parts.Test, &t.test}} {
		if part.data == nil {
			continue
		}
		if part.data.Dim != parts.Train.Dim {
			panic("dpsgd: dimension mismatch")
		}
		if *part.examples, err = model.NewExamples(part.data); err != nil {
			return nil, err
		}
		if got, want := (*part.examples).Classes(), t.train.Classes(); got != want {
			return nil, fmt.Errorf("dataset %s has %d classes, want the %d of %s", part.data.Name, got, want, parts.Train.Name)
		}
	}
	if options.Model.Linear() && t.train.Classes() != 2 {
		return nil, fmt.Errorf("model %s is for 2 classes, dataset %s has %d, want %s or %s",
			options.Model.Kind, parts.Train.Name, t.train.Classes(), model.SoftmaxRegression, model.MLP)
	}
	return t, nil
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

// Options returns the options, with the defaults filled in.
func (t *Trainer) Options() Options { return t.options }

// evaluated returns the examples of error and loss, and those of test_error and
// test_loss, which are nil under the paper's protocol.
func (t *Trainer) evaluated() (first, second *model.Examples) {
	if t.validation == nil {
		return t.test, nil
	}
	return t.validation, t.test
}

// Train implements trainer.Trainer. The replicates train in parallel, each with
// its own random streams, and wait for one another after every epoch. A context
// that is done ends the training within a step.
func (t *Trainer) Train(ctx context.Context, run trainer.Run, report trainer.Report) (trainer.Measurement, error) {
	start := time.Now()
	if err := run.Validate(); err != nil {
		return trainer.Measurement{}, err
	}
	c, err := parseParameters(run.Parameters, t.train.Data().Rows)
	if err != nil {
		return trainer.Measurement{}, err
	}
	learners := make([]learner, run.Replicates)
	workers := max(1, runtime.GOMAXPROCS(0)/run.Replicates)
	for r := range learners {
		pool := parallel.New(workers)
		defer pool.Close()
		learners[r] = t.learner(c, run.Seed, r, pool)
	}

	var last trainer.Measurement
	for epoch := int64(1); epoch <= c.epochs; epoch++ {
		metrics, diverged := t.epoch(ctx, learners)
		if err := ctx.Err(); err != nil {
			return trainer.Measurement{}, err
		}
		if diverged >= 0 {
			return trainer.Measurement{}, &trainer.InfeasibleError{
				Reason: fmt.Sprintf("the weights or the loss are not finite after epoch %d of replicate %d", epoch, diverged),
			}
		}
		last = trainer.Measurement{Step: epoch, Metrics: metrics, Elapsed: time.Since(start)}
		if report == nil {
			continue
		}
		if err := report(last); errors.Is(err, trainer.ErrStop) {
			break
		} else if err != nil {
			return trainer.Measurement{}, err
		}
	}
	return last, nil
}

// epoch trains all replicates for an epoch and measures them. It returns the number
// of a replicate that diverged, or −1.
func (t *Trainer) epoch(ctx context.Context, learners []learner) (metrics map[string][]float64, diverged int) {
	first, second := t.evaluated()
	metrics = map[string][]float64{
		MetricError: make([]float64, len(learners)),
		MetricLoss:  make([]float64, len(learners)),
	}
	if second != nil {
		metrics[MetricTestError] = make([]float64, len(learners))
		metrics[MetricTestLoss] = make([]float64, len(learners))
	}
	finite := make([]bool, len(learners))
	var wg sync.WaitGroup
	for r, l := range learners {
		wg.Go(func() {
			if !l.epoch(ctx) {
				return
			}
			finite[r] = l.finite()
			evaluate := func(examples *model.Examples, errorName, lossName string) {
				errorRate, loss := l.evaluate(examples)
				metrics[errorName][r], metrics[lossName][r] = errorRate, loss
				finite[r] = finite[r] && !math.IsNaN(loss) && !math.IsInf(loss, 0)
			}
			evaluate(first, MetricError, MetricLoss)
			if second != nil {
				evaluate(second, MetricTestError, MetricTestLoss)
			}
		})
	}
	wg.Wait()
	for r, ok := range finite {
		if !ok {
			return nil, r
		}
	}
	return metrics, -1
}

// learner makes replicate number r of a run.
func (t *Trainer) learner(c configuration, seed uint64, r int, workers model.Workers) learner {
	if t.options.Model.Linear() {
		return newReplicate(model.NewLinear(t.options.Model, t.train), t.options, c, seed, r, workers)
	}
	return newReplicate(model.NewNetwork(t.options.Model, t.train, workers), t.options, c, seed, r, workers)
}

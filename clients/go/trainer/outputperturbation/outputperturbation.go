package outputperturbation

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/clients/go/trainer/internal/perturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/privacy"
)

// Name under which the trainer is registered.
const Name = "output-perturbation"

// Names of the parameters, which the package comment explains.
const (
	ParameterEpochs            = "epochs"
	ParameterRegularization    = "regularization"
	ParameterStandardDeviation = "standard_deviation"
)

// SettingProjection is the name of the setting that chooses a [Projection]. Other
// settings are feature_norm, which bounds the norm of the features, and the settings of
// package experiment.
const SettingProjection = "projection"

// Projection is a choice of the ball to which the iterates are projected. It
// decides how the sensitivity is bounded.
type Projection string

// The projections.
const (
	// NoProjection has the sensitivity 2/(γn). It is the default.
	NoProjection Projection = "none"
	// PublishedProjection is to the radius 1/γ, for the sensitivity 4/(γn) that the
	// experiments of Avent et al. (PoPETs 2020) account for.
	PublishedProjection Projection = "published"
	// SmallProjection is to the radius min(1/γ, √(2·log 2/γ)), the least that is known
	// to hold the minimiser: there γ/2·‖w‖² is at most the loss of w = 0.
	SmallProjection Projection = "small"
)

var projections = []Projection{NoProjection, PublishedProjection, SmallProjection}

// radius returns the radius of the ball, 0 for no projection.
func (p Projection) radius(gamma float64) float64 {
	switch p {
	case PublishedProjection:
		return 1 / gamma
	case SmallProjection:
		return min(1/gamma, math.Sqrt(2*math.Ln2/gamma))
	default:
		return 0
	}
}

// expression returns the radius as an expression over the parameters, empty for no
// projection.
func (p Projection) expression() string {
	switch p {
	case PublishedProjection:
		return "1.0 / " + ParameterRegularization
	case SmallProjection:
		return "math.least(1.0 / " + ParameterRegularization + ", math.sqrt(2.0 * math.log(2.0) / " + ParameterRegularization + "))"
	default:
		return ""
	}
}

// Options say how models are trained. The zero value is without projection, for
// features between 0 and 1.
type Options struct {
	// FeatureNorm is B, a public bound on the norm of the features, positive and finite.
	// Zero means the square root of 14 for Adult, otherwise of the number of features.
	FeatureNorm float64
	// Projection of the iterates. Empty means NoProjection.
	Projection Projection
}

// Trainer implements trainer.PrivateTrainer. One step of training is one epoch.
type Trainer struct {
	options   Options
	parts     *dataset.Parts
	risk      linear.Risk
	evaluator experiment.Evaluator[*linear.Examples]
}

var _ trainer.PrivateTrainer = (*Trainer)(nil)

// New returns a trainer on the parts of a dataset with labels −1 and 1. Without a
// validation part it measures error on the test part. It returns an error if the test
// part is missing, a part is empty, labels are different, or an option is invalid; it
// panics if the parts differ in dimension.
func New(parts *dataset.Parts, options Options) (*Trainer, error) {
	options.Projection = cmp.Or(options.Projection, NoProjection)
	if !slices.Contains(projections, options.Projection) {
		return nil, fmt.Errorf("projection %q is unknown, want %s", options.Projection, trainer.Enumerate(projections...))
	}
	examples, err := perturbation.NewExamples(parts, options.FeatureNorm)
	if err != nil {
		return nil, err
	}
	return &Trainer{
		options:   options,
		parts:     parts,
		risk:      linear.Risk{Examples: examples.Train, Loss: linear.Logistic{}},
		evaluator: examples.Evaluator,
	}, nil
}

// configuration holds the parameters of a run.
type configuration struct {
	epochs    int64
	gamma     float64
	deviation float64
}

func parse(p trainer.Parameters) (c configuration, err error) {
	if err = p.Only(ParameterEpochs, ParameterRegularization, ParameterStandardDeviation); err != nil {
		return c, err
	}
	if c.epochs, err = p.IntIn(ParameterEpochs, 1, math.MaxInt64); err != nil {
		return c, err
	}
	if c.gamma, err = p.Positive(ParameterRegularization); err != nil {
		return c, err
	}
	c.deviation, err = p.NotNegative(ParameterStandardDeviation)
	return c, err
}

// Name implements trainer.Trainer.
func (*Trainer) Name() string { return Name }

// Parts returns the examples, and how they were divided.
func (t *Trainer) Parts() *dataset.Parts { return t.parts }

// Mechanism implements trainer.PrivateTrainer: a privacy.OutputPerturbation under
// replace-one adjacency.
func (t *Trainer) Mechanism(p trainer.Parameters) (privacy.Mechanism, error) {
	c, err := parse(p)
	if err != nil {
		return nil, err
	}
	if c.deviation == 0 {
		return nil, &trainer.ParameterError{Name: ParameterStandardDeviation, Reason: "is 0, which gives no privacy"}
	}
	return t.mechanism(c), nil
}

func (t *Trainer) mechanism(c configuration) privacy.OutputPerturbation {
	return privacy.OutputPerturbation{
		DatasetSize:       int64(t.parts.Train.Rows),
		Regularization:    c.gamma,
		Lipschitz:         1,
		StandardDeviation: c.deviation,
		Radius:            t.options.Projection.radius(c.gamma),
	}
}

// Purposes of the random streams of a replicate. The noise does not depend on the
// number of epochs.
const (
	streamOrders = 0x0b7e_0001
	streamNoise  = 0x0b7e_0002
)

// replicate is one model in training, an experiment.Learner. Nothing is allocated
// after it is made.
type replicate struct {
	descent *descent
	grid    float64 // of the model; 0 without noise
	noise   []int64 // in units of the grid
	model   []float64
}

// grid returns the grid of a model of n features. On it the noise has random.NoiseScale units.
// Truncation to the grid moves two models apart by √n units; the noise is larger by as much as
// that costs. A *trainer.ParameterError says that a model, whose norm is at most 1/γ, does not
// fit into the arithmetic, or that the noise is so large that nothing else is left.
func (c configuration) grid(sensitivity float64, n int) (float64, error) {
	if c.deviation == 0 {
		return 0, nil
	}
	truncation := math.Sqrt(float64(n)) * c.deviation / (sensitivity * random.NoiseScale)
	grid := c.deviation / random.NoiseScale / (1 - truncation) * (1 + 0x1p-50)
	if !(truncation < 0x1p-10 && 1/c.gamma <= 0x1p62*grid) {
		return 0, &trainer.ParameterError{Name: ParameterStandardDeviation, Reason: fmt.Sprintf(
			"is %g, want one between %.2g and %.2g for models of norm at most %.2g and sensitivity %.2g",
			c.deviation, random.NoiseScale/0x1p62/c.gamma, random.NoiseScale/0x1p10*sensitivity/math.Sqrt(float64(n)), 1/c.gamma, sensitivity)}
	}
	return grid, nil
}

func (t *Trainer) newReplicate(c configuration, seed *uint64, number int) (*replicate, error) {
	radius := math.Inf(1)
	if t.options.Projection != NoProjection {
		radius = t.options.Projection.radius(c.gamma)
	}
	dim := t.risk.Examples.Dim()
	grid, err := c.grid(t.mechanism(c).L2Sensitivity(), dim)
	r := &replicate{
		descent: newDescent(t.risk, c.gamma, radius, random.Open(seed, number, streamOrders, 0)),
		grid:    grid,
		noise:   make([]int64, dim),
		model:   make([]float64, dim),
	}
	random.AddNoise(r.noise, random.Open(seed, number, streamNoise, 0))
	return r, err
}

// Epoch implements experiment.Learner.
func (r *replicate) Epoch(ctx context.Context) bool {
	if !r.descent.epoch(ctx) {
		return false
	}
	r.release(r.grid)
	return true
}

// release makes the model from the iterate, truncated to a grid, and the noise.
func (r *replicate) release(grid float64) {
	copy(r.model, r.descent.weights())
	if grid == 0 || !r.Finite() {
		return
	}
	for j, w := range r.model {
		r.model[j] = float64(int64(w/grid)+r.noise[j]) * grid
	}
}

// Finite implements experiment.Learner.
func (r *replicate) Finite() bool {
	// A sum of magnitudes is finite only if all are.
	sum := floats.Norm(r.model, 1)
	return !math.IsNaN(sum) && !math.IsInf(sum, 0)
}

// Evaluate implements experiment.Learner.
func (r *replicate) Size() int { return len(r.model) }

// Evaluate implements experiment.Learner.
func (r *replicate) Evaluate(examples *linear.Examples) (errorRate, loss float64) {
	return examples.Evaluate(r.descent.risk.Loss, r.model)
}

// Train implements trainer.Trainer. The replicates train in parallel and wait for
// one another after every epoch.
func (t *Trainer) Train(ctx context.Context, run trainer.Run, report trainer.Report) (trainer.Measurement, error) {
	if err := run.Validate(); err != nil {
		return trainer.Measurement{}, err
	}
	c, err := parse(run.Parameters)
	if err != nil {
		return trainer.Measurement{}, err
	}
	learners := make([]experiment.Learner[*linear.Examples], run.Replicates)
	for r := range learners {
		if learners[r], err = t.newReplicate(c, run.Seed, r); err != nil {
			return trainer.Measurement{}, err
		}
	}
	return experiment.Train(ctx, learners, t.evaluator, c.epochs, report)
}

// Sweep trains models of one regularisation once and measures them with several noises, for
// pictures of the error over both. It returns errors[i][r], the validation error of replicate r
// with the standard deviation i, 0 for none; without a validation part it is the test error. The noises
// are independent, the models of a replicate are one and the same: errors of a replicate are
// correlated. It returns a *trainer.ParameterError for what Train would refuse, and the context's
// error.
func (t *Trainer) Sweep(ctx context.Context, epochs int64, gamma float64, deviations []float64, replicates int, seed uint64) ([][]float64, error) {
	grids := make([]float64, len(deviations))
	errs := make([][]float64, len(deviations))
	for i, sigma := range deviations {
		c, err := parse(trainer.Parameters{ParameterEpochs: epochs, ParameterRegularization: gamma, ParameterStandardDeviation: sigma})
		if err != nil {
			return nil, err
		}
		if grids[i], err = c.grid(t.mechanism(c).L2Sensitivity(), t.risk.Examples.Dim()); err != nil {
			return nil, err
		}
		errs[i] = make([]float64, replicates)
	}
	_, err := experiment.Each(ctx, replicates, func(number int) error {
		r, err := t.newReplicate(configuration{epochs: epochs, gamma: gamma}, &seed, number)
		if err != nil {
			return err
		}
		for range epochs {
			if !r.descent.epoch(ctx) {
				return ctx.Err()
			}
		}
		metrics := t.evaluator.Metrics(1)
		for i, grid := range grids {
			clear(r.noise)
			random.AddNoise(r.noise, random.Open(&seed, number, streamNoise, i))
			r.release(grid)
			if err := t.evaluator.MeasureTo(metrics, 0, r.Evaluate); err != nil {
				return err
			}
			errs[i][number] = metrics[experiment.MetricError][0]
		}
		return nil
	})
	return errs, err
}

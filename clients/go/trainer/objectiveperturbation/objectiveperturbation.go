package objectiveperturbation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/clients/go/trainer/internal/perturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/privacy"
)

// Name under which the trainer is registered.
const Name = "objective-perturbation"

// Names of the parameters, which the package comment explains.
const (
	ParameterTargetEpsilon  = "target_epsilon"
	ParameterRegularization = "regularization"
	ParameterSplit          = "regularizer_share"
)

// Options say how models are trained. The zero value is logistic regression with the
// rank-one calibration, for features between 0 and 1.
type Options struct {
	// FeatureNorm is a public bound on the norm of the features, positive and finite.
	// Zero means the square root of 14 for Adult, otherwise of the number of features.
	FeatureNorm float64
	// Loss of the margins. Nil means linear.Logistic.
	Loss linear.Loss
	// Calibration divides ε between the noise and the regulariser.
	Calibration privacy.ObjectiveCalibration
}

// Trainer implements trainer.PrivateTrainer. It has no checkpoints.
type Trainer struct {
	options   Options
	parts     *dataset.Parts
	risk      linear.Risk
	evaluator experiment.Evaluator[*linear.Examples]
}

var _ trainer.PrivateTrainer = (*Trainer)(nil)

// New returns a trainer on the parts of a dataset with labels −1 and 1. Without a
// validation part it measures error on the test part. It returns an error if the test
// part is missing, a part is empty, labels are different, the curvature of the loss is
// not positive and finite, or an option is invalid; it panics if the parts differ in
// dimension.
func New(parts *dataset.Parts, options Options) (*Trainer, error) {
	if options.Loss == nil {
		options.Loss = linear.Logistic{}
	}
	if c := options.Loss.Curvature(); !(c > 0) || math.IsInf(c, 1) {
		return nil, fmt.Errorf("curvature of the loss is %v, want a positive finite number", c)
	}
	if options.Calibration < privacy.RankOne || options.Calibration > privacy.ContinuousChaudhuri {
		return nil, fmt.Errorf("calibration %d is unknown", options.Calibration)
	}
	examples, err := perturbation.NewExamples(parts, options.FeatureNorm)
	if err != nil {
		return nil, err
	}
	return &Trainer{
		options:   options,
		parts:     parts,
		risk:      linear.Risk{Examples: examples.Train, Loss: options.Loss},
		evaluator: examples.Evaluator,
	}, nil
}

// Name implements trainer.Trainer.
func (*Trainer) Name() string { return Name }

// parse returns the mechanism of a configuration, whose ε may be +Inf.
func (t *Trainer) parse(p trainer.Parameters) (m privacy.ObjectivePerturbation, err error) {
	m.DatasetSize = int64(t.parts.Train.Rows)
	m.Curvature = t.risk.Loss.Curvature()
	m.Calibration = t.options.Calibration
	known := []string{ParameterTargetEpsilon, ParameterRegularization}
	if t.options.Calibration == privacy.RankOne {
		known = append(known, ParameterSplit)
	}
	if err = p.Only(known...); err != nil {
		return m, err
	}
	if m.Epsilon, err = p.FloatWhere(ParameterTargetEpsilon, "a positive number", func(v float64) bool { return v > 0 }); err != nil {
		return m, err
	}
	if m.Regularization, err = p.Positive(ParameterRegularization); err != nil {
		return m, err
	}
	if p.Has(ParameterSplit) {
		m.Split, err = p.FloatWhere(ParameterSplit, "a number strictly between 0 and 1", func(v float64) bool { return v > 0 && v < 1 })
	}
	return m, err
}

// Parts returns the examples, and how they were divided.
func (t *Trainer) Parts() *dataset.Parts { return t.parts }

// Risk returns the mean loss on the training examples, scaled as in training.
func (t *Trainer) Risk() linear.Risk { return t.risk }

// Calibration returns how ε is divided between the noise and the regulariser.
func (t *Trainer) Calibration() privacy.ObjectiveCalibration { return t.options.Calibration }

// HeldOut returns the examples on which error and loss are measured: the validation
// examples, or the test examples if there are none. They are scaled as in training.
func (t *Trainer) HeldOut() *linear.Examples { return t.evaluator.First() }

// Mechanism implements trainer.PrivateTrainer: a privacy.ObjectivePerturbation under
// replace-one adjacency. An infinite ε gives no privacy.
func (t *Trainer) Mechanism(p trainer.Parameters) (privacy.Mechanism, error) {
	m, err := t.parse(p)
	if err != nil {
		return nil, err
	}
	if math.IsInf(m.Epsilon, 1) {
		return nil, &trainer.ParameterError{Name: ParameterTargetEpsilon, Reason: "is infinite, which gives no privacy"}
	}
	return m, nil
}

// streamNoise is the purpose of the random stream of a replicate.
const streamNoise = 0x0b1e_0001

// Train implements trainer.Trainer. The replicates train in parallel.
func (t *Trainer) Train(ctx context.Context, run trainer.Run, _ trainer.Report) (trainer.Measurement, error) {
	start := time.Now()
	if err := run.Validate(); err != nil {
		return trainer.Measurement{}, err
	}
	m, err := t.parse(run.Parameters)
	if err != nil {
		return trainer.Measurement{}, err
	}
	metrics := t.evaluator.Metrics(run.Replicates)
	failed, err := experiment.Each(ctx, run.Replicates, func(r int) error {
		objective := linear.Objective{Risk: t.risk, Ridge: m.Regularization}
		if !math.IsInf(m.Epsilon, 1) {
			u := make([]float64, t.risk.Examples.Dim())
			UnitNoise(u, random.Open(run.Seed, r, streamNoise, 0))
			objective = Objective(t.risk, m, u)
		}
		if math.IsInf(objective.Ridge, 1) {
			return experiment.ErrNotFinite
		}
		minimum, err := objective.Minimize(ctx, nil, 0)
		if err != nil {
			return err
		}
		return t.evaluator.MeasureTo(metrics, r, func(examples *linear.Examples) (errorRate, loss float64) {
			return examples.Evaluate(t.options.Loss, minimum.Theta)
		})
	})
	if _, ok := errors.AsType[*linear.NotConvergedError](err); ok || errors.Is(err, experiment.ErrNotFinite) {
		return trainer.Measurement{}, &trainer.InfeasibleError{
			Reason: fmt.Sprintf("replicate %d has no minimiser to release: %v", failed, err),
		}
	}
	if err != nil {
		return trainer.Measurement{}, err
	}
	return trainer.Measurement{Step: 1, Metrics: metrics, Elapsed: time.Since(start)}, nil
}

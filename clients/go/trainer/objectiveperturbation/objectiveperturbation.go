package objectiveperturbation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dpareto/dpareto/clients/go/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/internal/perturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/privacy"
)

// Name under which the trainer is registered.
const Name = "objective-perturbation"

// Names of the parameters, which the package comment explains.
const (
	ParameterEpsilon        = "epsilon"
	ParameterRegularization = "regularization"
	ParameterSplit          = "split"
)

// Names of the metrics.
const (
	MetricError           = perturbation.MetricError           // fraction of the test examples classified wrongly
	MetricLoss            = perturbation.MetricLoss            // mean loss on the test examples; in nats for the logistic
	MetricValidationError = perturbation.MetricValidationError // as MetricError, on the validation examples
	MetricValidationLoss  = perturbation.MetricValidationLoss  // as MetricLoss, on the validation examples
)

// Names of the settings. The others are those of the data, feature_norm and
// noise_source.
const (
	SettingLoss        = "loss"
	SettingHuberWidth  = "huber_width"
	SettingCalibration = "calibration"
)

// Values of SettingLoss.
const (
	LossLogistic = "logistic"
	LossHuber    = "huber"
)

// DefaultHuberWidth is the default of SettingHuberWidth.
const DefaultHuberWidth = 0.5

// Values of SettingCalibration.
const (
	CalibrationRankOne    = "rank_one"   // privacy.RankOne
	CalibrationChaudhuri  = "chaudhuri"  // privacy.Chaudhuri
	CalibrationContinuous = "continuous" // privacy.ContinuousChaudhuri
)

var rules = map[string]privacy.ObjectiveRule{
	CalibrationRankOne:    privacy.RankOne,
	CalibrationChaudhuri:  privacy.Chaudhuri,
	CalibrationContinuous: privacy.ContinuousChaudhuri,
}

// Options are what a trainer is made from.
type Options struct {
	Train, Test *dataset.Dataset // labels −1 and 1
	Validation  *dataset.Dataset // nil for none
	FeatureNorm float64          // positive and finite: a public bound on the norm of the features; 0 means 1
	Loss        linear.Loss      // nil means linear.Logistic
	Rule        privacy.ObjectiveRule
	OSNoise     bool // noise from the operating system's entropy, not from the seed
}

// Trainer implements trainer.Trainer. It has no checkpoints.
type Trainer struct {
	risk      linear.Risk
	evaluator perturbation.Evaluator
	rule      privacy.ObjectiveRule
	osNoise   bool
}

var _ trainer.Trainer = (*Trainer)(nil)

// New returns a trainer. Empty datasets, labels other than −1 and 1, a norm bound
// or a curvature that is not positive and finite and an unknown rule are errors;
// it panics when the datasets differ in dimension.
func New(o Options) (*Trainer, error) {
	if o.FeatureNorm == 0 {
		o.FeatureNorm = 1
	}
	if o.Loss == nil {
		o.Loss = linear.Logistic{}
	}
	if !(o.FeatureNorm > 0) || math.IsInf(o.FeatureNorm, 1) {
		return nil, fmt.Errorf("feature norm is %v, want a positive finite number", o.FeatureNorm)
	}
	if c := o.Loss.Curvature(); !(c > 0) || math.IsInf(c, 1) {
		return nil, fmt.Errorf("curvature of the loss is %v, want a positive finite number", c)
	}
	if o.Rule < privacy.RankOne || o.Rule > privacy.ContinuousChaudhuri {
		return nil, fmt.Errorf("rule %d is unknown", o.Rule)
	}
	examples, err := linear.NewExamples(o.Train, o.FeatureNorm)
	if err != nil {
		return nil, err
	}
	evaluator, err := perturbation.NewEvaluator(o.Loss, o.Test, o.Validation, o.FeatureNorm, o.Train.Dim)
	if err != nil {
		return nil, err
	}
	return &Trainer{
		risk:      linear.Risk{Examples: examples, Loss: o.Loss},
		evaluator: evaluator,
		rule:      o.Rule,
		osNoise:   o.OSNoise,
	}, nil
}

// Definition describes the trainer to a registry, on Adult. The trainers made
// from one definition share the data in the cache.
func Definition(cache *dataset.Cache) trainer.Definition {
	return trainer.Definition{
		Name: Name,
		Summary: "logistic regression or Huber SVM by objective perturbation (exact minimiser, pure DP) " +
			"on Adult (UCI census income, 123 binary features)",
		Settings: append(perturbation.Settings(),
			trainer.Setting{Name: SettingLoss, Default: LossLogistic, Usage: "logistic, or huber for the support vector machine"},
			trainer.Setting{Name: SettingHuberWidth, Default: fmt.Sprint(DefaultHuberWidth),
				Usage: "half width h of the rounded corner of the huber loss, positive; its curvature is 1/(2h)"},
			trainer.Setting{Name: SettingCalibration, Default: CalibrationRankOne,
				Usage: "division of epsilon between noise and regulariser: rank_one (least noise), " +
					"chaudhuri (as published) or continuous (as published, without its pole)"}),
		New: func(ctx context.Context, options trainer.Options) (trainer.Trainer, error) {
			var o Options
			if err := parseSettings(&o, options.Settings); err != nil {
				return nil, err
			}
			data, err := perturbation.Load(ctx, cache, options)
			if err != nil {
				return nil, err
			}
			o.Train, o.Test, o.FeatureNorm, o.OSNoise = data.Train, data.Test, data.FeatureNorm, data.OSNoise
			return New(o)
		},
	}
}

// parseSettings stores the loss and the rule in o.
func parseSettings(o *Options, settings map[string]string) error {
	width := DefaultHuberWidth
	if value, ok := settings[SettingHuberWidth]; ok {
		if settings[SettingLoss] != LossHuber {
			return fmt.Errorf("setting %s has no effect without %s %s", SettingHuberWidth, SettingLoss, LossHuber)
		}
		var err error
		if width, err = perturbation.PositiveSetting(SettingHuberWidth, value); err != nil {
			return err
		}
	}
	if value, ok := settings[SettingLoss]; ok {
		switch value {
		case LossLogistic:
		case LossHuber:
			o.Loss = linear.Huber{Width: width}
		default:
			return perturbation.SettingError(SettingLoss, value, LossLogistic+" or "+LossHuber)
		}
	}
	if value, ok := settings[SettingCalibration]; ok {
		if o.Rule, ok = rules[value]; !ok {
			return perturbation.SettingError(SettingCalibration, value,
				CalibrationRankOne+", "+CalibrationChaudhuri+" or "+CalibrationContinuous)
		}
	}
	return nil
}

// Name implements trainer.Trainer.
func (*Trainer) Name() string { return Name }

// parse returns the mechanism of a configuration, whose ε may be +Inf.
func (t *Trainer) parse(p trainer.Parameters) (m privacy.ObjectivePerturbation, err error) {
	m.DatasetSize = int64(t.risk.Examples.Rows())
	m.Curvature = t.risk.Loss.Curvature()
	m.Rule = t.rule
	known := []string{ParameterEpsilon, ParameterRegularization}
	if t.rule == privacy.RankOne {
		known = append(known, ParameterSplit)
	}
	if err = p.Only(known...); err != nil {
		return m, err
	}
	if m.Epsilon, err = perturbation.PositiveOrInfinite(p, ParameterEpsilon); err != nil {
		return m, err
	}
	if m.Regularization, err = perturbation.Positive(p, ParameterRegularization); err != nil {
		return m, err
	}
	if p.Has(ParameterSplit) {
		m.Split, err = perturbation.Fraction(p, ParameterSplit)
	}
	return m, err
}

// Mechanism returns the mechanism of one model of a configuration, a
// privacy.ObjectivePerturbation under replace-one adjacency. A *ParameterError
// tells that a parameter is invalid, or that ε is infinite and so no privacy.
func (t *Trainer) Mechanism(p trainer.Parameters) (privacy.Mechanism, error) {
	m, err := t.parse(p)
	if err != nil {
		return nil, err
	}
	if math.IsInf(m.Epsilon, 1) {
		return nil, &trainer.ParameterError{Name: ParameterEpsilon, Reason: "is infinite, which gives no privacy"}
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
	streams := perturbation.Streams{Seed: run.Seed, OSNoise: t.osNoise}
	metrics := t.evaluator.Metrics(run.Replicates)
	failed, err := perturbation.Each(ctx, run.Replicates, func(r int) error {
		objective := linear.Objective{Risk: t.risk, Ridge: m.Regularization}
		if !math.IsInf(m.Epsilon, 1) {
			u := make([]float64, t.risk.Examples.Dim())
			UnitNoise(u, streams.Noise(r, streamNoise))
			objective = Objective(t.risk, m, u)
		}
		if math.IsInf(objective.Ridge, 1) {
			return perturbation.ErrNotFinite
		}
		minimum, err := objective.Minimize(ctx, nil, 0)
		if err != nil {
			return err
		}
		return t.evaluator.MeasureTo(metrics, r, minimum.Theta)
	})
	if _, ok := errors.AsType[*linear.NotConvergedError](err); ok || errors.Is(err, perturbation.ErrNotFinite) {
		return trainer.Measurement{}, &trainer.InfeasibleError{
			Reason: fmt.Sprintf("replicate %d has no minimiser to release: %v", failed, err),
		}
	}
	if err != nil {
		return trainer.Measurement{}, err
	}
	return trainer.Measurement{Step: 1, Metrics: metrics, Elapsed: time.Since(start)}, nil
}

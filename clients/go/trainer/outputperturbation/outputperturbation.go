package outputperturbation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/floats"

	"github.com/dpareto/dpareto/clients/go/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/internal/perturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
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

// Names of the metrics.
const (
	MetricError           = perturbation.MetricError           // fraction of the test examples classified wrongly
	MetricLoss            = perturbation.MetricLoss            // mean log loss on the test examples, in nats
	MetricValidationError = perturbation.MetricValidationError // as MetricError, on the validation examples
	MetricValidationLoss  = perturbation.MetricValidationLoss  // as MetricLoss, on the validation examples
)

// SettingProjection is the name of the setting that chooses a [Projection]. The
// others are those of the data, feature_norm and noise_source.
const SettingProjection = "projection"

// Projection is a choice of the ball to which the iterates are projected. It
// decides how the sensitivity is bounded.
type Projection string

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

// Options are what a trainer is made from.
type Options struct {
	Train, Test *dataset.Dataset // labels −1 and 1
	Validation  *dataset.Dataset // nil for none
	FeatureNorm float64          // B, positive and finite: a public bound on the norm of the features; 0 means 1
	Projection  Projection       // empty means NoProjection
	OSNoise     bool             // noise from the operating system's entropy, not from the seed
}

// Trainer implements trainer.Trainer. One step of training is one epoch.
type Trainer struct {
	risk       linear.Risk
	evaluator  perturbation.Evaluator
	projection Projection
	osNoise    bool
}

var _ trainer.Trainer = (*Trainer)(nil)

// New returns a trainer. Empty datasets, labels other than −1 and 1, a norm bound
// that is not positive and finite and an unknown projection are errors; it panics
// when the datasets differ in dimension.
func New(o Options) (*Trainer, error) {
	if o.FeatureNorm == 0 {
		o.FeatureNorm = 1
	}
	if !(o.FeatureNorm > 0) || math.IsInf(o.FeatureNorm, 1) {
		return nil, fmt.Errorf("feature norm is %v, want a positive finite number", o.FeatureNorm)
	}
	switch o.Projection {
	case "":
		o.Projection = NoProjection
	case NoProjection, PublishedProjection, SmallProjection:
	default:
		return nil, perturbation.SettingError(SettingProjection, string(o.Projection), "none, published or small")
	}
	examples, err := linear.NewExamples(o.Train, o.FeatureNorm)
	if err != nil {
		return nil, err
	}
	evaluator, err := perturbation.NewEvaluator(linear.Logistic{}, o.Test, o.Validation, o.FeatureNorm, o.Train.Dim)
	if err != nil {
		return nil, err
	}
	return &Trainer{
		risk:       linear.Risk{Examples: examples, Loss: linear.Logistic{}},
		evaluator:  evaluator,
		projection: o.Projection,
		osNoise:    o.OSNoise,
	}, nil
}

// Definition describes the trainer to a registry, on Adult. The trainers made
// from one definition share the data in the cache.
func Definition(cache *dataset.Cache) trainer.Definition {
	return trainer.Definition{
		Name:    Name,
		Summary: "logistic regression by output perturbation (projected SGD) on Adult (UCI census income, 123 binary features)",
		Settings: append(perturbation.Settings(), trainer.Setting{
			Name: SettingProjection, Default: string(NoProjection),
			Usage: "ball that the iterates are projected to, which decides the sensitivity: none (2/(γn)), " +
				"published (radius 1/γ: 4/(γn)) or small (radius min(1/γ, √(2·log 2/γ)))",
		}),
		New: func(ctx context.Context, options trainer.Options) (trainer.Trainer, error) {
			data, err := perturbation.Load(ctx, cache, options)
			if err != nil {
				return nil, err
			}
			return New(Options{
				Train: data.Train, Test: data.Test, FeatureNorm: data.FeatureNorm, OSNoise: data.OSNoise,
				Projection: Projection(options.Settings[SettingProjection]),
			})
		},
	}
}

// configuration is what the parameters of a run say.
type configuration struct {
	epochs    int64
	gamma     float64
	deviation float64
}

func parse(p trainer.Parameters) (c configuration, err error) {
	if err = p.Only(ParameterEpochs, ParameterRegularization, ParameterStandardDeviation); err != nil {
		return c, err
	}
	if c.epochs, err = p.Int(ParameterEpochs); err != nil {
		return c, err
	}
	if c.epochs < 1 {
		return c, &trainer.ParameterError{Name: ParameterEpochs, Reason: fmt.Sprintf("is %d, want at least 1", c.epochs)}
	}
	if c.gamma, err = perturbation.Positive(p, ParameterRegularization); err != nil {
		return c, err
	}
	c.deviation, err = perturbation.NotNegative(p, ParameterStandardDeviation)
	return c, err
}

// Name implements trainer.Trainer.
func (*Trainer) Name() string { return Name }

// Mechanism returns the mechanism of one model of a configuration, a
// privacy.OutputPerturbation under replace-one adjacency. A *ParameterError tells
// that a parameter is invalid, or that there is no noise and so no privacy.
func (t *Trainer) Mechanism(p trainer.Parameters) (privacy.Mechanism, error) {
	c, err := parse(p)
	if err != nil {
		return nil, err
	}
	if c.deviation == 0 {
		return nil, &trainer.ParameterError{Name: ParameterStandardDeviation, Reason: "is 0, which gives no privacy"}
	}
	return privacy.OutputPerturbation{
		DatasetSize:    int64(t.risk.Examples.Rows()),
		Regularization: c.gamma,
		Lipschitz:      1,
		Sigma:          c.deviation,
		Radius:         t.projection.radius(c.gamma),
	}, nil
}

// Purposes of the random streams of a replicate. The noise does not depend on the
// number of epochs.
const (
	streamOrders = 0x0b7e_0001
	streamNoise  = 0x0b7e_0002
)

// replicate is one model in training.
type replicate struct {
	descent *descent
	noise   []float64 // standard normal
	model   []float64 // with the noise
}

func (t *Trainer) newReplicate(c configuration, streams perturbation.Streams, index int) *replicate {
	radius := math.Inf(1)
	if t.projection != NoProjection {
		radius = t.projection.radius(c.gamma)
	}
	dim := t.risk.Examples.Dim()
	r := &replicate{
		descent: newDescent(t.risk, c.gamma, radius, streams.Order(index, streamOrders)),
		noise:   make([]float64, dim),
		model:   make([]float64, dim),
	}
	rng := streams.Noise(index, streamNoise)
	for j := range r.noise {
		r.noise[j] = rng.NormFloat64()
	}
	return r
}

// release returns the iterate with noise of the given standard deviation. The
// slice belongs to r.
func (r *replicate) release(deviation float64) []float64 {
	return floats.AddScaledTo(r.model, r.descent.weights(), deviation, r.noise)
}

// Train implements trainer.Trainer. The replicates train in parallel and wait for
// one another after every epoch.
func (t *Trainer) Train(ctx context.Context, run trainer.Run, report trainer.Report) (trainer.Measurement, error) {
	start := time.Now()
	if err := run.Validate(); err != nil {
		return trainer.Measurement{}, err
	}
	c, err := parse(run.Parameters)
	if err != nil {
		return trainer.Measurement{}, err
	}
	streams := perturbation.Streams{Seed: run.Seed, OSNoise: t.osNoise}
	replicates := make([]*replicate, run.Replicates)
	for r := range replicates {
		replicates[r] = t.newReplicate(c, streams, r)
	}

	var last trainer.Measurement
	for epoch := int64(1); epoch <= c.epochs; epoch++ {
		metrics := t.evaluator.Metrics(len(replicates))
		failed, err := perturbation.Each(ctx, len(replicates), func(r int) error {
			if !replicates[r].descent.epoch(ctx) {
				return ctx.Err()
			}
			return t.evaluator.MeasureTo(metrics, r, replicates[r].release(c.deviation))
		})
		if errors.Is(err, perturbation.ErrNotFinite) {
			return trainer.Measurement{}, &trainer.InfeasibleError{
				Reason: fmt.Sprintf("%v after epoch %d of replicate %d", err, epoch, failed),
			}
		}
		if err != nil {
			return trainer.Measurement{}, err
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

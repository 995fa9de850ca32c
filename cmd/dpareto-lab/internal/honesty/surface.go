package honesty

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/dpsgd"
	"github.com/dpareto/dpareto/suggest/space"
)

// testRows is the number of test examples, at most.
const testRows = 2000

// training is a program with its data, and the domain of its parameters.
type training struct {
	name   string
	rows   int
	epochs float64 // of a run, at most
	// dataset names the data of the bundled trainer, whose studies declare the features of DP-SGD. Other programs
	// have generated data.
	dataset   string
	division  dataset.Division
	kind      model.Kind
	generated generated
}

// The trainings, on which surfaces are.
var (
	adult200        = &training{name: "adult-200", rows: 200, epochs: 32, dataset: dataset.NameAdult, division: adult, kind: model.LogisticRegression}
	adult2000       = &training{name: "adult-2000", rows: 2000, epochs: 32, dataset: dataset.NameAdult, division: adult, kind: model.LogisticRegression}
	adult20000      = &training{name: "adult-20000", rows: 20000, epochs: 12, dataset: dataset.NameAdult, division: adult, kind: model.LogisticRegression}
	breastCancer400 = &training{name: "breast-cancer-400", rows: 400, epochs: 32, dataset: dataset.NameBreastCancer, division: dataset.Division{TrainRows: 400}, kind: model.LogisticRegression}
	mnist500        = &training{name: "mnist-500", rows: 500, epochs: 8, dataset: dataset.NameMNIST, kind: model.SoftmaxRegression}
	regression2000  = &training{name: "regression-2000", rows: 2000, epochs: 24, generated: generated{seed: 1, features: 10, outputs: 1, regression: true}}
	regression30000 = &training{name: "regression-30000", rows: 30000, epochs: 8, generated: generated{seed: 2, features: 20, outputs: 1, regression: true}}
	softmax500      = &training{name: "softmax-500", rows: 500, epochs: 32, generated: generated{seed: 3, features: 8, outputs: 4}}
	softmax10000    = &training{name: "softmax-10000", rows: 10000, epochs: 12, generated: generated{seed: 4, features: 15, outputs: 10}}
	logistic200     = &training{name: "logistic-200", rows: 200, epochs: 48, generated: generated{seed: 5, features: 5, outputs: 1}}
	logistic3000    = &training{name: "logistic-3000", rows: 3000, epochs: 24, generated: generated{seed: 6, features: 20, outputs: 1}}
	logistic60000   = &training{name: "logistic-60000", rows: 60000, epochs: 6, generated: generated{seed: 7, features: 15, outputs: 1}}
)

var adult = dataset.Division{Split: dataset.SplitUCI}

// open returns the program of a training, with data in a folder or downloaded.
func (t *training) open(ctx context.Context, dataDir string) (program, error) {
	if t.dataset == "" {
		return t.generated.program(t.rows, testRows), nil
	}
	parts, err := dataset.Load(ctx, t.dataset, t.division, dataset.Source{DataDir: dataDir})
	if err != nil {
		return nil, err
	}
	return newBundled(parts, t.rows, testRows, t.kind)
}

// space returns the parameters, in the order of their constants.
func (t *training) space() *space.Space {
	rate := [2]float64{0.005, 2}
	if t.dataset == "" {
		rate = [2]float64{0.002, 1} // of normalised steps
	}
	domain := func(name string, kind space.Kind, least, most float64) space.Parameter {
		return space.Parameter{Name: name, Kind: kind, Min: least, Max: most, Scale: space.Log}
	}
	return &space.Space{Parameters: []space.Parameter{
		epochs:          domain("epochs", space.Integer, 1, t.epochs),
		lotSize:         domain("lot_size", space.Integer, 16, float64(min(t.rows/4, 256))),
		learningRate:    domain("learning_rate", space.Double, rate[0], rate[1]),
		clippingNorm:    domain("clipping_norm", space.Double, 0.1, 4),
		noiseMultiplier: domain("noise_multiplier", space.Double, 0.5, 16),
	}}
}

// surface is a metric of a training, on which studies are made.
type surface struct {
	training  *training
	metric    int
	transform suggest.Transform
	// reference is the anti-ideal value. A constant model does not reach it, so that luck alone makes no hypervolume.
	reference float64
}

var surfaces = []surface{
	{adult200, metricError, suggest.Logit, 0.5},
	{adult200, metricLoss, suggest.Log, 1},
	{adult2000, metricError, suggest.Logit, 0.5},
	{adult2000, metricLoss, suggest.Identity, 1},
	{adult20000, metricLoss, suggest.Log, 1},
	{breastCancer400, metricError, suggest.Logit, 0.5},
	{breastCancer400, metricLoss, suggest.Log, 1},
	{mnist500, metricError, suggest.Logit, 0.9},
	{mnist500, metricLoss, suggest.Identity, 3},
	{regression2000, metricLoss, suggest.Log, 100},
	{regression2000, metricLoss, suggest.Identity, 100},
	{regression30000, metricLoss, suggest.Log, 100},
	{softmax500, metricLoss, suggest.Identity, 2},
	{softmax500, metricLoss, suggest.Log, 2},
	{softmax10000, metricLoss, suggest.Identity, 3},
	{softmax10000, metricError, suggest.Logit, 0.9},
	{logistic200, metricAUC, suggest.Logit, 0.5},
	{logistic200, metricLoss, suggest.Log, 1},
	{logistic3000, metricAUC, suggest.Identity, 0.5},
	{logistic60000, metricAUC, suggest.Logit, 0.5},
	{logistic60000, metricLoss, suggest.Identity, 1},
}

// Names returns the names of all surfaces.
func Names() []string {
	all := make([]string, len(surfaces))
	for i := range surfaces {
		all[i] = surfaces[i].name()
	}
	return all
}

// metricNames are the names of metrics.
var metricNames = [metrics]string{"error", "loss", "auc"}

func (s *surface) name() string {
	return strings.Join([]string{s.training.name, metricNames[s.metric], s.transform.String()}, "-")
}

const (
	referenceEpsilon = 10
	delta            = 1e-5
)

// problem returns the study of the surface as a model sees it. ε is for the replacement of one record.
func (s *surface) problem() (*suggest.Problem, error) {
	t := s.training
	interpolant, err := privacy.InterpolateFixedSize(privacy.Tightest{}, delta, referenceEpsilon)
	if err != nil {
		return nil, err
	}
	p := &suggest.Problem{
		Space: t.space(), Checkpoint: "epochs",
		Objectives: []suggest.Objective{
			{Name: "epsilon", Goal: suggest.Minimize, Transform: suggest.Log, Reference: referenceEpsilon, Known: func(q space.Point) float64 {
				return interpolant.Epsilon(q[lotSize]/float64(t.rows), q[noiseMultiplier], q[epochs]*stepsPerEpoch(t.rows, q))
			}},
			{Name: metricNames[s.metric], Goal: suggest.Minimize, Transform: s.transform, Reference: s.reference},
		},
	}
	o := &p.Objectives[1]
	if s.metric == metricAUC {
		o.Goal = suggest.Maximize
	}
	if s.metric == metricError {
		o.SampleSize = testRows
		if t.dataset == dataset.NameBreastCancer {
			o.SampleSize = 169
		}
	}
	if t.dataset != "" {
		all := []int{epochs, lotSize, learningRate, clippingNorm, noiseMultiplier}
		p.Features = dpsgd.Features(func(q space.Point) dpsgd.Run {
			return dpsgd.Run{
				LearningRate: q[learningRate], ClippingNorm: q[clippingNorm], Noise: noiseScale * q[noiseMultiplier], LotSize: q[lotSize],
				Steps: q[epochs] * stepsPerEpoch(t.rows, q),
			}
		}, false, all, all)
		if s.metric == metricError {
			p.Features.Mean = dpsgd.PublicMean(false, t.dataset)
		}
	}
	return p, p.Validate()
}

// stepsPerEpoch returns the number of lots of an epoch, which need not be whole.
func stepsPerEpoch(rows int, q space.Point) float64 { return float64(rows) / q[lotSize] }

// byName returns some surfaces, or all for no names.
func byName(names []string) ([]surface, error) {
	if len(names) == 0 {
		return surfaces, nil
	}
	var all []surface
	for _, name := range names {
		i := slices.Index(Names(), name)
		if i < 0 {
			return nil, fmt.Errorf("--surface must be some of %s, is %q", strings.Join(Names(), ", "), name)
		}
		all = append(all, surfaces[i])
	}
	return all, nil
}

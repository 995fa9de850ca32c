// Package samplers compares the error of DP-SGD under several samplers, and of DP-MF, at the same ε, δ and adjacency.
package samplers

import (
	"context"
	"maps"
	"math"
	"strconv"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
	"github.com/dpareto/dpareto/privacy"
)

// Data is what is trained on a dataset.
type Data struct {
	Title    string
	Settings map[string]string
	Rows     int // training examples, 0 for all
	LotSize  int64
	Epochs   int64
	Clipping float64
	Rates    []float64
	Bands    int64 // of DP-MF
}

// All are logistic regression on Adult and softmax regression on a subset of MNIST.
var All = []Data{
	{
		Title:    "Adult, logistic regression",
		Settings: map[string]string{"dataset": "adult", "split": "uci", "model": "logistic-regression"},
		LotSize:  256, Epochs: 10, Clipping: 1, Rates: []float64{0.1, 0.4, 1.6, 6.4}, Bands: 8,
	},
	{
		Title:    "MNIST, softmax regression, 10,000 training examples",
		Settings: map[string]string{"dataset": "mnist", "model": "softmax-regression", "validation_rows": "2000"}, Rows: 10_000,
		LotSize: 256, Epochs: 5, Clipping: 1, Rates: []float64{0.05, 0.2, 0.8, 3.2}, Bands: 8,
	},
}

// Delta is δ of all guarantees. Their adjacency is add-remove with a public number of records (zero-out).
const Delta = 1e-5

// Epsilons are the targets.
var Epsilons = []float64{0.1, 0.3, 1, 3, 10}

// Point is what a sampler has at an ε.
type Point struct {
	Sampler string
	Epsilon float64
	Noise   float64 // standard deviation over the clipping norm
	Rate    float64 // with the least mean error on the validation part
	Error   float64 // mean error on the test part over seeds, at Rate
	Margin  float64 // half the width of the 95 % interval of the mean
}

// sampler trains with lots of its own.
type sampler struct {
	name    string
	trainer string
	setting string // of dp-sgd "sampling", of dp-mf "matrix"
	// mechanism of a run of n records with a noise multiplier relative to the clipping norm; nil for the trainer's.
	mechanism func(d Data, n int64, noise float64) (privacy.Mechanism, error)
	// sensitivity divides the noise for the trainer.
	sensitivity float64
}

var all = []sampler{
	{name: "random allocation", trainer: dpsgd.Name, setting: "random-allocation", sensitivity: 1},
	{name: "Poisson", trainer: dpsgd.Name, setting: "poisson", sensitivity: 1},
	{name: "fixed-size lots", trainer: dpsgd.Name, setting: "fixed-size", sensitivity: 2, mechanism: fixedSize},
	{name: "shuffling", trainer: dpsgd.Name, setting: "fixed-size", sensitivity: 2, mechanism: shuffling},
	{name: "DP-MF, banded", trainer: dpsgd.NameMF, setting: "banded", sensitivity: 1},
	{name: "DP-MF, BLT", trainer: dpsgd.NameMF, setting: "blt", sensitivity: 1},
	{name: "DP-MF, tree", trainer: dpsgd.NameMF, setting: "tree", sensitivity: 1},
}

func fixedSize(d Data, n int64, noise float64) (privacy.Mechanism, error) {
	steps, err := privacy.StepsPerEpoch(n, d.LotSize)
	m := privacy.FixedSizeAddRemoveGaussian{DatasetSize: n, BatchSize: d.LotSize, NoiseMultiplier: noise}
	return privacy.Composition{{Mechanism: m, Count: steps * d.Epochs}}, err
}

// shuffling is accounted for shuffled lots, whose training fixed-size lots stand for: both have each record once an
// epoch, on average.
func shuffling(d Data, n int64, noise float64) (privacy.Mechanism, error) {
	m := privacy.ShuffledGaussian{NoiseMultiplier: noise, Steps: n / d.LotSize, Neighbours: privacy.AddRemove}
	return privacy.Composition{{Mechanism: m, Count: d.Epochs}}, nil
}

// Runs returns the number of runs of [Compare].
func (d Data) Runs(seeds int) int64 { return int64(len(all) * len(Epsilons) * len(d.Rates) * seeds) }

// Compare trains every sampler at every ε and rate from several seeds, and calls progress after each run.
func Compare(ctx context.Context, d Data, dataDir string, seeds int, progress func(done int)) ([]Point, error) {
	var points []Point
	registry := builtin.Registry()
	done := 0
	for _, s := range all {
		settings := make(trainer.Settings)
		maps.Copy(settings, d.Settings)
		settings[map[string]string{dpsgd.Name: dpsgd.SettingSampling, dpsgd.NameMF: dpsgd.SettingMatrix}[s.trainer]] = s.setting
		made, err := registry.New(ctx, s.trainer, trainer.Options{Settings: settings, DataDir: dataDir})
		if err != nil {
			return nil, err
		}
		t := made.(*dpsgd.Trainer)
		if d.Rows > 0 {
			rows := make([]int, d.Rows)
			for i := range rows {
				rows[i] = i
			}
			if t, err = dpsgd.New(t.Parts().Subset(rows), t.Options()); err != nil {
				return nil, err
			}
		}
		for _, epsilon := range Epsilons {
			noise, err := s.calibrate(t, d, epsilon)
			if err != nil {
				return nil, err
			}
			best, bestValidation := Point{}, math.Inf(1)
			for _, rate := range d.Rates {
				validation, test := make([]float64, 0, seeds), make([]float64, 0, seeds)
				for seed := range uint64(seeds) {
					m, err := t.Train(ctx, trainer.Run{Parameters: s.parameters(d, noise, rate), Replicates: 1, Seed: &seed}, nil)
					if err != nil {
						return nil, err
					}
					validation, test = append(validation, m.Metrics["error"]...), append(test, m.Metrics["test_error"]...)
					done++
					progress(done)
				}
				if mean := stat.Mean(validation, nil); mean < bestValidation {
					bestValidation = mean
					best = Point{s.name, epsilon, noise, rate, stat.Mean(test, nil), margin(test)}
				}
			}
			points = append(points, best)
		}
	}
	return points, nil
}

// margin returns half the width of the 95 % interval of the mean, by Student's distribution.
func margin(values []float64) float64 {
	n := float64(len(values))
	return distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(0.975) * stat.StdDev(values, nil) / math.Sqrt(n)
}

// calibrate returns the least noise, relative to the clipping norm, with which a run costs epsilon.
func (s sampler) calibrate(t *dpsgd.Trainer, d Data, epsilon float64) (float64, error) {
	n := int64(t.Parts().Train.Rows)
	var failed error
	family := func(noise float64) privacy.Mechanism {
		var m privacy.Mechanism
		var err error
		if s.mechanism != nil {
			m, err = s.mechanism(d, n, noise)
		} else {
			m, err = t.Mechanism(s.parameters(d, noise, 1))
		}
		if err != nil {
			failed = err
		}
		return m
	}
	if family(1); failed != nil { // no noise makes other parameters valid
		return 0, failed
	}
	noise, _, err := privacy.CalibrateNoise(privacy.Exact{UpperOnly: true}, family, 1, epsilon, Delta)
	return noise, err
}

func (s sampler) parameters(d Data, noise, rate float64) trainer.Parameters {
	p := trainer.Parameters{
		dpsgd.ParameterEpochs: d.Epochs, dpsgd.ParameterLotSize: d.LotSize, dpsgd.ParameterClippingNorm: d.Clipping,
		dpsgd.ParameterLearningRate: rate, dpsgd.ParameterNoiseMultiplier: noise / s.sensitivity,
	}
	if s.setting == "banded" {
		p[dpsgd.ParameterBands] = d.Bands
	}
	return p
}

// Rows returns the points as cells of a table.
func Rows(points []Point) [][]any {
	rows := make([][]any, len(points))
	for i, p := range points {
		rows[i] = []any{p.Sampler, p.Epsilon, p.Noise, p.Rate, strconv.FormatFloat(p.Error, 'f', 4, 64), strconv.FormatFloat(p.Margin, 'f', 4, 64)}
	}
	return rows
}

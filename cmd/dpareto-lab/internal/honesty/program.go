package honesty

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/suggest/space"
)

// The parameters of all trainings.
const (
	epochs = iota
	lotSize
	learningRate
	clippingNorm
	noiseMultiplier
	dimension
)

// noiseScale is κ of DP-SGD with lots of a fixed size: noise has the standard deviation κCσ.
const noiseScale = 2

// outcome is what a run has after some epochs, by metric: errors are fractions, losses are in nats or squared
// units. A metric that a program does not have is 0.
type outcome [metrics]float64

// The metrics of programs.
const (
	metricError = iota
	metricLoss
	metricAUC
	metrics
)

// program trains a configuration and returns its outcomes at the epochs of checkpoints.
type program interface {
	train(ctx context.Context, q space.Point, seed uint64) ([]outcome, error)
}

// checkpoints returns the epochs at which a run is measured: all powers of two and those halfway between, up to its
// end.
func checkpoints(q space.Point) []int {
	last := int(q[epochs])
	var at []int
	for e := 1; e < last; e *= 2 {
		at = append(at, e)
		if e >= 2 && e*3/2 < last {
			at = append(at, e*3/2)
		}
	}
	return append(at, last)
}

// bundled trains by the trainer dp-sgd of this repository.
type bundled struct{ trainer *dpsgd.Trainer }

// newBundled returns the program that trains a model on the first rows of a dataset.
func newBundled(parts *dataset.Parts, rows, test int, m model.Kind) (program, error) {
	parts = &dataset.Parts{Train: first(parts.Train, rows), Test: first(parts.Test, test)}
	t, err := dpsgd.New(parts, dpsgd.Options{Model: model.Spec{Kind: m}})
	return bundled{t}, err
}

// first returns the first rows of a dataset, or all of fewer.
func first(d *dataset.Dataset, rows int) *dataset.Dataset {
	all := make([]int, min(rows, d.Rows))
	for i := range all {
		all[i] = i
	}
	return d.Select(d.Name, all)
}

func (b bundled) train(ctx context.Context, q space.Point, seed uint64) ([]outcome, error) {
	run := trainer.Run{Replicates: 1, Seed: &seed, Parameters: trainer.Parameters{
		dpsgd.ParameterEpochs: int64(q[epochs]), dpsgd.ParameterLotSize: int64(q[lotSize]), dpsgd.ParameterLearningRate: q[learningRate],
		dpsgd.ParameterClippingNorm: q[clippingNorm], dpsgd.ParameterNoiseMultiplier: q[noiseMultiplier],
	}}
	var all []outcome
	at, epoch := checkpoints(q), 0
	_, err := b.trainer.Train(ctx, run, func(m trainer.Measurement) error {
		if epoch++; slices.Contains(at, epoch) {
			all = append(all, outcome{metricError: m.Metrics[dpsgd.MetricError][0], metricLoss: m.Metrics[dpsgd.MetricLoss][0]})
		}
		return nil
	})
	return all, err
}

// linear is a program that has nothing in common with the bundled trainers. It fits a linear model of dense examples
// by normalised steps: without noise, one step moves the weights by at most the learning rate.
type linear struct {
	outputs    int // 1 for a regression and for two classes
	regression bool
	rows, test table
}

// table is a number of examples.
type table struct {
	x [][]float64
	y []float64 // a number, or a class from 0 on
}

// generated are data of a hidden linear model, which the seed determines: a number with the standard deviation
// of 10, or classes with noise.
type generated struct {
	seed              uint64
	features, outputs int
	regression        bool
}

// program returns the program with generated examples.
func (g generated) program(rows, test int) *linear {
	rng := rand.New(rand.NewPCG(g.seed, 11))
	features, outputs := g.features, g.outputs
	hidden := make([][]float64, outputs)
	for k := range hidden {
		hidden[k] = make([]float64, features)
		for j := range hidden[k] {
			hidden[k][j] = rng.NormFloat64() / math.Sqrt(1+float64(j)/2)
		}
	}
	draw := func(n int) (t table) {
		for range n {
			x := make([]float64, features)
			for j := range x {
				x[j] = rng.NormFloat64()
			}
			scores := scores(hidden, x)
			y := 0.0
			switch {
			case g.regression:
				y = 10*scores[0]/math.Sqrt(squares(hidden[0])) + rng.NormFloat64()
			case outputs == 1:
				if 2*scores[0]+logistic(rng) > 0 {
					y = 1
				}
			default:
				best := math.Inf(-1)
				for k, s := range scores {
					if s += logistic(rng) / 2; s > best {
						best, y = s, float64(k)
					}
				}
			}
			t.x, t.y = append(t.x, x), append(t.y, y)
		}
		return t
	}
	return &linear{outputs: outputs, regression: g.regression, rows: draw(rows), test: draw(test)}
}

// logistic draws from the logistic distribution.
func logistic(rng *rand.Rand) float64 {
	u := rng.Float64()
	return math.Log((u + 1e-12) / (1 - u + 1e-12))
}

func scores(w [][]float64, x []float64) []float64 {
	out := make([]float64, len(w))
	for k := range w {
		for j, v := range x {
			out[k] += w[k][j] * v
		}
	}
	return out
}

// residuals turns scores into the derivatives of the loss by the scores, and returns the loss.
func (l *linear) residuals(s []float64, y float64) (loss float64) {
	switch {
	case l.regression:
		s[0] -= y
		return s[0] * s[0]
	case l.outputs == 1:
		sign := 2*y - 1
		loss = math.Max(0, -sign*s[0]) + math.Log1p(math.Exp(-math.Abs(s[0])))
		s[0] = 1/(1+math.Exp(-s[0])) - y
		return loss
	}
	largest, sum := slices.Max(s), 0.0
	loss = largest - s[int(y)]
	for k := range s {
		s[k] = math.Exp(s[k] - largest)
		sum += s[k]
	}
	for k := range s {
		s[k] /= sum
	}
	s[int(y)]--
	return loss + math.Log(sum)
}

func (l *linear) train(ctx context.Context, q space.Point, seed uint64) ([]outcome, error) {
	rng := rand.New(rand.NewPCG(seed, 12))
	n, lot, clip := len(l.rows.x), int(q[lotSize]), q[clippingNorm]
	w, sum := make([][]float64, l.outputs), make([][]float64, l.outputs)
	for k := range w {
		w[k], sum[k] = make([]float64, len(l.rows.x[0])), make([]float64, len(l.rows.x[0]))
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var all []outcome
	steps := max(1, int(math.RoundToEven(float64(n)/float64(lot))))
	at := checkpoints(q)
	for epoch := 1; epoch <= int(q[epochs]); epoch++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for range steps {
			for k := range sum {
				for j := range sum[k] {
					sum[k][j] = noiseScale * q[noiseMultiplier] * rng.NormFloat64() // in units of the clipping norm
				}
			}
			for k := range lot { // without replacement
				other := k + rng.IntN(n-k)
				order[k], order[other] = order[other], order[k]
				i := order[k]
				x, r := l.rows.x[i], scores(w, l.rows.x[i])
				l.residuals(r, l.rows.y[i])
				norm := math.Sqrt(squares(r) * squares(x))
				scale := 1 / math.Max(norm, clip)
				for k := range sum {
					for j, v := range x {
						sum[k][j] += scale * r[k] * v
					}
				}
			}
			for k := range w {
				for j := range w[k] {
					w[k][j] -= q[learningRate] * sum[k][j] / float64(lot)
				}
			}
		}
		if slices.Contains(at, epoch) {
			all = append(all, l.measure(w))
		}
	}
	return all, nil
}

func squares(v []float64) (sum float64) {
	for _, x := range v {
		sum += x * x
	}
	return sum
}

// measure measures weights on the test examples.
func (l *linear) measure(w [][]float64) (o outcome) {
	n := float64(len(l.test.x))
	ranked := make([]scored, len(l.test.x))
	for i, x := range l.test.x {
		s, y := scores(w, x), l.test.y[i]
		chosen := 0
		if ranked[i] = (scored{s[0], y}); l.outputs == 1 && s[0] > 0 {
			chosen = 1
		}
		for k := range s {
			if s[k] > s[chosen%len(s)] {
				chosen = k
			}
		}
		if !l.regression && chosen != int(y) {
			o[metricError] += 1 / n
		}
		o[metricLoss] += l.residuals(s, y) / n
	}
	if !l.regression && l.outputs == 1 {
		o[metricAUC] = auc(ranked)
	}
	return o
}

// scored is a score and the class, 0 or 1, of an example.
type scored struct{ score, class float64 }

// auc returns the area under the curve of true and false positives. Equal scores count half.
func auc(list []scored) float64 {
	slices.SortFunc(list, func(a, b scored) int { return cmp.Compare(a.score, b.score) })
	var area, negatives, positives float64
	for i := 0; i < len(list); {
		var p, m float64
		for score := list[i].score; i < len(list) && list[i].score == score; i++ {
			p += list[i].class
			m += 1 - list[i].class
		}
		area += p * (negatives + m/2)
		negatives, positives = negatives+m, positives+p
	}
	return area / (negatives * positives)
}

// Package trainers measures what DP-SGD costs by model and lot, beside the same training without privacy.
package trainers

import (
	"context"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/bench"
	"github.com/dpareto/dpareto/cmd/internal/output"
)

// network is a model by the widths of its layers, inputs and outputs included, as other libraries build it.
type network struct {
	name   string
	widths string
	spec   model.Spec
	make   func(rows int, seed uint64) *dataset.Dataset
}

var networks = []network{
	{"adult", "123 1", model.Spec{Kind: model.LogisticRegression}, dataset.Generated},
	{"mlp2", "784 128 64 10", model.Spec{Kind: model.MLP, Hidden: []int{128, 64}}, dataset.GeneratedDigits},
	{"mlp1", "784 1000 10", model.Spec{Kind: model.MLP, Hidden: []int{1000}}, dataset.GeneratedDigits},
}

// Lots are the sizes of lots that are measured.
var Lots = []int64{16, 64, 256, 600}

// Measure trains each model with lots of each size on made-up examples of the shapes of Adult and MNIST, and returns
// a row for each: processor nanoseconds of one example and epoch with clipping and noise from the system's entropy, with
// clipping alone, and with neither. Each is the least of the epochs of a number of rounds, which alternate. It
// uses one processor while it runs.
func Measure(ctx context.Context, rows, rounds int, progress func(done int)) (*output.Table, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	table := &output.Table{Columns: []string{"model", "widths", "parameters", "rows", "lot", "private", "clipped", "not_private", "ratio"}}
	for _, n := range networks {
		one := n.make(1, 2)
		made, err := dpsgd.New(&dataset.Parts{Train: n.make(rows, 1), Test: one}, dpsgd.Options{Model: n.spec})
		if err != nil {
			return nil, err
		}
		for _, lot := range Lots {
			least := [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)}
			var parameters int64
			for range rounds {
				for k, p := range []trainer.Parameters{
					{dpsgd.ParameterClippingNorm: 1.0, dpsgd.ParameterNoiseMultiplier: 1.0},
					{dpsgd.ParameterClippingNorm: 1.0, dpsgd.ParameterNoiseMultiplier: 0.0},
					{dpsgd.ParameterClippingNorm: math.Inf(1), dpsgd.ParameterNoiseMultiplier: 0.0},
				} {
					p[dpsgd.ParameterLotSize], p[dpsgd.ParameterEpochs], p[dpsgd.ParameterLearningRate] = lot, int64(epochs), 1e-3
					times, size, err := epochTimes(ctx, made, p)
					if err != nil {
						return nil, err
					}
					steps := math.RoundToEven(float64(rows) / float64(lot))
					least[k] = min(least[k], float64(slices.Min(times))/(steps*float64(lot)))
					parameters = size
				}
			}
			table.Rows = append(table.Rows, []any{n.name, n.widths, parameters, int64(rows), lot, least[0], least[1], least[2], least[0] / least[2]})
			progress(len(table.Rows))
		}
	}
	return table, nil
}

// Count is the number of rows of Measure.
func Count() int { return len(networks) * len(Lots) }

// epochs of one training. The first warms caches up.
const epochs = 3

// epochTimes returns the processor times of the epochs after the first, and the number of weights and biases.
func epochTimes(ctx context.Context, made *dpsgd.Trainer, p trainer.Parameters) (times []time.Duration, size int64, err error) {
	var before time.Duration
	run := trainer.Run{Parameters: p, Replicates: 1, Fitted: func(_ int, layers []trainer.Layer) {
		for _, l := range layers {
			size += int64((l.In + 1) * l.Out)
		}
	}}
	_, err = made.Train(ctx, run, func(m trainer.Measurement) error {
		now := bench.ProcessorTime()
		if m.Step > 1 {
			times = append(times, now-before)
		}
		before = now
		return nil
	})
	return times, size, err
}

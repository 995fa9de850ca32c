package dpsgd

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/internal/parallel"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/internal/require"
)

// wantAverage steps two replicates, of which one averages, and compares its model with the stated shares of the
// other's weights. The steps are the same: the average is computed from what they release.
func wantAverage[T model.Float](t *testing.T, last, averaged *replicate[T], examples *model.Examples) {
	t.Helper()
	const steps = 9
	var after [][]T
	for range steps {
		last.Epoch(t.Context())
		averaged.Epoch(t.Context())
		after = append(after, slices.Clone(last.model.Weights()))
		if !slices.Equal(last.model.Weights(), averaged.model.Weights()) {
			t.Fatal("averaging changes the steps")
		}
	}
	want := make([]float64, len(last.model.Weights()))
	for i := range steps {
		k, n := float64(i+1), float64(steps)
		share := 4 * k * (k + 1) * (k + 2) / (n * (n + 1) * (n + 2) * (n + 3))
		for j, w := range after[i] {
			want[j] += share * float64(w)
		}
	}
	layers := averaged.Layers()
	largest := 0.0
	copy(last.model.Weights(), averaged.average)
	for j, w := range last.model.Weights() {
		largest = max(largest, math.Abs(float64(w)-want[j]))
	}
	if largest > 1e-5 || cmp.Diff(layers, last.Layers()) != "" {
		t.Errorf("the average is %g off the stated shares", largest)
	}
	errorRate, loss := averaged.Evaluate(examples)
	if wantError, wantLoss := last.Evaluate(examples); errorRate != wantError || loss != wantLoss {
		t.Errorf("error %v and loss %v, of the average %v and %v", errorRate, loss, wantError, wantLoss)
	}
	outputs, wantOutputs := make([]float64, 10*examples.Data().Rows), make([]float64, 10*examples.Data().Rows)
	averaged.OutputsTo(outputs, examples)
	last.OutputsTo(wantOutputs, examples)
	if !slices.Equal(outputs, wantOutputs) {
		t.Error("outputs are not those of the average")
	}
	if !slices.Equal(averaged.model.Weights(), after[steps-1]) {
		t.Error("measuring changes the weights")
	}
}

func TestAveraging(t *testing.T) {
	adult := dataset.Generated(200, 1)
	c := testConfiguration(200, 20)
	c.learningRate = 0.5
	for name, o := range map[string]Options{
		"sgd": {}, "adam": {Optimizer: Adam}, "poisson": {Sampling: Poisson}, "correlated": {Correlated: true},
	} {
		own := c
		if o.Correlated {
			own.bands = 3
		}
		averaged := o
		averaged.Averaging = AveragePolynomial
		t.Run(name, func(t *testing.T) {
			wantAverage(t, newLinear(t, adult, o, own, 0), newLinear(t, adult, averaged, own, 0), prepare(t, adult))
		})
	}
	t.Run("network", func(t *testing.T) { // of more than one block
		images := digits(100, 200, 1)
		c := testConfiguration(100, 10)
		c.learningRate = 0.1
		o := Options{Model: model.Spec{Kind: model.MLP, Hidden: []int{25}}}
		averaged := o
		averaged.Averaging = AveragePolynomial
		wantAverage(t, newNetwork(t, images, o, c, 0, parallel.New(1)), newNetwork(t, images, averaged, c, 0, parallel.New(1)), prepare(t, images))
	})
}

// The setting and the parameter mean the same, and the mechanism is that of the last weights.
func TestAveragingIsChosen(t *testing.T) {
	parts := &dataset.Parts{Train: dataset.Generated(300, 1), Test: dataset.Generated(200, 2)}
	train := func(o Options, p trainer.Parameters) (map[string][]float64, any) {
		made, err := New(parts, o)
		require.NoError(t, err)
		mechanism, err := made.Mechanism(p)
		require.NoError(t, err)
		return metrics(t, made, trainer.Run{Parameters: p, Replicates: 1, Seed: new(uint64(3))})[2], mechanism
	}
	chosen := parameters(trainer.Parameters{ParameterAveraging: string(AveragePolynomial)})
	byParameter, first := train(Options{}, chosen)
	bySetting, second := train(Options{Averaging: AveragePolynomial}, parameters(nil))
	last, third := train(Options{Averaging: AveragePolynomial}, parameters(trainer.Parameters{ParameterAveraging: string(AverageNone)}))
	if !cmp.Equal(byParameter, bySetting) || cmp.Equal(byParameter, last) {
		t.Errorf("metrics by parameter %v, by setting %v, of the last weights %v", byParameter, bySetting, last)
	}
	if !cmp.Equal(first, third) || !cmp.Equal(second, third) {
		t.Errorf("mechanisms %v, %v, %v", first, second, third)
	}
	for _, err := range []error{
		func() error { _, err := New(parts, Options{Averaging: "tail"}); return err }(),
		func() error {
			made, err := New(parts, Options{})
			require.NoError(t, err)
			_, err = made.Mechanism(parameters(trainer.Parameters{ParameterAveraging: "tail"}))
			return err
		}(),
	} {
		if err == nil || !strings.Contains(err.Error(), "averaging") || !strings.Contains(err.Error(), "none or polynomial") {
			t.Errorf("error %v", err)
		}
	}
}

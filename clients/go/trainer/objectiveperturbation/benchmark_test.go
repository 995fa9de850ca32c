package objectiveperturbation

import (
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

func BenchmarkTrain(b *testing.B) {
	for name, loss := range map[string]linear.Loss{"logistic": linear.Logistic{}, "huber": linear.Huber{Width: 0.5}} {
		b.Run(name, func(b *testing.B) {
			made := newTrainer(b, func(p *dataset.Parts, o *Options) { p.Train, o.Loss = dataset.Generated(10000, 1), loss })
			b.ReportAllocs()
			for b.Loop() {
				if _, err := made.Train(b.Context(), trainer.Run{Parameters: parameters(nil), Replicates: 1, Seed: new(uint64(0))}, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A curve of twenty values of ε, each from the minimiser before it.
func BenchmarkContinuation(b *testing.B) {
	made := newTrainer(b, func(p *dataset.Parts, _ *Options) { p.Train = dataset.Generated(10000, 1) })
	u := make([]float64, made.risk.Examples.Dim())
	UnitNoise(u, random.New(1, 0, 0, 0))
	m := privacy.ObjectivePerturbation{DatasetSize: 10000, Regularization: 1e-6, Curvature: 0.25}
	steps := 0
	for b.Loop() {
		var start []float64
		steps = 0
		for k := 20; k > 0; k-- {
			m.Epsilon = float64(k) / 20
			minimum, err := Objective(made.risk, m, u).Minimize(b.Context(), start, 0)
			require.NoError(b, err)
			start = minimum.Theta
			steps += minimum.Iterations
		}
	}
	b.ReportMetric(float64(steps)/20, "steps/point")
}

package outputperturbation

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
)

func BenchmarkEpoch(b *testing.B) {
	data := dataset.Generated(40000, 1)
	for name, radius := range map[string]float64{"free": math.Inf(1), "projected": 1} {
		b.Run(name, func(b *testing.B) {
			made := newTrainer(b, func(p *dataset.Parts, _ *Options) { p.Train = data })
			d := newDescent(made.risk, 1e-3, radius, random.New(1, 0, streamTest, 0))
			b.ReportAllocs()
			for b.Loop() {
				d.epoch(b.Context())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(data.Rows), "ns/example")
		})
	}
}

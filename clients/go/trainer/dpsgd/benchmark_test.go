package dpsgd

import (
	"fmt"
	"testing"

	"github.com/dpareto/dpareto/clients/go/dataset"
)

func BenchmarkEpoch(b *testing.B) {
	pool := dataset.Generated(40000, 1)
	for _, lotSize := range []int{8, 32, 128, 512} {
		b.Run(fmt.Sprintf("lot=%d", lotSize), func(b *testing.B) {
			c := configuration{
				epochs: 1, stepsPerEpoch: int64(pool.Rows / lotSize), lotSize: lotSize,
				learningRate: 0.05, clippingNorm: 1, noiseMultiplier: 1,
			}
			r := newReplicate(pool, c, 1, 0)
			b.ReportAllocs()
			for b.Loop() {
				r.epoch(b.Context())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(pool.Rows), "ns/example")
		})
	}
}

func BenchmarkEvaluate(b *testing.B) {
	test := dataset.Generated(8842, 1)
	weights := make([]float64, test.Dim+1)
	for i := range weights {
		weights[i] = float64(i%7) / 10
	}
	b.ReportAllocs()
	for b.Loop() {
		evaluate(test, weights)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(test.Rows), "ns/example")
}

package suggest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/suggest"
)

// BenchmarkDPareto is the time of one suggestion, fits included, after n
// evaluations of five parameters and two objectives.
func BenchmarkDPareto(b *testing.B) {
	p := &suggest.Problem{Space: trainingSpace(), Objectives: twoObjectives()}
	for _, n := range []int{16, 64, 272} {
		h := &suggest.History{}
		for i := range n {
			q := p.Space.Sample(rand.New(rand.NewPCG(1, uint64(i))))
			h.Evaluations = append(h.Evaluations, train(q))
		}
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			d := suggest.NewDPareto(suggest.DParetoOptions{})
			for i := int64(0); b.Loop(); i++ {
				if _, err := d.Suggest(b.Context(), p, h, suggest.Request{Count: 1, Number: i}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkQuasiRandom(b *testing.B) {
	p := &suggest.Problem{Space: trainingSpace(), Objectives: twoObjectives()}
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		if _, err := suggest.NewQuasiRandom().Suggest(b.Context(), p, &suggest.History{}, suggest.Request{Count: 1, Number: i}); err != nil {
			b.Fatal(err)
		}
	}
}

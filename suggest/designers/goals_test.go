package designers_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/space"
)

// A constraint on a known metric holds for every suggestion of every designer.
func TestKnownConstraintsAreAlwaysMet(t *testing.T) {
	for _, name := range designers.Names() {
		d, _ := designers.ByName(name, designers.Options{InitialPoints: 4})
		p := simulated.TradeOff()
		p.Constraints = []suggest.Constraint{{
			Name: "work", Lower: 0, Upper: 40,
			Known: func(q space.Point) float64 { return q[2] * q[0] },
		}}
		rng := rand.New(rand.NewPCG(1, 1))
		h := &suggest.History{}
		for i := range 12 {
			got, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 1, Seed: 3, Number: int64(i + 1)})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			q := got[0].Point
			if work := q[2] * q[0]; work > 40 {
				t.Errorf("%s: suggestion %d has work %g", name, i+1, work)
			}
			simulated.ObserveTradeOff(h, p, q, rng, 0.1)
			e := &h.Evaluations[len(h.Evaluations)-1]
			e.Values = append(e.Values, q[2]*q[0])
		}
	}
}

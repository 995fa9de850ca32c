package pld

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestReplacePairPosition(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	for range 2000 {
		p := replacePair{q: math.Exp(-20 * rng.Float64()), s: math.Exp(8*rng.Float64() - 3)}
		p.mixture = mixturePair{q: p.q, z: p.s}
		x := (2*rng.Float64() - 1) * (1 + 9*p.s)
		loss := p.loss(x)
		if math.Abs(loss) < 1e-300 {
			continue
		}
		if at := p.position(loss); math.Abs(at-x) > 1e-12*math.Max(math.Abs(x), p.s*p.s) {
			t.Errorf("%+v: the loss %g of %.17g is the one of %.17g", p, loss, x, at)
		}
	}
}

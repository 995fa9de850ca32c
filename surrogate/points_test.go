package surrogate

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
)

func TestPoints(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for d := range 7 {
		const n, more = 5, 3
		p := newPoints(n, d)
		var rows [][]float64
		for i := range n + more {
			if i == n {
				p = p.grow(n, more)
			}
			x := make([]float64, d)
			for j := range x {
				x[j] = rng.NormFloat64()
			}
			rows = append(rows, x)
			p.set(i, x)
		}
		x, r2 := make([]float64, d), []float64{7, 7, 7, 7, 7, 7, 7}
		for i, want := range rows {
			if p.at(x, i); !floats.Equal(x, want) {
				t.Errorf("d = %d: point %d is %v, want %v", d, i, x, want)
			}
		}
		p.squaredDistances(r2, x)
		for i, got := range r2 {
			want := 0.0
			if d > 0 {
				want = floats.Distance(x, rows[i], 2)
			}
			if !floats.EqualApprox([]float64{got}, []float64{want * want}, 1e-14) {
				t.Errorf("d = %d: squared distance %g of point %d, want %g", d, got, i, want*want)
			}
		}
	}
}

package privacy

import (
	"math"
	"testing"
)

// FuzzAccountants asks for no NaN, no panic, no error without a field, no
// infinite ε for a finite loss, and lower <= upper, of every accountant that
// accepts the mechanism.
func FuzzAccountants(f *testing.F) {
	f.Add(uint8(0), int64(30956), int64(128), 1.0, 1.0, int64(2420), 1e-5)
	f.Add(uint8(0), int64(1), int64(1), 1e-3, 1.0, int64(1e9), 1e-300)
	f.Add(uint8(0), int64(1e9), int64(1), 1e6, 1.0, int64(1), 0.5)
	f.Add(uint8(0), int64(1e9), int64(1e9-1), 1e-3, 1.0, int64(1e9), 1e-12)
	f.Add(uint8(0), int64(1e9), int64(1), 1e-3, 1.0, int64(7), 1e-12)
	f.Add(uint8(1), int64(1), int64(1), 1e-3, 1e-9, int64(1e9), 1e-300)
	f.Add(uint8(1), int64(1), int64(1), 1e6, 0.999999, int64(1e9), 0.999)
	f.Add(uint8(2), int64(1), int64(1), 1e-200, 1e200, int64(3), 1e-5)
	f.Add(uint8(3), int64(1), int64(1), 1e-3, 1e6, int64(1e9), 1e-5)
	f.Add(uint8(4), int64(100), int64(1), 1e-3, 1.0, int64(1e5), 1e-5)
	f.Add(uint8(5), int64(3), int64(3), 700.0, 1.0, int64(9), 1e-5)
	f.Add(uint8(6), int64(3), int64(3), 1e-3, 1.0, int64(9), 1e-5)
	f.Fuzz(func(t *testing.T, kind uint8, n, m int64, x, y float64, steps int64, delta float64) {
		mechanisms := []Mechanism{
			FixedSizeGaussian{n, m, x},
			PoissonGaussian{y, x, Adjacency(m)},
			Gaussian{y, x, Adjacency(m)},
			Laplace{y, x, Adjacency(m)},
			SparseVector{n, x, Adjacency(m)},
			RandomizedResponse{x, n},
			Selection{SelectionMethod(n), x, Adjacency(m)},
			ZeroConcentrated{x, Adjacency(m)},
		}
		mechanism := mechanisms[int(kind)%len(mechanisms)]
		for _, a := range []Accountant{RDP{}, RDP{Classic}, Exact{}, PLD{}, GDP{}, Pure{}, Pure{Optimal}} {
			c, err := a.Curve(mechanism)
			if err != nil {
				if _, unsupported := err.(*UnsupportedError); !unsupported && len(FieldErrors(err)) == 0 { //nolint:errorlint // never wrapped
					t.Fatalf("%s, %+v: error without a field: %v", a.Name(), mechanism, err)
				}
				continue
			}
			if _, optimal := a.(Pure); optimal && steps > 1e6 {
				continue // exact, but slow
			}
			g, err := c.Epsilon(steps, delta)
			if err != nil {
				if len(FieldErrors(err)) == 0 {
					t.Fatalf("%s, %+v: error without a field: %v", a.Name(), mechanism, err)
				}
				continue
			}
			if math.IsNaN(g.Epsilon) || g.Epsilon < 0 || !(g.EpsilonLower >= 0 && g.EpsilonLower <= g.Epsilon) {
				t.Fatalf("%s, %+v, %d steps, delta %g: %+v", a.Name(), mechanism, steps, delta, g)
			}
			if math.IsInf(g.Epsilon, 1) && x > 1e-3 && x < 1e6 && y > 1e-6 && y < 1e6 && steps <= 1e9 && delta >= 1e-300 {
				t.Fatalf("%s, %+v, %d steps, delta %g: infinite epsilon", a.Name(), mechanism, steps, delta)
			}
		}
	})
}

package privacy

import (
	"math"
	"testing"
)

// plausible reports whether all values are in the range that the accountants are
// meant for: n and steps to 1e9, rates from 1e-9, noise from 1e-3 to 1e6, δ from
// 1e-300.
func plausible(steps int64, delta float64, parameters ...float64) bool {
	for _, x := range parameters {
		if !(x >= 1e-3 && x <= 1e6) {
			return false
		}
	}
	return steps <= 1e9 && delta >= 1e-300
}

// checkAccountants asks for no NaN, no panic, no error without a field, no
// infinite ε for plausible parameters, and lower <= upper, of every accountant
// that accepts the mechanism.
func checkAccountants(t *testing.T, mechanism Mechanism, steps int64, delta float64, plausible bool) {
	t.Helper()
	for _, a := range []Accountant{Tightest{}, RDP{}, RDP{Classic}, Exact{}, PLD{}, GDP{}, Pure{}, Pure{Advanced}, Pure{Optimal}} {
		c, err := a.Curve(mechanism)
		if err != nil {
			if _, unsupported := err.(*UnsupportedError); !unsupported && len(FieldErrors(err)) == 0 { //nolint:errorlint // never wrapped
				t.Fatalf("%s, %+v: error without a field: %v", a.Name(), mechanism, err)
			}
			continue
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
		if plausible && math.IsInf(g.Epsilon, 1) {
			t.Fatalf("%s, %+v, %d steps, delta %g: infinite epsilon", a.Name(), mechanism, steps, delta)
		}
	}
}

// FuzzAccountants covers the mechanisms that are not made of others.
func FuzzAccountants(f *testing.F) {
	f.Add(uint8(0), int64(30956), int64(128), 1.0, 1.0, int64(2420), 1e-5)
	f.Add(uint8(0), int64(1), int64(1), 1e-3, 1.0, int64(1e9), 1e-300)
	f.Add(uint8(0), int64(1e9), int64(1), 1e6, 1.0, int64(1), 0.5)
	f.Add(uint8(0), int64(1e9), int64(1e9-1), 1e-3, 1.0, int64(1e9), 1e-12)
	f.Add(uint8(0), int64(1e9), int64(1), 1e-3, 1.0, int64(7), 1e-12)
	f.Add(uint8(1), int64(1), int64(1), 1e-3, 1e-9, int64(1e9), 1e-300)
	f.Add(uint8(1), int64(1), int64(1), 1e6, 0.999999, int64(1e9), 0.999)
	f.Add(uint8(1), int64(1), int64(1), 0.00893284319650281, 0.000509641513308234, int64(115870), 6.15e-243)
	f.Add(uint8(2), int64(1), int64(1), 1e-200, 1e200, int64(3), 1e-5)
	f.Add(uint8(3), int64(1), int64(1), 1e-3, 1e6, int64(1e9), 1e-5)
	f.Add(uint8(4), int64(100), int64(1), 1e-3, 1.0, int64(1e5), 1e-5)
	f.Add(uint8(5), int64(3), int64(3), 700.0, 1.0, int64(9), 1e-5)
	f.Add(uint8(6), int64(3), int64(3), 1e-3, 1.0, int64(9), 1e-5)
	f.Add(uint8(7), int64(3), int64(1), 1e-3, 1.0, int64(9), 1e-5)
	f.Add(uint8(8), int64(30956), int64(1), 1e-4, 0.1, int64(1), 1e-5)
	f.Add(uint8(9), int64(30956), int64(2), 1e-4, 0.5, int64(3), 1e-5)
	f.Add(uint8(10), int64(1), int64(1), 1e-3, 1.0, int64(1e9), 1e-300)
	f.Fuzz(func(t *testing.T, kind uint8, n, m int64, x, y float64, steps int64, delta float64) {
		mechanisms := []Mechanism{
			FixedSizeGaussian{n, m, x},
			PoissonGaussian{y, x, Adjacency(m), false},
			Gaussian{y, x, Adjacency(m)},
			Laplace{y, x, Adjacency(m)},
			SparseVector{n, x, Adjacency(m)},
			RandomizedResponse{x, n},
			Selection{SelectionMethod(n), x, Adjacency(m)},
			ZeroConcentrated{x, Adjacency(m)},
			OutputPerturbation{n, x, y, x, y},
			ObjectivePerturbation{n, x, x, y, ObjectiveCalibration(m), 0.5},
			ShuffledGaussian{x},
		}
		finite := plausible(steps, delta, x, math.Max(y, 1e-3)) && y >= 1e-9
		checkAccountants(t, mechanisms[int(kind)%len(mechanisms)], steps, delta, finite)
	})
}

// FuzzComposed covers the mechanisms that are made of others: compositions of two
// kinds, and searches.
func FuzzComposed(f *testing.F) {
	f.Add(uint8(0), uint8(0), int64(30956), int64(128), 1.0, 1.0, int64(10), int64(2420), 1e-5)
	f.Add(uint8(0), uint8(1), int64(1e9), int64(1), 1e-3, 1e6, int64(1), int64(1e9), 1e-300)
	f.Add(uint8(0), uint8(3), int64(605956793), int64(142089), 216.4, 1.0, int64(192518), int64(24723), 3.4e-9)
	f.Add(uint8(1), uint8(0), int64(30956), int64(128), 1.0, 1.0, int64(1000), int64(1), 1e-5)
	f.Add(uint8(1), uint8(2), int64(30956), int64(128), 1.0, 0.1, int64(1000), int64(1), 1e-5)
	f.Add(uint8(2), uint8(0), int64(30956), int64(128), 1.0, 100.0, int64(1000), int64(1), 1e-5)
	f.Add(uint8(2), uint8(0), int64(1e6), int64(2), 0.01, 1e3, int64(1000), int64(3), 1e-9)
	f.Add(uint8(2), uint8(2), int64(3), int64(2), 0.5, 1e3, int64(1000), int64(3), 1e-9)
	f.Add(uint8(2), uint8(3), int64(3), int64(2), 5.0, 1e3, int64(10), int64(3), 1e-9)
	f.Add(uint8(3), uint8(0), int64(30956), int64(128), 1.0, 0.5, int64(1000), int64(1), 1e-5)
	f.Add(uint8(4), uint8(0), int64(30956), int64(128), 1.0, 1.0, int64(1000), int64(2), 1e-5)
	f.Fuzz(func(t *testing.T, kind, base uint8, n, m int64, x, y float64, count, steps int64, delta float64) {
		bases := []Mechanism{
			FixedSizeGaussian{n, m, x},
			PoissonGaussian{float64(m) / float64(n), x, ReplaceOne, false},
			Laplace{1, x, ReplaceOne},
			RandomizedResponse{x, n},
			Selection{SelectionMethod(n), x, ReplaceOne},
			ZeroConcentrated{x, ReplaceOne},
			Gaussian{1, x, ReplaceOne},
		}
		one := bases[int(base)%len(bases)]
		mechanisms := []Mechanism{
			Composition{{one, count}, {bases[int(base+1)%len(bases)], 1}},
			RepeatedSelection{one, count, y - 0.5, math.Exp(-math.Abs(x))},
			PoissonSelection{one, count, y},
			BinomialSelection{one, count, 1 + m%50, math.Exp(-math.Abs(y))},
			CappedSelection{one, count, y - 0.5, math.Exp(-math.Abs(x)), 1 + m%50},
		}
		checkAccountants(t, mechanisms[int(kind)%len(mechanisms)], steps, delta, plausible(steps, delta, x, y) && count < 1e9 && n < 1e9)
	})
}

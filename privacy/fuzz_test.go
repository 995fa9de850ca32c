package privacy_test

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/tuning"
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
func checkAccountants(t *testing.T, mechanism privacy.Mechanism, steps int64, delta float64, plausible bool) {
	t.Helper()
	for _, a := range []privacy.Accountant{privacy.Tightest{}, privacy.RDP{}, privacy.RDP{Conversion: privacy.Classic}, privacy.Exact{}, privacy.PLD{}, privacy.GDP{}, privacy.Pure{}, privacy.Pure{Rule: privacy.Advanced}, privacy.Pure{Rule: privacy.Optimal}} {
		c, err := a.Curve(mechanism)
		if err != nil {
			if _, unsupported := err.(*privacy.UnsupportedError); !unsupported && len(privacy.FieldErrors(err)) == 0 { //nolint:errorlint // never wrapped
				t.Fatalf("%s, %+v: error without a field: %v", a.Name(), mechanism, err)
			}
			continue
		}
		g, err := c.Epsilon(steps, delta)
		if err != nil {
			if len(privacy.FieldErrors(err)) == 0 {
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
	f.Add(uint8(10), int64(1), int64(2), 1e-3, 1.0, int64(1e9), 1e-300)
	f.Add(uint8(10), int64(10_000), int64(2), 4.0, 1.0, int64(3), 1e-6)
	f.Add(uint8(10), int64(10_000), int64(1), 1.0, 0.1, int64(3), 1e-6)
	f.Add(uint8(11), int64(50_000), int64(300), 1.0, 5e-3, int64(1000), 1e-6)
	f.Add(uint8(11), int64(50_000), int64(10_000), 1.0, 0.1, int64(1000), 1e-300)
	f.Add(uint8(14), int64(2), int64(1), 5.0, 1.0, int64(100), 1e-9)
	f.Add(uint8(15), int64(2), int64(1), 50.0, 1.0, int64(100), 1e-9)
	f.Fuzz(func(t *testing.T, kind uint8, n, m int64, x, y float64, steps int64, delta float64) {
		mechanisms := []privacy.Mechanism{
			privacy.FixedSizeGaussian{DatasetSize: n, BatchSize: m, NoiseMultiplier: x},
			privacy.PoissonGaussian{SamplingProbability: y, NoiseMultiplier: x, Neighbours: privacy.Adjacency(m), PublicSize: false},
			privacy.Gaussian{Sensitivity: y, StandardDeviation: x, Neighbours: privacy.Adjacency(m)},
			privacy.Laplace{Sensitivity: y, Scale: x, Neighbours: privacy.Adjacency(m)},
			privacy.SparseVector{Cutoff: n, NoiseScale: x, Neighbours: privacy.Adjacency(m)},
			privacy.RandomizedResponse{Epsilon: x, Categories: n},
			privacy.Selection{Method: privacy.SelectionMethod(n), Epsilon: x, Neighbours: privacy.Adjacency(m)},
			privacy.ZeroConcentrated{Rho: x, Neighbours: privacy.Adjacency(m)},
			privacy.OutputPerturbation{DatasetSize: n, Regularization: x, Lipschitz: y, StandardDeviation: x, Radius: y},
			privacy.ObjectivePerturbation{DatasetSize: n, Regularization: x, Curvature: x, Epsilon: y, Calibration: privacy.ObjectiveCalibration(m), Split: 0.5},
			privacy.ShuffledGaussian{NoiseMultiplier: x, Steps: n, EvenSteps: y > 0.5, Neighbours: privacy.Adjacency(m)},
			privacy.TruncatedPoissonGaussian{DatasetSize: n, PhysicalBatch: m, SamplingProbability: y, NoiseMultiplier: x, Neighbours: privacy.AddRemove},
			privacy.FixedSizeAddRemoveGaussian{DatasetSize: n, BatchSize: m, NoiseMultiplier: x},
			privacy.UserPoissonGaussian{RecordsPerUser: m, SamplingProbability: y, NoiseMultiplier: x},
			privacy.DiscreteGaussian{Sensitivity: n % 100, Sigma: math.Mod(x, 100), Neighbours: privacy.Adjacency(m)},
			privacy.DiscreteLaplace{Sensitivity: n % 100, Scale: x, Neighbours: privacy.Adjacency(m)},
			privacy.DPFTRL{Sensitivity: y, NoiseMultiplier: x, Neighbours: privacy.Adjacency(m)},
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
		bases := []privacy.Mechanism{
			privacy.FixedSizeGaussian{DatasetSize: n, BatchSize: m, NoiseMultiplier: x},
			privacy.PoissonGaussian{SamplingProbability: float64(m) / float64(n), NoiseMultiplier: x, Neighbours: privacy.ReplaceOne, PublicSize: false},
			privacy.Laplace{Sensitivity: 1, Scale: x, Neighbours: privacy.ReplaceOne},
			privacy.RandomizedResponse{Epsilon: x, Categories: n},
			privacy.Selection{Method: privacy.SelectionMethod(n), Epsilon: x, Neighbours: privacy.ReplaceOne},
			privacy.ZeroConcentrated{Rho: x, Neighbours: privacy.ReplaceOne},
			privacy.Gaussian{Sensitivity: 1, StandardDeviation: x, Neighbours: privacy.ReplaceOne},
		}
		one := bases[int(base)%len(bases)]
		mechanisms := []privacy.Mechanism{
			privacy.Composition{{Mechanism: one, Count: count}, {Mechanism: bases[int(base+1)%len(bases)], Count: 1}},
			tuning.RepeatedSelection{Base: one, Steps: count, Eta: y - 0.5, Gamma: math.Exp(-math.Abs(x))},
			tuning.PoissonSelection{Base: one, Steps: count, Mean: y},
			tuning.BinomialSelection{Base: one, Steps: count, Tries: 1 + m%50, Probability: math.Exp(-math.Abs(y))},
			tuning.CappedSelection{Base: one, Steps: count, Eta: y - 0.5, Gamma: math.Exp(-math.Abs(x)), MostRuns: 1 + m%50},
		}
		checkAccountants(t, mechanisms[int(kind)%len(mechanisms)], steps, delta, plausible(steps, delta, x, y) && count < 1e9 && n < 1e9)
	})
}

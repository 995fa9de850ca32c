package privacy

import (
	"math"
	"testing"
)

// TestSearchGuarantee: totals for a Gaussian base, δ = 1e-6, as an independent implementation
// computes them on a fixed list of orders, to its precision; for the Poisson distribution with
// δ̂ from the exact profile.
func TestSearchGuarantee(t *testing.T) {
	for _, tc := range []struct {
		mu   float64
		dist SearchDistribution
		eps  float64
	}{
		{0.1, SearchDistribution{Eta: 1, Mean: 10}, 0.898080}, {0.1, SearchDistribution{Eta: 0, Mean: 100}, 0.878410},
		{0.25, SearchDistribution{Eta: 1, Mean: 10}, 2.271369}, {0.25, SearchDistribution{Eta: 0, Mean: 10}, 1.901966},
		{0.25, SearchDistribution{Eta: 0.5, Mean: 10}, 2.097049}, {0.25, SearchDistribution{Eta: 2, Mean: 10}, 2.577066},
		{0.25, SearchDistribution{Eta: 1, Mean: 100}, 2.824108}, {0.25, SearchDistribution{Poisson: true, Mean: 10}, 2.039366},
		{0.5, SearchDistribution{Eta: 1, Mean: 100}, 5.646345}, {1, SearchDistribution{Eta: 0, Mean: 10}, 7.869161},
	} {
		// The costliest of several counts.
		candidates := []Part{{Gaussian{tc.mu / 3, 1, AddRemove}, 1}, {Gaussian{tc.mu, 1, AddRemove}, 1}, {Gaussian{tc.mu / 2, 1, AddRemove}, 1}}
		b, err := tc.dist.Bound(candidates, 1e-6)
		if err != nil {
			t.Fatal(err)
		}
		g, err := tc.dist.Guarantee(b, 1e-6)
		if err != nil {
			t.Fatal(err)
		}
		precision := 2e-3
		if tc.dist.Poisson {
			precision = 1e-2
		}
		if g.Epsilon > tc.eps*(1+1e-3) || g.Epsilon < tc.eps*(1-precision) {
			t.Errorf("%+v: epsilon %.8g", tc, g.Epsilon)
		}
		for _, c := range candidates {
			if !tc.dist.Admits(b, c) {
				t.Errorf("%+v: %+v does not admit its candidate %+v", tc.dist, b, c)
			}
		}
		if dearer := (Part{Gaussian{tc.mu * 1.0001, 1, AddRemove}, 1}); tc.dist.Admits(b, dearer) {
			t.Errorf("%+v: %+v admits %+v", tc.dist, b, dearer)
		}
		if twice := (Part{Gaussian{tc.mu, 1, AddRemove}, 2}); tc.dist.Admits(b, twice) {
			t.Errorf("%+v: %+v admits two runs", tc.dist, b)
		}
	}
}

// TestSearchGuaranteeOfOne: candidates of one kind cost what RepeatedSelection and
// PoissonSelection of it do, whatever the mechanism.
func TestSearchGuaranteeOfOne(t *testing.T) {
	for _, base := range []Part{
		{Gaussian{1, 3, ReplaceOne}, 2}, {Laplace{1, 5, ReplaceOne}, 1}, {PoissonGaussian{0.01, 1, AddRemove, false}, 100},
		{FixedSizeGaussian{1000, 10, 1.2}, 200}, {Composition{{Gaussian{1, 5, AddRemove}, 2}, {Laplace{1, 9, AddRemove}, 1}}, 3},
	} {
		for _, dist := range []SearchDistribution{{Mean: 7}, {Mean: 20, Eta: 1}, {Mean: 1.5, Eta: -0.5}, {Mean: 30, Poisson: true}} {
			b, err := dist.Bound([]Part{base, base}, 1e-5)
			if err != nil {
				t.Fatal(err)
			}
			got, err := dist.Guarantee(b, 1e-5)
			if err != nil {
				t.Fatal(err)
			}
			var m Mechanism = PoissonSelection{base.Mechanism, base.Count, dist.Mean}
			if !dist.Poisson {
				gamma, err := SelectionGamma(dist.Eta, dist.Mean)
				if err != nil {
					t.Fatal(err)
				}
				m = RepeatedSelection{base.Mechanism, base.Count, dist.Eta, gamma}
			}
			want := epsilonOf(t, RDP{}, m, 1, 1e-5).Epsilon
			tolerance := 1e-6
			if dist.Poisson { // δ̂ on another grid
				tolerance = 1e-3
			}
			if relErr(got.Epsilon, want) > tolerance {
				t.Errorf("%T, %+v: epsilon %.9g, want %.9g", base.Mechanism, dist, got.Epsilon, want)
			}
		}
	}
}

// TestSearchBoundOfMixtures: the Rényi divergence of a candidate that is drawn, and named,
// is at most the largest: two Gaussian mechanisms by quadrature of what is averaged.
func TestSearchBoundOfMixtures(t *testing.T) {
	dist := SearchDistribution{Mean: 5}
	parts := []Part{{Gaussian{0.2, 1, AddRemove}, 1}, {Gaussian{0.7, 1, AddRemove}, 1}}
	b, err := dist.Bound(parts, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	for _, share := range []float64{0, 0.1, 0.5, 0.9, 1} {
		for _, at := range []struct{ order, divergence float64 }{{b.Order, b.Divergence}, {b.SecondOrder, b.SecondDivergence}} {
			moment := 0.0
			for i, weight := range []float64{1 - share, share} {
				mu := parts[i].Mechanism.(Gaussian).Sensitivity
				for x := -30.0; x < 40; x += 1e-3 { // ∫ p^α·q^(1−α)
					logP, logQ := -(x-mu)*(x-mu)/2, -x*x/2
					moment += weight * 1e-3 * math.Exp(at.order*logP+(1-at.order)*logQ) / math.Sqrt(2*math.Pi)
				}
			}
			if rho := math.Log(moment) / (at.order - 1); rho > at.divergence*(1+1e-9) {
				t.Errorf("share %g: divergence %g of order %g, above %g", share, rho, at.order, at.divergence)
			}
		}
	}
}

func TestSearchErrors(t *testing.T) {
	good := []Part{{Gaussian{1, 1, AddRemove}, 1}}
	for _, tc := range []struct {
		dist       SearchDistribution
		candidates []Part
		delta      float64
		field      string
	}{
		{SearchDistribution{Mean: 1}, good, 1e-6, "mean"}, {SearchDistribution{Mean: 0, Poisson: true}, good, 1e-6, "mean"},
		{SearchDistribution{Mean: 2, Eta: -1}, good, 1e-6, "eta"}, {SearchDistribution{Mean: 2}, good, 0, "delta"},
		{SearchDistribution{Mean: 2}, nil, 1e-6, "candidates"}, {SearchDistribution{Mean: 2}, []Part{{nil, 1}}, 1e-6, "base"},
		{SearchDistribution{Mean: 2}, []Part{{Gaussian{1, 1, AddRemove}, 0}}, 1e-6, "steps"},
	} {
		_, err := tc.dist.Bound(tc.candidates, tc.delta)
		if fields := FieldErrors(err); len(fields) != 1 || fields[0].Field != tc.field {
			t.Errorf("%+v: error %v", tc, err)
		}
	}
	if _, err := (SearchDistribution{Mean: 2}).Guarantee(SearchBound{Order: 1}, 1e-6); err == nil {
		t.Error("an order of 1 is taken")
	}
	if (SearchDistribution{Mean: 2}).Admits(SearchBound{Order: 2, Divergence: 9, SecondOrder: 2, SecondDivergence: 9}, Part{Gaussian{0, 1, AddRemove}, 1}) {
		t.Error("admits a candidate that is not valid")
	}
}

func BenchmarkSearchBound(b *testing.B) {
	for name, candidate := range map[string]func(u, v float64) Part{
		"gaussian": func(u, _ float64) Part { return Part{Gaussian{1, 1 + u, AddRemove}, 1} },
		"poisson":  func(u, v float64) Part { return Part{PoissonGaussian{0.001 + 0.01*u, 0.8 + v, AddRemove, false}, 300} },
		"fixed":    func(u, v float64) Part { return Part{FixedSizeGaussian{40000, 8 + int64(500*u), 0.8 + v}, 300} },
	} {
		for _, poisson := range []bool{false, true} {
			dist := SearchDistribution{Mean: 32, Poisson: poisson}
			b.Run(name+map[bool]string{false: "/tnb", true: "/poisson"}[poisson], func(b *testing.B) {
				const n = 1000
				candidates := make([]Part, n)
				for i := range candidates {
					x := float64(i) * 0.6180339887
					y := float64(i) * 0.7548776662
					candidates[i] = candidate(x-math.Floor(x), y-math.Floor(y))
				}
				for b.Loop() {
					bound, err := dist.Bound(candidates, 1e-5)
					if err != nil {
						b.Fatal(err)
					}
					if b.N == 1 {
						admitted := 0
						for _, c := range candidates[:200] {
							if dist.Admits(bound, c) {
								admitted++
							}
						}
						b.ReportMetric(float64(admitted)/200, "admitted")
					}
				}
			})
		}
	}
}

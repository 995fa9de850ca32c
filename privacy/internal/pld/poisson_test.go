package pld

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/privacy/privacytest"
)

// TestPoissonRenyiMatchesQuadrature compares the binomial sum and the trapezoidal
// rule with the Gauss-Legendre quadrature of the same pair.
func TestPoissonRenyiMatchesQuadrature(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for range 300 {
		q, z := math.Exp(-rng.Float64()*15), math.Exp(rng.Float64()*7-2)
		pair := Poisson(q, z)[0]
		fast, general := NewRenyi(pair).(*poissonRenyi), &pairRenyi{Part{Pair: pair}}
		order := 1 + math.Exp(rng.Float64()*12-4)
		for _, order := range []float64{order, math.Ceil(order)} {
			got, want := fast.RDP(order), general.RDP(order)
			if privacytest.RelErr(got, want) > 2e-12*math.Max(1, order*want) {
				t.Errorf("q = %g, z = %g, order %g: rdp %.17g, want %.17g", q, z, order, got, want)
			}
			if below, ok := fast.RDPBelow(order, 0.5*want); below > got*(1+1e-12) || ok && below != got {
				t.Errorf("q = %g, z = %g, order %g: %g with a limit, %g without", q, z, order, below, got)
			}
		}
	}
}

// Both pairs of Poisson sampling have the moments of their densities. Under composition the pair of a
// record that is removed decides, so that ε alone would not show a fault in the other.
func TestMomentsOfPoissonPairs(t *testing.T) {
	const q, z = 0.3, 0.8
	rest := func(x float64) float64 { return math.Exp(-x*x/(2*z*z)) / (z * math.Sqrt(2*math.Pi)) }
	mixture := func(x float64) float64 { return (1-q)*rest(x) + q*rest(x-1) }
	for i, densities := range [][2]func(float64) float64{{mixture, rest}, {rest, mixture}} {
		nodes, ok := Poisson(q, z)[i].Nodes(4, math.Inf(1), 0)
		if !ok {
			t.Fatal("no quadrature")
		}
		for _, c := range []float64{0.5, 1, 2.7} {
			moment := 0.0
			for x := -15.0; x < 15; x += 1e-3 {
				moment += 1e-3 * math.Pow(densities[0](x), 1+c) * math.Pow(densities[1](x), -c)
			}
			if got := nodes.Cumulant(c); privacytest.RelErr(got, math.Log(moment)) > 1e-9 {
				t.Errorf("pair %d: K(%g) = %.12g, integrated %.12g", i, c, got, math.Log(moment))
			}
		}
	}
}

func logFactorial(n float64) float64 {
	v, _ := math.Lgamma(n + 1)
	return v
}

// At integer tilts c the moment of the pair of a removed record is a sum,
//
//	Σ_j C(c+1, j)·(1−q)^{c+1−j}·q^j·e^{j(j−1)/2z²},
//
// also where the integrand has peaks far apart, with next to nothing between them.
func TestMomentsOfRareSamples(t *testing.T) {
	for _, q := range []float64{0.3, 1e-2, 1e-6, math.Exp(-20), 1e-40} {
		for _, z := range []float64{0.05, 0.0737, 0.3, math.Sqrt(0.5), 1, 3} {
			for _, c := range []float64{1, 2, 5, 20} {
				nodes, ok := Poisson(q, z)[0].Nodes(c, math.Inf(1), 0)
				if !ok {
					t.Fatalf("q = %g, z = %g: no quadrature", q, z)
				}
				want, largest := 0.0, 0.0 // E[e^{cL}] − 1, and the logarithm of the largest term
				for j := 2.0; j <= c+1; j++ {
					choose := logFactorial(c+1) - logFactorial(j) - logFactorial(c+1-j)
					exponent := choose + (c+1-j)*math.Log1p(-q) + j*math.Log(q)
					if rise := j * (j - 1) / (2 * z * z); rise < 600 {
						want += math.Exp(exponent) * math.Expm1(rise)
					} else {
						largest = math.Max(largest, exponent+rise)
					}
				}
				k := math.Log1p(want)
				if largest > 40 { // beside which the others vanish
					k = largest
				} else if largest > 0 {
					continue
				}
				if got := nodes.Cumulant(c); privacytest.RelErr(got, k) > 1e-8 {
					t.Errorf("q = %g, z = %g: K(%g) = %.12g, want %.12g", q, z, c, got, k)
				}
			}
		}
	}
}

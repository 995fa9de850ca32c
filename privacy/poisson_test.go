package privacy

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestPoissonRenyiMatchesQuadrature compares the binomial sum and the trapezoidal
// rule with the Gauss-Legendre quadrature of the same pair.
func TestPoissonRenyiMatchesQuadrature(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for range 300 {
		m := PoissonGaussian{math.Exp(-rng.Float64() * 15), math.Exp(rng.Float64()*7 - 2), AddRemove, false}
		fast, general := m.RenyiCurve(), &pairRenyi{lossPart{pair: m.lossPairs()[0]}}
		order := 1 + math.Exp(rng.Float64()*12-4)
		for _, order := range []float64{order, math.Ceil(order)} {
			got, want := fast.RDP(order), general.RDP(order)
			if relErr(got, want) > 2e-12*math.Max(1, order*want) {
				t.Errorf("%+v, order %g: rdp %.17g, want %.17g", m, order, got, want)
			}
			bounded := fast.(boundedRenyiCurve) //nolint:forcetypeassert // with sampling it is one
			if below, ok := bounded.rdpBelow(order, 0.5*want); below > got*(1+1e-12) || ok && below != got {
				t.Errorf("%+v, order %g: %g with a limit, %g without", m, order, below, got)
			}
		}
	}
}

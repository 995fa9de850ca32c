package privacy

import (
	"math"
	"math/rand/v2"
	"slices"
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

// A number of records that decides the probability is public, where it is not public anyway.
func TestPoissonStatesWhatIsPublic(t *testing.T) {
	for _, tc := range []struct {
		neighbours Adjacency
		publicSize bool
		want       string
	}{
		{AddRemove, true, PublicSizeAssumption},
		{AddRemove, false, "the sampling probability and the number of steps are settings, which do not depend on the number of records"},
		{ReplaceOne, true, "the number of records is public"},
		{ReplaceOne, false, "the number of records is public"},
	} {
		m := PoissonGaussian{0.1, 1, tc.neighbours, tc.publicSize}
		if got := epsilonOf(t, Exact{}, m, 1, 1e-5).Assumptions; !slices.Contains(got, tc.want) {
			t.Errorf("%+v: assumptions %q", m, got)
		}
	}
}

package pld

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/privacy/privacytest"
)

// δ(0) of a pair is what its quadrature has, up to the panel with the kink at 0, and the second derivative of K that of K itself.
func TestPairsOfQuadratures(t *testing.T) {
	pairs := map[string]Pair{
		"fixed size": FixedSize(0.2, 0.9), "removed": Poisson(0.2, 0.9)[0], "added": Poisson(0.2, 0.9)[1],
		"replaced": ReplaceOne(0.2, 1.4), "answers": Pure(0.7), "laplace": Laplace(1.3),
	}
	for name, pair := range pairs {
		n, ok := pair.Nodes(400, math.Inf(1), 0)
		if !ok {
			t.Fatal(name)
		}
		variation := 0.0
		for i, l := range n.Loss {
			if l > 0 {
				variation += n.Mass[i] - n.Lower[i]
			}
		}
		if got := pair.Variation(); privacytest.RelErr(got, variation) > 5e-3 {
			t.Errorf("%s: δ(0) = %.9g, by quadrature %.9g", name, got, variation)
		}
		for _, c := range []float64{0.7, 3} {
			const h = 1e-3
			k2 := (n.Cumulant(c+h) - 2*n.Cumulant(c) + n.Cumulant(c-h)) / (h * h)
			large := n.largeCumulants(c).k2 // of all but what has no loss
			if got := n.cumulants(c); privacytest.RelErr(got.k2, k2) > 1e-4 || privacytest.RelErr(got.K, n.Cumulant(c)) > 1e-12 || name == "removed" && privacytest.RelErr(large, k2) > 1e-4 {
				t.Errorf("%s, c = %g: K'' = %.9g and %.9g, by differences %.9g", name, c, got.k2, large, k2)
			}
		}
	}
}

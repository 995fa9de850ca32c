package privacy

import (
	"encoding/csv"
	"os"
	"strconv"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// TestEdges: at small δ and small sampling probabilities ε is an upper bound, and its lower bound is one. By Exact
// they are within 1e-3 and 1 % for δ > 1e-200 and ε > 1e-5. PLD is within 1 % and 15 % up to 10⁵ steps. The reference
// values are of contour integrals in 40 to 60 digits, with two settings each (testdata/edges.py).
func TestEdges(t *testing.T) {
	f, err := os.Open("testdata/edges.csv")
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	rowsOf := make(map[string]int)
	for _, row := range rows[1:] {
		rowsOf[row[0]]++
		number := func(i int) float64 {
			v, err := strconv.ParseFloat(row[i], 64)
			if err != nil {
				t.Fatalf("%v: %v", row, err)
			}
			return v
		}
		steps, delta, want := int64(number(5)), number(6), number(7)
		var m Mechanism
		switch row[0] {
		case "fixed_size":
			m = FixedSizeGaussian{int64(number(2)), int64(number(3)), number(4)}
		case "poisson_replace":
			m = PoissonGaussian{SamplingProbability: number(1), NoiseMultiplier: number(4), Neighbours: ReplaceOne}
		default:
			m = PoissonGaussian{SamplingProbability: number(1), NoiseMultiplier: number(4), Neighbours: AddRemove}
		}
		for _, a := range []Accountant{Exact{}, PLD{}} {
			every := 3
			if a.Name() == "pld" {
				every = 12 // grids take long
			}
			if privacytest.Skips(rowsOf[row[0]]-1, every) {
				continue
			}
			above, below := 1e-3, 1e-2
			switch {
			case delta < 1e-200 || want < 1e-5 || a.Name() == "pld" && steps > 100_000:
				above, below = 0.1, 1
			case a.Name() == "pld":
				above, below = 1e-2, 0.15
			}
			g := epsilonOf(t, a, m, steps, delta)
			if excess := g.Epsilon/want - 1; !(excess > -1e-11 && excess < above) {
				t.Errorf("%s, %v: epsilon %.9g, want %.9g: %.2g of it above", a.Name(), row[:7], g.Epsilon, want, excess)
			}
			// The pair of fixed-size lots may not be attained.
			if missing := 1 - g.EpsilonLower/want; !(missing > -1e-11 && (missing < below || row[0] == "fixed_size")) {
				t.Errorf("%s, %v: lower bound %.9g, want %.9g: %.2g of it below", a.Name(), row[:7], g.EpsilonLower, want, missing)
			}
		}
	}
}

// A δ whose digits are not all there is refused, not rounded up to one that is larger: ε would be too small. The least
// δ has its ε by 60-digit arithmetic.
func TestLeastDelta(t *testing.T) {
	for name, a := range map[string]Accountant{"exact": Exact{}, "rdp": RDP{}, "gdp": GDP{}, "tightest": Tightest{}} {
		c, err := a.Curve(Gaussian{1, 1, AddRemove})
		require.NoError(t, err)
		for _, delta := range []float64{1e-320, 2.2e-308} {
			_, err := c.Epsilon(1, delta)
			if faults := FieldErrors(err); len(faults) != 1 || faults[0].Field != "delta" {
				t.Errorf("%s: δ = %g gives error %v", name, delta, err)
			}
		}
		g, err := c.Epsilon(1, 2.3e-308)
		require.NoError(t, err)
		if !(g.Epsilon >= 37.9211553687033) {
			t.Errorf("%s: ε = %v, want at least 37.9211553687034", name, g.Epsilon)
		}
	}
}

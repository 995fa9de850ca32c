package privacy

import (
	"encoding/csv"
	"os"
	"strconv"
	"testing"
)

// TestEdges: at small δ and small sampling probabilities ε is an upper bound, within 1e-3 for δ > 1e-200, and
// its lower bound is one, within 3 %. The reference values are of contour integrals in 40 to 60 digits, with two settings each
// (testdata/edges.py).
func TestEdges(t *testing.T) {
	f, err := os.Open("testdata/edges.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
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
			g := epsilonOf(t, a, m, steps, delta)
			if g.Epsilon < want*(1-1e-11) || g.Epsilon > want*(1+1e-3) && delta > 1e-200 || g.Epsilon > 1.1*want {
				t.Errorf("%s, %v: epsilon %.9g, want %.9g: %.2g of it above", a.Name(), row[:7], g.Epsilon, want, g.Epsilon/want-1)
			}
			// The pair of fixed-size lots may not be attained.
			if g.EpsilonLower > want*(1+1e-11) || row[0] != "fixed_size" && delta > 1e-200 && g.EpsilonLower < want*(1-3e-2) {
				t.Errorf("%s, %v: lower bound %.9g, want %.9g: %.2g of it below", a.Name(), row[:7], g.EpsilonLower, want, 1-g.EpsilonLower/want)
			}
		}
	}
}

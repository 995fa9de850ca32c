package acquisition

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/suggest/pareto"
)

// The sum over strips is that over cells in logarithms, from improvements that are all but
// certain to those that are as likely as 1e-250.
func TestStripEHVI(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	equal := func(got, want float64) bool {
		return math.Abs(got-want) <= 1e-9*math.Max(1, math.Abs(want))
	}
	compared := 0
	for k := range 3000 {
		var points [][]float64
		for range rng.IntN(30) {
			points = append(points, []float64{rng.Float64(), rng.Float64()})
		}
		front := pareto.NewFront(points, []float64{1, 1})
		laws := []Law{
			{Mean: 4*rng.Float64() - 1, StdDev: math.Exp(8*rng.Float64() - 7)},
			{Mean: 4*rng.Float64() - 1, StdDev: math.Exp(8*rng.Float64() - 7)},
		}
		d, want := make([]Partial, 2), make([]Partial, 2)
		sum := stripEHVI(front, laws, d)
		value := logCellEHVI(front, laws, want)
		if sum <= leastSum {
			if value > math.Log(leastSum)+1 {
				t.Errorf("case %d: %g in strips, exp(%g) in cells", k, sum, value)
			}
			continue
		}
		compared++
		if !equal(math.Log(sum), value) {
			t.Errorf("case %d: logarithm %.15g in strips, %.15g in cells", k, math.Log(sum), value)
		}
		for j := range d {
			if !equal(d[j].Mean/sum, want[j].Mean) || !equal(d[j].StdDev/sum, want[j].StdDev) {
				t.Errorf("case %d: derivatives %+v of %g in strips, %+v of the logarithm in cells", k, d[j], sum, want[j])
			}
		}
	}
	if compared < 1000 {
		t.Errorf("only %d cases compared", compared)
	}
}

// What overflows on the way is left to the logarithms.
func TestEHVIOfAlmostKnown(t *testing.T) {
	front := pareto.NewFront([][]float64{{0.5, 0.5}}, []float64{1, 1})
	laws := []Law{{Mean: 0.25, StdDev: 1e-310}, {Mean: 0.25, StdDev: 1e-310}}
	if got, want := EHVI(front, laws), 0.75*0.75-0.25; math.Abs(got-want) > 1e-12 {
		t.Errorf("expected improvement %g, want %g", got, want)
	}
}

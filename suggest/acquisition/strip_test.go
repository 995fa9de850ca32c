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
		distributions := []Distribution{
			{Mean: 4*rng.Float64() - 1, StdDev: math.Exp(8*rng.Float64() - 7)},
			{Mean: 4*rng.Float64() - 1, StdDev: math.Exp(8*rng.Float64() - 7)},
		}
		d, want := make([]Partial, 2), make([]Partial, 2)
		sum := stripEHVI(front, distributions, d)
		value := logCellEHVI(front, distributions, want)
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
	distributions := []Distribution{{Mean: 0.25, StdDev: 1e-310}, {Mean: 0.25, StdDev: 1e-310}}
	if got, want := EHVI(front, distributions), 0.75*0.75-0.25; math.Abs(got-want) > 1e-12 {
		t.Errorf("expected improvement %g, want %g", got, want)
	}
}

// Outcomes of any size: what underflows on the way is left to the logarithms, too.
func TestEHVIOfAnySize(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 2))
	for _, size := range []float64{1e-120, 1e-20, 1e20, 1e60, 1e100} {
		for k := range 1000 {
			var points [][]float64
			for range 1 + rng.IntN(6) {
				x := rng.Float64()
				points = append(points, []float64{size * (1 - 0.1*x), size * x * math.Pow(10, -10*rng.Float64())})
			}
			front := pareto.NewFront(points, []float64{size, size})
			spread := math.Pow(10, -4*rng.Float64())
			distributions := []Distribution{
				{Mean: size * (1 + 40*rng.Float64()*spread), StdDev: size * spread},
				{Mean: size * (2*rng.Float64() - 0.5), StdDev: size * math.Pow(10, -4*rng.Float64())},
			}
			d, want := make([]Partial, 2), make([]Partial, 2)
			near(t, k, size, "LogEHVI", LogEHVI(front, distributions, d), logCellEHVI(front, distributions, want), 1e-9)
			for j := range d {
				near(t, k, size, "derivative", d[j].Mean*size, want[j].Mean*size, 1e-9)
				near(t, k, size, "derivative", d[j].StdDev*size, want[j].StdDev*size, 1e-9)
			}
		}
	}
}

// The strips that are left out add nothing to the sum of all, wherever the distributions are and
// however narrow they are.
func TestStripsLeftOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 3))
	for k := range 5000 {
		var points [][]float64
		for range rng.IntN(40) {
			x := math.Pow(10, -3*rng.Float64())
			points = append(points, []float64{x, math.Pow(1-x, 1+4*rng.Float64())})
		}
		front := pareto.NewFront(points, []float64{1, 1})
		distributions := make([]Distribution, 2)
		for j := range distributions {
			distributions[j] = Distribution{Mean: 3*rng.Float64() - 1, StdDev: math.Pow(10, 12*rng.Float64()-11)}
			if n := front.Len(); n > 0 && k%2 == 0 {
				distributions[j].Mean = front.Points()[rng.IntN(n)][j] + 10*rng.NormFloat64()*distributions[j].StdDev
			}
		}
		want, before := 0.0, 0.0
		for _, c := range front.Cells() {
			width := distributions[0].shortfall(c.Upper[0]).value
			want += (width - before) * distributions[1].shortfall(c.Upper[1]).value
			before = width
		}
		if got := stripEHVI(front, distributions, nil); want > leastSum && math.Abs(got-want) > 1e-14*want {
			t.Errorf("case %d, %v: %.17g, want %.17g (off by %.1e of it)", k, distributions, got, want, got/want-1)
		}
	}
}

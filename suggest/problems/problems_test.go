package problems

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

func TestByName(t *testing.T) {
	for _, name := range Names() {
		p, ok := ByName(name)
		if !ok || p.Name != name {
			t.Fatalf("ByName(%q) = %v, %t", name, p, ok)
		}
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// The middle of the space.
		u := make([]float64, len(p.Space.Parameters))
		for i := range u {
			u[i] = 0.5
		}
		if got, want := len(p.Evaluate(p.Space.Decode(u))), len(p.Reference())+len(p.Constraints); got != want {
			t.Errorf("%s has %d values and %d metrics", name, got, want)
		}
	}
	for alias, want := range map[string]string{"BraninCurrin": "branin_currin", "ZDT1": "zdt1", "vehicle-safety": "vehicle_safety"} {
		if p, ok := ByName(alias); !ok || p.Name != want {
			t.Errorf("ByName(%q) is not %s", alias, want)
		}
	}
	if _, ok := ByName("zdt9"); ok {
		t.Error("ByName accepts zdt9")
	}
}

// Values that follow from the definitions by hand, or that are published.
func TestKnownValues(t *testing.T) {
	const tolerance = 1e-9
	// The three minima of Branin's function are 0.397887357729738... (Surjanovic,
	// Bingham, Virtual Library of Simulation Experiments), here in the unit square.
	for _, minimum := range [][2]float64{{-math.Pi, 12.275}, {math.Pi, 2.275}, {9.42477796076938, 2.475}} {
		x := space.Point{(minimum[0] + 5) / 15, minimum[1] / 15}
		if got := BraninCurrin().Evaluate(x)[0]; !scalar.EqualWithinAbs(got, 0.39788735772973816, tolerance) {
			t.Errorf("Branin%v = %v", minimum, got)
		}
	}
	ideal := [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)}
	vehicle := VehicleSafety()
	for i := range 32 { // the corners
		x := make(space.Point, 5)
		for j := range x {
			x[j] = float64(1 + 2*(i>>j&1))
		}
		for k, v := range vehicle.Evaluate(x) {
			ideal[k] = math.Min(ideal[k], v)
		}
	}
	// The ideal point of RE3-5-4 (Tanabe and Ishibuchi, 2020) lies on corners.
	for k, want := range []float64{1661.7078225, 6.1428, 0.0394} {
		if !scalar.EqualWithinAbs(ideal[k], want, 1e-7) {
			t.Errorf("best f%d of VehicleSafety is %v, want %v", k+1, ideal[k], want)
		}
	}
	for _, tc := range []struct {
		problem *Problem
		x       space.Point
		want    []float64
	}{
		{BraninCurrin(), space.Point{0, 0}, []float64{308.12909601160663, 3}}, // Branin(-5, 0); Currin 60/20
		{BraninCurrin(), space.Point{1, 1}, []float64{145.87219087939556, (1 - math.Exp(-0.5)) * 6352 / 624}},
		// (u, v) = (-5, 0) is as far as (7.5, 7.5) from the centre of the disk.
		{ConstrainedBraninCurrin(), space.Point{0, 0}, []float64{308.12909601160663, 3, 112.5}},
		{C2DTLZ2(3, 3), space.Point{1, 0, 0.5}, []float64{0, 0, 1, 0}},
		{C2DTLZ2(2, 2), space.Point{0.5, 0.5}, []float64{math.Sqrt(0.5), math.Sqrt(0.5), 0}},
		{C2DTLZ2(2, 2), space.Point{0, 0}, []float64{1.25, 0, 0.0625}},
		{ZDT1(3), space.Point{0.25, 0, 0}, []float64{0.25, 0.5}},
		{ZDT1(3), space.Point{1, 1, 1}, []float64{1, 10 - math.Sqrt(10)}},
		{ZDT2(3), space.Point{0.5, 0, 0}, []float64{0.5, 0.75}},
		{ZDT2(2), space.Point{1, 1}, []float64{1, 9.9}},
		{ZDT3(3), space.Point{0.25, 0, 0}, []float64{0.25, 0.25}},                           // sin(2.5π) = 1
		{ZDT3(2), space.Point{0.25, 1. / 3}, []float64{0.25, 4 * (1 - 0.25 - 0.0625)}},      // g = 4
		{DTLZ2(3, 2), space.Point{0, 0.5, 0.5}, []float64{1, 0}},                            //
		{DTLZ2(3, 2), space.Point{1. / 3, 1, 0.5}, []float64{1.25 * math.Sqrt(0.75), .625}}, // cos 30°, sin 30°
		{DTLZ2(3, 3), space.Point{0.5, 0.5, 0.5}, []float64{0.5, 0.5, math.Sqrt(0.5)}},      //
		{DTLZ7(3), space.Point{0.5, 0, 0}, []float64{0.5, 4}},                               // sin(1.5π) = -1
		{DTLZ7(2), space.Point{1. / 6, 1}, []float64{1. / 6, 22 - 1./3}},                    // g = 10
		{Poloni(), space.Point{1, 2}, []float64{1, 25}},
		{Poloni(), space.Point{math.Pi / 2, math.Pi / 2}, []float64{ // the sums are 1.5 and 3.5
			1 + (0.5*math.Sin(1)-2*math.Cos(1)+math.Sin(2)-1.5*math.Cos(2)-1.5)*(0.5*math.Sin(1)-2*math.Cos(1)+math.Sin(2)-1.5*math.Cos(2)-1.5) +
				(1.5*math.Sin(1)-math.Cos(1)+2*math.Sin(2)-0.5*math.Cos(2)-3.5)*(1.5*math.Sin(1)-math.Cos(1)+2*math.Sin(2)-0.5*math.Cos(2)-3.5),
			(math.Pi/2+3)*(math.Pi/2+3) + (math.Pi/2+1)*(math.Pi/2+1),
		}},
		{Constr(), space.Point{0.5, 1.5}, []float64{0.5, 5, 0, 2}},
		{BNH(), space.Point{3, 3}, []float64{72, 8, 12, 53.3}},
		{SRN(), space.Point{1.1, 3.7}, []float64{10.1, 2.61, 225 - 1.21 - 13.69, 0}},
		{OSY(), space.Point{5, 1, 5, 0, 5, 0}, []float64{-274, 76, 4, 0, 6, 0, 0, 0}}, // the ends of the front (Deb, 2001)
		{OSY(), space.Point{0, 2, 1, 0, 1, 0}, []float64{-116, 6, 0, 4, 0, 8, 0, 0}},
		{DH1(2), space.Point{0.5, 0}, []float64{0.5, 0.75}},
		{DH1(3), space.Point{0.3, 0.25, 0}, []float64{0.3, 1 - 0.09 + (20+0.0625)*2.09}}, // cos π = -1
	} {
		got := tc.problem.Evaluate(tc.x)
		for j, want := range tc.want {
			if !scalar.EqualWithinAbsOrRel(got[j], want, tolerance, tolerance) {
				t.Errorf("%s%v = %v, want %v", tc.problem.Name, tc.x, got, tc.want)
			}
		}
	}
}

// The hypervolume of a dense sample of the true front is the maximum.
func TestMaxHypervolume(t *testing.T) {
	const n = 20_000
	for _, tc := range []struct {
		problem *Problem
		rest    float64 // value of all parameters but x0 on the front
	}{
		{ZDT1(4), 0}, {ZDT2(4), 0}, {ZDT3(4), 0}, {DTLZ2(6, 2), 0.5}, {DH1(3), 0}, {DTLZ7(4), 0},
	} {
		var front [][]float64
		for i := range n + 1 {
			x := make(space.Point, len(tc.problem.Space.Parameters))
			for j := range x {
				x[j] = tc.rest
			}
			x[0] = float64(i) / n
			front = append(front, tc.problem.Evaluate(x))
		}
		got := pareto.Hypervolume(front, tc.problem.Reference())
		// A staircase under a curve that falls by 1 misses about 1/(2n) of area.
		if want := tc.problem.MaxHypervolume; !scalar.EqualWithinAbs(got, want, 1.5e-4) || got > want+1e-9 {
			t.Errorf("%s: %v, want %v", tc.problem.Name, got, want)
		}
	}
}

// In three objectives the region that the unit sphere's front leaves is sampled.
func TestMaxHypervolumeDTLZ2(t *testing.T) {
	p := DTLZ2(4, 3)
	rng := rand.New(rand.NewPCG(1, 0))
	const n = 1_000_000
	hits := 0
	for range n {
		square := 0.0
		for range 3 {
			v := 1.1 * rng.Float64()
			square += v * v
		}
		if square > 1 {
			hits++
		}
	}
	got := 1.1 * 1.1 * 1.1 * float64(hits) / n
	if !scalar.EqualWithinAbs(got, p.MaxHypervolume, 3e-3) { // 4 standard errors
		t.Errorf("%v, want %v", p.MaxHypervolume, got)
	}
}

// The value of a grid of 3000² points was computed with other software.
func TestMaxHypervolumeBraninCurrin(t *testing.T) {
	const n = 3000
	p := BraninCurrin()
	var front [][]float64
	row := make([][]float64, n)
	for i := range n {
		for j := range n {
			row[j] = p.Evaluate(space.Point{float64(i) / (n - 1), float64(j) / (n - 1)})
		}
		for _, k := range pareto.NonDominated(row) {
			front = append(front, row[k])
		}
	}
	got := pareto.Hypervolume(front, p.Reference())
	if !scalar.EqualWithinAbs(got, 59.3225, 5e-5) || got > p.MaxHypervolume {
		t.Errorf("hypervolume of a grid %v, maximum %v", got, p.MaxHypervolume)
	}
}

// Of grids only what meets the constraints counts; the front of C2DTLZ2 is on that of
// DTLZ2. Tolerances are relative.
func TestMaxHypervolumeUnderConstraints(t *testing.T) {
	const n = 800
	for _, tc := range []struct {
		problem   *Problem
		rest      int // first of the grid's positions of the second parameter
		tolerance float64
	}{
		{ConstrainedBraninCurrin(), 0, 0.002}, {C2DTLZ2(2, 2), n / 2, 0.002},
		{Constr(), 0, 0.005}, {BNH(), 0, 0.002}, {SRN(), 0, 0.002}, {Poloni(), 0, 0.002},
	} {
		var front [][]float64
		u := make([]float64, 2)
		for i := range n + 1 {
			var row [][]float64
			for j := tc.rest; j <= n && (tc.rest == 0 || j == tc.rest); j++ {
				u[0], u[1] = float64(i)/n, float64(j)/n
				v := tc.problem.Evaluate(tc.problem.Space.Decode(u))
				if tc.problem.Acceptable(v) {
					row = append(row, v[:2])
				}
			}
			for _, k := range pareto.NonDominated(row) {
				front = append(front, row[k])
			}
		}
		got := pareto.Hypervolume(front, tc.problem.Reference())
		if want := tc.problem.MaxHypervolume; !scalar.EqualWithinRel(got, want, tc.tolerance) || got > want {
			t.Errorf("%s: %v, want %v", tc.problem.Name, got, want)
		}
	}
}

// The front of OSY consists of curves (Deb, 2001, §8.3). Their ends are among TestKnownValues.
// No random point that meets the constraints improves them by more than 1 of 16,546.
func TestMaxHypervolumeOSY(t *testing.T) {
	const n = 20_000
	p := OSY()
	var front [][]float64
	for i := range n + 1 {
		u := float64(i) / n
		for _, x := range []space.Point{
			{5, 1, 1 + 4*u, 0, 5, 0}, {5, 1, 1 + 4*u, 0, 1, 0}, {4 + u, (2 + u) / 3, 1, 0, 1, 0},
			{0, 2, 1 + 2.8*u, 0, 1, 0}, {u, 2 - u, 1, 0, 1, 0},
		} {
			v := p.Evaluate(x)
			for k, g := range v[2:] {
				if g < -1e-12 {
					t.Fatalf("constraint %d at %v is %v", k, x, g)
				}
			}
			front = append(front, v[:2])
		}
	}
	if got := pareto.Hypervolume(front, p.Reference()); !scalar.EqualWithinRel(got, p.MaxHypervolume, 1e-5) || got > p.MaxHypervolume {
		t.Errorf("%v, want %v", got, p.MaxHypervolume)
	}
	curves := pareto.NewFront(front, p.Reference())
	rng := rand.New(rand.NewPCG(1, 0))
	for range 300_000 {
		x := p.Space.Sample(rng)
		for _, j := range []int{2, 3, 4, 5} { // where the front is
			if rng.IntN(2) == 0 {
				x[j] = p.Space.Parameters[j].Min
			}
		}
		if v := p.Evaluate(x); p.Acceptable(v) && curves.Improvement(v[:2]) > 1 {
			t.Fatalf("%v improves the front by %v", x, curves.Improvement(v[:2]))
		}
	}
}

// A coarse grid comes near the maximum, from below.
func TestMaxHypervolumeVehicleSafety(t *testing.T) {
	const levels = 5
	p := VehicleSafety()
	var points [][]float64
	for i := range levels * levels * levels * levels * levels {
		x := make(space.Point, 5)
		for j := range x {
			x[j] = 1 + 2*float64(i%levels)/(levels-1)
			i /= levels
		}
		points = append(points, p.Evaluate(x))
	}
	got := pareto.Hypervolume(points, p.Reference())
	if !(got > 0.95*p.MaxHypervolume && got < p.MaxHypervolume) {
		t.Errorf("hypervolume of a grid %v, maximum %v", got, p.MaxHypervolume)
	}
}

func TestObserve(t *testing.T) {
	q := space.Point{0.3, 0.7}
	exact := BraninCurrin().Evaluate(q)
	e := BraninCurrin().Observe(q, nil)
	if e.Values[0] != exact[0] || e.Values[1] != exact[1] || e.StdErrors[0] != 0 || e.StdErrors[1] != 0 {
		t.Errorf("observed %v ± %v of %v", e.Values, e.StdErrors, exact)
	}
	noisy := NoisyBraninCurrin()
	rng := rand.New(rand.NewPCG(1, 0))
	const n = 40_000
	var sample [2][]float64
	for range n {
		e := noisy.Observe(q, rng)
		for j := range sample {
			sample[j] = append(sample[j], e.Values[j])
			if e.StdErrors[j] != noisy.Noise[j] {
				t.Fatalf("standard error %v", e.StdErrors)
			}
		}
	}
	for j, sd := range noisy.Noise {
		mean, deviation := stat.MeanStdDev(sample[j], nil)
		if math.Abs(mean-exact[j]) > 4*sd/math.Sqrt(n) || math.Abs(deviation/sd-1) > 4/math.Sqrt(2*n) {
			t.Errorf("objective %d: %v ± %v, want %v ± %v", j, mean, deviation, exact[j], sd)
		}
	}
}

// The variance of x0 over [0,1] is 1/12; the problem itself stays as it is.
func TestWithNoise(t *testing.T) {
	p := ZDT1(4)
	noisy := p.WithNoise(0.1)
	if got, want := noisy.Noise[0], 0.1/math.Sqrt(12); !scalar.EqualWithinRel(got, want, 0.01) || len(noisy.Noise) != 2 || p.Noise != nil {
		t.Errorf("noise %v of %v, want %v first", noisy.Noise, p.Noise, want)
	}
	if got := len(BNH().WithNoise(0.1).Noise); got != 4 {
		t.Errorf("noise of %d values, want 4", got)
	}
}

func TestDimensions(t *testing.T) {
	for name, f := range map[string]func(){
		"zdt1": func() { ZDT1(1) }, "dtlz2": func() { DTLZ2(2, 3) }, "one objective": func() { DTLZ2(2, 1) }, "dh1": func() { DH1(1) },
	} {
		func() {
			defer func() {
				if recover() != "problems: dimension too small" {
					t.Errorf("%s does not panic", name)
				}
			}()
			f()
		}()
	}
}

package pareto

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/floats/scalar"
)

var inf = math.Inf(1)

func TestDominates(t *testing.T) {
	for _, tc := range []struct {
		a, b []float64
		want bool
	}{
		{[]float64{1, 2}, []float64{1, 2}, false}, // equal points do not dominate
		{[]float64{1, 2}, []float64{1, 3}, true},
		{[]float64{1, 3}, []float64{1, 2}, false},
		{[]float64{0, 3}, []float64{1, 2}, false},
		{[]float64{1, 1, 1}, []float64{2, 1, 1}, true},
		{[]float64{math.NaN(), 0}, []float64{1, 1}, false},
		{[]float64{0, 0}, []float64{math.NaN(), 1}, false},
	} {
		if got := Dominates(tc.a, tc.b); got != tc.want {
			t.Errorf("Dominates(%v, %v) = %t", tc.a, tc.b, got)
		}
	}
}

func TestNonDominated(t *testing.T) {
	for _, tc := range []struct {
		name   string
		points [][]float64
		want   []int
	}{
		{"none", nil, []int{}},
		{"all values of a tie are kept", [][]float64{{1, 2}, {2, 1}, {1, 2}, {2, 2}}, []int{0, 1, 2}},
		{"weakly worse is dominated", [][]float64{{1, 2}, {1, 3}, {2, 2}}, []int{0}},
		{"not finite", [][]float64{{math.NaN(), 0}, {0, inf}, {-inf, 5}, {3, 3}}, []int{3}},
		{"three objectives", [][]float64{{1, 5, 3}, {2, 3, 4}, {4, 1, 2}, {3, 4, 1}, {2, 3, 4}, {3, 4, 2}}, []int{0, 1, 2, 3, 4}},
		{"one objective", [][]float64{{2}, {1}, {1}}, []int{1, 2}},
	} {
		if diff := cmp.Diff(tc.want, NonDominated(tc.points)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// The definition, point by point; coordinates on a coarse grid give many ties.
func TestNonDominatedRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		m := 1 + rng.IntN(4)
		points := randomPoints(rng, 1+rng.IntN(30), m, 5)
		if rng.IntN(2) == 0 {
			points[0][0] = inf
		}
		want := []int{}
		for i, p := range points {
			if finite(p) && !slices.ContainsFunc(points, func(q []float64) bool { return finite(q) && Dominates(q, p) }) {
				want = append(want, i)
			}
		}
		if diff := cmp.Diff(want, NonDominated(points)); diff != "" {
			t.Fatalf("%v (-want +got):\n%s", points, diff)
		}
	}
}

// randomPoints draws n points in [0,1]^m, on a grid of the given number of
// steps, or anywhere for 0.
func randomPoints(rng *rand.Rand, n, m, steps int) [][]float64 {
	points := make([][]float64, n)
	for i := range points {
		points[i] = make([]float64, m)
		for j := range points[i] {
			points[i][j] = rng.Float64()
			if steps > 0 {
				points[i][j] = float64(rng.IntN(steps)) / float64(steps)
			}
		}
	}
	return points
}

var (
	epsilonError = [][]float64{{0.1, .40}, {0.5, .25}, {2, .20}, {8, .17}}
	antiIdeal    = []float64{10, 1}
)

// Values computed by hand from the definition.
func TestExamples(t *testing.T) {
	front := NewFront(epsilonError, antiIdeal)
	near(t, "hypervolume", front.Hypervolume(), 7.825)
	for _, tc := range []struct {
		point              []float64
		after, improvement float64
	}{
		{[]float64{0.3, 0.3}, 7.845, 0.02},
		{[]float64{0.05, 0.5}, 7.85, 0.025},
		{[]float64{1, 0.22}, 7.855, 0.03},
		{[]float64{9, 0.16}, 7.835, 0.01},
		{[]float64{3, 0.3}, 7.825, 0},
		{[]float64{0.5, 0.25}, 7.825, 0},
		{[]float64{0.5, 0.24}, 7.84, 0.015},
		{[]float64{11, 0.1}, 7.825, 0},
		{[]float64{0.1, 1}, 7.825, 0},
		{[]float64{math.NaN(), 0.1}, 7.825, 0},
		{[]float64{inf, 0.1}, 7.825, 0},
	} {
		near(t, "hypervolume after", Hypervolume(append(slices.Clone(epsilonError), tc.point), antiIdeal), tc.after)
		near(t, "improvement", front.Improvement(tc.point), tc.improvement)
	}
	empty := NewFront(nil, antiIdeal)
	near(t, "improvement of an empty front", empty.Improvement([]float64{2, 0.3}), 5.6)
	near(t, "hypervolume of an empty front", empty.Hypervolume(), 0)

	three := NewFront([][]float64{{1, 5, 3}, {2, 3, 4}, {4, 1, 2}, {3, 4, 1}}, []float64{6, 6, 6})
	near(t, "hypervolume in 3-D", three.Hypervolume(), 66)
	near(t, "improvement in 3-D", three.Improvement([]float64{2, 2, 2}), 15)
	near(t, "improvement of a front point", three.Improvement([]float64{1, 5, 3}), 0)
}

// An improvement of 1e-14 next to a hypervolume of 7.8 has all its digits,
// which a difference of hypervolumes has not.
func TestSmallImprovement(t *testing.T) {
	front := NewFront(epsilonError, antiIdeal)
	got := front.Improvement([]float64{2 - 1e-7, .20 - 1e-7})
	want := 1e-7*(.25-.20+1e-7) + 6*1e-7
	if !scalar.EqualWithinRel(got, want, 1e-8) {
		t.Errorf("improvement = %g, want %g", got, want)
	}
}

func near(t *testing.T, name string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-13*math.Max(1, math.Abs(want)) {
		t.Errorf("%s = %.16g, want %.16g", name, got, want)
	}
}

// inclusionExclusion is the volume of a union of boxes by its definition.
func inclusionExclusion(points [][]float64, reference []float64) float64 {
	total := 0.0
	for set := 1; set < 1<<len(points); set++ {
		volume, sign := 1.0, -1.0
		for j, r := range reference {
			corner := math.Inf(-1)
			for i, p := range points {
				if set>>i&1 == 1 {
					corner = math.Max(corner, p[j])
				}
			}
			volume *= math.Max(r-corner, 0)
		}
		for i := range points {
			if set>>i&1 == 1 {
				sign = -sign
			}
		}
		total += sign * volume
	}
	return total
}

func TestHypervolumeRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for k := range 400 {
		m := 1 + rng.IntN(5)
		points := randomPoints(rng, rng.IntN(9), m, []int{0, 4}[k%2])
		reference := randomPoints(rng, 1, m, 0)[0]
		want := inclusionExclusion(points, reference)
		near(t, "hypervolume", Hypervolume(points, reference), want)

		rng.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
		front := NewFront(points, reference)
		near(t, "hypervolume of the shuffled front", front.Hypervolume(), want)

		v := randomPoints(rng, 1, m, []int{0, 4}[k%2])[0]
		near(t, "improvement", front.Improvement(v), inclusionExclusion(append(points, v), reference)-want)
	}
}

// The cells are disjoint, below the reference, free of dominated points, and
// together with the dominated region fill the space.
func TestCells(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 60 {
		m := 1 + rng.IntN(4)
		reference := make([]float64, m)
		for j := range reference {
			reference[j] = 0.9
		}
		front := NewFront(randomPoints(rng, rng.IntN(15), m, 0), reference)
		for range 300 {
			v := randomPoints(rng, 1, m, 0)[0]
			v[rng.IntN(m)] -= 0.5 // also beyond the best values
			in := 0
			for _, c := range front.Cells() {
				if below(c.Lower, v) && below(v, c.Upper) {
					in++
				}
			}
			want := 0
			if below(v, reference) && !slices.ContainsFunc(front.Points(), func(p []float64) bool { return atMost(p, v) }) {
				want = 1
			}
			if in != want {
				t.Fatalf("%v lies in %d cells of the front %v, want %d", v, in, front.Points(), want)
			}
		}
	}
}

// The bounds of cells are found in the levels of each objective.
func TestLevels(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for m := 1; m <= 5; m++ {
		points := make([][]float64, 12)
		for i := range points {
			points[i] = make([]float64, m)
			for j := range points[i] {
				points[i][j] = float64(rng.IntN(8)) // with ties
			}
		}
		reference := slices.Repeat([]float64{8}, m)
		f := NewFront(points, reference)
		for j := range m {
			levels := f.Levels(j)
			if !slices.IsSorted(levels) || len(slices.Compact(slices.Clone(levels))) != len(levels) || len(levels) > f.Len()+2 {
				t.Errorf("m = %d: levels %v of objective %d", m, levels, j)
			}
			for i, at := range f.CellLevels() {
				if c := f.Cells()[i]; levels[at.Lower[j]] != c.Lower[j] || levels[at.Upper[j]] != c.Upper[j] {
					t.Errorf("m = %d: cell %v has levels %v", m, c, at)
				}
			}
		}
	}
}

func TestFewCells(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	points := make([][]float64, 40)
	for i := range points { // on a sphere, so that all are on the front
		p := []float64{rng.Float64(), rng.Float64(), rng.Float64()}
		norm := math.Sqrt(p[0]*p[0] + p[1]*p[1] + p[2]*p[2])
		points[i] = []float64{1 - p[0]/norm, 1 - p[1]/norm, 1 - p[2]/norm}
	}
	front := NewFront(points, []float64{1, 1, 1})
	if front.Len() != 40 || len(front.Cells()) > 4*40 {
		t.Errorf("%d points leave %d cells, want O(n)", front.Len(), len(front.Cells()))
	}
	if n := len(NewFront(epsilonError, antiIdeal).Cells()); n != 5 {
		t.Errorf("4 points in 2-D leave %d cells, want 5", n)
	}
}

// A point improves the front where it adds to the hypervolume.
func TestImproves(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for m := 1; m <= 4; m++ {
		grid := func() []float64 {
			p := make([]float64, m)
			for j := range p {
				p[j] = float64(rng.IntN(9)) // with ties, and beyond the reference
			}
			return p
		}
		for range 200 {
			points := make([][]float64, rng.IntN(10))
			for i := range points {
				points[i] = grid()
			}
			front := NewFront(points, slices.Repeat([]float64{8}, m))
			for range 20 {
				if v := grid(); front.Improves(v) != (front.Improvement(v) > 0) {
					t.Fatalf("%v improves %v: %v, by %g", v, front.Points(), front.Improves(v), front.Improvement(v))
				}
			}
		}
	}
}

func TestNewFront(t *testing.T) {
	front := NewFront([][]float64{{2, .2}, {11, .1}, {.5, .25}, {.5, .25}, {3, .2}, {1, 1}, {math.NaN(), 0}, {-inf, 0}}, antiIdeal)
	if diff := cmp.Diff([][]float64{{.5, .25}, {2, .2}}, front.Points()); diff != "" {
		t.Errorf("front (-want +got):\n%s", diff)
	}
}

func TestTrace(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for m := 1; m <= 4; m++ {
		points := randomPoints(rng, 40, m, 6)
		points[3][0] = inf
		reference := slices.Repeat([]float64{0.8}, m)
		for i, got := range Trace(points, reference) {
			near(t, "trace", got, Hypervolume(points[:i+1], reference))
		}
	}
}

func TestShapePanics(t *testing.T) {
	front := NewFront(nil, antiIdeal)
	for name, f := range map[string]func(){
		"Dominates":       func() { Dominates([]float64{1}, antiIdeal) },
		"Hypervolume":     func() { Hypervolume([][]float64{{1}}, antiIdeal) },
		"empty reference": func() { NewFront(nil, nil) },
		"Improvement":     func() { front.Improvement([]float64{1}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

func benchmarkPoints(n, m int) ([][]float64, []float64) {
	return randomPoints(rand.New(rand.NewPCG(6, 6)), n, m, 0), slices.Repeat([]float64{1}, m)
}

func BenchmarkHypervolume2D(b *testing.B) {
	points, reference := benchmarkPoints(1000, 2)
	b.ReportAllocs()
	for b.Loop() {
		Hypervolume(points, reference)
	}
}

func BenchmarkHypervolume4D(b *testing.B) {
	points, reference := benchmarkPoints(200, 4)
	b.ReportAllocs()
	for b.Loop() {
		Hypervolume(points, reference)
	}
}

func BenchmarkNewFront3D(b *testing.B) {
	points, reference := benchmarkPoints(300, 3)
	b.ReportAllocs()
	for b.Loop() {
		NewFront(points, reference)
	}
}

func BenchmarkImprovement3D(b *testing.B) {
	points, reference := benchmarkPoints(300, 3)
	front := NewFront(points, reference)
	v := []float64{.1, .1, .1}
	b.ReportAllocs()
	for b.Loop() {
		front.Improvement(v)
	}
}

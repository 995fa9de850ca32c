package problems

import (
	"math"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// ConstrainedBraninCurrin is [BraninCurrin] inside a disk of Branin's domain,
// (u - 2.5)² + (v - 7.5)² <= 50, with the reference (80, 12): the constraint of Gelbart,
// Snoek, Adams, "Bayesian Optimization with Unknown Constraints" (UAI 2014). The maximal
// hypervolume is BoTorch's, found by a long evolutionary search.
func ConstrainedBraninCurrin() *Problem {
	p := problem("constrained_branin_currin", box(2, 0, 1), []float64{80, 12}, 608.4004237022673, func(x space.Point) []float64 {
		u, v := 15*x[0]-5, 15*x[1]
		return []float64{branin(u, v), currin(x[0], x[1]), (u-2.5)*(u-2.5) + (v-7.5)*(v-7.5)}
	})
	p.Constraints = []suggest.Constraint{{Name: "disk", Lower: math.Inf(-1), Upper: 50}}
	return p
}

// C2DTLZ2 returns [DTLZ2] with the constraint of Jain, Deb, "An Evolutionary
// Many-Objective Optimization Algorithm Using Reference-Point Based Nondominated
// Sorting Approach, Part II", IEEE Trans. Evolutionary Computation 18(4), 2014: a
// feasible point lies within r = 0.2 of where an axis or the diagonal meets the front,
//
//	min(min_i [(f_i - 1)² + Σ_{j≠i} f_j²], Σ_i (f_i - 1/√m)²) <= r².
//
// The maximal hypervolume is known for two objectives: it is DTLZ2's without the two
// corners between the arcs.
func C2DTLZ2(dim, objectives int) *Problem {
	p := DTLZ2(dim, objectives)
	p.Name = "c2_dtlz2"
	p.MaxHypervolume = math.NaN()
	if objectives == 2 {
		half := 2 * math.Asin(0.2/2) // of an arc around the diagonal
		a, b := half, math.Pi/4-half // where the first gap begins and ends
		corner := math.Sin(b)*(math.Cos(a)-math.Cos(b)) - (math.Sin(2*a)/2-math.Sin(2*b)/2+b-a)/2
		p.MaxHypervolume = DTLZ2(dim, 2).MaxHypervolume - 2*corner
	}
	unconstrained := p.Evaluate
	p.Evaluate = func(x space.Point) []float64 {
		f := unconstrained(x)
		square, diagonal := 0.0, 0.0
		for _, v := range f {
			d := v - 1/math.Sqrt(float64(objectives))
			square += v * v
			diagonal += d * d
		}
		least := diagonal
		for _, v := range f {
			least = math.Min(least, square-2*v+1)
		}
		return append(f, least)
	}
	p.Constraints = []suggest.Constraint{{Name: "distance", Lower: math.Inf(-1), Upper: 0.2 * 0.2}}
	return p
}

// The following problems are in the form of the collection of Deb, Multi-Objective Optimization
// Using Evolutionary Algorithms (Wiley 2001, §8.3). Their references are about a tenth of the
// front's range beyond its worst values. Their maximal hypervolumes are computed from the fronts
// that are given there as curves.

// constrained adds constraints g >= 0 to a problem whose function returns their values last.
func constrained(p *Problem, names ...string) *Problem {
	for _, name := range names {
		p.Constraints = append(p.Constraints, suggest.Constraint{Name: name, Lower: 0, Upper: math.Inf(1)})
	}
	return p
}

// rectangle returns a space of two doubles.
func rectangle(low0, high0, low1, high1 float64) *space.Space {
	s := box(2, low0, high0)
	s.Parameters[1].Min, s.Parameters[1].Max = low1, high1
	return s
}

// Constr returns the problem CONSTR: x0 and (1 + x1)/x0 over [0.1,1] x [0,5], where
// x1 + 9 x0 >= 6 and 9 x0 - x1 >= 1. The reference is (1.1, 10).
func Constr() *Problem {
	// With x1 = 6 - 9 x0 on the first constraint, then x1 = 0.
	maximum := 19*5.0/18 - 7*math.Log(12.0/7) + 10.0/3 - math.Log(1.5) + 0.1*9
	p := problem("constr", rectangle(0.1, 1, 0, 5), []float64{1.1, 10}, maximum, func(x space.Point) []float64 {
		return []float64{x[0], (1 + x[1]) / x[0], x[1] + 9*x[0] - 6, 9*x[0] - x[1] - 1}
	})
	return constrained(p, "above", "below")
}

// BNH returns the problem of Binh, Korn, "MOBES: A Multiobjective Evolution Strategy for
// Constrained Optimization Problems" (MENDEL 1997): the squared distances from (0, 0), four
// times, and from (5, 5) over [0,5] x [0,3], within 5 of (5, 0) and not within √7.7 of (8, -3).
// The reference is (150, 55).
func BNH() *Problem {
	const maximum = 2592 + 3189 + 1.0/3 + 14*51 // along x0 = x1, along x1 = 3, and beyond the end
	p := problem("bnh", rectangle(0, 5, 0, 3), []float64{150, 55}, maximum, func(x space.Point) []float64 {
		a, b := x[0], x[1]
		return []float64{
			4*a*a + 4*b*b, (a-5)*(a-5) + (b-5)*(b-5),
			25 - (a-5)*(a-5) - b*b, (a-8)*(a-8) + (b+3)*(b+3) - 7.7,
		}
	})
	return constrained(p, "inside", "outside")
}

// SRN returns the problem of Srinivas, Deb, "Multiobjective Optimization Using Nondominated
// Sorting in Genetic Algorithms", Evolutionary Computation 2(3), 1994: 2 + (x0 - 2)² + (x1 - 1)²
// and 9 x0 - (x1 - 1)² over [-20,20]², in the disk of radius 15 and where x0 - 3 x1 + 10 <= 0.
// The reference is (250, 25).
func SRN() *Problem {
	p := problem("srn", box(2, -20, 20), []float64{250, 25}, 36692.2389, func(x space.Point) []float64 {
		a, b := x[0], x[1]
		return []float64{
			2 + (a-2)*(a-2) + (b-1)*(b-1), 9*a - (b-1)*(b-1),
			225 - a*a - b*b, 3*b - a - 10,
		}
	})
	return constrained(p, "disk", "line")
}

// OSY returns the problem of Osyczka, Kundu, "A new method to solve generalized multicriteria
// optimization problems using the simple genetic algorithm", Structural Optimization 10, 1995:
// six parameters, six constraints, and a front of five pieces that lie where some of these are
// just met. The reference is (-20, 85).
func OSY() *Problem {
	s := box(6, 0, 10)
	for j, bounds := range [6][2]float64{{0, 10}, {0, 10}, {1, 5}, {0, 6}, {1, 5}, {0, 10}} {
		s.Parameters[j].Min, s.Parameters[j].Max = bounds[0], bounds[1]
	}
	p := problem("osy", s, []float64{-20, 85}, 16546.05, func(x space.Point) []float64 {
		square := func(v float64) float64 { return v * v }
		sum := 0.0
		for _, v := range x {
			sum += v * v
		}
		return []float64{
			-25*square(x[0]-2) - square(x[1]-2) - square(x[2]-1) - square(x[3]-4) - square(x[4]-1), sum,
			x[0] + x[1] - 2, 6 - x[0] - x[1], 2 - x[1] + x[0], 2 - x[0] + 3*x[1],
			4 - square(x[2]-3) - x[3], square(x[4]-3) + x[5] - 4,
		}
	})
	return constrained(p, "c1", "c2", "c3", "c4", "c5", "c6")
}

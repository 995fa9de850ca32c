package acquisition

import (
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/dpareto/dpareto/internal/fastexp"
	"github.com/dpareto/dpareto/suggest/pareto"
)

// EHVI returns the expected hypervolume improvement; see [LogEHVI].
func EHVI(front *pareto.Front, distributions []Distribution) float64 {
	return math.Exp(LogEHVI(front, distributions, nil))
}

// LogEHVI returns the logarithm of the expected hypervolume improvement, exactly
// and for any number of objectives:
//
//	E[HVI(X)] = Σ_cells Π_j [ψ_j(u_j) - ψ_j(l_j)],  ψ_j(t) = E[(t - X_j)+],
//
// which is the integral of Π_j F_j over the non-dominated region below the
// reference (Emmerich, Deutz, Klinkenberg, "Hypervolume-based expected
// improvement", CEC 2011, in the form of a sum over boxes). It stays finite, and
// so tells configurations apart, far beyond where EHVI underflows (as Ament et
// al., "Unexpected Improvements to Expected Improvement for Bayesian
// Optimization", NeurIPS 2023, have it for one objective), and is -Inf where an
// improvement is impossible.
//
// Unless it is nil, d receives the derivatives of the logarithm with respect to
// the distributions, 0 at -Inf. It panics if lengths differ.
//
// Narrow cells cost no accuracy: the region contains, with each of its boxes,
// everything below it, so that the rounding error of a difference of ψ_j, which
// is relative to ψ_j(u_j), is relative to the whole sum.
func LogEHVI(front *pareto.Front, distributions []Distribution, d []Partial) float64 {
	check(front, distributions)
	if d != nil && len(d) != len(distributions) {
		panic("acquisition: distributions and derivatives differ in length")
	}
	clear(d)
	if d == nil && !slices.ContainsFunc(distributions, func(l Distribution) bool { return l.StdDev != 0 }) {
		var buffer [maxStackObjectives]float64
		v := medians(buffer[:0], distributions)
		if !front.Improves(v) {
			return math.Inf(-1)
		}
		if improvement := front.Improvement(v); improvement > leastSum && !math.IsInf(improvement, 1) {
			return math.Log(improvement)
		}
	}
	if len(distributions) == 2 && (distributions[0].StdDev == 0) != (distributions[1].StdDev == 0) {
		return logKnownEHVI(front, distributions, d)
	}
	if len(distributions) == 2 && distributions[0].isSpread() && distributions[1].isSpread() {
		reference := front.Reference()
		most := distributions[0].mostShortfall(reference[0]) * distributions[1].mostShortfall(reference[1])
		if sum := stripEHVI(front, distributions, d); sum > leastSum*math.Max(1, most) && !math.IsInf(sum, 1) {
			for j := range d {
				d[j].scale(1 / sum)
			}
			return math.Log(sum)
		}
		clear(d)
	}
	return logCellEHVI(front, distributions, d)
}

// logCellEHVI is LogEHVI cell by cell, in logarithms. The derivatives must be 0 before.
func logCellEHVI(front *pareto.Front, distributions []Distribution, d []Partial) float64 {
	var buffer [maxStackObjectives]Partial
	gradient := buffer[:0]
	memory := shortfallMemory.Get().(*shortfalls)
	defer shortfallMemory.Put(memory)
	memory.fill(front, distributions)
	sum := newLogSum()
	for _, c := range front.CellLevels() {
		term := 0.0
		gradient = gradient[:0]
		for j, levels := range memory.levels {
			value, partial := difference(levels[c.Upper[j]], levels[c.Lower[j]])
			if term += value; math.IsInf(term, -1) {
				break
			}
			gradient = append(gradient, partial)
		}
		decay, weight := sum.add(term)
		if d == nil || weight == 0 {
			continue
		}
		for j := range d {
			d[j].scale(decay)
			d[j].add(weight, gradient[j])
		}
	}
	for j := range d {
		if sum.scale > 0 {
			d[j].scale(1 / sum.scale)
		}
	}
	return sum.value()
}

// logShortfall is what LogShortfall returns.
type logShortfall struct {
	value float64
	d     Partial
}

// shortfalls holds the shortfall of each objective at each level of the front.
type shortfalls struct{ levels [][]logShortfall }

var shortfallMemory = sync.Pool{New: func() any { return new(shortfalls) }}

func (s *shortfalls) fill(front *pareto.Front, distributions []Distribution) {
	for len(s.levels) < len(distributions) {
		s.levels = append(s.levels, nil)
	}
	s.levels = s.levels[:len(distributions)]
	for j, l := range distributions {
		levels := s.levels[j][:0]
		for _, t := range front.Levels(j) {
			value, d := l.LogShortfall(t)
			levels = append(levels, logShortfall{value, d})
		}
		s.levels[j] = levels
	}
}

// difference returns ln [ψ(u) - ψ(l)] and its derivatives, given ln ψ and its derivatives.
func difference(upper, lower logShortfall) (float64, Partial) {
	switch {
	case math.IsInf(lower.value, -1):
		return upper.value, upper.d
	case lower.value >= upper.value:
		return math.Inf(-1), Partial{} // a cell too narrow for its bounds to differ
	}
	fall := -math.Expm1(lower.value - upper.value)
	ratio := 1 - fall
	return upper.value + math.Log(fall), Partial{
		Mean:   (upper.d.Mean - ratio*lower.d.Mean) / fall,
		StdDev: (upper.d.StdDev - ratio*lower.d.StdDev) / fall,
	}
}

// logKnownEHVI is LogEHVI of two objectives one of which is known: a trajectory
// of one checkpoint.
func logKnownEHVI(front *pareto.Front, distributions []Distribution, d []Partial) float64 {
	axis := 0
	if distributions[1].StdDev == 0 {
		axis = 1
	}
	known := [1]float64{distributions[axis].Median()}
	if d == nil {
		return LogTrajectoryEHVI(front, axis, known[:], distributions[1-axis:2-axis], nil, nil)
	}
	var dKnown [1]float64
	value := LogTrajectoryEHVI(front, axis, known[:], distributions[1-axis:2-axis], dKnown[:], d[1-axis:2-axis])
	d[axis].Mean = dKnown[0] * distributions[axis].slope(known[0])
	return value
}

// leastSum is the expected improvement, absolute and relative to its bound, from which on it
// needs no logarithms: far above what underflows on the way.
const leastSum = 1e-250

// isSpread reports whether the distribution is Gaussian and not a constant.
func (l Distribution) isSpread() bool { return l.Family == Gaussian && l.StdDev > 0 }

// stripEHVI is EHVI of two Gaussian objectives, in which the cells are strips: without
// logarithms it takes a third of the time. It returns the derivatives of the value itself,
// not of its logarithm.
//
// It starts at the strip of the first mean and goes to both sides until the rest is less
// than the rounding errors. The rest is bounded by the next expected shortfall of the first
// objective, since shortfalls decrease on that side, times a bound of the second's.
func stripEHVI(front *pareto.Front, distributions []Distribution, d []Partial) float64 {
	const negligible = 1e-17
	cells, reference := front.Cells(), front.Reference()
	first := sort.Search(len(cells)-1, func(k int) bool { return cells[k].Upper[0] > distributions[0].Mean })
	sum := 0.0
	add := func(left, right, height shortfall) {
		rise := shortfall{
			value: right.value - left.value,
			d:     Partial{Mean: right.d.Mean - left.d.Mean, StdDev: right.d.StdDev - left.d.StdDev},
		}
		sum += rise.value * height.value
		if d != nil {
			d[0].add(height.value, rise.d)
			d[1].add(rise.value, height.d)
		}
	}
	var before shortfall // of the strip before the first
	if first > 0 {
		before = distributions[0].shortfall(cells[first-1].Upper[0])
	}
	left, most := before, distributions[0].mostShortfall(reference[0])
	for _, c := range cells[first:] {
		height := distributions[1].shortfall(c.Upper[1])
		if height.value*most < negligible*sum {
			break
		}
		right := distributions[0].shortfall(c.Upper[0])
		add(left, right, height)
		left = right
	}
	right := before
	most = distributions[1].mostShortfall(reference[1])
	for k := first - 1; k >= 0 && !(right.value*most < negligible*sum); k-- {
		var left shortfall
		if k > 0 {
			left = distributions[0].shortfall(cells[k-1].Upper[0])
		}
		add(left, right, distributions[1].shortfall(cells[k].Upper[1]))
		right = left
	}
	return sum
}

// mostShortfall returns an upper bound of the shortfall of a Gaussian distribution.
func (l Distribution) mostShortfall(t float64) float64 {
	return math.Max(t-l.Mean, 0) + invSqrt2Pi*l.StdDev
}

// shortfall is E[(t - X)+] and its derivatives.
type shortfall struct {
	value float64
	d     Partial
}

// shortfall returns the shortfall of a Gaussian distribution: s H(z), z = (t - m)/s, with the
// derivatives -Φ(z) and φ(z); see logH.
func (l Distribution) shortfall(t float64) shortfall {
	z := (t - l.Mean) / l.StdDev
	density := 0.0
	if exponent := -z * z / 2; !(exponent < fastexp.Least) {
		power, rest := fastexp.Split(exponent)
		density = (power + rest) * invSqrt2Pi
	}
	if z > 0 {
		cdf := 1 - density*mills(-z)
		return shortfall{l.StdDev * (density + z*cdf), Partial{Mean: -cdf, StdDev: density}}
	}
	if density == 0 {
		return shortfall{}
	}
	r := mills(z)
	return shortfall{l.StdDev * density * densityExcess(z, r), Partial{Mean: -density * r, StdDev: density}}
}

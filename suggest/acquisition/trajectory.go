package acquisition

import (
	"math"

	"github.com/dpareto/dpareto/suggest/pareto"
)

// LogTrajectoryEHVI returns the logarithm of a lower bound of the hypervolume
// improvement that a whole run is expected to bring, in two objectives. The run
// passes checkpoints at which the objective of the given axis (0 or 1) has the
// known costs known[0] < known[1] < ..., and the other objective follows distributions[0],
// distributions[1], .... Each checkpoint counts as a point, as in Wang, Fan, Ng, "A
// Trajectory-Based Bayesian Approach to Multi-Objective Hyperparameter
// Optimization with Epoch-Aware Trade-Offs", UAI 2025; that one axis is known
// leaves a sum:
//
//	E[HVI] >= Σ_t Σ_i W_ti max_{t' <= t} ψ_t'(h_i),  ψ_t(h) = E[(h - X_t)+],
//
// where strip i of the region below the front has height h_i, and W_ti is the
// length that it shares with [known_t, known_t+1), the last interval ending at
// the reference. By Jensen's inequality, the expectation of a maximum being at
// least the maximum of expectations, this is a bound however the X_t depend on
// one another. It is exact for one checkpoint, which makes it the expected
// hypervolume improvement, and if all X_t are known.
//
// Checkpoints at or beyond the reference count for nothing. Unless nil, dKnown
// and d, of the length of known, receive the derivatives of the logarithm with
// respect to the known costs and the distributions; a known cost on the border of two
// strips belongs to the upper one. The value is -Inf, with derivatives 0, if the
// run cannot improve the front. It panics if lengths differ, the front has not
// two objectives, or axis is neither 0 nor 1.
func LogTrajectoryEHVI(front *pareto.Front, axis int, known []float64, distributions []Distribution, dKnown []float64, d []Partial) float64 {
	switch {
	case len(front.Reference()) != 2 || axis < 0 || axis > 1:
		panic("acquisition: a trajectory needs two objectives, one of them known")
	case len(known) != len(distributions), d != nil && len(d) != len(distributions), dKnown != nil && len(dKnown) != len(distributions):
		panic("acquisition: checkpoints differ in length")
	}
	clear(d)
	clear(dKnown)
	s := trajectorySum{sum: newLogSum(), known: known, dKnown: dKnown, d: d, last: -1}
	var buffer [maxStackCheckpoints]float64
	s.bounds = buffer[:0]
	for range known {
		s.bounds = append(s.bounds, math.Inf(1))
	}
	points, reference := front.Points(), front.Reference()
	for i := range len(points) + 1 {
		if len(known) == 0 {
			break
		}
		// Strip i of the known axis lies between the points i-1 and i in the
		// order of that axis, below the height of the former.
		left, right, height := math.Inf(-1), reference[axis], reference[1-axis]
		if i > 0 {
			p := ordered(points, axis, i-1)
			left, height = p[axis], p[1-axis]
		}
		if i < len(points) {
			right = ordered(points, axis, i)[axis]
		}
		if known[0] < right {
			s.strip(left, right, height, distributions)
			if s.complete(reference[axis] - right) {
				break
			}
		}
	}
	return s.finish()
}

// ordered returns point i in increasing order of the axis.
func ordered(points [][]float64, axis, i int) []float64 {
	if axis == 1 {
		i = len(points) - 1 - i
	}
	return points[i]
}

// maxStackCheckpoints is the number of checkpoints up to which no memory is
// allocated.
const maxStackCheckpoints = 32

// trajectorySum is the sum of a trajectory and its derivatives in the same units.
type trajectorySum struct {
	sum    logSum
	known  []float64
	dKnown []float64
	d      []Partial
	// The shortfall of each checkpoint at the last height where it was needed bounds its
	// shortfall at all later, lower heights; last was the best checkpoint there.
	bounds []float64
	last   int
}

// strip adds a strip: stretches of it on each of which one checkpoint, the best
// so far, counts.
func (s *trajectorySum) strip(left, right, height float64, distributions []Distribution) {
	best, value, partial := -1, math.Inf(-1), Partial{}
	before := value // the value of the checkpoint before the best
	begin := math.Max(left, s.known[0])
	if s.last >= 0 && s.known[s.last] < left {
		// Likely the best again, so that the others need not be computed.
		best = s.last
		value, partial = distributions[best].LogShortfall(height)
		s.bounds[best] = value
	}
	for t, l := range distributions {
		if s.known[t] >= right {
			break
		}
		if t == best || s.bounds[t] <= value {
			continue
		}
		v, p := l.LogShortfall(height)
		s.bounds[t] = v
		if !(v > value) {
			continue
		}
		if s.known[t] > begin {
			s.stretch(best, value, before, partial, begin, s.known[t])
			begin = s.known[t]
		}
		best, value, before, partial = t, v, value, p
	}
	s.last = best
	s.stretch(best, value, before, partial, begin, right)
}

// complete reports whether the strips that are left, all of them of lower heights,
// add nothing but rounding errors.
func (s *trajectorySum) complete(width float64) bool {
	const negligible = 32 // 1e-14
	if width <= 0 {
		return true
	}
	most := math.Inf(-1)
	for _, bound := range s.bounds {
		most = math.Max(most, bound)
	}
	return !math.IsInf(most, 1) && most+math.Log(width) < s.sum.value()-negligible
}

// stretch adds a stretch on which checkpoint best counts. Were its known cost a
// little higher, the checkpoint before would count there.
func (s *trajectorySum) stretch(best int, value, before float64, partial Partial, begin, end float64) {
	if best < 0 || math.IsInf(value, -1) {
		return
	}
	decay, weight := s.sum.add(value + math.Log(end-begin))
	if decay != 1 {
		for t := range s.d {
			s.d[t].scale(decay)
		}
		for t := range s.dKnown {
			s.dKnown[t] *= decay
		}
	}
	if s.d != nil {
		s.d[best].add(weight, partial)
	}
	if s.dKnown != nil && begin == s.known[best] {
		s.dKnown[best] += weight / (end - begin) * math.Expm1(before-value)
	}
}

// finish returns the logarithm of the sum and makes the derivatives its own.
func (s *trajectorySum) finish() float64 {
	if s.sum.scale > 0 {
		for t := range s.d {
			s.d[t].scale(1 / s.sum.scale)
		}
		for t := range s.dKnown {
			s.dKnown[t] /= s.sum.scale
		}
	}
	return s.sum.value()
}

package suggest

import (
	"cmp"
	"math"
	"slices"
)

// Attached returns how many of some values, in ascending order from the best, are no outliers. An outlier is a number of times as
// far from the best value as the value before it, and as a width. All values after an outlier are outliers, and none of the best
// quarter is.
func Attached(values []float64, width, times float64) int {
	n := min(len(values)/4+1, len(values))
	for n < len(values) && values[n]-values[0] <= times*math.Max(values[n-1]-values[0], width) {
		n++
	}
	return n
}

// Width returns the distance, on the scale of the transform, below which values of the magnitude of a typical one do
// not count as far from each other.
func (t Transform) Width(typical float64) float64 {
	if t != Identity {
		return 1 // a factor of e
	}
	return cmp.Or(math.Abs(typical), 1)
}

// tooGood is how far from the median a value is too good to be taken at its word, in units of the spread of values.
const tooGood = 10

// TooGood returns the value beyond which values are too good to be taken at their word, and the spread that it is a multiple
// of, which is at least the given one. Values, not empty, are in ascending order from the best.
func TooGood(values []float64, spread float64) (limit, of float64) {
	n := len(values)
	spread = math.Max(spread, values[n-1-n/4]-values[n/4])
	return values[(n-1)/2] - tooGood*spread, spread
}

// absurd is how many times as far as others an outlier lies from the best value.
const absurd = 10

// plausible returns the costs without outliers in objectives whose reference is inferred, bad ones and ones that are too good. A
// run that diverged may be the best in another objective, and so on the front.
func (p *Problem) plausible(costs [][]float64) [][]float64 {
	outlier := make([]bool, len(costs))
	for j := range p.Objectives {
		o := &p.Objectives[j]
		if !o.InferReference || len(costs) == 0 {
			continue
		}
		values := make([]float64, len(costs))
		for i, v := range costs {
			values[i] = o.onScale(v[j])
		}
		sorted := slices.Sorted(slices.Values(values))
		width := o.Transform.Width(sorted[(len(sorted)-1)/2])
		best, _ := TooGood(sorted, width)
		first, _ := slices.BinarySearch(sorted, best)
		worst := sorted[first:][Attached(sorted[first:], width, absurd)-1]
		for i, v := range values {
			outlier[i] = outlier[i] || v < best || v > worst
		}
	}
	var kept [][]float64
	for i, v := range costs {
		if !outlier[i] {
			kept = append(kept, v)
		}
	}
	return kept
}

// onScale returns a cost on a scale on which orders of magnitude are distances if its transform is a logarithm.
func (o *Objective) onScale(cost float64) float64 {
	if o.Transform != Log {
		return cost
	}
	z := math.Log(math.Max(o.Cost(cost), leastLogReference))
	if o.Goal == Maximize {
		return -z
	}
	return z
}

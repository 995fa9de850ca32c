package profile

import (
	"cmp"
	"math"
	"slices"
)

// Weighted is the convex hull of a profile with its probability.
type Weighted struct {
	Probability float64
	Hull        []Point
}

// delta returns δ(ε) on the hull: δ is convex in e^ε, so that chords lie above it.
func (p Weighted) delta(epsilon float64) float64 {
	i, _ := slices.BinarySearchFunc(p.Hull, epsilon, func(p Point, epsilon float64) int { return cmp.Compare(p.Epsilon, epsilon) })
	switch {
	case i == len(p.Hull):
		return p.Hull[i-1].Delta
	case p.Hull[i].Epsilon == epsilon:
		return p.Hull[i].Delta
	case i == 0:
		return 1
	}
	left, right := p.Hull[i-1], p.Hull[i]
	share := math.Expm1(epsilon-left.Epsilon) / math.Expm1(right.Epsilon-left.Epsilon)
	return left.Delta - share*(left.Delta-right.Delta)
}

// Mean is the mean of profiles.
type Mean []Weighted

func (m Mean) delta(epsilon float64) float64 {
	sum := 0.0
	for _, p := range m {
		sum += p.Probability * p.delta(epsilon)
	}
	return sum
}

// Epsilon returns the least ε with δ(ε) <= e^logDelta, from above, or +Inf.
func (m Mean) Epsilon(logDelta float64) (float64, error) {
	const precision = 1e-6
	delta, largest := math.Exp(logDelta), 0.0
	for _, p := range m {
		largest = math.Max(largest, p.Hull[len(p.Hull)-1].Epsilon)
	}
	if m.delta(0) <= delta {
		return 0, nil
	}
	if m.delta(largest) > delta {
		return math.Inf(1), nil
	}
	fails, suffices := 0.0, largest
	for suffices-fails > precision*suffices {
		middle := 0.5 * (fails + suffices)
		if m.delta(middle) <= delta {
			suffices = middle
		} else {
			fails = middle
		}
	}
	return suffices, nil
}

package engine

import (
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/space"
)

// maxInitialPoints bounds the default of Options.InitialPoints.
const maxInitialPoints = 16

// spreadCandidates is the number of configurations of which a spread design takes one.
const spreadCandidates = 64

// InitialPoints returns the default of Options.InitialPoints for a problem.
func InitialPoints(p *suggest.Problem) int {
	varying := 0
	for j := range p.Space.Parameters {
		if p.Space.Parameters[j].Count() > 1 {
			varying++
		}
	}
	if p.Expected() {
		return 1 // what is known beforehand has no level before the first run, and needs no other
	}
	if f := p.Features; f != nil && len(f.Spread) > 0 {
		varying = min(varying, len(f.Spread))
	}
	return min(2*(varying+1), maxInitialPoints)
}

// initial returns a configuration of the initial design: the middle of the space first, then of a quasi-random
// sequence, or, if some features matter most, one that is far from the runs so far in these. In many dimensions
// all quasi-random configurations are far from the middle, around which bounds are usually chosen.
func (d designer) initial(p *suggest.Problem, h *suggest.History, pending []space.Point, tried space.Set, seed uint64, number int64) (suggest.Suggestion, bool) {
	s, ok := quasirandom.Untried(p, tried, seed, number)
	if !ok {
		return s, false
	}
	if q := middle(p.Space); number == 1 && !tried.Contains(q) && p.Allows(q) {
		s.Point = q
	}
	s.Point = d.whole(p, tried, s.Point)
	if f := p.Features; f != nil && len(f.Spread) > 0 {
		s.Point = d.spread(p, h, pending, tried, s.Point, seed, number)
	}
	return s, true
}

// middle returns the configuration at the medians of a space's design distributions.
func middle(s *space.Space) space.Point {
	return s.Quantile(slices.Repeat([]float64{0.5}, len(s.Parameters)))
}

// whole returns a configuration as long as a run of it can be useful, if runs are valued whole.
func (d designer) whole(p *suggest.Problem, tried space.Set, q space.Point) space.Point {
	c := p.CheckpointIndex()
	if c < 0 || d.options.FinalOnly || p.Cost != suggest.CostRuns {
		return q
	}
	longest := q.Clone()
	if longest[c] = p.UsefulLength(q); tried.Contains(longest) || !p.Allows(longest) {
		return q
	}
	return longest
}

// spread returns, of a configuration and other quasi-random ones, the one that is farthest from the runs so
// far in the features that matter most (the maximin design of Johnson, Moore and Ylvisaker, 1990, one point
// at a time). The first run is in the middle.
func (d designer) spread(p *suggest.Problem, h *suggest.History, pending []space.Point, tried space.Set, first space.Point, seed uint64, number int64) space.Point {
	var known [][]float64
	for i := range h.Evaluations {
		e := &h.Evaluations[i]
		if next := i + 1; e.Run == 0 || next == len(h.Evaluations) || h.Evaluations[next].Run != e.Run { // the end of a run
			known = append(known, spreadFeatures(p, e.Point))
		}
	}
	for _, q := range slices.Concat(h.Infeasible, pending) {
		known = append(known, spreadFeatures(p, q))
	}
	candidates := []space.Point{first}
	sequence := sample.NewHalton(len(p.Space.Parameters), sample.Mix(sample.Candidates.Seed(seed)^uint64(number)))
	u := make([]float64, len(p.Space.Parameters))
	for i := range spreadCandidates - 1 {
		sequence.At(u, uint64(i))
		q := p.Space.Quantile(u)
		if q = d.whole(p, tried, q); !tried.Contains(q) && p.Allows(q) {
			candidates = append(candidates, q)
		}
	}
	features := make([][]float64, len(candidates))
	for i, q := range candidates {
		features[i] = spreadFeatures(p, q)
	}
	if len(known) == 0 {
		return candidates[central(features)]
	}
	farthest, distance := 0, 0.0
	for i, x := range features {
		if at := nearest(known, x); at > distance {
			farthest, distance = i, at
		}
	}
	return candidates[farthest]
}

// spreadFeatures returns the features at q over which runs are spread.
func spreadFeatures(p *suggest.Problem, q space.Point) []float64 {
	f := p.Features
	all := make([]float64, f.Count)
	f.Evaluate(all, q)
	some := make([]float64, len(f.Spread))
	for i, k := range f.Spread {
		some[i] = all[k]
	}
	return some
}

// nearest returns the squared distance of x from the nearest of points.
func nearest(points [][]float64, x []float64) float64 {
	least := math.Inf(1)
	for _, y := range points {
		sum := 0.0
		for k := range x {
			sum += (x[k] - y[k]) * (x[k] - y[k])
		}
		least = math.Min(least, sum)
	}
	return least
}

// central returns the index of the point that is nearest to the medians of the coordinates.
func central(points [][]float64) int {
	medians := make([]float64, len(points[0]))
	for k := range medians {
		values := make([]float64, len(points))
		for i := range points {
			values[i] = points[i][k]
		}
		slices.Sort(values)
		medians[k] = values[len(values)/2]
	}
	best, least := 0, math.Inf(1)
	for i := range points {
		if at := nearest(points[i:i+1], medians); at < least {
			best, least = i, at
		}
	}
	return best
}

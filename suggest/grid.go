package suggest

import (
	"context"
	"iter"

	"github.com/dpareto/dpareto/suggest/space"
)

type grid struct{}

// NewGrid returns the designer "grid": the Cartesian product of the
// parameters' grid values (see [space.Parameter.GridValues]) in mixed-radix
// order, the last parameter changing fastest. A suggestion is the first
// configuration in that order that has not been tried: neither evaluated, nor
// pending, nor infeasible. There are no random draws.
func NewGrid() Designer { return grid{} }

func (grid) Name() string    { return "grid" }
func (grid) Version() string { return "1" }

func (d grid) Suggest(ctx context.Context, p *Problem, h *History, r Request) ([]Suggestion, error) {
	if err := validate(p, h, r); err != nil {
		return nil, err
	}
	levels := make([][]float64, len(p.Space.Parameters))
	counts := make([]float64, len(levels))
	for j := range levels {
		levels[j] = p.Space.Parameters[j].GridValues()
		counts[j] = float64(len(levels[j]))
	}
	tried := h.tried()
	out := make([]Suggestion, 0, r.Count)
	for q := range product(counts, func(j, i int) float64 { return levels[j][i] }) {
		if len(out) == r.Count {
			return out, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !tried.contains(q) {
			out = append(out, Suggestion{Point: q, Designer: d.Name()})
		}
	}
	if len(out) < r.Count {
		return out, ErrExhausted
	}
	return out, nil
}

// points yields every point of a space without doubles, the last parameter
// changing fastest.
func points(s *space.Space) iter.Seq[space.Point] {
	counts := make([]float64, len(s.Parameters))
	for j := range counts {
		counts[j] = s.Parameters[j].Count()
	}
	return product(counts, func(j, i int) float64 { return s.Parameters[j].Value(i) })
}

// product yields the Cartesian product of counts[j] values for coordinate j,
// the last coordinate changing fastest.
func product(counts []float64, value func(j, i int) float64) iter.Seq[space.Point] {
	return func(yield func(space.Point) bool) {
		digits := make([]int, len(counts))
		for {
			q := make(space.Point, len(counts))
			for j, i := range digits {
				q[j] = value(j, i)
			}
			if !yield(q) {
				return
			}
			j := len(digits) - 1
			for ; j >= 0; j-- {
				if digits[j]++; float64(digits[j]) < counts[j] {
					break
				}
				digits[j] = 0
			}
			if j < 0 {
				return
			}
		}
	}
}

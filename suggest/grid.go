package suggest

import (
	"context"
	"iter"

	"github.com/dpareto/dpareto/suggest/space"
)

// maxGridRefusals is how many configurations of a grid may not be allowed until
// the search for an allowed one ends.
const maxGridRefusals = 1_000_000

type grid struct{}

// NewGrid returns the designer "grid": the Cartesian product of the
// parameters' grid values (see [space.Parameter.GridValues]) in mixed-radix
// order, the last parameter changing fastest, and conditional parameters after
// their parents and only where they exist. A suggestion is the first allowed
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
	refused := 0
	for q := range p.Space.Product(counts, func(j, i int) float64 { return levels[j][i] }) {
		if len(out) == r.Count {
			return out, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch {
		case tried.contains(q):
		case p.allowed(q):
			out = append(out, Suggestion{Point: q, Designer: d.Name()})
		case refused == maxGridRefusals:
			return out, ErrExhausted
		default:
			refused++
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
	return s.Product(counts, func(j, i int) float64 { return s.Parameters[j].Value(i) })
}

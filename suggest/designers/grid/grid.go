// Package grid is the designer "grid", which walks over the Cartesian product of the
// parameters' values.
package grid

import (
	"context"

	"github.com/dpareto/dpareto/suggest"
)

// maxGridRefusals is the number of refused configurations after which the search for an
// allowed one ends.
const maxGridRefusals = 1_000_000

// Name is the designer's name.
const Name = "grid"

// New returns the designer "grid": the Cartesian product of the
// parameters' grid values (see [space.Parameter.GridValues]) in mixed-radix
// order, the last parameter changing fastest, and conditional parameters after
// their parents and only where they exist. A suggestion is the first allowed
// configuration in that order that has not been tried: neither evaluated, nor
// pending, nor infeasible. There are no random draws.
func New() suggest.Designer { return designer{} }

type designer struct{}

func (designer) Name() string    { return Name }
func (designer) Version() string { return "1" }

func (d designer) Suggest(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
	if err := suggest.Validate(p, h, r); err != nil {
		return nil, err
	}
	levels := make([][]float64, len(p.Space.Parameters))
	counts := make([]float64, len(levels))
	for j := range levels {
		levels[j] = p.Space.Parameters[j].GridValues()
		counts[j] = float64(len(levels[j]))
	}
	tried := h.Tried()
	out := make([]suggest.Suggestion, 0, r.Count)
	refused := 0
	for q := range p.Space.Product(counts, func(j, i int) float64 { return levels[j][i] }) {
		if len(out) == r.Count {
			return out, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		switch {
		case tried.Contains(q):
		case p.Allows(q):
			out = append(out, suggest.Suggestion{Point: q, Designer: d.Name()})
		case refused == maxGridRefusals:
			return out, suggest.ErrExhausted
		default:
			refused++
		}
	}
	if len(out) < r.Count {
		return out, suggest.ErrExhausted
	}
	return out, nil
}

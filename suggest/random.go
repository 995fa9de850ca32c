package suggest

import (
	"context"

	"github.com/dpareto/dpareto/suggest/space"
)

type random struct{}

// NewRandom returns the designer "random": independent draws from the design
// laws of the space. Each configuration comes from a generator of its own,
// seeded by (Seed, Number), so that a study can be continued, or one of its
// trials drawn again, in any order. It is the first allowed one of the
// generator's draws. Configurations can repeat.
func NewRandom() Designer { return random{} }

func (random) Name() string    { return "random" }
func (random) Version() string { return "1" }

func (d random) Suggest(ctx context.Context, p *Problem, h *History, r Request) ([]Suggestion, error) {
	if err := validate(p, h, r); err != nil {
		return nil, err
	}
	out := make([]Suggestion, 0, r.Count)
	for i := range r.Count {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rng := newRand(r.Seed, r.Number+int64(i), streamDesign)
		q, ok := p.draw(nil, func() space.Point { return p.Space.Sample(rng) })
		if !ok {
			return out, ErrExhausted
		}
		out = append(out, Suggestion{Point: q, Designer: d.Name()})
	}
	return out, nil
}

// Package random is the designer "random", which draws every configuration independently.
package random

import (
	"context"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/space"
)

// Name is the designer's name.
const Name = "random"

// New returns the designer "random": independent draws from the design
// distributions of the space. Seed and Number seed a generator for each configuration, so
// that a study can be continued, or one of its trials drawn again, in any order. The
// configuration is the generator's first draw that is allowed. Configurations can repeat.
func New() suggest.Designer { return designer{} }

type designer struct{}

func (designer) Name() string    { return Name }
func (designer) Version() string { return "1" }

func (d designer) Suggest(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
	if err := suggest.Validate(p, h, r); err != nil {
		return nil, err
	}
	out := make([]suggest.Suggestion, 0, r.Count)
	for i := range r.Count {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rng := sample.Stream(r.Seed, r.Number+int64(i), sample.Design)
		q, ok := sample.Allowed(p, nil, func() space.Point { return p.Space.Sample(rng) })
		if !ok {
			return out, suggest.ErrExhausted
		}
		out = append(out, suggest.Suggestion{Point: q, Designer: d.Name()})
	}
	return out, nil
}

// Untried draws a configuration that is not in tried from the design distributions. It
// reports false if it finds none.
func Untried(p *suggest.Problem, tried space.Set, seed uint64, number int64) (suggest.Suggestion, bool) {
	rng := sample.Stream(seed, number, sample.Design)
	q, ok := sample.Allowed(p, tried, func() space.Point { return p.Space.Sample(rng) })
	if !ok {
		q, ok = sample.FirstUntried(p, tried)
	}
	return suggest.Suggestion{Point: q, Designer: Name}, ok
}

// Package quasirandom is the designer "quasi_random", which spreads configurations evenly.
package quasirandom

import (
	"context"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/space"
)

// Name is the designer's name.
const Name = "quasi_random"

// New returns the designer "quasi_random": a scrambled Halton
// sequence, one prime base per parameter, mapped by the inverse
// distribution functions of the design. The point of trial number n is
// the n-th of the sequence that Seed determines, so that a study covers the space evenly
// whatever its first number. Where that point is not allowed, every 2654435761st point
// after it is tried: these depend on Seed and n only, and are far from the points of other
// trials. Configurations of a space without doubles can repeat.
//
// Digits are scrambled as a nested uniform permutation (A. B. Owen, "Randomly
// permuted (t,m,s)-nets and (t,s)-sequences", 1995), which makes every point
// uniform by itself and breaks the correlations between large prime bases.
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
		q, ok := sample.Allowed(p, nil, sample.QuasiRandom(p.Space, r.Seed, r.Number+int64(i)))
		if !ok {
			return out, suggest.ErrExhausted
		}
		out = append(out, suggest.Suggestion{Point: q, Designer: d.Name()})
	}
	return out, nil
}

// Untried returns the sequence's configuration for a trial, but one that is not in tried. It
// reports false if it finds none.
func Untried(p *suggest.Problem, tried space.Set, seed uint64, number int64) (suggest.Suggestion, bool) {
	q, ok := sample.Allowed(p, tried, sample.QuasiRandom(p.Space, seed, number))
	if !ok {
		q, ok = sample.FirstUntried(p, tried)
	}
	return suggest.Suggestion{Point: q, Designer: Name}, ok
}

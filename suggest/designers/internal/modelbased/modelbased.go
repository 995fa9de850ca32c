// Package modelbased has what designers with a model share: the order of initial design,
// model and fallback.
package modelbased

import (
	"context"
	"slices"

	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/space"
)

// Suggester makes suggestions one after the other: from an initial design as far as it
// goes, then from a model, and from a quasi-random sequence if the model fails.
type Suggester struct {
	// Designed reports whether the run after n others is one of the initial design.
	Designed func(n int) bool

	// Initial returns a configuration of the initial design given the pending configurations, false if
	// there is none.
	Initial func(pending []space.Point, tried space.Set, number int64) (suggest.Suggestion, bool)

	// Next returns the model's suggestion given the pending configurations, false if
	// there is none. After an error it is not asked again.
	Next func(pending []space.Point, tried space.Set, number int64) (suggest.Suggestion, bool, error)
}

// Suggest answers a request after the given number of runs, evaluated and others.
func (m Suggester) Suggest(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request, started int) ([]suggest.Suggestion, error) {
	tried := h.Tried()
	pending := slices.Clone(h.Pending)
	out := make([]suggest.Suggestion, 0, r.Count)
	var failure error // of the model
	for i := range r.Count {
		if err := pause.Check(ctx); err != nil {
			return nil, err
		}
		number := r.Number + int64(i)
		var s suggest.Suggestion
		var ok bool
		if m.Designed(started + i) {
			s, ok = m.Initial(pending, tried, number)
		} else {
			if failure == nil {
				s, ok, failure = m.Next(pending, tried, number)
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if failure != nil {
				s, ok = quasirandom.Untried(p, tried, r.Seed, number)
				s.FallbackReason = failure.Error()
			}
		}
		if !ok {
			return out, suggest.ErrExhausted
		}
		out = append(out, s)
		tried.Add(s.Point)
		pending = append(pending, s.Point)
	}
	return out, nil
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
)

// design asks the designer for count points, for trial numbers from first on. A designer that fits a
// model works in the task, which is nil inside a transaction. If the designer fails
// or panics, a quasi-random design replaces it and the suggestions say so: a broken model must not
// stop the study.
func (e *Engine) design(ctx context.Context, task *pool.Task, designer suggest.Designer, from *snapshot, first int64, count int) (suggestions []suggest.Suggestion, exhausted bool, err error) {
	if count == 0 {
		return nil, false, nil
	}
	request := suggest.Request{Count: count, Seed: from.record.GetStudy().GetSeed(), Number: first}
	ask := func(ctx context.Context) error {
		suggestions, err = suggestSafely(e.phases.withPhases(ctx), designer, from, request)
		return err
	}
	if isModelBased(from.compiled) {
		err = task.Run(ctx, ask)
	} else {
		err = ask(ctx)
	}
	if errors.Is(err, suggest.ErrExhausted) {
		return suggestions, true, nil
	}
	if err == nil && len(suggestions) < count {
		err = fmt.Errorf("%d suggestions instead of %d", len(suggestions), count)
	}
	if err == nil || ctx.Err() != nil || from.policy.Traits().OwnDraws {
		return suggestions, false, err
	}
	e.logger.ErrorContext(ctx, "designer failed", "study", from.record.GetStudy().GetName(), "designer", designer.Name(), "error", err)
	fallback := quasirandom.New()
	if c, ok := designer.(conditioned); ok {
		fallback = c.Around(fallback)
	}
	suggestions, fallbackErr := suggestSafely(ctx, fallback, from, request)
	exhausted = errors.Is(fallbackErr, suggest.ErrExhausted)
	if fallbackErr != nil && !exhausted {
		return nil, false, errors.Join(err, fallbackErr)
	}
	for i := range suggestions {
		suggestions[i].FallbackReason = fmt.Sprintf("%s failed, %s was used", designer.Name(), fallback.Name())
	}
	return suggestions, exhausted, nil
}

// suggestSafely returns an error if the designer panics, or suggests a point that is outside the
// space or not allowed.
func suggestSafely(ctx context.Context, d suggest.Designer, from *snapshot, r suggest.Request) (suggestions []suggest.Suggestion, err error) {
	name := d.Name()
	defer func() {
		if p := recover(); p != nil {
			suggestions, err = nil, fmt.Errorf("panic in designer %s: %v\n%s", name, p, debug.Stack())
		}
	}()
	suggestions, err = d.Suggest(ctx, from.problem(), from.history, r)
	for i := range suggestions {
		if outside := from.compiled.Problem.Space.Contains(suggestions[i].Point); outside != nil {
			return nil, fmt.Errorf("designer %s: suggestion %d: %w", name, i, outside)
		}
		if refused := from.compiled.Points.CheckAllowed("point", suggestions[i].Point); refused != nil {
			return nil, fmt.Errorf("designer %s: suggestion %d: %w", name, i, refused)
		}
	}
	return suggestions, err
}

// computeSuggested computes the metrics of suggestions before they become trials. Some accountants
// are too slow for the transaction that creates trials.
func computeSuggested(ctx context.Context, task *pool.Task, compiled *spec.Study, suggestions []suggest.Suggestion) error {
	if !slices.ContainsFunc(suggestions, func(s suggest.Suggestion) bool { return !compiled.Metrics.AtHand(s.Point) }) {
		return nil
	}
	return task.Run(ctx, func(ctx context.Context) error {
		for i := range suggestions {
			if err := pause.Check(ctx); err != nil {
				return err
			}
			compiled.Metrics.Compute(suggestions[i].Point)
		}
		return nil
	})
}

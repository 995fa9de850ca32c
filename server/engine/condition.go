package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/dpareto/dpareto/suggest/restrict"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest"
)

// conditions are the conditions of a demand for trials, one for each trial. A nil *conditions
// wants nothing special.
type conditions struct {
	asked    []*dparetov1.SuggestionCondition
	compiled []restrict.Condition
	trials   []string // by condition; empty as long as there is none
	given    []bool   // up, since nothing was found that meets the condition
	current  int      // condition for which a trial is being suggested
}

// conditionsOf converts the conditions of a request for count trials.
func conditionsOf(compiled *spec.Study, req *dparetov1.SuggestTrialsRequest, count int) (*conditions, error) {
	asked := req.GetConditions()
	if len(asked) == 0 {
		return nil, nil
	}
	if compiled.IsSearch() {
		return nil, invalid.Field("conditions", "must be empty: with random_stopping all trials are draws from one distribution")
	}
	if len(asked) != count {
		return nil, invalid.Field("conditions", "must hold none or one for each of the %d trials, holds %d", count, len(asked))
	}
	w := &conditions{asked: asked, trials: make([]string, count), given: make([]bool, count)}
	for i, c := range asked {
		condition, err := compiled.Condition(fmt.Sprintf("conditions[%d]", i), c)
		if err != nil {
			return nil, err
		}
		w.compiled = append(w.compiled, condition)
	}
	return w, nil
}

// conditioned is a designer under a condition (see restrict.Within).
type conditioned interface {
	Around(d suggest.Designer) suggest.Designer
}

// isConditioned reports whether a designer is under a condition.
func isConditioned(d suggest.Designer) bool {
	_, ok := d.(conditioned)
	return ok
}

// Takes implements Selection: a trial is wanted that meets an open condition.
func (w *conditions) Takes(trial *dparetov1.Trial) bool { return w == nil || w.find(trial) >= 0 }

// find returns the first open condition that a trial meets, or -1.
func (w *conditions) find(trial *dparetov1.Trial) int {
	for i, c := range w.asked {
		if w.trials[i] == "" && meets(trial, c) {
			return i
		}
	}
	return -1
}

// Took implements Selection.
func (w *conditions) Took(trial *dparetov1.Trial) {
	if w != nil {
		w.trials[w.find(trial)] = trial.GetName()
	}
}

// fulfilled returns the conditions after a trial was created for the current one.
func (w *conditions) fulfilled(trial *dparetov1.Trial) *conditions {
	if w == nil {
		return nil
	}
	after := *w
	after.trials = slices.Clone(w.trials)
	after.trials[w.current] = trial.GetName()
	return &after
}

// fulfilledBy returns the conditions after an earlier call got these trials for them.
func (w *conditions) fulfilledBy(trials []*dparetov1.Trial) *conditions {
	if w == nil {
		return nil
	}
	after := *w
	after.trials = make([]string, len(w.trials))
	for _, trial := range trials {
		if i := after.find(trial); i >= 0 {
			after.trials[i] = trial.GetName()
		}
	}
	return &after
}

// met reports whether the current condition is met already.
func (w *conditions) met() bool { return w != nil && w.trials[w.current] != "" }

// next returns the first condition for which a trial is still looked for, or -1.
func (w *conditions) next() int {
	for i := range w.asked {
		if w.trials[i] == "" && !w.given[i] {
			return i
		}
	}
	return -1
}

// sort brings the trials of a response into the order of their conditions, and says why
// there are fewer.
func (w *conditions) sort(resp *dparetov1.SuggestTrialsResponse) {
	if w == nil {
		return
	}
	slices.SortStableFunc(resp.GetTrials(), func(a, b *dparetov1.Trial) int {
		return cmp.Compare(slices.Index(w.trials, a.GetName()), slices.Index(w.trials, b.GetName()))
	})
	if !isEnd(resp) && slices.Contains(w.given, true) && w.next() < 0 {
		resp.EndReason = dparetov1.EndReason_END_REASON_CONDITION
	}
}

// meets reports whether a trial meets a condition.
func meets(trial *dparetov1.Trial, c *dparetov1.SuggestionCondition) bool {
	for id, value := range c.GetFixedParameters() {
		if !proto.Equal(trial.GetParameters()[id], value) {
			return false
		}
	}
	for id, bound := range c.GetAtMost() {
		if metric := trial.GetComputedMetrics()[id]; metric == nil || metric.Value == nil || !(metric.GetValue() <= bound) {
			return false
		}
	}
	return true
}

// nextBatch returns the demands that the next pass answers, out of those that wait: as
// many as a pass can serve, or a single one with conditions, whose suggestions nobody else
// can use.
func nextBatch(waiting []*demand) []*demand {
	if waiting[0].wanted != nil {
		return waiting[:1]
	}
	n := slices.IndexFunc(waiting, func(d *demand) bool { return d.wanted != nil })
	if n < 0 {
		n = len(waiting)
	}
	return waiting[:min(n, maxBatch)]
}

// answerCondition creates the trial of the next condition of a demand. Where no configuration
// is found for it the condition is given up. What was prepared for a demand without
// conditions is not used, and stays.
func (e *Engine) answerCondition(ctx context.Context, id, uid string, d *demand) error {
	w := d.wanted
	w.current = w.next()
	for round := 1; ; round++ {
		snapshot, err := e.snapshot(ctx, id, uid)
		if err != nil {
			return err
		}
		p := newPass(e.designerFor(snapshot, w.compiled[w.current]), snapshot, 1, round)
		if err := e.draw(ctx, p, snapshot.record); err != nil {
			return err
		}
		if p.exhausted && len(p.suggestions) == 0 {
			w.given[w.current] = true
			d.missing--
			w.sort(d.response)
			return nil
		}
		raced, err := e.createSuggested(ctx, id, p, []*demand{d}, []int{1})
		if err != nil || !raced {
			return err
		}
	}
}

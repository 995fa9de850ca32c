package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/restrict"
)

// conditions are the conditions of a demand, one for each trial. A nil *conditions accepts any
// trial.
type conditions struct {
	asked    []*dparetov1.SuggestionCondition
	compiled []restrict.Condition
	trials   []string // name of the trial by condition; "" while there is none
	givenUp  []bool   // no configuration meets the condition
	current  int      // index of the condition that is being served
}

// conditionsOf converts the conditions of a request for count trials.
func conditionsOf(traits study.Traits, compiled *spec.Study, req *dparetov1.SuggestTrialsRequest, count int) (*conditions, error) {
	asked := req.GetConditions()
	if len(asked) == 0 {
		return nil, nil
	}
	if traits.OwnDraws {
		return nil, invalid.Field("conditions", "must be empty: all trials of this study are draws from one distribution")
	}
	if len(asked) != count {
		return nil, invalid.Field("conditions", "must hold none or one for each of the %d trials, holds %d", count, len(asked))
	}
	w := &conditions{asked: asked, trials: make([]string, count), givenUp: make([]bool, count)}
	for i, c := range asked {
		condition, err := compiled.Condition(fmt.Sprintf("conditions[%d]", i), c)
		if err != nil {
			return nil, err
		}
		w.compiled = append(w.compiled, condition)
	}
	return w, nil
}

// conditioned is a designer with a condition (see restrict.Within).
type conditioned interface {
	Around(d suggest.Designer) suggest.Designer
}

// isConditioned reports whether a designer has a condition.
func isConditioned(d suggest.Designer) bool {
	_, ok := d.(conditioned)
	return ok
}

// Takes implements Selection: it takes trials that meet an open condition.
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

// fulfilled returns the conditions with a trial for the current one.
func (w *conditions) fulfilled(trial *dparetov1.Trial) *conditions {
	if w == nil {
		return nil
	}
	after := *w
	after.trials = slices.Clone(w.trials)
	after.trials[w.current] = trial.GetName()
	return &after
}

// fulfilledBy returns the conditions with the trials that an earlier call got.
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

// met reports whether the current condition has its trial.
func (w *conditions) met() bool { return w != nil && w.trials[w.current] != "" }

// next returns the first condition that needs a trial, or -1.
func (w *conditions) next() int {
	for i := range w.asked {
		if w.trials[i] == "" && !w.givenUp[i] {
			return i
		}
	}
	return -1
}

// sort puts the trials of a response in the order of their conditions. It sets the end reason if
// conditions were given up.
func (w *conditions) sort(resp *dparetov1.SuggestTrialsResponse) {
	if w == nil {
		return
	}
	slices.SortStableFunc(resp.GetTrials(), func(a, b *dparetov1.Trial) int {
		return cmp.Compare(slices.Index(w.trials, a.GetName()), slices.Index(w.trials, b.GetName()))
	})
	if !isEnd(resp) && slices.Contains(w.givenUp, true) && w.next() < 0 {
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

// nextBatch returns the waiting demands that the next pass serves. That is as many as fit a pass, or
// a single demand with conditions: its suggestions are of no use to others.
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

// answerCondition creates the trial for a demand's next condition. It gives the condition up if no
// configuration meets it. Suggestions prepared for other demands stay.
func (e *Engine) answerCondition(ctx context.Context, id, uid string, d *demand) error {
	w := d.wanted
	w.current = w.next()
	task := e.pool.Task(d.ctx, pool.Suggestion) //nolint:contextcheck // the call of the demand
	for round := 1; ; round++ {
		snapshot, err := e.snapshot(ctx, id, uid)
		if err != nil {
			return err
		}
		p := newPass(e.designerFor(snapshot, w.compiled[w.current]), task, snapshot, 1, round)
		if err := e.draw(ctx, p, snapshot.record); err != nil {
			return err
		}
		if p.exhausted && len(p.suggestions) == 0 {
			w.givenUp[w.current] = true
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

package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/failure"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/restrict"
)

const (
	// maxRounds is how often a suggestion is made again because other trials were created meanwhile.
	// The last round's suggestion is used although it ignores trials of users; never in place of
	// suggestions of another server.
	maxRounds = 3
	// designPatience is how long a batch waits at most for another server that designs for the same study.
	designPatience = 10 * time.Second
)

// answerBatch creates the trials of one pass, as far as the budget allows. The designer works on a
// snapshot outside transactions, and again if the snapshot is out of date when it is done.
func (e *Engine) answerBatch(id, uid string, batch []*demand) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = failure.Recovered(r)
		}
	}()
	ctx, cancel := whileAnyWaits(inTraceOf(e.background.Context(), batch), batch)
	defer cancel()
	defer e.occupy(ctx, uid)()
	if batch[0].wanted != nil {
		return e.answerCondition(ctx, id, uid, batch[0])
	}
	shares, total := shares(batch)
	task := e.pool.Task(batch[0].ctx, pool.Suggestion)
	for round := 1; ; round++ {
		snapshot, err := e.snapshot(ctx, id, uid)
		if err != nil {
			return err
		}
		if snapshot.policy.Traits().OneByOne {
			clear(shares)
			shares[0], total = 1, 1
		}
		p := newPass(e.designerFor(snapshot, restrict.Condition{}), task, snapshot, total, round)
		count := e.studies.Creatable(snapshot.record, total)
		var ok bool
		p.suggestions, p.exhausted, ok = snapshot.cache.prepared.take(ctx, snapshot, count)
		if isModelBased(snapshot.compiled) && count > 0 {
			e.metrics.Prepared(ok)
		}
		if !ok {
			if err := e.draw(ctx, p, snapshot.record); err != nil {
				return err
			}
		}
		if err := computeSuggested(ctx, task, snapshot.compiled, p.suggestions); err != nil {
			return err
		}
		raced, err := e.createSuggested(ctx, id, p, batch, shares)
		if err != nil || !raced {
			return err
		}
	}
}

// occupy keeps other servers on the store from designing for a study until free is called: they would draw
// the same points, which the first to write them has alone (see refresh). It gives up after a while, or where
// the lock cannot be had, since it only saves work.
func (e *Engine) occupy(ctx context.Context, uid string) (free func()) {
	if !e.store.IsShared() {
		return func() {} // the queue serves one batch at a time
	}
	ctx, cancel := context.WithTimeout(ctx, designPatience)
	defer cancel()
	free, err := e.store.Lock(ctx, "design "+uid)
	if err != nil {
		return func() {}
	}
	return free
}

// pass is a designer's work for a batch of demands.
type pass struct {
	designer suggest.Designer
	task     *pool.Task // in which the designer works
	from     *snapshot
	first    int64 // trial number of the first suggestion; the others follow
	wanted   int   // number of suggestions, if the budget allows
	last     bool  // last round: use suggestions even if users created trials meanwhile

	suggestions []suggest.Suggestion
	exhausted   bool
}

// newPass returns the pass of a round. Rounds count from 1.
func newPass(d suggest.Designer, task *pool.Task, from *snapshot, wanted, round int) *pass {
	return &pass{designer: d, task: task, from: from, first: from.record.GetNextTrialNumber(), wanted: wanted, last: round >= maxRounds}
}

// draw asks the designer for as many suggestions as the budget of a study allows.
func (e *Engine) draw(ctx context.Context, p *pass, study *storev1.StudyRecord) (err error) {
	p.suggestions, p.exhausted, err = e.design(ctx, p.task, p.designer, p.from, p.first, e.studies.Creatable(study, p.wanted))
	return err
}

// refresh brings a pass up to date in a transaction, or reports that it must be made again.
//
// Draws depend on trial numbers, and no two trials may use the same draw. Trials created by users
// take numbers but no draws, so earlier draws may go to later numbers. Other calls of this server draw
// only with designers that draw inside the transaction; then this call also does. Another server may
// have made the same draws: then the pass is made again, however often, since one of them gets on every
// time.
func (e *Engine) refresh(ctx context.Context, p *pass, c *study.Change) (raced bool, err error) {
	next := c.Study.GetNextTrialNumber()
	switch {
	case !c.Cached.Compiles(p.from.record):
		return true, nil
	case next == p.first:
		return false, nil
	case drawsAtOnce(p.designer, c.Compiled, c.Policy):
		p.first = next
		err := e.draw(ctx, p, c.Study)
		return p.exhausted && len(p.suggestions) == 0, err // the caller decides what exhaustion means
	case !p.last:
		return true, nil
	default:
		return suggestedSince(c, p.first)
	}
}

// suggestedSince reports whether a trial with a number or a later one may have come from a suggestion.
func suggestedSince(c *study.Change, number int64) (bool, error) {
	for ; number < c.Study.GetNextTrialNumber(); number++ {
		record, err := c.Tx.BareTrial(c.ID, number)
		switch {
		case errors.Is(err, store.ErrNotFound): // it was deleted
			return true, nil
		case err != nil:
			return false, err
		case record.GetTrial().GetOrigin() == dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED:
			return true, nil
		}
	}
	return false, nil
}

// createSuggested creates trials from suggestions and hands each demand its share. raced reports
// that the pass was out of date and nothing was done.
func (e *Engine) createSuggested(ctx context.Context, id string, p *pass, batch []*demand, shares []int) (raced bool, err error) {
	defer e.phases.phase(ctx, metrics.PhaseCommit)()
	var answers []progress // of the batch
	err = e.studies.Change(ctx, id, new(study.Request), func(c *study.Change) error {
		if c.Study.GetStudy().GetUid() != p.from.record.GetStudy().GetUid() {
			return resource.StudyNotFound(id)
		}
		raced, err = e.refresh(ctx, p, c)
		if err != nil || raced {
			return err
		}
		if chooser, ok := c.Policy.(Chooser); ok && chooser.Affords(c.Study, c.Compiled, p.suggestions) < len(p.suggestions) {
			raced = true
			return nil
		}
		answers, err = e.handOutSuggested(c, p, batch, shares)
		return err
	})
	if err != nil || raced {
		return raced, err
	}
	for i, d := range batch {
		d.progress = answers[i]
	}
	return false, nil
}

// handOutSuggested returns the progress of each demand of a batch with its share of the suggestions.
// Those of calls that have ended go to the others.
func (e *Engine) handOutSuggested(c *study.Change, p *pass, batch []*demand, shares []int) ([]progress, error) {
	answers, used := make([]progress, len(batch)), 0
	for i, d := range batch {
		if answers[i] = d.progress; d.ctx.Err() != nil {
			continue
		}
		before, repeats, err := d.catchUp(c)
		if err != nil {
			return nil, err
		}
		share := min(shares[i], before.missing)
		if before.wanted.met() {
			share = 0
		}
		trials, err := e.create(c, p, used, share, d.worker)
		if err != nil {
			return nil, err
		}
		used += len(trials)
		answers[i] = before.with(trials)
		if repeats {
			continue
		}
		answers[i] = p.explain(c, answers[i], share-len(trials))
		after := &answers[i]
		if err := d.request.Remember(c.Tx, after.response, effectOf(after.response, after.missing), c.Steady); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// create creates at most count trials for a worker, as the budget allows, from the suggestions of a
// pass of which the first ones are used.
func (e *Engine) create(c *study.Change, p *pass, used, count int, worker string) (trials []*dparetov1.Trial, err error) {
	for range min(count, len(p.suggestions)-used) {
		if e.studies.Creatable(c.Study, 1) == 0 {
			break
		}
		drawnFor := p.first + int64(used+len(trials))
		suggestion := p.suggestions[used+len(trials)]
		record, err := c.Create(suggestion.Point, dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED, func(record *storev1.TrialRecord) error {
			record.Trial.Provenance = provenance(e.version, p.from, p.designer, suggestion)
			if record.GetTrial().GetNumber() != drawnFor {
				record.Trial.Provenance.DrawnFor = drawnFor
			}
			return c.HandOut(record, worker)
		})
		if err != nil {
			return nil, err
		}
		trials = append(trials, c.HandedOut(record))
	}
	return trials, nil
}

// with returns the progress with new trials.
func (a progress) with(trials []*dparetov1.Trial) progress {
	for _, trial := range trials {
		a.wanted = a.wanted.fulfilled(trial)
	}
	a.response.Trials = append(a.response.GetTrials(), trials...)
	a.missing -= len(trials)
	return a
}

// explain says why trials are still missing, if no more will come. left is the number of missing
// trials in the share of this pass.
func (p *pass) explain(c *study.Change, a progress, left int) progress {
	c.Explain(a.response, a.missing)
	switch {
	case left == 0 || isEnd(a.response): // the rest comes in the next pass
	case p.exhausted && exhausts(c):
		c.Explain(a.response, a.missing)
	case p.exhausted:
		a.response.EndReason = dparetov1.EndReason_END_REASON_SPACE_EXHAUSTED
	default: // the budget allows more trials now than at the snapshot
		study.ExplainParallelism(a.response)
	}
	if isEnd(a.response) {
		a.missing = 0
	}
	a.wanted.sort(a.response)
	return a
}

// catchUp returns a demand's progress with a response of its own, which may be changed. It is the
// progress of another call with the same request id if that call has got further; repeats reports
// that it has all trials.
func (d *demand) catchUp(c *study.Change) (now progress, repeats bool, err error) {
	record, err := d.request.Find(&c.Tx.ReadTx, c.Steady)
	if err != nil {
		return progress{}, false, err
	}
	now = d.progress
	now.response = new(dparetov1.SuggestTrialsResponse)
	if record == nil {
		now.response.Trials = slices.Clone(d.response.GetTrials())
		return now, false, nil
	}
	if err := d.request.Decode(record, now.response); err != nil {
		return progress{}, false, err
	}
	now.missing -= len(now.response.GetTrials()) - len(d.response.GetTrials())
	now.wanted = d.wanted.fulfilledBy(now.response.GetTrials())
	if !record.GetPartial() {
		now.missing = 0
	}
	return now, !record.GetPartial(), nil
}

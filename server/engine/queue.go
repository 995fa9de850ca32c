package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/failure"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/restrict"
)

const (
	// maxRounds is how often a suggestion is made again because other trials were created meanwhile.
	// The last round's suggestion is used although it ignores trials of users; never in place of
	// suggestions of another server.
	maxRounds = 3
	// designPatience is how long a batch waits at most for another server that designs for the same study.
	designPatience = 10 * time.Second
	// maxBatch bounds the trials of one designer pass, and so the time that other demands wait.
	maxBatch = 16
)

// SuggestTrials implements StudyService.
func (e *Engine) SuggestTrials(ctx context.Context, req *dparetov1.SuggestTrialsRequest) (*dparetov1.SuggestTrialsResponse, error) {
	id, err := resource.ParseStudyName("parent", req.GetParent())
	if err != nil {
		return nil, err
	}
	var fields invalid.Fields
	count := max(1, int(req.GetCount()))
	if n := req.GetCount(); n < 0 || n > study.MaxSuggestions {
		fields.Addf("count", "must be in [0, %d], is %d", study.MaxSuggestions, n)
	}
	fields.CheckID("worker_id", req.GetWorkerId(), study.MaxWorkerID)
	if err := fields.Err(); err != nil {
		return nil, err
	}
	resume := req.Resume == nil || req.GetResume()

	// First hand out existing trials: this worker's, those with expired leases, queued ones.
	resp := new(dparetov1.SuggestTrialsResponse)
	r, err := study.NewRequest(req, resp)
	if err != nil {
		return nil, err
	}
	var uid string
	var wanted *conditions
	missing := 0
	principal := auth.FromContext(ctx).Name
	err = e.studies.Change(ctx, id, r, func(c *study.Change) error {
		if err := c.CheckWorker(principal, req.GetWorkerId()); err != nil {
			return err
		}
		uid = c.Study.GetStudy().GetUid()
		if c.Policy.Traits().Hidden {
			count = 1 // one that asks for many would learn how many there are
		}
		if wanted, err = conditionsOf(c.Policy.Traits(), c.Compiled, req, count); err != nil {
			return err
		}
		c.Tx.AfterCommit(func() { e.cacheOf(c.Cached).prepared.wanted(e.now()) })
		if r.Resumed { // an earlier call with the same request id got part of the trials
			wanted = wanted.fulfilledBy(resp.GetTrials())
		} else {
			trials, err := c.HandOutExisting(req.GetWorkerId(), count, resume, wanted)
			if err != nil {
				return err
			}
			resp.Trials = trials
		}
		missing = count - len(resp.GetTrials())
		c.Explain(resp, missing)
		complete := isEnd(resp)
		if !complete && missing > 0 && wanted == nil {
			if complete, err = e.drawAtOnce(ctx, c, req.GetWorkerId(), missing, resp); err != nil {
				return err
			}
		}
		missing = count - len(resp.GetTrials())
		if complete {
			missing = 0
		}
		wanted.sort(resp)
		r.Effect = effectOf(resp, missing)
		if len(resp.GetTrials()) == 0 && missing == 0 {
			return nil // idle workers poll: an id that gets nothing is not kept
		}
		return c.KeepWorker(principal, req.GetWorkerId())
	})
	if err != nil {
		return nil, err
	}
	if resp.GetEndReason() == dparetov1.EndReason_END_REASON_PREPARING {
		e.studies.TakeOver(id, uid) //nolint:contextcheck // it outlives the call
	}
	if r.Repeated || missing == 0 {
		return resp, nil
	}

	// If this fails, the worker keeps the trials so far and gets them when it asks again.
	return e.suggest(ctx, id, uid, &demand{ctx: ctx, request: r, worker: req.GetWorkerId(), missing: missing, wanted: wanted, response: resp})
}

// isEnd reports whether a response says why there are no more trials.
func isEnd(resp *dparetov1.SuggestTrialsResponse) bool {
	return resp.GetEndReason() != dparetov1.EndReason_END_REASON_UNSPECIFIED
}

// effectOf returns the effect of a call with some trials still missing. A response without trials is
// not stored: idle workers poll, and each would cost a write.
func effectOf(resp *dparetov1.SuggestTrialsResponse, missing int) study.Effect {
	switch {
	case len(resp.GetTrials()) == 0:
		return study.EffectNone
	case missing == 0:
		return study.EffectAll
	default:
		return study.EffectPart
	}
}

// queue batches demands for new trials by study. The next batch gathers while one is computed.
type queue struct {
	mu      sync.Mutex
	waiting map[string][]*demand // by uid of the study; present while a batch is computed
}

// demand is a worker's demand for new trials.
type demand struct {
	ctx      context.Context //nolint:containedctx // the waiting call's
	request  *study.Request
	worker   string
	missing  int                              // trials still to be created
	repeats  bool                             // another call with the same request id has the trials
	wanted   *conditions                      // nil without conditions
	response *dparetov1.SuggestTrialsResponse // with the trials so far
	done     chan error                       // receives exactly one value
}

// suggest queues a demand and waits for the response.
func (e *Engine) suggest(ctx context.Context, id, uid string, d *demand) (*dparetov1.SuggestTrialsResponse, error) {
	d.done = make(chan error, 1)
	if !e.enqueue(id, uid, d) { //nolint:contextcheck // it outlives the call and serves others too
		return nil, store.ErrClosed
	}
	select {
	case err := <-d.done:
		if err != nil && e.background.IsClosed() {
			err = store.ErrClosed
		}
		if err != nil {
			return nil, err
		}
		return d.response, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// enqueue queues a demand and starts serving its study if needed. It returns false if the server is
// closed.
func (e *Engine) enqueue(id, uid string, d *demand) bool {
	e.queue.mu.Lock()
	defer e.queue.mu.Unlock()
	if _, busy := e.queue.waiting[uid]; !busy && !e.background.Go(func() { e.serveDemands(id, uid) }) {
		return false
	}
	if e.queue.waiting == nil {
		e.queue.waiting = make(map[string][]*demand)
	}
	e.queue.waiting[uid] = append(e.queue.waiting[uid], d)
	return true
}

// serveDemands serves the demands of a study until there are none. A pass creates at most maxBatch
// trials, shared fairly. A demand that needs more goes to the back of the queue, so it delays others
// by one pass only.
func (e *Engine) serveDemands(id, uid string) {
	for {
		e.queue.mu.Lock()
		waiting := slices.DeleteFunc(e.queue.waiting[uid], func(d *demand) bool { return d.ctx.Err() != nil })
		if len(waiting) == 0 {
			delete(e.queue.waiting, uid)
			e.queue.mu.Unlock()
			return
		}
		batch := nextBatch(waiting)
		e.queue.waiting[uid] = slices.Clone(waiting[len(batch):])
		e.queue.mu.Unlock()

		err := e.answerBatch(id, uid, batch)

		e.queue.mu.Lock()
		for _, d := range batch {
			if err == nil && d.missing > 0 {
				e.queue.waiting[uid] = append(e.queue.waiting[uid], d)
				continue
			}
			d.done <- err
		}
		e.queue.mu.Unlock()
	}
}

// shares returns how many trials of a pass each demand gets: one at a time in turn until the pass is
// full.
func shares(batch []*demand) (shares []int, total int) {
	shares = make([]int, len(batch))
	for more := true; more && total < maxBatch; {
		more = false
		for i, d := range batch {
			if shares[i] < d.missing && total < maxBatch {
				shares[i]++
				total++
				more = true
			}
		}
	}
	return shares, total
}

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
// only with designers that draw inside the transaction; then this one does, too. Another server may have
// made the same draws: then the pass is made again, however often, since one of them gets on every time.
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

// whileAnyWaits returns a context that ends with parent, or when all calls behind the demands have
// ended.
func whileAnyWaits(parent context.Context, batch []*demand) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	var waiting atomic.Int64
	waiting.Store(int64(len(batch)))
	for _, d := range batch {
		stop := context.AfterFunc(d.ctx, func() {
			if waiting.Add(-1) == 0 {
				cancel()
			}
		})
		context.AfterFunc(ctx, func() { stop() })
	}
	return ctx, cancel
}

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
		if refused := from.compiled.CheckAllowed("point", suggestions[i].Point); refused != nil {
			return nil, fmt.Errorf("designer %s: suggestion %d: %w", name, i, refused)
		}
	}
	return suggestions, err
}

// computeSuggested computes the metrics of suggestions before they become trials. Some accountants
// are too slow for the transaction that creates trials.
func computeSuggested(ctx context.Context, task *pool.Task, compiled *spec.Study, suggestions []suggest.Suggestion) error {
	if !slices.ContainsFunc(suggestions, func(s suggest.Suggestion) bool { return !compiled.AtHand(s.Point) }) {
		return nil
	}
	return task.Run(ctx, func(ctx context.Context) error {
		for i := range suggestions {
			if err := pause.Check(ctx); err != nil {
				return err
			}
			compiled.Compute(suggestions[i].Point)
		}
		return nil
	})
}

// createSuggested creates trials from suggestions and hands each demand its share. raced reports
// that the pass was out of date and nothing was done.
func (e *Engine) createSuggested(ctx context.Context, id string, p *pass, batch []*demand, shares []int) (raced bool, err error) {
	defer e.phases.phase(ctx, metrics.PhaseCommit)()
	answers := make([]demand, len(batch))
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
		suggestions, drawnFor := p.suggestions, p.first
		for i, d := range batch {
			answers[i] = *d
			if d.ctx.Err() != nil {
				continue // its call has ended; the others get its share
			}
			answer := &answers[i]
			if err := answer.catchUp(c); err != nil {
				return err
			}
			resp := answer.response
			share := min(shares[i], answer.missing)
			if answer.wanted.met() {
				share = 0
			}
			for ; share > 0 && len(suggestions) > 0 && e.studies.Creatable(c.Study, 1) == 1; share-- {
				suggestion := suggestions[0]
				suggestions = suggestions[1:]
				record, err := c.Create(suggestion.Point, dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED, func(record *storev1.TrialRecord) error {
					record.Trial.Provenance = provenance(e.version, p.from, p.designer, suggestion)
					if record.GetTrial().GetNumber() != drawnFor {
						record.Trial.Provenance.DrawnFor = drawnFor
					}
					drawnFor++
					return c.HandOut(record, d.worker)
				})
				if err != nil {
					return err
				}
				resp.Trials = append(resp.Trials, c.HandedOut(record))
				answer.wanted = answer.wanted.fulfilled(record.GetTrial())
				answer.missing--
			}
			if answer.repeats {
				continue
			}
			c.Explain(resp, answer.missing)
			switch {
			case share == 0 || isEnd(resp): // the rest comes in the next pass
			case p.exhausted && exhausts(c):
				c.Explain(resp, answer.missing)
			case p.exhausted:
				resp.EndReason = dparetov1.EndReason_END_REASON_SPACE_EXHAUSTED
			default: // the budget allows more trials now than at the snapshot
				study.ExplainParallelism(resp)
			}
			if isEnd(resp) {
				answer.missing = 0
			}
			answer.wanted.sort(resp)
			if err := d.request.Remember(c.Tx, resp, effectOf(resp, answer.missing), c.Steady); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || raced {
		return raced, err
	}
	for i, d := range batch {
		d.response, d.missing, d.wanted = answers[i].response, answers[i].missing, answers[i].wanted
	}
	return false, nil
}

// catchUp copies the response, which is about to change. If another call with the same request id
// has got further, it takes over that call's response.
func (d *demand) catchUp(c *study.Change) error {
	record, err := d.request.Find(&c.Tx.ReadTx, c.Steady)
	if err != nil {
		return err
	}
	before := len(d.response.GetTrials())
	if record == nil {
		d.response = &dparetov1.SuggestTrialsResponse{Trials: slices.Clone(d.response.GetTrials())}
		return nil
	}
	d.response = new(dparetov1.SuggestTrialsResponse)
	if err := d.request.Decode(record, d.response); err != nil {
		return err
	}
	d.missing -= len(d.response.GetTrials()) - before
	d.wanted = d.wanted.fulfilledBy(d.response.GetTrials())
	if d.repeats = !record.GetPartial(); d.repeats {
		d.missing = 0
	}
	return nil
}

// provenance says how a suggestion was made by a server of some version.
func provenance(version string, from *snapshot, asked suggest.Designer, suggestion suggest.Suggestion) *dparetov1.Provenance {
	p := &dparetov1.Provenance{
		Algorithm:        suggestion.Designer,
		AlgorithmVersion: asked.Version(),
		ServerVersion:    version,
		Seed:             from.record.GetStudy().GetSeed(),
		StudyRevision:    from.record.GetStudy().GetRevision(),
		FallbackReason:   suggestion.FallbackReason,
		Conditioned:      isConditioned(asked),
	}
	if suggestion.Predictions == nil {
		return p
	}
	p.AcquisitionValue = &suggestion.Acquisition
	p.Predictions = make(map[string]*dparetov1.MetricPrediction)
	for i, objective := range from.compiled.Objectives() {
		p.Predictions[objective] = PredictionMessage(suggestion.Predictions[i])
	}
	return p
}

// PredictionMessage converts a prediction to its message.
func PredictionMessage(p suggest.Prediction) *dparetov1.MetricPrediction {
	return &dparetov1.MetricPrediction{Median: p.Median, Lower: p.Lower, Upper: p.Upper}
}

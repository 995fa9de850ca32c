package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/yield"
	"github.com/dpareto/dpareto/suggest"
)

const (
	// maxSuggestions bounds the trials of one call.
	maxSuggestions = 1000
	// retryAfter is how long a worker waits when all remaining trials are with others.
	retryAfter = time.Second
	// maxRounds is how often a suggestion is made, at most, because trials were created
	// meanwhile by other means: the last is taken although it knows nothing of them.
	maxRounds = 3
	// maxBatch bounds the trials that one pass of the designer creates, and so the time
	// that others wait for it.
	maxBatch = 16
)

// SuggestTrials implements StudyService.
func (s *studyService) SuggestTrials(ctx context.Context, req *dparetov1.SuggestTrialsRequest) (*dparetov1.SuggestTrialsResponse, error) {
	id, err := parseStudyName("parent", req.GetParent())
	if err != nil {
		return nil, err
	}
	var fields invalid.Fields
	count := max(1, int(req.GetCount()))
	if n := req.GetCount(); n < 0 || n > maxSuggestions {
		fields.Addf("count", "must be in [0, %d], is %d", maxSuggestions, n)
	}
	if n := len(req.GetWorkerId()); n < 1 || n > maxWorkerID {
		fields.Addf("worker_id", "must have 1 to %d bytes, has %d", maxWorkerID, n)
	}
	if err := fields.Err(); err != nil {
		return nil, err
	}
	resume := req.Resume == nil || req.GetResume()

	// What exists already: trials of this worker, of workers that fell silent, queued
	// ones.
	resp := new(dparetov1.SuggestTrialsResponse)
	m, err := newMutation(req, resp)
	if err != nil {
		return nil, err
	}
	var uid string
	var wishes *wishes
	missing := 0
	err = s.changeStudy(ctx, id, m, func(c *change) error {
		uid = c.study.GetStudy().GetUid()
		if isSearch(c.study.GetStudy()) && len(req.GetConditions()) > 0 {
			return invalid.Field("conditions", "must be empty: with random_stopping all trials are draws from one law")
		}
		if wishes, err = conditionsOf(c.compiled, req, count); err != nil {
			return err
		}
		c.tx.AfterCommit(func() { c.cached.prepared.wanted(c.now) })
		if m.resumed { // an earlier call with the same id came that far
			wishes = wishes.fulfilledBy(resp.GetTrials())
		} else {
			trials, err := c.handOutExisting(req.GetWorkerId(), count, resume, wishes)
			if err != nil {
				return err
			}
			resp.Trials = trials
		}
		missing = count - len(resp.GetTrials())
		s.explain(c, resp, missing)
		complete := isEnd(resp)
		if !complete && missing > 0 && wishes == nil {
			if complete, err = s.drawAtOnce(ctx, c, req.GetWorkerId(), missing, resp); err != nil {
				return err
			}
		}
		missing = count - len(resp.GetTrials())
		if complete {
			missing = 0
		}
		wishes.sort(resp)
		m.effect = effectOf(resp, missing)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if m.repeated || missing == 0 {
		return resp, nil
	}

	// If this fails the trials so far stay with the worker: it gets them when it asks
	// again.
	return s.suggest(ctx, id, uid, &demand{ctx: ctx, mutation: m, worker: req.GetWorkerId(), missing: missing, wishes: wishes, response: resp})
}

// isEnd reports whether an answer says why there are no more trials.
func isEnd(resp *dparetov1.SuggestTrialsResponse) bool {
	return resp.GetEndReason() != dparetov1.EndReason_END_REASON_UNSPECIFIED
}

// effectOf returns what was done of a request when so many trials are still missing. An
// answer without trials is worth no write: workers without work ask again and again.
func effectOf(resp *dparetov1.SuggestTrialsResponse, missing int) effect {
	switch {
	case len(resp.GetTrials()) == 0:
		return nothing
	case missing == 0:
		return everything
	default:
		return somewhat
	}
}

// explain sets the state of the study and, if trials are missing, why no more can be
// created.
func (s *Server) explain(c *change, resp *dparetov1.SuggestTrialsResponse, missing int) {
	study := c.study.GetStudy()
	resp.StudyState, _ = s.state(c.study)
	if missing == 0 {
		return
	}
	counts := study.GetTrialCounts()
	held := counts.GetActive() + counts.GetStopping()
	limit := study.GetSpec().GetBudget().GetMaxParallelTrials()
	switch {
	case resp.GetStudyState() == dparetov1.StudyState_STUDY_STATE_PAUSED:
		resp.EndReason = dparetov1.EndReason_END_REASON_PAUSED
	case privateSpent(c.study) != "":
		resp.EndReason = dparetov1.EndReason_END_REASON_PRIVACY_BUDGET_SPENT
		if held > int64(len(resp.GetTrials())) {
			resp.RetryAfter = durationpb.New(retryAfter) // one of them may come back
		}
	case stagnant(c.study) != "":
		resp.EndReason = dparetov1.EndReason_END_REASON_STAGNANT
		if held > int64(len(resp.GetTrials())) {
			resp.RetryAfter = durationpb.New(retryAfter) // one of them may change that
		}
	case s.spent(c.study) != "":
		resp.EndReason = dparetov1.EndReason_END_REASON_BUDGET_SPENT
		if held > int64(len(resp.GetTrials())) {
			resp.RetryAfter = durationpb.New(retryAfter) // one of them may come back
		}
	case limit > 0 && held >= limit:
		resp.EndReason = dparetov1.EndReason_END_REASON_PARALLELISM
		resp.RetryAfter = durationpb.New(retryAfter)
	}
}

// creatable returns how many of count trials the budget allows to create now.
func (s *Server) creatable(record *storev1.StudyRecord, count int) int {
	if s.spent(record) != "" || record.GetStudy().GetState() == dparetov1.StudyState_STUDY_STATE_PAUSED {
		return 0
	}
	study := record.GetStudy()
	budget := study.GetSpec().GetBudget()
	allowed := int64(count)
	if isSearch(study) {
		allowed = min(allowed, searchLeft(record))
	}
	if n := budget.GetMaxTrials(); n > 0 {
		allowed = min(allowed, n-record.GetNextTrialNumber()+1)
	}
	if n := budget.GetMaxParallelTrials(); n > 0 {
		counts := study.GetTrialCounts()
		allowed = min(allowed, n-counts.GetActive()-counts.GetStopping())
	}
	return int(max(0, allowed))
}

// handOutExisting hands to a worker up to count trials that exist already: its own if
// it resumes, then those whose lease ran out, then queued ones. Trials that were
// handed out too often are given up, and stopped trials of lost workers settled. With
// wishes only trials are handed out that fulfil one.
func (c *change) handOutExisting(worker string, count int, resume bool, wishes *wishes) ([]*dparetov1.Trial, error) {
	var own, expired, queued, stopped []int64
	err := c.tx.OpenTrials(c.id, func(number int64, entry *storev1.OpenTrialRecord) (bool, error) {
		isOwn := resume && entry.GetWorkerId() == worker
		isExpired := !entry.GetExpireTime().AsTime().After(c.now)
		switch entry.GetState() {
		case dparetov1.TrialState_TRIAL_STATE_STOPPING:
			if isOwn || isExpired {
				stopped = append(stopped, number)
			}
		case dparetov1.TrialState_TRIAL_STATE_ACTIVE:
			if isOwn {
				own = append(own, number)
			} else if isExpired {
				expired = append(expired, number)
			}
		case dparetov1.TrialState_TRIAL_STATE_QUEUED:
			queued = append(queued, number)
		default:
			return false, fmt.Errorf("trial %d of study %s is in the index of open trials and %s", number, c.id, entry.GetState())
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	for _, number := range stopped {
		record, err := c.trial(number)
		if err != nil {
			return nil, err
		}
		c.noteExpiry(record)
		c.settleStopped(record)
		if err := c.put(record, dparetov1.TrialState_TRIAL_STATE_STOPPING); err != nil {
			return nil, err
		}
	}
	if c.study.GetStudy().GetState() == dparetov1.StudyState_STUDY_STATE_PAUSED {
		return nil, nil
	}
	var trials []*dparetov1.Trial
	counts := c.study.GetStudy().GetTrialCounts()
	limit := c.study.GetStudy().GetSpec().GetBudget().GetMaxParallelTrials()
	for i, number := range append(append(own, expired...), queued...) {
		isQueued := i >= len(own)+len(expired)
		if len(trials) == count || (isQueued && limit > 0 && counts.GetActive()+counts.GetStopping() >= limit) {
			break
		}
		record, err := c.trial(number)
		if err != nil {
			return nil, err
		}
		trial := record.GetTrial()
		before := trial.GetState()
		if !wishes.takes(trial) {
			continue
		}
		affords := c.affords(record)
		if affords == later {
			continue
		}
		c.noteExpiry(record)
		switch {
		case c.attemptsSpent(record):
			c.finish(record, dparetov1.TrialState_TRIAL_STATE_FAILED,
				fmt.Sprintf("handed out %d times without a result", trial.GetAttempt()))
		case affords == never:
			c.finish(record, dparetov1.TrialState_TRIAL_STATE_FAILED, reasonUnaffordable)
		default:
			if err := c.handOut(record, worker); err != nil {
				return nil, err
			}
			wishes.fulfil(trial)
			trials = append(trials, trial)
		}
		if err := c.put(record, before); err != nil {
			return nil, err
		}
	}
	return trials, nil
}

// suggesters batches the demands for new trials by study: while one batch is being
// computed, the next gathers.
type suggesters struct {
	mu      sync.Mutex
	waiting map[string][]*demand // by uid of the study; present while a batch is computed
}

// demand is a worker's demand for new trials.
type demand struct {
	ctx      context.Context //nolint:containedctx // that of the waiting call
	mutation *mutation
	worker   string
	missing  int                              // trials still to be created
	repeats  bool                             // another call with the same request id has got them
	wishes   *wishes                          // what they must be; nil without conditions
	response *dparetov1.SuggestTrialsResponse // with the trials so far
	done     chan error                       // receives exactly one value
}

// suggest waits for the answer to a demand.
func (s *Server) suggest(ctx context.Context, id, uid string, d *demand) (*dparetov1.SuggestTrialsResponse, error) {
	d.done = make(chan error, 1)
	s.suggesters.mu.Lock()
	if s.background.Err() != nil {
		s.suggesters.mu.Unlock()
		return nil, store.ErrClosed
	}
	if s.suggesters.waiting == nil {
		s.suggesters.waiting = make(map[string][]*demand)
	}
	_, busy := s.suggesters.waiting[uid]
	s.suggesters.waiting[uid] = append(s.suggesters.waiting[uid], d)
	if !busy {
		s.running.Go(func() { s.serveDemands(id, uid) }) //nolint:contextcheck // it outlives the call and serves others too
	}
	s.suggesters.mu.Unlock()

	select {
	case err := <-d.done:
		if err != nil && s.background.Err() != nil {
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

// serveDemands answers the demands of one study until there are none. A pass creates
// at most maxBatch trials, shared fairly; whoever misses more queues again behind those
// who came meanwhile, so that a greedy demand delays others by one pass only.
func (s *Server) serveDemands(id, uid string) {
	for {
		s.suggesters.mu.Lock()
		waiting := slices.DeleteFunc(s.suggesters.waiting[uid], func(d *demand) bool { return d.ctx.Err() != nil })
		if len(waiting) == 0 {
			delete(s.suggesters.waiting, uid)
			s.suggesters.mu.Unlock()
			return
		}
		batch := nextBatch(waiting)
		s.suggesters.waiting[uid] = slices.Clone(waiting[len(batch):])
		s.suggesters.mu.Unlock()

		err := s.answerBatch(id, uid, batch)

		s.suggesters.mu.Lock()
		for _, d := range batch {
			if err == nil && d.missing > 0 {
				s.suggesters.waiting[uid] = append(s.suggesters.waiting[uid], d)
				continue
			}
			d.done <- err
		}
		s.suggesters.mu.Unlock()
	}
}

// shares returns how many trials of a pass each demand gets: one each in turn until
// the pass is full.
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

// answerBatch creates the trials of one pass, as far as the budget goes. The designer
// works on a snapshot, outside of transactions; if that is out of date when it is done it
// works again.
func (s *Server) answerBatch(id, uid string, batch []*demand) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &panicError{r, debug.Stack()}
		}
	}()
	ctx, cancel := whileAnyWaits(inTraceOf(s.background, batch), batch)
	defer cancel()
	if batch[0].wishes != nil {
		return s.answerWish(ctx, id, uid, batch[0])
	}
	shares, total := shares(batch)
	for round := 1; ; round++ {
		snapshot, err := s.snapshot(ctx, id, uid)
		if err != nil {
			return err
		}
		if snapshot.compiled.IsPrivate() { // what one costs decides what the next may
			clear(shares)
			shares[0], total = 1, 1
		}
		p := newPass(affordableOnly(s.designerFor(snapshot.record, snapshot.compiled), snapshot, suggest.Condition{}), snapshot, total, round)
		count := s.creatable(snapshot.record, total)
		var ok bool
		p.suggestions, p.exhausted, ok = snapshot.cached.prepared.take(ctx, snapshot, count)
		if isModelBased(snapshot.compiled) && count > 0 {
			s.metrics.Prepared(ok)
		}
		if !ok {
			if err := s.draw(ctx, p, snapshot.record); err != nil {
				return err
			}
		}
		if err := prepareSuggested(ctx, snapshot.compiled, p.suggestions); err != nil {
			return err
		}
		raced, err := s.createSuggested(ctx, id, p, batch, shares)
		if err != nil || !raced {
			return err
		}
	}
}

// pass is a designer's work for a batch of demands.
type pass struct {
	designer suggest.Designer
	from     *snapshot
	first    int64 // number that the first suggestion is drawn for; the others follow
	wanted   int   // suggestions, as far as the budget goes
	last     bool  // round, whose suggestions are taken although trials were created meanwhile

	suggestions []suggest.Suggestion
	exhausted   bool
}

// newPass returns the pass of a round, counted from 1.
func newPass(d suggest.Designer, from *snapshot, wanted, round int) *pass {
	return &pass{designer: d, from: from, first: from.record.GetNextTrialNumber(), wanted: wanted, last: round >= maxRounds}
}

// draw asks the designer for what the budget of a study allows.
func (s *Server) draw(ctx context.Context, p *pass, study *storev1.StudyRecord) (err error) {
	p.suggestions, p.exhausted, err = s.design(ctx, p.designer, p.from, p.first, s.creatable(study, p.wanted))
	return err
}

// refresh makes a pass one of the study as it is in a transaction, or reports that it has
// to be made again.
//
// Draws depend on the numbers that they are made for, and no two trials may share them.
// Trials that users create take numbers and draw nothing: what was drawn before may follow
// them, and what is drawn after it is for later numbers still. Other calls draw only with
// designers so quick that they draw in their transactions, as this one does then.
func (s *Server) refresh(ctx context.Context, p *pass, c *change) (raced bool, err error) {
	next := c.study.GetNextTrialNumber()
	switch {
	case !c.cached.compiles(p.from.record.GetStudy().GetSpec()):
		return true, nil
	case next == p.first:
		return false, nil
	case drawsAtOnce(p.designer, c.compiled):
		p.first = next
		err := s.draw(ctx, p, c.study)
		return p.exhausted && len(p.suggestions) == 0, err // whoever asked has to say what that means
	default:
		return !p.last, nil
	}
}

// whileAnyWaits returns a context that ends with parent, or when nobody waits for any
// of the demands any more.
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

// design asks the designer for count points, drawn for the numbers from first on. If it
// fails or panics a quasi-random design takes its place and the suggestions say so: a
// broken model must not lock anybody out.
func (s *Server) design(ctx context.Context, designer suggest.Designer, from *snapshot, first int64, count int) (suggestions []suggest.Suggestion, exhausted bool, err error) {
	if count == 0 {
		return nil, false, nil
	}
	request := suggest.Request{Count: count, Seed: from.record.GetStudy().GetSeed(), Number: first}
	ask := func() { suggestions, err = suggestSafely(s.withPhases(ctx), designer, from, request) }
	if isModelBased(from.compiled) {
		yield.Run(ask)
	} else {
		ask()
	}
	if errors.Is(err, suggest.ErrExhausted) {
		return suggestions, true, nil
	}
	if err == nil && len(suggestions) < count {
		err = fmt.Errorf("%d suggestions instead of %d", len(suggestions), count)
	}
	if err == nil || ctx.Err() != nil || isSearch(from.record.GetStudy()) { // whose guarantee allows no other law
		return suggestions, false, err
	}
	s.logger.ErrorContext(ctx, "designer failed", "study", from.record.GetStudy().GetName(), "designer", designer.Name(), "error", err)
	fallback := suggest.NewQuasiRandom()
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

// suggestSafely turns a panic of a designer, or a point outside of the space or that is
// not allowed, into an error.
func suggestSafely(ctx context.Context, d suggest.Designer, from *snapshot, r suggest.Request) (suggestions []suggest.Suggestion, err error) {
	name := d.Name()
	defer func() {
		if p := recover(); p != nil {
			suggestions, err = nil, fmt.Errorf("panic in designer %s: %v\n%s", name, p, debug.Stack())
		}
	}()
	suggestions, err = d.Suggest(ctx, from.compiled.Problem, from.history, r)
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

// createSuggested creates trials from suggestions and hands them to the demands, each
// its share. raced reports that nothing was done because the pass is out of date.
func (s *Server) createSuggested(ctx context.Context, id string, p *pass, batch []*demand, shares []int) (raced bool, err error) {
	defer s.phase(ctx, metrics.PhaseCommit)()
	answers := make([]demand, len(batch))
	err = s.changeStudy(ctx, id, new(mutation), func(c *change) error {
		if c.study.GetStudy().GetUid() != p.from.record.GetStudy().GetUid() {
			return studyNotFound(id)
		}
		raced, err = s.refresh(ctx, p, c)
		if err != nil || raced {
			return err
		}
		if !c.affordsAll(p.suggestions) {
			raced = true
			return nil
		}
		suggestions, drawnFor := p.suggestions, p.first
		for i, d := range batch {
			answers[i] = *d
			if d.ctx.Err() != nil {
				continue // nobody waits for it; the others get its share
			}
			answer := &answers[i]
			if err := answer.catchUp(c); err != nil {
				return err
			}
			resp := answer.response
			share := min(shares[i], answer.missing)
			if answer.wishes.met() {
				share = 0
			}
			for ; share > 0 && len(suggestions) > 0 && s.creatable(c.study, 1) == 1; share-- {
				suggestion := suggestions[0]
				suggestions = suggestions[1:]
				record, err := c.create(suggestion.Point, dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED, func(record *storev1.TrialRecord) error {
					record.Trial.Provenance = s.provenance(p.from, p.designer, suggestion)
					if record.GetTrial().GetNumber() != drawnFor {
						record.Trial.Provenance.DrawnFor = drawnFor
					}
					drawnFor++
					return c.handOut(record, d.worker)
				})
				if err != nil {
					return err
				}
				resp.Trials = append(resp.Trials, record.GetTrial())
				answer.wishes = answer.wishes.fulfilled(record.GetTrial())
				answer.missing--
			}
			if answer.repeats {
				continue
			}
			s.explain(c, resp, answer.missing)
			switch {
			case share == 0 || isEnd(resp): // whoever misses more gets it in the next pass
			case p.exhausted && c.exhaustsBudget():
				resp.EndReason = dparetov1.EndReason_END_REASON_PRIVACY_BUDGET_SPENT
				resp.StudyState, _ = s.state(c.study)
			case p.exhausted:
				resp.EndReason = dparetov1.EndReason_END_REASON_SPACE_EXHAUSTED
			default: // the snapshot allowed fewer trials than the budget does by now
				resp.EndReason = dparetov1.EndReason_END_REASON_PARALLELISM
				resp.RetryAfter = durationpb.New(retryAfter)
			}
			if isEnd(resp) {
				answer.missing = 0
			}
			answer.wishes.sort(resp)
			if err := d.mutation.remember(c.tx, resp, effectOf(resp, answer.missing), c.now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || raced {
		return raced, err
	}
	for i, d := range batch {
		d.response, d.missing, d.wishes = answers[i].response, answers[i].missing, answers[i].wishes
	}
	return false, nil
}

// catchUp takes a copy of the response, which is to be changed, or what another call with
// the same request id has got meanwhile.
func (d *demand) catchUp(c *change) error {
	record, err := d.mutation.find(&c.tx.ReadTx, c.now)
	if err != nil {
		return err
	}
	before := len(d.response.GetTrials())
	if record == nil {
		d.response = &dparetov1.SuggestTrialsResponse{Trials: slices.Clone(d.response.GetTrials())}
		return nil
	}
	d.response = new(dparetov1.SuggestTrialsResponse)
	if err := d.mutation.decode(record, d.response); err != nil {
		return err
	}
	d.missing -= len(d.response.GetTrials()) - before
	d.wishes = d.wishes.fulfilledBy(d.response.GetTrials())
	if d.repeats = !record.GetPartial(); d.repeats {
		d.missing = 0
	}
	return nil
}

// provenance tells how a suggestion was made.
func (s *Server) provenance(from *snapshot, asked suggest.Designer, suggestion suggest.Suggestion) *dparetov1.Provenance {
	p := &dparetov1.Provenance{
		Algorithm:        suggestion.Designer,
		AlgorithmVersion: asked.Version(),
		ServerVersion:    s.version,
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
		p.Predictions[objective] = predictionMessage(suggestion.Predictions[i])
	}
	return p
}

// predictionMessage converts a prediction.
func predictionMessage(p suggest.Prediction) *dparetov1.MetricPrediction {
	return &dparetov1.MetricPrediction{Median: p.Median, Lower: p.Lower, Upper: p.Upper}
}

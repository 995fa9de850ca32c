package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest"
)

const (
	// maxSuggestions bounds the trials of one call.
	maxSuggestions = 1000
	// retryAfter is how long a worker waits when all remaining trials are with others.
	retryAfter = time.Second
	// maxRaces is how often a suggestion is made again because trials were created
	// meanwhile by other means.
	maxRaces = 10
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
	var uid string
	err = s.changeStudy(ctx, id, func(c *change) error {
		uid = c.study.GetStudy().GetUid()
		trials, err := c.handOutExisting(req.GetWorkerId(), count, resume)
		resp.Trials = trials
		s.explain(c, resp, count)
		return err
	})
	if err != nil {
		return nil, err
	}
	missing := count - len(resp.GetTrials())
	if missing == 0 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_UNSPECIFIED {
		return resp, nil
	}

	answer, err := s.suggest(ctx, id, uid, &demand{ctx: ctx, worker: req.GetWorkerId(), count: missing})
	if err != nil {
		// The trials in resp stay with the worker: it gets them when it asks again.
		return nil, err
	}
	answer.Trials = append(resp.GetTrials(), answer.GetTrials()...)
	return answer, nil
}

// explain sets the state of the study and, if fewer trials than count are there, why
// no more can be created.
func (s *Server) explain(c *change, resp *dparetov1.SuggestTrialsResponse, count int) {
	study := c.study.GetStudy()
	resp.StudyState, _ = s.state(c.study)
	if len(resp.GetTrials()) == count {
		return
	}
	counts := study.GetTrialCounts()
	held := counts.GetActive() + counts.GetStopping()
	limit := study.GetSpec().GetBudget().GetMaxParallelTrials()
	switch {
	case resp.GetStudyState() == dparetov1.StudyState_STUDY_STATE_PAUSED:
		resp.EndReason = dparetov1.EndReason_END_REASON_PAUSED
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
	if s.spent(record) != "" {
		return 0
	}
	study := record.GetStudy()
	budget := study.GetSpec().GetBudget()
	allowed := int64(count)
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
// handed out too often are given up, and stopped trials of lost workers settled.
func (c *change) handOutExisting(worker string, count int, resume bool) ([]*dparetov1.Trial, error) {
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
		c.settleStopped(record)
		if err := c.put(record, dparetov1.TrialState_TRIAL_STATE_STOPPING); err != nil {
			return nil, err
		}
	}
	if c.study.GetStudy().GetState() == dparetov1.StudyState_STUDY_STATE_PAUSED {
		return nil, nil
	}
	var trials []*dparetov1.Trial
	for _, number := range append(append(own, expired...), queued...) {
		if len(trials) == count {
			break
		}
		record, err := c.trial(number)
		if err != nil {
			return nil, err
		}
		trial := record.GetTrial()
		before := trial.GetState()
		if trial.GetAttempt() >= c.compiled.MaxAttempts() {
			c.finish(record, dparetov1.TrialState_TRIAL_STATE_FAILED,
				fmt.Sprintf("handed out %d times without a result", trial.GetAttempt()))
		} else {
			c.handOut(record, worker)
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
	ctx    context.Context //nolint:containedctx // that of the waiting call
	worker string
	count  int
	done   chan answer // receives exactly one value
}

// answer is what becomes of a demand.
type answer struct {
	response *dparetov1.SuggestTrialsResponse
	err      error
}

// suggest waits for the answer to a demand.
func (s *Server) suggest(ctx context.Context, id, uid string, d *demand) (*dparetov1.SuggestTrialsResponse, error) {
	d.done = make(chan answer, 1)
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
		s.running.Go(func() { s.serveDemands(id, uid) })
	}
	s.suggesters.mu.Unlock()

	select {
	case a := <-d.done:
		return a.response, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serveDemands answers the demands of one study, batch after batch, until there are
// none.
func (s *Server) serveDemands(id, uid string) {
	for {
		s.suggesters.mu.Lock()
		batch := s.suggesters.waiting[uid]
		if len(batch) == 0 {
			delete(s.suggesters.waiting, uid)
			s.suggesters.mu.Unlock()
			return
		}
		s.suggesters.waiting[uid] = nil
		s.suggesters.mu.Unlock()

		answers, err := s.answerBatch(id, uid, batch)
		for i, d := range batch {
			if err != nil {
				d.done <- answer{err: err}
			} else {
				d.done <- answer{response: answers[i]}
			}
		}
	}
}

// answerBatch creates the trials that a batch of demands asks for, as far as the
// budget goes. The designer works on a snapshot, outside of transactions; if trials
// were created meanwhile by other means, whose numbers its draws would share, it works
// again.
func (s *Server) answerBatch(id, uid string, batch []*demand) ([]*dparetov1.SuggestTrialsResponse, error) {
	ctx := s.background
	total := 0
	for _, d := range batch {
		total += d.count
	}
	for range maxRaces {
		snapshot, err := s.snapshot(ctx, id, uid)
		if err != nil {
			return nil, err
		}
		designer := s.designer(snapshot.compiled)
		suggestions, exhausted, err := s.design(ctx, designer, snapshot, s.creatable(snapshot.record, total))
		if err != nil {
			return nil, err
		}
		responses, raced, err := s.createSuggested(ctx, id, snapshot, designer, suggestions, exhausted, batch)
		if err != nil || !raced {
			return responses, err
		}
	}
	return nil, status.Errorf(codes.Aborted, "other trials of %s were created during the suggestion, again and again; try again", studyName(id))
}

// snapshot is what a suggestion is made from.
type snapshot struct {
	record   *storev1.StudyRecord
	compiled *spec.Study
	history  *suggest.History
}

// snapshot reads a study's history. A study that was deleted, also if another has
// taken its name, is NOT_FOUND.
func (s *Server) snapshot(ctx context.Context, id, uid string) (*snapshot, error) {
	out := &snapshot{history: new(suggest.History)}
	err := s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := findStudy(tx, id)
		if err != nil {
			return err
		}
		if record.GetStudy().GetUid() != uid {
			return studyNotFound(id)
		}
		cached, err := s.studies.get(record.GetStudy())
		if err != nil {
			return err
		}
		out.record, out.compiled = record, cached.compiled
		return tx.Trials(id, 0, func(t *storev1.TrialRecord) (bool, error) {
			return true, addToHistory(out.history, cached.compiled, t.GetTrial())
		})
	})
	return out, err
}

// addToHistory adds a trial to a designer's history. Failed trials teach nothing.
func addToHistory(h *suggest.History, compiled *spec.Study, trial *dparetov1.Trial) error {
	point, err := compiled.Point("trial.parameters", trial.GetParameters())
	if err != nil {
		return fmt.Errorf("%s: %w", trial.GetName(), err)
	}
	switch trial.GetState() {
	case dparetov1.TrialState_TRIAL_STATE_SUCCEEDED:
		h.Evaluations = append(h.Evaluations, compiled.Evaluation(point, trial.GetFinalMeasurement()))
	case dparetov1.TrialState_TRIAL_STATE_INFEASIBLE:
		h.Infeasible = append(h.Infeasible, point)
	case dparetov1.TrialState_TRIAL_STATE_FAILED:
	default:
		h.Pending = append(h.Pending, point)
	}
	return nil
}

// design asks the designer for count points. If it fails or panics a quasi-random
// design takes its place and the suggestions say so: a broken model must not lock
// anybody out.
func (s *Server) design(ctx context.Context, designer suggest.Designer, from *snapshot, count int) (suggestions []suggest.Suggestion, exhausted bool, err error) {
	if count == 0 {
		return nil, false, nil
	}
	request := suggest.Request{Count: count, Seed: from.record.GetStudy().GetSeed(), Number: from.record.GetNextTrialNumber()}
	suggestions, err = suggestSafely(ctx, designer, from, request)
	if errors.Is(err, suggest.ErrExhausted) {
		return suggestions, true, nil
	}
	if err == nil && len(suggestions) < count {
		err = fmt.Errorf("%d suggestions instead of %d", len(suggestions), count)
	}
	if err == nil || ctx.Err() != nil {
		return suggestions, false, err
	}
	s.logger.ErrorContext(ctx, "designer failed", "study", from.record.GetStudy().GetName(), "designer", designer.Name(), "error", err)
	fallback := suggest.NewQuasiRandom()
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

// suggestSafely turns a panic of a designer into an error.
func suggestSafely(ctx context.Context, d suggest.Designer, from *snapshot, r suggest.Request) (suggestions []suggest.Suggestion, err error) {
	defer func() {
		if p := recover(); p != nil {
			suggestions, err = nil, fmt.Errorf("panic in designer %s: %v\n%s", d.Name(), p, debug.Stack())
		}
	}()
	return d.Suggest(ctx, from.compiled.Problem, from.history, r)
}

// createSuggested creates trials from suggestions and hands them to the demands in
// order. raced reports that nothing was done because the study's numbers moved on.
func (s *Server) createSuggested(ctx context.Context, id string, from *snapshot, designer suggest.Designer, suggestions []suggest.Suggestion, exhausted bool, batch []*demand) (responses []*dparetov1.SuggestTrialsResponse, raced bool, err error) {
	err = s.changeStudy(ctx, id, func(c *change) error {
		if c.study.GetStudy().GetUid() != from.record.GetStudy().GetUid() {
			return studyNotFound(id)
		}
		if c.study.GetNextTrialNumber() != from.record.GetNextTrialNumber() {
			raced = true
			return nil
		}
		for _, d := range batch {
			resp := new(dparetov1.SuggestTrialsResponse)
			responses = append(responses, resp)
			if d.ctx.Err() != nil {
				continue // nobody waits for it; the others get its share
			}
			for len(resp.GetTrials()) < d.count && len(suggestions) > 0 && s.creatable(c.study, 1) == 1 {
				suggestion := suggestions[0]
				suggestions = suggestions[1:]
				record, err := c.create(suggestion.Point, dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED, func(record *storev1.TrialRecord) {
					record.Trial.Provenance = s.provenance(from, designer, suggestion)
					c.handOut(record, d.worker)
				})
				if err != nil {
					return err
				}
				resp.Trials = append(resp.Trials, record.GetTrial())
			}
			s.explain(c, resp, d.count)
			if len(resp.GetTrials()) == d.count || resp.GetEndReason() != dparetov1.EndReason_END_REASON_UNSPECIFIED {
				continue
			}
			if exhausted {
				resp.EndReason = dparetov1.EndReason_END_REASON_SPACE_EXHAUSTED
				continue
			}
			// The snapshot allowed fewer trials than the budget does by now.
			resp.EndReason = dparetov1.EndReason_END_REASON_PARALLELISM
			resp.RetryAfter = durationpb.New(retryAfter)
		}
		return nil
	})
	return responses, raced, err
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

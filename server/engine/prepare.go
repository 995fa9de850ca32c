package engine

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
)

// askedLately is how long after a worker last asked for trials suggestions are still prepared, so
// that an idle study costs nothing.
const askedLately = 5 * time.Minute

// historyKey identifies the history and the trial number a suggestion is made from. Changes of a
// study that leave the key unchanged do not change the history.
type historyKey struct {
	settled [2]int64
	open    int64
	next    int64
	prior   string
}

// prepared holds the suggestion for the next demand.
type prepared struct {
	mu      sync.Mutex
	asked   time.Time
	current *preparation // the latest
}

// preparation is a suggestion in progress. The fields below done are valid once it is closed.
type preparation struct {
	cancel context.CancelFunc
	task   *pool.Task
	key    historyKey // guarded by prepared.mu; zero until the history is read

	done        chan struct{}
	suggestions []suggest.Suggestion
	exhausted   bool
	err         error
}

// prepare starts to compute the next suggestion of a study in the background. It cancels an earlier
// preparation, whose history is out of date, and waits for it first.
func (e *Engine) prepare(cached *study.Cached, study *dparetov1.Study) {
	if !e.studies.Holds(cached) { // the spec has changed since
		return
	}
	if !isModelBased(cached.Compiled) || e.studies.Policy(study.GetSpec()).Traits().OneByOne {
		return
	}
	p := &e.cacheOf(cached).prepared
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.now().Sub(p.asked) > askedLately {
		return
	}
	before := p.current
	if before != nil {
		before.cancel()
	}
	ctx, cancel := context.WithCancel(e.background.Context())
	next := &preparation{cancel: cancel, task: e.pool.Task(ctx, pool.Background), done: make(chan struct{}), err: context.Canceled} // unless it succeeds
	id := resource.StudyID(study.GetName())
	started := e.background.Go(func() {
		defer cancel()
		defer close(next.done)
		if before != nil {
			<-before.done
		}
		next.suggestions, next.exhausted, next.err = e.prepareNow(ctx, id, study.GetUid(), p, next)
	})
	if started {
		p.current = next
	} else {
		cancel()
	}
}

// prepareNow computes one suggestion. It sets the key of the preparation before it calls the
// designer.
func (e *Engine) prepareNow(ctx context.Context, id, uid string, p *prepared, self *preparation) ([]suggest.Suggestion, bool, error) {
	ctx, span := e.tracer.Start(ctx, "prepare suggestion", trace.WithAttributes(studyAttributeKey.String(id)))
	defer span.End()
	from, err := e.snapshot(ctx, id, uid)
	if err != nil {
		return nil, false, err
	}
	if e.studies.Creatable(from.record, 1) == 0 {
		return nil, false, nil
	}
	p.mu.Lock()
	self.key = from.key()
	p.mu.Unlock()
	suggestions, exhausted, err := e.design(ctx, self.task, e.designer(from.compiled), from, from.record.GetNextTrialNumber(), 1)
	if err == nil {
		err = computeSuggested(ctx, self.task, from.compiled, suggestions)
	}
	return suggestions, exhausted, err
}

// take returns the suggestion prepared from the same history for a demand of count trials. It waits
// if the suggestion is in progress. Otherwise it cancels the preparation and returns false.
func (p *prepared) take(ctx context.Context, from *snapshot, count int) (suggestions []suggest.Suggestion, exhausted, ok bool) {
	p.mu.Lock()
	current := p.current
	if current == nil || count != 1 || current.key != from.key() {
		if current != nil {
			current.cancel()
		}
		p.mu.Unlock()
		return nil, false, false
	}
	p.mu.Unlock()
	current.task.Raise(pool.Suggestion) // a worker waits for it now
	select {
	case <-current.done:
		return current.suggestions, current.exhausted, current.err == nil
	case <-ctx.Done():
		return nil, false, false
	}
}

// abandon cancels the current preparation.
func (p *prepared) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		p.current.cancel()
	}
}

// wanted records that a worker asked for trials.
func (p *prepared) wanted(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = now
}

// key identifies the history of a snapshot.
func (s *snapshot) key() historyKey {
	return historyKey{
		settled: settledKey(s.record),
		open:    study.OpenTrials(s.record.GetStudy().GetTrialCounts()),
		next:    s.record.GetNextTrialNumber(),
		prior:   s.prior,
	}
}

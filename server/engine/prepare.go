package engine

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/study"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/suggest"
)

// askedLately is how long after the last demand for trials suggestions are prepared: a
// study that nobody works on costs nothing.
const askedLately = 5 * time.Minute

// historyKey identifies the history that a suggestion is made from, and its number. Of
// all that happens to a study only what changes these counts changes the history.
type historyKey struct {
	settled [2]int64
	open    int64
	next    int64
	prior   string
}

// prepared keeps the suggestion that was prepared for the next demand.
type prepared struct {
	mu      sync.Mutex
	asked   time.Time
	current *preparation // the last that was begun
}

// preparation is one suggestion in the making. What follows done is set when done is
// closed.
type preparation struct {
	cancel context.CancelFunc
	key    historyKey // under prepared.mu; zero until the history is read

	done        chan struct{}
	suggestions []suggest.Suggestion
	exhausted   bool
	err         error
}

// prepare begins to compute the next suggestion of a study, in the background. One that
// is still being prepared, from a history that has changed now, is given up, and has
// ended before the next begins.
func (e *Engine) prepare(cached *study.Cached, study *dparetov1.Study) {
	if !isModelBased(cached.Compiled) || e.studies.Policy(study.GetSpec()).Traits().OneByOne {
		return
	}
	p := &e.knowledge(cached).prepared
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
	next := &preparation{cancel: cancel, done: make(chan struct{}), err: context.Canceled} // unless it succeeds
	id := strings.TrimPrefix(study.GetName(), resource.StudyName(""))
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

// prepareNow computes one suggestion, after it has published what it is made from.
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
	suggestions, exhausted, err := e.design(ctx, e.designer(from.Compiled), from, from.record.GetNextTrialNumber(), 1)
	if err == nil {
		err = computeSuggested(ctx, from.Compiled, suggestions)
	}
	return suggestions, exhausted, err
}

// take returns the suggestion that was prepared for a demand of count trials, waiting
// for it if it is in the making. It returns false, and gives up what was in the making,
// if there is none from the same history.
func (p *prepared) take(ctx context.Context, from *Snapshot, count int) (suggestions []suggest.Suggestion, exhausted, ok bool) {
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
	select {
	case <-current.done:
		return current.suggestions, current.exhausted, current.err == nil
	case <-ctx.Done():
		return nil, false, false
	}
}

// abandon gives up what is in the making.
func (p *prepared) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		p.current.cancel()
	}
}

// wanted notes that trials are asked for.
func (p *prepared) wanted(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = now
}

// key identifies the history of a snapshot.
func (s *Snapshot) key() historyKey {
	return historyKey{
		settled: settledKey(s.record),
		open:    study.OpenTrials(s.record.GetStudy().GetTrialCounts()),
		next:    s.record.GetNextTrialNumber(),
		prior:   s.prior,
	}
}

package engine

import (
	"context"
	"sync/atomic"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
)

// Limits of a pass.
const (
	MaxRounds = maxRounds
	MaxBatch  = maxBatch
)

// History returns what designers learn from a study.
func (e *Engine) History(ctx context.Context, id, uid string) (*suggest.History, error) {
	s, err := e.snapshot(ctx, id, uid)
	if err != nil {
		return nil, err
	}
	return s.history, nil
}

// Waiting returns the number of demands that wait for the next batch.
func (e *Engine) Waiting() (demands int) {
	e.queue.mu.Lock()
	defer e.queue.mu.Unlock()
	for _, waiting := range e.queue.waiting {
		demands += len(waiting)
	}
	return demands
}

// UsefulKnown returns of how many trials the last useful step is kept.
func (e *Engine) UsefulKnown(cached *study.Cached) int {
	st := &e.cacheOf(cached).stopping
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.useful)
}

// JudgedUnpromising reports whether the model has given up a trial of a study.
func (e *Engine) JudgedUnpromising(cached *study.Cached, number int64) bool {
	st := &e.cacheOf(cached).stopping
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.judged[number].unpromising
}

// IsJudging reports whether the model is judging the run of a trial.
func (e *Engine) IsJudging(cached *study.Cached, number int64) bool {
	st := &e.cacheOf(cached).stopping
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.judged[number].busy
}

// IsUnpromising asks the model about the run of a trial.
func (e *Engine) IsUnpromising(ctx context.Context, id, uid string, trial *dparetov1.Trial, last int64) (bool, error) {
	return e.isUnpromising(ctx, id, uid, trial, last)
}

// Preparing has the next suggestion of a study in the making, until cancel is called.
func (e *Engine) Preparing(cached *study.Cached, cancel context.CancelFunc) {
	e.cacheOf(cached).prepared.current = &preparation{cancel: cancel}
}

// CountFits has fits count their climbs until the test ends.
func CountFits(t *testing.T) *atomic.Int64 {
	t.Helper()
	climbs, before := new(atomic.Int64), fitWorkers
	fitWorkers.Run = func(fn func()) { climbs.Add(1); fn() }
	t.Cleanup(func() { fitWorkers = before })
	return climbs
}

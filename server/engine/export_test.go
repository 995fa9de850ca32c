package engine

import (
	"context"
	"sync/atomic"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/study"
)

// Limits of a pass.
const (
	MaxRounds = maxRounds
	MaxBatch  = maxBatch
)

// Snapshot reads the history of a study.
func (e *Engine) Snapshot(ctx context.Context, id, uid string) (*Snapshot, error) {
	return e.snapshot(ctx, id, uid)
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

// LimitMemory bounds the evaluations that are kept of all studies together.
func (e *Engine) LimitMemory(evaluations int) { e.memory.limit = evaluations }

// Remembered returns how many evaluations the memory counts.
func (e *Engine) Remembered() int {
	e.memory.mu.Lock()
	defer e.memory.mu.Unlock()
	return e.memory.kept
}

// Kept returns how many evaluations are kept of a study and its priors.
func (e *Engine) Kept(cached *study.Cached) int {
	known := e.knowledge(cached)
	known.history.mu.Lock()
	defer known.history.mu.Unlock()
	return len(known.history.evaluations) + known.prior.size()
}

// UsefulKnown returns of how many trials the last useful step is kept.
func (e *Engine) UsefulKnown(cached *study.Cached) int {
	st := &e.knowledge(cached).stopping
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.useful)
}

// JudgedUnpromising reports whether the model has given up a trial of a study.
func (e *Engine) JudgedUnpromising(cached *study.Cached, number int64) bool {
	st := &e.knowledge(cached).stopping
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.judged[number].unpromising
}

// IsJudging reports whether the model is judging the run of a trial.
func (e *Engine) IsJudging(cached *study.Cached, number int64) bool {
	st := &e.knowledge(cached).stopping
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
	e.knowledge(cached).prepared.current = &preparation{cancel: cancel}
}

// CountFits has fits count their climbs until the test ends.
func CountFits(t *testing.T) *atomic.Int64 {
	t.Helper()
	climbs, before := new(atomic.Int64), fitWorkers
	fitWorkers.Run = func(fn func()) { climbs.Add(1); fn() }
	t.Cleanup(func() { fitWorkers = before })
	return climbs
}

// Keep notes that so many evaluations are kept of a study.
func (e *Engine) Keep(cached *study.Cached, evaluations int) {
	e.memory.keep(e.knowledge(cached), evaluations)
}

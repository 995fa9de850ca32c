package engine

import (
	"sync"

	"github.com/dpareto/dpareto/server/study"
)

// maxEvaluations bounds the evaluations that are kept of all studies together: a few hundred
// bytes each.
const maxEvaluations = 500_000

// knowledge is what the engine derives from one study.
type knowledge struct {
	engine   *Engine
	history  historyCache
	prior    priorCache // under the lock of history
	stopping stopping
	prepared prepared

	// Under the lock of the memory.
	kept    int   // evaluations in history and prior
	used    int64 // the number of the last use
	dropped bool
}

// knowledge returns what the engine knows of a study.
func (e *Engine) knowledge(cached *study.Cached) *knowledge {
	return study.Derived(cached, func() *knowledge { return &knowledge{engine: e} })
}

// Drop gives up what is in the making. The study has changed, or others need the room.
func (k *knowledge) Drop() {
	k.prepared.abandon()
	k.engine.memory.drop(k)
}

// memory bounds what the engine keeps of all studies together.
type memory struct {
	mu    sync.Mutex
	known map[*knowledge]bool // with evaluations
	limit int                 // of the evaluations kept; exceeded by those of one study only
	kept  int                 // evaluations
	uses  int64               // so far
}

// keep notes how many evaluations are kept for a study. If they are too many together those of
// the studies that were not used for longest are forgotten.
// The caller holds the lock of no history.
func (m *memory) keep(k *knowledge, evaluations int) {
	for _, old := range m.surplus(k, evaluations) {
		old.forgetHistory()
	}
}

// surplus is keep, but leaves the forgetting to the caller.
func (m *memory) surplus(k *knowledge, evaluations int) []*knowledge {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k.dropped {
		return nil // not kept any more
	}
	if m.known == nil {
		m.known = make(map[*knowledge]bool)
	}
	m.known[k] = true
	m.uses++
	k.used = m.uses
	m.kept += evaluations - k.kept
	k.kept = evaluations
	var surplus []*knowledge
	for m.kept > m.limit {
		var oldest *knowledge
		for other := range m.known {
			if other != k && other.kept > 0 && (oldest == nil || other.used < oldest.used) {
				oldest = other
			}
		}
		if oldest == nil {
			break
		}
		m.kept -= oldest.kept
		oldest.kept = 0
		delete(m.known, oldest)
		surplus = append(surplus, oldest)
	}
	return surplus
}

// drop notes that nothing is kept for a study any more.
func (m *memory) drop(k *knowledge) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept -= k.kept
	k.kept, k.dropped = 0, true
	delete(m.known, k)
}

// forgetHistory drops what was read of trials, and the model of them, unless somebody
// uses it at this moment, who will note that again.
func (k *knowledge) forgetHistory() {
	if k.history.mu.TryLock() {
		k.history.forget()
		k.prior = priorCache{}
		k.history.mu.Unlock()
	}
	if k.stopping.fitting.TryLock() {
		k.stopping.model = nil
		k.stopping.fitting.Unlock()
	}
}

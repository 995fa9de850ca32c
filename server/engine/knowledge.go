package engine

import (
	"sync"

	"github.com/dpareto/dpareto/server/study"
)

// maxEvaluations bounds the evaluations, of a few hundred bytes each, cached for all studies
// together.
const maxEvaluations = 500_000

// knowledge is what the engine derives from one study.
type knowledge struct {
	engine   *Engine
	history  historyCache
	prior    priorCache // guarded by history.mu
	stopping stopping
	prepared prepared

	// Guarded by memory.mu.
	kept    int   // number of evaluations in history and prior
	used    int64 // value of memory.uses at the last use
	dropped bool
}

// knowledge returns what the engine has cached about a study.
func (e *Engine) knowledge(cached *study.Cached) *knowledge {
	return study.Derived(cached, func() *knowledge { return &knowledge{engine: e} })
}

// Drop cancels background work, when the study has changed or is evicted.
func (k *knowledge) Drop() {
	k.prepared.abandon()
	k.engine.memory.drop(k)
}

// memory bounds what the engine caches for all studies together.
type memory struct {
	mu    sync.Mutex
	known map[*knowledge]bool // studies with cached evaluations
	limit int                 // on kept; a single study may exceed it
	kept  int                 // number of cached evaluations
	uses  int64               // so far
}

// keep records how many evaluations are cached for a study. If the total is too large, it evicts the
// histories of the least recently used studies. The caller must not hold the lock of any history.
func (m *memory) keep(k *knowledge, evaluations int) {
	for _, old := range m.evict(k, evaluations) {
		old.forgetHistory()
	}
}

// evict is keep, but returns the studies to evict.
func (m *memory) evict(k *knowledge, evaluations int) []*knowledge {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k.dropped {
		return nil // already evicted
	}
	if m.known == nil {
		m.known = make(map[*knowledge]bool)
	}
	m.known[k] = true
	m.uses++
	k.used = m.uses
	m.kept += evaluations - k.kept
	k.kept = evaluations
	var evicted []*knowledge
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
		evicted = append(evicted, oldest)
	}
	return evicted
}

// drop records that a study's knowledge is dropped.
func (m *memory) drop(k *knowledge) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept -= k.kept
	k.kept, k.dropped = 0, true
	delete(m.known, k)
}

// forgetHistory drops the history and the fitted model of a study. What is in use right now stays;
// its user calls keep again.
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

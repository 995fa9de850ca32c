package front

import (
	"slices"
	"sync"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/study"
)

// maxMeasurements bounds the measurements, of somewhat less than a kilobyte each, that are kept for
// all studies together. A single study may exceed it.
const maxMeasurements = 200_000

// fits caches the measurements of one study and what follows from them.
type fits struct {
	reading sync.Mutex
	results *Results // the latest; nil if there is none; guarded by reading

	model  latest[*FittedModel]
	fronts [dparetov1.FrontKind_FRONT_KIND_WORST + 1]latest[*choice] // by kind
	traces [dparetov1.FrontKind_FRONT_KIND_WORST + 1]latest[[]*dparetov1.HypervolumePoint]

	// Guarded by memory.mu.
	measurements int // in results
	dropped      bool
}

// forget drops what is cached. What is in use right now stays; its user calls keep again.
func (f *fits) forget() {
	if f.reading.TryLock() {
		f.results = nil
		f.reading.Unlock()
	}
	f.model.forget()
	for kind := range f.fronts {
		f.fronts[kind].forget()
		f.traces[kind].forget()
	}
}

// studyFits are the fits of one study: to all measurements, and to final ones only.
type studyFits struct {
	fronts     *Fronts
	all, final fits
}

// Drop forgets a study that has changed or is evicted.
func (s *studyFits) Drop() {
	s.fronts.memory.drop(&s.all)
	s.fronts.memory.drop(&s.final)
}

// kept returns the cached fits for these results.
func (r *Results) kept() *fits {
	both := study.Derived(r.cached, func() *studyFits { return &studyFits{fronts: r.fronts} })
	if r.finalOnly {
		return &both.final
	}
	return &both.all
}

// memory bounds what is kept for all studies together.
type memory struct {
	mu     sync.Mutex
	recent []*fits // with measurements, the most recently used last
	kept   int     // number of their measurements
}

// keep records the use of fits, and how many measurements they keep. If the total is too large, it
// evicts the least recently used ones.
func (m *memory) keep(used *fits, measurements int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if used.dropped {
		return // the study left the cache during the call
	}
	m.remove(used)
	used.measurements = measurements
	m.recent, m.kept = append(m.recent, used), m.kept+measurements
	for m.kept > maxMeasurements && len(m.recent) > 1 {
		oldest := m.recent[0]
		m.remove(oldest)
		oldest.forget()
	}
}

// drop evicts fits.
func (m *memory) drop(f *fits) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(f)
	f.dropped = true
}

// remove takes fits out of the total. The caller holds the lock.
func (m *memory) remove(f *fits) {
	if i := slices.Index(m.recent, f); i >= 0 {
		m.recent = slices.Delete(m.recent, i, i+1)
		m.kept -= f.measurements
	}
}

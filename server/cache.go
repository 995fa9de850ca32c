package server

import (
	"maps"
	"sync"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
)

// maxCachedEvaluations bounds the evaluations that are kept of all studies together: a
// few hundred bytes each.
const maxCachedEvaluations = 500_000

// studyCache keeps what is derived from studies, by uid. Everything in it can be
// thrown away and derived again.
type studyCache struct {
	mu      sync.Mutex
	studies map[string]*cachedStudy
	latest  map[string]*cachedStudy // by the name of the study

	limit int   // of the evaluations kept; exceeded by those of one study only
	kept  int   // evaluations
	uses  int64 // of histories, so far
}

// cachedStudy is what is derived from one study.
type cachedStudy struct {
	compiled *spec.Study
	history  historyCache
	prior    priorCache // under the lock of history
	stopping stopping
	prepared prepared

	// Under the lock of the cache.
	kept int   // evaluations in history and prior
	used int64 // the number of the last use of history

	// With all measurements, and with final ones only (see index).
	model          [2]latest[*fittedModel]
	posterior      [2]latest[*dparetov1.Front]
	posteriorTrace [2]latest[[]*dparetov1.HypervolumePoint]
}

// index returns 1 for true.
func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// get returns the cached study, compiling its spec at first.
func (c *studyCache) get(study *dparetov1.Study) (*cachedStudy, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cached, ok := c.studies[study.GetUid()]; ok {
		return cached, nil
	}
	compiled, err := spec.Compile("study.spec", study.GetSpec())
	if err != nil {
		return nil, err
	}
	if c.studies == nil {
		c.studies, c.latest = make(map[string]*cachedStudy), make(map[string]*cachedStudy)
	}
	cached := &cachedStudy{compiled: compiled}
	c.studies[study.GetUid()], c.latest[study.GetName()] = cached, cached
	return cached, nil
}

// named returns the study that last had a name, as far as it is known, or nil. It may
// have been deleted, and another may have its name.
func (c *studyCache) named(name string) *cachedStudy {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest[name]
}

// keep notes that the history of a study was used, and how many evaluations are kept for
// it. If they are too many together those that were not used for longest are forgotten.
// The caller holds the lock of no history.
func (c *studyCache) keep(uid string, cached *cachedStudy, evaluations int) {
	for _, old := range c.surplus(uid, cached, evaluations) {
		old.forgetHistory()
	}
}

// surplus is keep, but leaves the forgetting to the caller.
func (c *studyCache) surplus(uid string, cached *cachedStudy, evaluations int) []*cachedStudy {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.studies[uid] != cached {
		return nil // deleted meanwhile
	}
	c.uses++
	c.kept += evaluations - cached.kept
	cached.used, cached.kept = c.uses, evaluations
	var surplus []*cachedStudy
	for c.kept > c.limit {
		var oldest *cachedStudy
		for _, other := range c.studies {
			if other != cached && other.kept > 0 && (oldest == nil || other.used < oldest.used) {
				oldest = other
			}
		}
		if oldest == nil {
			break
		}
		c.kept -= oldest.kept
		oldest.kept = 0
		surplus = append(surplus, oldest)
	}
	return surplus
}

// forgetHistory drops what was read of trials, and the model of them, unless somebody
// uses it at this moment, who will note that again.
func (s *cachedStudy) forgetHistory() {
	if s.history.mu.TryLock() {
		s.history.forget()
		s.prior = priorCache{}
		s.history.mu.Unlock()
	}
	if s.stopping.fitting.TryLock() {
		s.stopping.model = nil
		s.stopping.fitting.Unlock()
	}
}

// forget drops what is derived from a deleted study.
func (c *studyCache) forget(uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cached, ok := c.studies[uid]; ok {
		c.kept -= cached.kept
		delete(c.studies, uid)
		maps.DeleteFunc(c.latest, func(_ string, other *cachedStudy) bool { return other == cached })
	}
}

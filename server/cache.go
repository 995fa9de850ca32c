package server

import (
	"maps"
	"sync"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
)

// maxCachedEvaluations bounds the evaluations that are kept of all studies together: a
// few hundred bytes each.
const maxCachedEvaluations = 500_000

// maxCachedStudies bounds the studies of which anything is kept: a compiled spec takes a
// few hundred kilobytes, and a few milliseconds to make again.
const maxCachedStudies = 1500

// studyCache keeps what is derived from studies, by uid. Everything in it can be
// thrown away and derived again.
type studyCache struct {
	mu      sync.Mutex
	studies map[string]*cachedStudy
	latest  map[string]*cachedStudy // by the name of the study

	limit   int   // of the evaluations kept; exceeded by those of one study only
	kept    int   // evaluations
	uses    int64 // so far
	maximum int   // number of studies
}

// cachedStudy is what is derived from one study.
type cachedStudy struct {
	compiled *spec.Study
	history  historyCache
	prior    priorCache // under the lock of history
	stopping stopping
	prepared prepared

	// Under the lock of the cache.
	kept     int    // evaluations in history and prior
	used     int64  // the number of the last use
	etag     string // of the study with the spec
	revision int64  // likewise

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

// compiles reports whether what is kept is of an equal spec.
func (s *cachedStudy) compiles(spec *dparetov1.StudySpec) bool {
	return s.compiled.Spec == spec || proto.Equal(s.compiled.Spec, spec)
}

// get returns the cached study, compiling its spec at first and when it has changed. The
// study that was not used for longest makes room for another.
func (c *studyCache) get(study *dparetov1.Study) (*cachedStudy, error) {
	if cached := c.find(study); cached != nil {
		return cached, nil
	}
	compiled, err := spec.Compile("study.spec", study.GetSpec())
	if err != nil {
		return nil, err
	}
	cached, surplus := c.add(study, &cachedStudy{compiled: compiled, etag: study.GetEtag(), revision: study.GetRevision()})
	if surplus != nil {
		surplus.prepared.abandon()
	}
	return cached, nil
}

// find returns what is kept of a study with its spec, or nil.
func (c *studyCache) find(study *dparetov1.Study) *cachedStudy {
	c.mu.Lock()
	defer c.mu.Unlock()
	cached, ok := c.studies[study.GetUid()]
	if !ok {
		return nil
	}
	if cached.etag != study.GetEtag() {
		if !cached.compiles(study.GetSpec()) {
			return nil
		}
		cached.etag, cached.revision = study.GetEtag(), study.GetRevision()
	}
	c.uses++
	cached.used = c.uses
	return cached
}

// add keeps a study, unless somebody else has been faster, in place of the spec that it
// had before. It returns what is to be used, and what had to go.
func (c *studyCache) add(study *dparetov1.Study, added *cachedStudy) (used, surplus *cachedStudy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.studies == nil {
		c.studies, c.latest = make(map[string]*cachedStudy), make(map[string]*cachedStudy)
	}
	uid := study.GetUid()
	before, ok := c.studies[uid]
	switch {
	case ok && before.compiles(study.GetSpec()):
		return before, nil
	case ok && before.revision > study.GetRevision():
		return added, nil // the caller looks at the past; nothing is kept of it
	case ok:
		c.kept -= before.kept
		surplus = before
	case len(c.studies) >= c.maximum:
		var oldest string
		for uid, other := range c.studies {
			if surplus == nil || other.used < surplus.used {
				oldest, surplus = uid, other
			}
		}
		c.kept -= surplus.kept
		delete(c.studies, oldest)
		c.forgetName(surplus)
	}
	c.uses++
	added.used = c.uses
	c.studies[uid], c.latest[study.GetName()] = added, added
	return added, surplus
}

// named returns the study that last had a name, as far as it is known, or nil. It may
// have been deleted, and another may have its name.
func (c *studyCache) named(name string) *cachedStudy {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest[name]
}

// forgetName forgets which name a study has.
func (c *studyCache) forgetName(cached *cachedStudy) {
	maps.DeleteFunc(c.latest, func(_ string, other *cachedStudy) bool { return other == cached })
}

// keep notes how many evaluations are kept for a study. If they are too many together
// those of the studies that were not used for longest are forgotten.
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
		return nil // not kept any more
	}
	c.kept += evaluations - cached.kept
	cached.kept = evaluations
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

// forget drops what is derived from a deleted study, and what is in the making.
func (c *studyCache) forget(uid string) {
	if cached := c.remove(uid); cached != nil {
		cached.prepared.abandon()
	}
}

// remove drops what is kept of a study and returns it, or nil.
func (c *studyCache) remove(uid string) *cachedStudy {
	c.mu.Lock()
	defer c.mu.Unlock()
	cached, ok := c.studies[uid]
	if !ok {
		return nil
	}
	c.kept -= cached.kept
	delete(c.studies, uid)
	c.forgetName(cached)
	return cached
}

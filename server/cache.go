package server

import (
	"sync"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
)

// studyCache keeps what is derived from studies, by uid. Everything in it can be
// thrown away and derived again.
type studyCache struct {
	mu      sync.Mutex
	studies map[string]*cachedStudy
}

// cachedStudy is what is derived from one study.
type cachedStudy struct {
	compiled *spec.Study
	history  historyCache
	prior    priorCache // under the lock of history
	stopping stopping
	prepared prepared

	// With all measurements, and with final ones only (see index).
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
		c.studies = make(map[string]*cachedStudy)
	}
	cached := &cachedStudy{compiled: compiled}
	c.studies[study.GetUid()] = cached
	return cached, nil
}

// forget drops what is derived from a deleted study.
func (c *studyCache) forget(uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.studies, uid)
}

package study

import (
	"maps"
	"reflect"
	"sync"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
)

// maxCachedStudies bounds the studies of which anything is kept: a compiled spec takes a
// few hundred kilobytes, and a few milliseconds to make again.
const maxCachedStudies = 1500

// Cached is a study's spec in compiled form, and what other packages derive from the study.
// All of it can be thrown away at any moment, and derived again.
type Cached struct {
	Compiled *spec.Study

	mu      sync.Mutex
	derived map[reflect.Type]any

	// Under the lock of the cache.
	used     int64  // the number of the last use
	etag     string // of the study with the spec
	revision int64  // likewise
}

// Derived returns what a package derives from a study, its own type T; create makes it when it
// is asked for first. It lives as long as the study is cached. If it has a method Drop, that is
// called at the end.
func Derived[T any](c *Cached, create func() *T) *T {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := reflect.TypeFor[T]()
	if value, ok := c.derived[key]; ok {
		return value.(*T)
	}
	if c.derived == nil {
		c.derived = make(map[reflect.Type]any)
	}
	value := create()
	c.derived[key] = value
	return value
}

// drop ends what was derived.
func (c *Cached) drop() {
	c.mu.Lock()
	derived := maps.Clone(c.derived)
	c.mu.Unlock()
	for _, value := range derived {
		if d, ok := value.(interface{ Drop() }); ok {
			d.Drop()
		}
	}
}

// Compiles reports whether what is kept is of an equal spec.
func (c *Cached) Compiles(spec *dparetov1.StudySpec) bool {
	return c.Compiled.Spec == spec || proto.Equal(c.Compiled.Spec, spec)
}

// cache keeps studies by uid.
type cache struct {
	mu      sync.Mutex
	studies map[string]*Cached
	uses    int64 // so far
	maximum int   // number of studies
}

// get returns a study, compiling its spec at first and when it has changed. The study that
// was not used for longest makes room for another.
func (c *cache) get(study *dparetov1.Study) (*Cached, error) {
	if cached := c.find(study); cached != nil {
		return cached, nil
	}
	compiled, err := spec.Compile("study.spec", study.GetSpec())
	if err != nil {
		return nil, err
	}
	cached, dropped := c.add(study, &Cached{Compiled: compiled, etag: study.GetEtag(), revision: study.GetRevision()})
	if dropped != nil {
		dropped.drop()
	}
	return cached, nil
}

// find returns what is kept of a study with its spec, or nil.
func (c *cache) find(study *dparetov1.Study) *Cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	cached, ok := c.studies[study.GetUid()]
	if !ok {
		return nil
	}
	if cached.etag != study.GetEtag() {
		if !cached.Compiles(study.GetSpec()) {
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
func (c *cache) add(study *dparetov1.Study, added *Cached) (used, dropped *Cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.studies == nil {
		c.studies = make(map[string]*Cached)
	}
	uid := study.GetUid()
	before, ok := c.studies[uid]
	switch {
	case ok && before.Compiles(study.GetSpec()):
		return before, nil
	case ok && before.revision > study.GetRevision():
		return added, nil // the caller looks at the past; nothing is kept of it
	case ok:
		dropped = before
	case len(c.studies) >= c.maximum:
		var oldest string
		for uid, other := range c.studies {
			if dropped == nil || other.used < dropped.used {
				oldest, dropped = uid, other
			}
		}
		delete(c.studies, oldest)
	}
	c.uses++
	added.used = c.uses
	c.studies[uid] = added
	return added, dropped
}

// forget drops what is derived from a study.
func (c *cache) forget(uid string) {
	c.mu.Lock()
	cached, ok := c.studies[uid]
	delete(c.studies, uid)
	c.mu.Unlock()
	if ok {
		cached.drop()
	}
}

// holds reports whether what was derived from a study is the one that is kept.
func (c *cache) holds(uid string, cached *Cached) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.studies[uid] == cached
}

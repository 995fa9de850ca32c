package study

import (
	"maps"
	"reflect"
	"sync"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
)

// maxCachedStudies bounds the cached studies. A compiled spec takes a few hundred kilobytes, and a
// few milliseconds to compile again.
const maxCachedStudies = 1500

// Cached is a study's compiled spec and whatever other packages derive from the study. All of it can
// be dropped at any moment and derived again.
type Cached struct {
	Compiled *spec.Study

	mu      sync.Mutex
	derived map[reflect.Type]any
	dropped bool

	// Guarded by the lock of the cache.
	used     int64  // value of cache.uses at the last use
	lineage  uint64 // of the study
	etag     string // of the study when the spec was last compared
	revision int64  // of the study at the same moment
}

// Derived returns the value of type T that a package derives from a study. The first call creates
// it. It lives as long as the study is cached; if it has a method Drop, that is called when the
// study leaves the cache.
func Derived[T any](c *Cached, create func() *T) *T {
	value, late := derive(c, create)
	if d, ok := any(value).(interface{ Drop() }); ok && late {
		d.Drop()
	}
	return value
}

// derive returns the value, and whether it was created after the study left the cache, for a caller
// that began before.
func derive[T any](c *Cached, create func() *T) (value *T, late bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := reflect.TypeFor[T]()
	if value, ok := c.derived[key]; ok {
		return value.(*T), false
	}
	if c.derived == nil {
		c.derived = make(map[reflect.Type]any)
	}
	value = create()
	c.derived[key] = value
	return value, c.dropped
}

// drop calls Drop on the derived values.
func (c *Cached) drop() {
	c.mu.Lock()
	derived := maps.Clone(c.derived)
	c.dropped = true
	c.mu.Unlock()
	for _, value := range derived {
		if d, ok := value.(interface{ Drop() }); ok {
			d.Drop()
		}
	}
}

// Compiles reports whether the cached study is a record's: of the same import, with the same spec.
func (c *Cached) Compiles(record *storev1.StudyRecord) bool {
	return c.lineage == record.GetLineage() && c.hasSpec(record.GetStudy().GetSpec())
}

func (c *Cached) hasSpec(spec *dparetov1.StudySpec) bool {
	return c.Compiled.Spec == spec || proto.Equal(c.Compiled.Spec, spec)
}

// cache keeps studies by uid. Every transaction asks it with the record that it has read, so that it never
// gives what another server, or an import, has overtaken: the spec is that of the record, and what is
// derived is of the same lineage, whose completed trials never change.
type cache struct {
	mu      sync.Mutex
	studies map[string]*Cached
	uses    int64 // so far
	maximum int   // number of studies
}

// get returns a study, and compiles its spec if it is new or has changed. A full cache evicts the
// least recently used study.
func (c *cache) get(record *storev1.StudyRecord) (*Cached, error) {
	if cached := c.find(record); cached != nil {
		return cached, nil
	}
	study := record.GetStudy()
	compiled, err := spec.Recompile("study.spec", study.GetSpec())
	if err != nil {
		return nil, err
	}
	cached, dropped := c.add(study, &Cached{Compiled: compiled, lineage: record.GetLineage(), etag: study.GetEtag(), revision: study.GetRevision()})
	if dropped != nil {
		dropped.drop()
	}
	return cached, nil
}

// find returns the cached study if its spec is the current one, otherwise nil.
func (c *cache) find(record *storev1.StudyRecord) *Cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	study := record.GetStudy()
	cached, ok := c.studies[study.GetUid()]
	if !ok || cached.lineage != record.GetLineage() {
		return nil
	}
	if cached.etag != study.GetEtag() {
		if !cached.hasSpec(study.GetSpec()) {
			return nil
		}
		cached.etag, cached.revision = study.GetEtag(), study.GetRevision()
	}
	c.uses++
	cached.used = c.uses
	return cached
}

// add caches a study and replaces its entry with an older spec. If another call was faster, its
// entry stays. add returns the entry to use and the one it evicted, if any.
func (c *cache) add(study *dparetov1.Study, added *Cached) (used, dropped *Cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.studies == nil {
		c.studies = make(map[string]*Cached)
	}
	uid := study.GetUid()
	before, ok := c.studies[uid]
	switch {
	case ok && before.lineage == added.lineage && before.hasSpec(study.GetSpec()):
		return before, nil
	case ok && before.lineage == added.lineage && before.revision > study.GetRevision():
		return added, nil // the caller has read an older revision; do not cache it
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

// forget evicts a study.
func (c *cache) forget(uid string) {
	c.mu.Lock()
	cached, ok := c.studies[uid]
	delete(c.studies, uid)
	c.mu.Unlock()
	if ok {
		cached.drop()
	}
}

// clear evicts all studies.
func (c *cache) clear() {
	c.mu.Lock()
	studies := c.studies
	c.studies = nil
	c.mu.Unlock()
	for _, cached := range studies {
		cached.drop()
	}
}

// holds reports whether cached is the current entry of a study.
func (c *cache) holds(uid string, cached *Cached) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.studies[uid] == cached
}

package study

import (
	"maps"
	"reflect"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
)

const (
	// maxCachedStudies bounds the cached studies. A compiled spec takes a few hundred kilobytes, and a
	// few milliseconds to compile again.
	maxCachedStudies = 1500
	// maxCachedMeasurements bounds the measurements, of less than a kilobyte each, that are derived
	// from all cached studies. A single study may exceed it.
	maxCachedMeasurements = 300_000
)

// Cached is a study's compiled spec and whatever other packages derive from the study. All of it can
// be dropped at any moment and derived again.
type Cached struct {
	Compiled *spec.Study

	name    string // of the study
	uid     string // of the study
	lineage uint64 // of the study

	mu      sync.Mutex
	derived map[reflect.Type]any
	dropped bool

	// Guarded by the lock of the cache.
	etag         string // of the study when the spec was last compared
	revision     int64  // of the study at the same moment
	measurements int    // that are derived
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

// Compiles reports whether the cached study is a record's, with the same spec.
func (c *Cached) Compiles(record *storev1.StudyRecord) bool {
	return c.isOf(record) && c.hasSpec(record.GetStudy().GetSpec())
}

// isOf reports whether the cached study is a record's: neither another of the same name nor of another import.
func (c *Cached) isOf(record *storev1.StudyRecord) bool {
	return c.uid == record.GetStudy().GetUid() && c.lineage == record.GetLineage()
}

func (c *Cached) hasSpec(spec *dparetov1.StudySpec) bool {
	return c.Compiled.Spec == spec || proto.Equal(c.Compiled.Spec, spec)
}

// cache keeps studies by name. Every transaction asks it with the record that it has read, so it never
// gives a study that another server, or an import, has overtaken. The spec is the spec of the record.
// Derived data have the same lineage, whose completed trials never change.
type cache struct {
	limit int // on the measurements of all studies

	mu           sync.Mutex
	studies      *simplelru.LRU[string, *Cached]
	measurements int       // of all studies
	dropped      []*Cached // evicted since the lock was taken
}

func newCache(studies, measurements int) *cache {
	c := &cache{limit: measurements}
	lru, err := simplelru.NewLRU(studies, func(_ string, evicted *Cached) {
		c.measurements -= evicted.measurements
		c.dropped = append(c.dropped, evicted)
	})
	if err != nil {
		panic(err) // studies is positive
	}
	c.studies = lru
	return c
}

// unlock releases the lock and drops evicted studies.
func (c *cache) unlock() {
	dropped := c.dropped
	c.dropped = nil
	c.mu.Unlock()
	for _, cached := range dropped {
		cached.drop()
	}
}

// find returns the cached study if its spec is the current one, otherwise nil.
func (c *cache) find(record *storev1.StudyRecord) *Cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	study := record.GetStudy()
	cached, ok := c.studies.Get(study.GetName())
	if !ok || !cached.isOf(record) {
		return nil
	}
	if cached.etag != study.GetEtag() {
		if !cached.hasSpec(study.GetSpec()) {
			return nil
		}
		cached.etag, cached.revision = study.GetEtag(), study.GetRevision()
	}
	return cached
}

// latest returns the cached study of a name, nil if there is none.
func (c *cache) latest(name string) *Cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	cached, _ := c.studies.Get(name)
	return cached
}

// add caches the compiled spec of a study in place of an older one, and returns the entry to use. If
// another call was faster, its entry stays. A full cache evicts the least recently used study.
func (c *cache) add(record *storev1.StudyRecord, compiled *spec.Study) *Cached {
	study := record.GetStudy()
	added := &Cached{
		Compiled: compiled, name: study.GetName(), uid: study.GetUid(), lineage: record.GetLineage(),
		etag: study.GetEtag(), revision: study.GetRevision(),
	}
	c.mu.Lock()
	defer c.unlock()
	if before, ok := c.studies.Get(added.name); ok && before.isOf(record) {
		if before.hasSpec(study.GetSpec()) {
			return before
		}
		if before.revision > study.GetRevision() {
			return added // the caller has read an older revision; do not cache it
		}
	}
	c.studies.Remove(added.name) // Add would replace it without a call of drop
	c.studies.Add(added.name, added)
	return added
}

// grow records that measurements were derived from a study, or dropped if added is negative. It
// evicts the least recently used studies while there are too many.
func (c *cache) grow(cached *Cached, added int) {
	c.mu.Lock()
	defer c.unlock()
	if current, ok := c.studies.Get(cached.name); !ok || current != cached {
		return // a long operation still uses an evicted study
	}
	cached.measurements += added
	c.measurements += added
	for c.measurements > c.limit && c.studies.Len() > 1 {
		c.studies.RemoveOldest()
	}
}

// forget evicts a study.
func (c *cache) forget(name string) {
	c.mu.Lock()
	defer c.unlock()
	c.studies.Remove(name)
}

// clear evicts all studies.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.unlock()
	c.studies.Purge()
}

// holds reports whether cached is the current entry of its study.
func (c *cache) holds(cached *Cached) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	current, ok := c.studies.Peek(cached.name)
	return ok && current == cached
}

package history

import (
	"context"
	"errors"
	"sync"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
)

// Histories reads the histories of the studies in a store. It is safe for concurrent use.
type Histories struct {
	studies *study.Studies
	store   *store.Store
}

// New returns the histories of studies.
func New(studies *study.Studies, db *store.Store) *Histories { return &Histories{studies, db} }

// History is a study and its trials at one revision. Calls share Cached and Trials: neither may be
// modified.
type History struct {
	Record *storev1.StudyRecord
	Cached *study.Cached
	Trials
}

// errOtherSpec says that a study has another spec since it was found.
var errOtherSpec = errors.New("the spec of the study has changed")

// Read returns the history of a study as it is now. It returns NOT_FOUND if the study does not exist.
func (h *Histories) Read(ctx context.Context, id string) (*History, error) {
	for {
		out, err := h.read(ctx, id)
		if !errors.Is(err, errOtherSpec) {
			return out, err
		}
	}
}

// cache is the reader of one study.
type cache struct {
	mu     sync.Mutex
	reader Reader
}

// read is Read, but fails with errOtherSpec if the spec changes meanwhile.
func (h *Histories) read(ctx context.Context, id string) (*History, error) {
	out := new(History)
	find := func(tx *store.ReadTx) (err error) {
		if out.Record, err = study.FindStudy(tx, id); err == nil {
			out.Cached, err = h.studies.Get(out.Record)
		}
		return err
	}
	if err := h.store.View(ctx, find); err != nil {
		return nil, err
	}
	cached := out.Cached
	c := study.Derived(cached, func() *cache { return &cache{reader: Reader{Compiled: cached.Compiled}} })
	// Views begin under the lock, so no view is older than the cache.
	c.mu.Lock()
	before := c.reader.Size()
	err := h.store.View(ctx, func(tx *store.ReadTx) (err error) {
		if err := find(tx); err != nil {
			return err
		}
		if out.Cached != cached {
			return errOtherSpec
		}
		out.Trials, err = c.reader.Read(ctx, tx, out.Record)
		return err
	})
	after := c.reader.Size()
	c.mu.Unlock()
	h.studies.Grow(cached, after-before)
	if err != nil {
		return nil, err
	}
	return out, nil
}

package simulation

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dpareto/dpareto/server/store"
)

// disk is what survives a crash: the committed records, sorted by key. A commit replaces the slice,
// so that snapshots stay as they are.
type disk struct{ records atomic.Pointer[snapshot] }

// record is a key with its value.
type record struct {
	key   string
	value []byte
}

// read returns the committed records.
func (d *disk) read() snapshot {
	if records := d.records.Load(); records != nil {
		return *records
	}
	return nil
}

// commit applies the writes of an overlay.
func (d *disk) commit(writes *store.Overlay) error {
	rest := d.read()
	merged := make(snapshot, 0, len(rest)+8)
	err := writes.Apply(func(key string, value []byte) error {
		i, found := rest.find(key)
		merged = append(merged, rest[:i]...)
		if found {
			i++
		}
		rest = rest[i:]
		if value != nil {
			merged = append(merged, record{key, value})
		}
		return nil
	})
	merged = append(merged, rest...)
	d.records.Store(&merged)
	return err
}

// snapshot is a store.Reader of sorted records.
type snapshot []record

// find returns where a key is or would be.
func (s snapshot) find(key string) (int, bool) {
	return slices.BinarySearchFunc(s, key, func(r record, key string) int { return strings.Compare(r.key, key) })
}

// Get implements store.Reader.
func (s snapshot) Get(key string) ([]byte, error) {
	if i, found := s.find(key); found {
		return s[i].value, nil
	}
	return nil, nil
}

// Scan implements store.Reader.
func (s snapshot) Scan(prefix, from string, fn func(string, []byte) (bool, error)) error {
	i, _ := s.find(max(prefix, from))
	for ; i < len(s) && strings.HasPrefix(s[i].key, prefix); i++ {
		if s[i].key[0] == 0 && prefix == "" {
			continue // a summary
		}
		if more, err := fn(s[i].key, s[i].value); !more || err != nil {
			return err
		}
	}
	return nil
}

// kv is the store.KV of one process on the disk. After its process died it does nothing.
type kv struct {
	*disk

	random source
	rough  *atomic.Bool  // faults happen
	writer chan struct{} // holds one value while an Update runs
	die    func()        // kills the process
	dead   atomic.Bool
}

// fate is what happens to an Update. It is drawn when the Update comes, before others may act.
type fate struct {
	before, commit, after                  time.Duration
	refused, lost, twice, diesBefore, dies bool
}

// fate draws one.
func (k *kv) fate() fate {
	wait := func() time.Duration {
		if k.rough.Load() && k.random.chance(0.02) {
			return k.random.upTo(4 * time.Second)
		}
		return k.random.upTo(20 * time.Millisecond)
	}
	f := fate{before: wait(), commit: wait() / 10, after: wait()}
	if k.rough.Load() {
		chance := k.random.chance
		f.refused, f.lost, f.twice, f.diesBefore, f.dies = chance(0.01), chance(0.01), chance(0.3), chance(0.004), chance(0.008)
	}
	return f
}

// View implements store.KV.
func (k *kv) View(ctx context.Context, fn func(store.Reader) error) error {
	if k.dead.Load() {
		return store.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return fn(k.read())
}

// Update implements store.KV. Functions run one after the other, each with its commit.
func (k *kv) Update(ctx context.Context, _ store.Scopes, fn func(store.ReadWriter) error) error {
	f := k.fate()
	time.Sleep(f.before)
	k.writer <- struct{}{}
	err := k.transact(ctx, f, fn)
	<-k.writer
	if err != nil {
		return err
	}
	if time.Sleep(f.after); f.dies {
		k.die()
	}
	if k.dead.Load() {
		return store.ErrClosed // the answer is lost
	}
	return nil
}

// transact runs the function of an Update, and commits what it wrote.
func (k *kv) transact(ctx context.Context, f fate, fn func(store.ReadWriter) error) error {
	switch {
	case k.dead.Load():
		return store.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case f.refused:
		return store.Unwritable(syscall.ENOSPC)
	}
	if f.twice {
		if err := fn(store.NewOverlay(k.read())); err != nil {
			return err
		}
	}
	writes := store.NewOverlay(k.read())
	if err := fn(writes); err != nil || writes.Empty() {
		return err
	}
	if time.Sleep(f.commit); f.diesBefore {
		k.die()
	}
	switch {
	case k.dead.Load():
		return store.ErrClosed
	case f.lost:
		return store.Unwritable(syscall.ENOSPC)
	default:
		return k.commit(writes)
	}
}

// Close implements store.KV. The disk outlives the process.
func (k *kv) Close() error { return nil }

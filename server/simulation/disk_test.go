package simulation

import (
	"context"
	"slices"
	"strings"
	"sync"
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

	mu     sync.Mutex // one function runs at a time
	random source
	fate   fates
	die    func() // kills the process
	dead   atomic.Bool
}

// fates are the probabilities of what may happen to an Update.
type fates struct {
	refuse, lose, twice, slow, dieBefore, dieAfter float64
}

// roughly are the fates during a history. The end is calm.
var roughly = fates{refuse: 0.01, lose: 0.01, twice: 0.3, slow: 0.02, dieBefore: 0.004, dieAfter: 0.008}

// pause waits as long as a write may take.
func (k *kv) pause() {
	longest := 20 * time.Millisecond
	if k.random.chance(k.fate.slow) {
		longest = 4 * time.Second
	}
	k.random.pause(longest)
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

// Update implements store.KV. Functions run one after the other; the time before and after them
// passes for all Updates alike.
func (k *kv) Update(ctx context.Context, _ store.Scopes, fn func(store.ReadWriter) error) error {
	full := store.Unwritable(syscall.ENOSPC)
	k.pause()
	switch {
	case k.dead.Load():
		return store.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case k.random.chance(k.fate.refuse):
		return full
	}
	if err := k.transact(fn, full); err != nil {
		return err
	}
	k.pause()
	if k.random.chance(k.fate.dieAfter) {
		k.die()
	}
	if k.dead.Load() {
		return store.ErrClosed // the answer is lost
	}
	return nil
}

// transact runs the function of an Update, and commits what it wrote.
func (k *kv) transact(fn func(store.ReadWriter) error, full error) error {
	twice, lost, dies := k.random.chance(k.fate.twice), k.random.chance(k.fate.lose), k.random.chance(k.fate.dieBefore)
	k.mu.Lock()
	defer k.mu.Unlock()
	if twice {
		if err := fn(store.NewOverlay(k.read())); err != nil {
			return err
		}
	}
	writes := store.NewOverlay(k.read())
	if err := fn(writes); err != nil || writes.Empty() {
		return err
	}
	switch {
	case lost:
		return full
	case dies:
		k.die()
		return store.ErrClosed
	default:
		return k.commit(writes)
	}
}

// Close implements store.KV. The disk outlives the process.
func (k *kv) Close() error { return nil }

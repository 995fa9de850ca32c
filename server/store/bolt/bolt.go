package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/dpareto/dpareto/server/store"
)

const (
	// maxBatch bounds the number of Updates in one commit, and so the time that the
	// first of them waits for the others.
	maxBatch = 1024
	// lockTimeout is how long Open waits for another process to let go of the file.
	lockTimeout = time.Second
	// mapSize is the address space that is mapped at first. bbolt waits for all readers
	// before it maps a file that has outgrown its mapping; a large mapping costs
	// nothing and makes that rare.
	mapSize = 1 << 30
)

// errNothingWritten rolls a transaction back that has nothing to commit, and saves
// its sync.
var errNothingWritten = errors.New("bolt: nothing written")

// root is the only bucket: key prefixes take the place of nested buckets.
var root = []byte("dpareto")

// DB is a store.KV in one file.
type DB struct {
	db      *bbolt.DB
	updates chan *update
	closing chan struct{}
	close   sync.Once
	writer  sync.WaitGroup
	err     error // of closing the file, set by close

	counters counters
}

var _ store.KV = (*DB)(nil)

// update is a waiting Update. Exactly one value is sent to done.
type update struct {
	ctx  context.Context //nolint:containedctx // that of the waiting call
	fn   func(store.ReadWriter) error
	done chan error
}

// Open opens the file at path, or creates it with mode 0600. It returns
// store.ErrLocked when another process has the file open.
func Open(path string) (*DB, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:         lockTimeout,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: mapSize,
	})
	if errors.Is(err, bbolterrors.ErrTimeout) {
		return nil, fmt.Errorf("open %s: %w", path, store.ErrLocked)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(root)
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	d := &DB{db: db, updates: make(chan *update), closing: make(chan struct{})}
	d.writer.Go(d.write)
	return d, nil
}

// View implements store.KV.
func (d *DB) View(ctx context.Context, fn func(store.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := d.db.View(func(tx *bbolt.Tx) error { return fn(reader{tx.Bucket(root)}) })
	if errors.Is(err, bbolterrors.ErrDatabaseNotOpen) {
		return store.ErrClosed
	}
	return err
}

// Update implements store.KV.
func (d *DB) Update(ctx context.Context, fn func(store.ReadWriter) error) error {
	u := &update{ctx: ctx, fn: fn, done: make(chan error, 1)}
	select {
	case <-d.closing:
		return store.ErrClosed
	default:
	}
	select {
	case d.updates <- u:
	case <-d.closing:
		return store.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	return <-u.done
}

// Close implements store.KV. Updates that the writer has taken are finished.
func (d *DB) Close() error {
	d.close.Do(func() {
		close(d.closing)
		d.writer.Wait()
		d.err = d.db.Close()
	})
	return d.err
}

// write is the writer's loop.
func (d *DB) write() {
	batch := make([]*update, 0, maxBatch)
	for {
		select {
		case u := <-d.updates:
			batch = append(batch[:0], u)
		case <-d.closing:
			return
		}
		// Everything that is waiting now shares the commit.
		for waiting := true; waiting && len(batch) < maxBatch; {
			select {
			case u := <-d.updates:
				batch = append(batch, u)
			default:
				waiting = false
			}
		}
		d.commit(batch)
	}
}

// commit runs the functions of a batch in one transaction and answers all of them.
func (d *DB) commit(batch []*update) {
	results := make([]error, len(batch))
	var written int64 // Updates with writes
	err := d.db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(root)
		for i, u := range batch {
			overlay := store.NewOverlay(reader{bucket})
			if results[i] = call(u, overlay); results[i] != nil {
				continue
			}
			err := overlay.Apply(
				func(key string, value []byte) error { return bucket.Put([]byte(key), value) },
				func(key string) error { return bucket.Delete([]byte(key)) },
			)
			if err != nil {
				return err // the transaction cannot go on: nobody's writes are kept
			}
			if !overlay.Empty() {
				written++
			}
		}
		if written == 0 {
			return errNothingWritten
		}
		return nil
	})
	switch {
	case errors.Is(err, errNothingWritten):
		err = nil
	case err == nil:
		d.counters.commits.Add(1)
		d.counters.writes.Add(written)
	}
	for i, u := range batch {
		if err != nil && results[i] == nil {
			results[i] = fmt.Errorf("commit: %w", err)
		}
		u.done <- results[i]
	}
}

// call runs one function; a panic in it becomes an error of its own Update.
func call(u *update, tx store.ReadWriter) (err error) {
	if err := u.ctx.Err(); err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a store transaction: %v\n%s", r, debug.Stack())
		}
	}()
	return u.fn(tx)
}

// reader reads a bbolt bucket.
type reader struct{ bucket *bbolt.Bucket }

func (r reader) Get(key string) ([]byte, error) { return r.bucket.Get([]byte(key)), nil }

func (r reader) Scan(prefix, from string, fn func(string, []byte) (bool, error)) error {
	start, p := []byte(max(prefix, from)), []byte(prefix)
	cursor := r.bucket.Cursor()
	for key, value := cursor.Seek(start); bytes.HasPrefix(key, p) && key != nil; key, value = cursor.Next() {
		if more, err := fn(string(key), value); !more || err != nil {
			return err
		}
	}
	return nil
}

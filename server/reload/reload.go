// Package reload keeps what files say up to date while a program runs.
package reload

import (
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Every is the least time between two looks at the files.
const Every = time.Second

// Options configures a Value.
type Options struct {
	// What the files are, for the log: "the certificate".
	What string
	// Paths are the files. The value is loaded again when one of them changes: its
	// content, mode, or, for a link, its target.
	Paths []string
	// Logger is told of changes. Default: slog.Default().
	Logger *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Value is what files say. It is safe for concurrent use.
//
// It has no goroutine: [Value.Get] looks at the files now and then. Files that are broken
// or missing leave the value as it is, which the log says once.
type Value[T any] struct {
	options Options
	load    func() (T, error)

	current atomic.Pointer[T]
	looked  atomic.Int64 // when the files were looked at last, in Unix nanoseconds

	mu     sync.Mutex    // one look at a time; protects what follows
	seen   []fs.FileInfo // of what was loaded last, broken or not
	failed string        // the last failure
}

// New loads a value. load is called again when a file has changed.
func New[T any](o Options, load func() (T, error)) (*Value[T], error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	v := &Value[T]{options: o, load: load}
	v.looked.Store(o.Now().UnixNano())
	infos, err := v.stat()
	if err != nil {
		return nil, err
	}
	value, err := load()
	if err != nil {
		return nil, err
	}
	v.seen = infos
	v.current.Store(&value)
	return v, nil
}

// Get returns the value, at most a second or so old.
func (v *Value[T]) Get() T {
	now, looked := v.options.Now().UnixNano(), v.looked.Load()
	// A clock that was set back must not keep the files from being looked at.
	if since := now - looked; (since >= int64(Every) || since <= -int64(Every)) && v.looked.CompareAndSwap(looked, now) {
		v.look()
	}
	return *v.current.Load()
}

// look loads the value again if a file has changed.
func (v *Value[T]) look() {
	v.mu.Lock()
	defer v.mu.Unlock()
	infos, err := v.stat()
	if err == nil {
		if same(infos, v.seen) {
			return
		}
		v.seen = infos
		var value T
		if value, err = v.load(); err == nil {
			v.current.Store(&value)
		}
	}
	if err == nil {
		v.failed = ""
		v.options.Logger.Info("read "+v.options.What+" again", "files", v.options.Paths)
		return
	}
	if err.Error() != v.failed {
		v.options.Logger.Error(v.options.What+" changed and cannot be used; the old state stays valid", "files", v.options.Paths, "error", err)
	}
	v.failed = err.Error()
}

func (v *Value[T]) stat() ([]fs.FileInfo, error) {
	infos := make([]fs.FileInfo, len(v.options.Paths))
	for i, path := range v.options.Paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		infos[i] = info
	}
	return infos, nil
}

func same(a, b []fs.FileInfo) bool {
	for i := range a {
		if !os.SameFile(a[i], b[i]) || !a[i].ModTime().Equal(b[i].ModTime()) || a[i].Size() != b[i].Size() || a[i].Mode() != b[i].Mode() {
			return false
		}
	}
	return true
}

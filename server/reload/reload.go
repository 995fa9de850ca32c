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

// Every is the minimum time between two checks of the files.
const Every = time.Second

// Options configures a Value.
type Options struct {
	// What names the files in logs: "the certificate".
	What string
	// Paths are the files. The value is reloaded when the content or mode of one changes or, for a
	// link, its target.
	Paths []string
	// Logger logs changes. Default: slog.Default().
	Logger *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Value is a value loaded from files. It is safe for concurrent use.
//
// It needs no goroutine: [Value.Get] checks the files from time to time. If they are broken or
// missing, the value stays, and the log says so once.
type Value[T any] struct {
	options Options
	load    func() (T, error)

	current atomic.Pointer[T]
	looked  atomic.Int64 // time of the last check, in Unix nanoseconds

	mu     sync.Mutex    // one check at a time; guards the fields below
	seen   []fs.FileInfo // of the files loaded last, broken or not
	failed string        // text of the last failure
}

// New loads a value. It calls load again when a file has changed.
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

// Get returns the value, at most about a second out of date.
func (v *Value[T]) Get() T {
	now, looked := v.options.Now().UnixNano(), v.looked.Load()
	// If the clock is set back, keep checking the files.
	if since := now - looked; (since >= int64(Every) || since <= -int64(Every)) && v.looked.CompareAndSwap(looked, now) {
		v.look()
	}
	return *v.current.Load()
}

// look reloads the value if a file has changed.
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
		v.options.Logger.Info("reloaded "+v.options.What, "files", v.options.Paths)
		return
	}
	if err.Error() != v.failed {
		v.options.Logger.Error(v.options.What+" changed but cannot be used; the old state stays valid", "files", v.options.Paths, "error", err)
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

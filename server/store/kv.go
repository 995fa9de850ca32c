package store

import (
	"context"
	"errors"
)

// Errors of a KV and of a Store.
var (
	// ErrNotFound says that a record does not exist.
	ErrNotFound = errors.New("store: not found")
	// ErrClosed is returned by every operation after Close.
	ErrClosed = errors.New("store: closed")
	// ErrLocked says that another process has the store open.
	ErrLocked = errors.New("store: in use by another process")
	// ErrFormat says that another version wrote the store.
	ErrFormat = errors.New("store: written by another version")
)

// MaxKey is the maximum length of a key, in bytes. PostgreSQL's indexes have room for little more.
const MaxKey = 2048

// KV is a transactional key-value store with ordered keys. It is safe for concurrent use.
//
// Keys that begin with a zero byte hold summaries of others. A KV stores them separately, so that no
// single disk fault damages a record and its summary alike.
type KV interface {
	// View calls fn with a consistent snapshot of durable data. fn must be short and must not call
	// Update: an implementation may make writers wait for readers.
	View(ctx context.Context, fn func(Reader) error) error
	// Update calls fn and, if fn returns nil, makes its writes durable: once Update returns nil,
	// they survive a crash of the process or machine. If fn or the commit fails, nothing is written, but
	// for an *UnwritableError whose Unknown is set.
	// Updates with a common scope run one after the other, and each sees the writes of the ones
	// before; several may share a commit. fn must not call Update.
	//
	// fn may be called more than once; only the writes of its last call count. Its other effects
	// must be as if it had been called once, and invisible to others until Update returns.
	//
	// If ctx ends before fn is called, it cancels the Update; later it has no effect.
	Update(ctx context.Context, scopes Scopes, fn func(ReadWriter) error) error
	// Close waits for running operations and releases the store.
	Close() error
}

// Reader reads a snapshot. Keys and values are valid until the transaction's function returns, and
// must not be modified.
type Reader interface {
	// Get returns the value of key, or nil if there is none.
	Get(key string) ([]byte, error)
	// Scan calls fn for every key with the prefix that is not below from, in ascending byte order,
	// until fn returns false or an error. It skips keys that begin with a zero byte unless the
	// prefix does.
	Scan(prefix, from string, fn func(key string, value []byte) (bool, error)) error
}

// ReadWriter reads and writes within one Update; it reads its own writes.
type ReadWriter interface {
	Reader
	// Put sets the value of a key of 1 to MaxKey bytes. It keeps value, which must not change
	// afterwards: copy a value that was read before putting it.
	Put(key string, value []byte)
	// Delete removes key if it exists.
	Delete(key string)
}

package store

import (
	"context"
	"errors"
	"io"
	"os"
)

// Count is the number and size of the records of one kind.
type Count struct {
	// Keys is the number of keys.
	Keys int64
	// Bytes is the length of the keys and values.
	Bytes int64
}

// Counts returns the number and size of the records by kind, known to this version or not.
func (s *Store) Counts(ctx context.Context) (map[string]Count, error) {
	counts := make(map[string]Count)
	err := s.kv.View(ctx, func(r Reader) error {
		return r.Scan("", "", func(key string, value []byte) (bool, error) {
			_, k, _ := split(key)
			c := counts[string(k)]
			c.Keys++
			c.Bytes += int64(len(key) + len(value))
			counts[string(k)] = c
			return true, ctx.Err()
		})
	})
	return counts, err
}

// Files is what a KV in files offers beyond KV.
type Files interface {
	// Snapshot returns a copy of everything as it is now, positioned at its beginning. It
	// is gone when it is closed.
	Snapshot(ctx context.Context) (*os.File, error)
	// Scratch returns an empty file on the same device that is gone when it is closed.
	Scratch() (*os.File, error)
}

var errNoFiles = errors.New("store: this kind of store cannot be copied to a file")

// Snapshot copies the store as it is now to a file that is gone when it is closed. Other
// calls go on meanwhile.
func (s *Store) Snapshot(ctx context.Context) (io.ReadCloser, error) {
	if files, ok := s.kv.(Files); ok {
		return files.Snapshot(ctx)
	}
	return nil, errNoFiles
}

// Scratch returns an empty file for what is too large for memory. It is gone when it is
// closed.
func (s *Store) Scratch() (*os.File, error) {
	if files, ok := s.kv.(Files); ok {
		return files.Scratch()
	}
	return nil, errNoFiles
}

package store

import (
	"context"
	"errors"
	"io"
	"os"
)

// Count is the number and size of records.
type Count struct {
	// Keys is the number of keys.
	Keys int64
	// Bytes is the total length of keys and values.
	Bytes int64
}

// Counts returns the number and size of records by kind, including unknown kinds.
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

// Files is what a KV offers beyond KV that can be copied to a file and read from one.
type Files interface {
	// Snapshot returns a copy of the current store, positioned at its start. Close removes it.
	Snapshot(ctx context.Context) (*os.File, error)
	// Scratch returns an empty file on the same device. Close removes it.
	Scratch() (*os.File, error)
}

var errNoFiles = errors.New("store: this kind of store cannot be copied to a file")

// Snapshot copies the current store to a file, while other calls go on. Close removes the file.
func (s *Store) Snapshot(ctx context.Context) (io.ReadCloser, error) {
	if files, ok := s.kv.(Files); ok {
		return files.Snapshot(ctx)
	}
	return nil, errNoFiles
}

// Scratch returns an empty file for data too large for memory. Close removes it.
func (s *Store) Scratch() (*os.File, error) {
	if files, ok := s.kv.(Files); ok {
		return files.Scratch()
	}
	return nil, errNoFiles
}

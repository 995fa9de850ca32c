package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
)

// NewReader returns a store over a kv that holds one already and that is only read. It
// returns ErrFormat when it was written by a newer version, and another error when it was
// written by an older one whose records New would convert.
func NewReader(ctx context.Context, kv KV) (*Store, error) {
	var record storev1.StoreRecord
	err := kv.View(ctx, func(r Reader) error { return get(r, FormatKey, &record) })
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, errors.New("store: the file holds no store")
	case err != nil:
		return nil, err
	case record.GetFormat() > Format:
		return nil, fmt.Errorf("%w: format %d, this program knows up to %d", ErrFormat, record.GetFormat(), Format)
	case record.GetFormat() < Format:
		return nil, fmt.Errorf("store: format %d is older than this program's %d; dpareto serve converts it", record.GetFormat(), Format)
	}
	return &Store{kv: kv}, nil
}

// kinds are the first segments of all keys.
var kinds = []string{
	FormatKey, strings.TrimSuffix(studyPrefix, "/"), strings.TrimSuffix(trialPrefix, "/"),
	strings.TrimSuffix(openPrefix, "/"), strings.TrimSuffix(deletedPrefix, "/"),
	strings.TrimSuffix(importPrefix, "/"), strings.TrimSuffix(revisionPrefix, "/"),
	strings.TrimSuffix(requestPrefix, "/"), strings.TrimSuffix(expiryPrefix, "/"),
	strings.TrimSuffix(ledgerPrefix, "/"), strings.TrimSuffix(chargePrefix, "/"),
	strings.TrimSuffix(releasePrefix, "/"), strings.TrimSuffix(repeatPrefix, "/"),
	strings.TrimSuffix(endedPrefix, "/"),
}

// Known reports whether this version knows the keys with a first segment.
func Known(kind string) bool { return slices.Contains(kinds, kind) }

// checkDeleted checks the records of deleted trials: that they can be read, and that their
// trials are gone.
func checkDeleted(tx *ReadTx, faultf func(string, ...any)) error {
	return tx.r.Scan(deletedPrefix, "", func(key string, value []byte) (bool, error) {
		record := new(storev1.TrialRecord)
		if err := unmarshal(key, value, record); err != nil {
			faultf("%w", err)
		}
		live, err := tx.r.Get(trialPrefix + strings.TrimPrefix(key, deletedPrefix))
		if live != nil {
			faultf("%q is of a trial that exists", key)
		}
		return true, err
	})
}

// Count is how much there is of something.
type Count struct {
	// Keys is the number of keys.
	Keys int64
	// Bytes is the length of the keys and values.
	Bytes int64
}

// Counts returns how much there is of every kind of key: by its first segment, known to
// this version or not.
func (s *Store) Counts(ctx context.Context) (map[string]Count, error) {
	counts := make(map[string]Count)
	err := s.kv.View(ctx, func(r Reader) error {
		return r.Scan("", "", func(key string, value []byte) (bool, error) {
			kind, _, _ := strings.Cut(key, "/")
			c := counts[kind]
			c.Keys++
			c.Bytes += int64(len(key) + len(value))
			counts[kind] = c
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

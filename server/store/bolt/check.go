package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/dpareto/dpareto/server/store"
)

// maxFaults bounds the faults that a check returns: one bad page can make a thousand.
const maxFaults = 100

// checkEvery is the number of keys between two looks at the context.
const checkEvery = 1024

// Report is what a check of a file found.
type Report struct {
	// Faults are the violated invariants, of the file's structure or, if that is sound, of
	// the records; at most 100. The store is sound if there are none.
	Faults []error
	// Counts is the number of keys by the first segment of the key, and their bytes.
	Counts map[string]store.Count
	// Bytes is the size of the file, FreeBytes what of it holds nothing.
	Bytes, FreeBytes int64
}

// Verify checks a file that no other process is writing: that every page can be read and
// is referred to once, that keys are in order, and everything that store.Check does. Its
// error says that the file cannot be opened.
func Verify(ctx context.Context, path string) (_ *Report, err error) {
	d, err := OpenReadOnly(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	report := &Report{Counts: make(map[string]store.Count), Bytes: d.Stats().Size}
	report.FreeBytes = d.Stats().FreePages * int64(os.Getpagesize())
	if report.Faults = d.check(ctx); len(report.Faults) > 0 {
		return report, ctx.Err()
	}
	records, err := store.NewReader(ctx, d)
	if err != nil {
		report.Faults = append(report.Faults, err)
		return report, ctx.Err()
	}
	if report.Counts, err = records.Counts(ctx); err != nil {
		return nil, err
	}
	for _, kind := range slices.Sorted(maps.Keys(report.Counts)) {
		if !store.Known(kind) {
			report.Faults = append(report.Faults, fmt.Errorf("store: %d keys of an unknown kind, %q", report.Counts[kind].Keys, kind))
		}
	}
	report.Faults = append(report.Faults, records.Check(ctx)...)
	report.Faults = report.Faults[:min(len(report.Faults), maxFaults)]
	return report, ctx.Err()
}

// check checks the structure of the file. Nothing may write meanwhile.
func (d *DB) check(ctx context.Context) []error {
	var faults []error
	err := d.view(ctx, func(tx *bbolt.Tx, layers []*table) error {
		// bbolt's own check runs where a fault of the mapped memory cannot be caught. It
		// is safe after every page has been read once.
		if err := readAll(ctx, tx, layers); err != nil {
			return err
		}
		for fault := range tx.Check() {
			if len(faults) < maxFaults {
				faults = append(faults, fmt.Errorf("%w: %w", store.ErrCorrupt, fault))
			}
		}
		return nil
	})
	if err != nil {
		faults = append(faults, err)
	}
	return faults
}

// readAll reads every key and value.
func readAll(ctx context.Context, tx *bbolt.Tx, layers []*table) error {
	var last []byte
	n, sum := 0, byte(0)
	r, err := newReader(tx, layers)
	if err != nil {
		return err
	}
	return r.Scan("", "", func(key string, value []byte) (bool, error) {
		if n > 0 && bytes.Compare([]byte(key), last) <= 0 {
			return false, fmt.Errorf("%w: key %q comes after %q", store.ErrCorrupt, key, last)
		}
		last = append(last[:0], key...)
		for _, b := range value {
			sum ^= b
		}
		if n++; n%checkEvery == 0 {
			return true, ctx.Err()
		}
		return true, nil
	})
}

package bolt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/dpareto/dpareto/server/store"
)

// maxFaults bounds the faults that a check returns: one bad page can make a thousand.
const maxFaults = 100

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
	if report.FreeBytes, report.Faults = d.check(ctx); len(report.Faults) > 0 {
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
	report.Faults = append(report.Faults, checkRecords(ctx, records)...)
	report.Faults = report.Faults[:min(len(report.Faults), maxFaults)]
	return report, ctx.Err()
}

// checkRecords checks the records. What no program has written can have a meaning that their
// functions take for a mistake of their own.
func checkRecords(ctx context.Context, records *store.Store) (faults []error) {
	defer func() {
		if r := recover(); r != nil {
			faults = append(faults, fmt.Errorf("%w: %v", store.ErrCorrupt, r))
		}
	}()
	return records.Check(ctx)
}

// check checks the structure of the file, and returns the bytes of its free pages. Nothing
// may write meanwhile.
func (d *DB) check(ctx context.Context) (free int64, faults []error) {
	err := d.view(ctx, func(tx *bbolt.Tx, _ []*table) error {
		p, err := newPages(tx, d.file)
		if err != nil {
			return err
		}
		p.stop = ctx.Err
		n, err := p.check()
		free = n * int64(p.size)
		if err != nil {
			return err
		}
		// bbolt's own check runs where a fault of the mapped memory cannot be caught, and
		// follows pages wherever they lead. It is safe after the one before.
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
	return free, faults
}

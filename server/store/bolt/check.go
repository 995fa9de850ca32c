package bolt

import (
	"context"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/dpareto/dpareto/server/store"
)

// maxFaults bounds the faults that a check returns: one bad page can cause thousands.
const maxFaults = 100

// Report is the result of checking a file.
type Report struct {
	// Faults are violated invariants of the records or the file structure, at most 100. A sound
	// store has none.
	Faults []error
	// Notice describes harmless damage, or is empty.
	Notice string
	// Counts has the number of records, and their bytes, by kind.
	Counts map[string]store.Count
	// Bytes is the size of the file, FreeBytes the unused part of it.
	Bytes, FreeBytes int64
}

// Verify checks a file that no process has open for writing: everything that Store.Check checks, and
// the structure of bbolt's pages. It returns an error only if it cannot open the file.
func Verify(ctx context.Context, path string) (_ *Report, err error) {
	d, err := OpenReadOnly(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }() // nothing was written
	stats := d.Stats()
	report := &Report{Counts: make(map[string]store.Count), Notice: d.Notice(), Bytes: stats.Size, FreeBytes: stats.FreePages * int64(d.db.Info().PageSize)}
	records, err := store.NewReader(ctx, d)
	if err != nil {
		report.Faults = append(report.Faults, err)
		return report, ctx.Err()
	}
	report.Faults = records.Check(ctx)
	if len(report.Faults) == 0 { // otherwise an unreadable page could crash the process there
		report.Faults = d.check(ctx)
	}
	if len(report.Faults) == 0 {
		if report.Counts, err = records.Counts(ctx); err != nil {
			return nil, err
		}
	}
	report.Faults = report.Faults[:min(len(report.Faults), maxFaults)]
	return report, ctx.Err()
}

// check checks the structure of the file. There must be no writer.
func (d *DB) check(ctx context.Context) (faults []error) {
	err := d.view(ctx, func(tx *bbolt.Tx) error {
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

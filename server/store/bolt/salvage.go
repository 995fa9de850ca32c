package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"

	"github.com/dpareto/dpareto/server/store"
)

// Salvaged is the result of a salvage.
type Salvaged struct {
	// Report describes the new file. Its faults come from the lost records.
	*Report
	// Kept is the number of records in the new file.
	Kept int64
	// Lost describes the lost records, and the studies and ledgers that miss some, as far as known;
	// at most 100.
	Lost []error
}

// errWhole says that a file needs no salvage.
var errWhole = errors.New("it is not damaged: dpareto restore copies it as it is")

// Salvage creates a file at path with every reachable record of a damaged file whose checksum holds.
// It does not modify the damaged file. It returns store.ErrLocked if a server has that open, and an
// error that matches fs.ErrExist if path exists.
func Salvage(ctx context.Context, from, path string) (_ *Salvaged, err error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, &os.PathError{Op: "create", Path: path, Err: os.ErrExist}
	}
	report, damage := Verify(ctx, from)
	if damage == nil && len(report.Faults) == 0 {
		return nil, fmt.Errorf("%s: %w", from, errWhole)
	}
	db, err := openFile(from, toSalvage)
	if damage != nil && errors.Is(err, store.ErrLocked) { // bbolt panicked in Verify and kept its lock
		err = damage
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s := new(Salvaged)
	fill := func(target *os.File) error {
		return rewrite(target.Name(), func(to *bbolt.DB) error {
			return db.View(func(tx *bbolt.Tx) error { return s.copyRecords(ctx, tx, to) })
		})
	}
	// A copy with faults is better than none; its report lists them.
	s.Report, err = writeFile(ctx, path, false, true, fill)
	if err != nil {
		return nil, err
	}
	s.Lost = s.Lost[:min(len(s.Lost), maxFaults)]
	return s, nil
}

// copyRecords copies the intact records of a transaction to an empty file.
func (s *Salvaged) copyRecords(ctx context.Context, tx *bbolt.Tx, to *bbolt.DB) (err error) {
	defer catchFault(tx.DB().Path(), &err)()
	records := tx.Bucket(recordsBucket)
	if records == nil {
		return errNoBucket
	}
	if err := prepare(to, false); err != nil {
		return err
	}
	cursor := records.Cursor()
	next := cursor.First
	kept := new(store.Salvage)
	for done, skipped := false, 0; !done; {
		err := change(to, func(t tree) error {
			whole := store.NewOverlay(t)
			for size := 0; size < compactBytes; {
				if err := ctx.Err(); err != nil {
					return err
				}
				key, value, err := move(next)
				next = cursor.Next
				if err != nil { // one unreadable page: continue behind it
					if skipped++; skipped > maxSkipped {
						return fmt.Errorf("%w; %d pages cannot be read", err, skipped)
					}
					s.Lost = append(s.Lost, fmt.Errorf("an unreadable page with its records: %w", err))
					continue
				}
				if done = key == nil; done {
					break
				}
				size += len(key) + len(value)
				if err := kept.Keep(whole, string(key), value); err != nil {
					s.Lost = append(s.Lost, err)
				}
			}
			return t.apply(whole)
		})
		if err != nil {
			return err
		}
	}
	s.Kept = kept.Kept
	return change(to, func(t tree) error {
		damaged, _, err := committed(tx)
		if err != nil {
			s.Lost = append(s.Lost, err)
			damaged = t // empty: no totals to compare with
		}
		totals := store.NewOverlay(t)
		lost, err := kept.Finish(totals, damaged)
		s.Lost = append(s.Lost, lost...)
		return errors.Join(err, t.apply(totals))
	})
}

// maxSkipped bounds the unreadable pages.
const maxSkipped = 1 << 16

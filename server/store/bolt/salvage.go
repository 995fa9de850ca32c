package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.etcd.io/bbolt"
)

// Salvaged is what became of the commits of a file whose journal is damaged.
type Salvaged struct {
	// Report is that of the new file. Its faults are what the lost commits have left behind.
	*Report
	// Damage says what is wrong with the damaged file.
	Damage error
	// Kept is the number of commits of the journal that the new file has, and Dropped that of
	// those that it has not; if AtLeast is set there may have been more.
	Kept, Dropped int64
	AtLeast       bool
	// LastKept is the time of the last commit that was kept, FirstDropped and LastDropped those
	// of the first and the last one that were not, as the clock then said. They are zero where
	// the file does not tell.
	LastKept, FirstDropped, LastDropped time.Time
	// Mixed tells that single writes of dropped commits can be in the new file: they were in
	// their places already, and what was there before is gone.
	Mixed bool
}

// errWhole is the error of a file that needs no salvage.
var errWhole = errors.New("it is not damaged where it could be salvaged: dpareto restore and dpareto backup copy it as it is")

// Salvage makes a new file at path of what is whole in the file from, whose journal, or list of
// free pages, is damaged: what is in its place, and the commits of the journal before the
// first that is damaged. Whatever else is damaged is an error that matches store.ErrCorrupt.
// It changes nothing in the file from, and returns store.ErrLocked when a server has it open.
//
// Each commit is kept whole or dropped, and all that was committed before a kept one is kept,
// with one exception (see Salvaged.Mixed): a program that was moving writes of several
// commits to their places may have come to some of a dropped one. A key that a kept commit
// of the journal wrote has what that commit wrote.
func Salvage(ctx context.Context, from, path string) (_ *Salvaged, err error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, &os.PathError{Op: "create", Path: path, Err: os.ErrExist}
	}
	db, file, err := openFile(from, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	defer catchFault(from, &err)()
	s := &Salvaged{}
	err = db.View(func(tx *bbolt.Tx) error {
		if s.Damage = damageOf(ctx, tx, file); s.Damage == nil {
			return fmt.Errorf("%s: %w", from, errWhole)
		}
		p, err := newPages(tx, file)
		if err != nil {
			return err
		}
		p.stop = ctx.Err
		kept, err := s.read(p)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%s: what is in its place is damaged: %w; %s", from, err, advice)
		}
		fill := func(target *os.File) error {
			return rewrite(target.Name(), func(to *bbolt.DB) error { return copyKeys(ctx, tx, kept, to) })
		}
		// A copy with faults is better than none, and nobody takes it for a sound one.
		s.Report, err = writeFile(ctx, path, false, fill, func(*Report) error { return nil })
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// damageOf returns what is damaged in a file.
func damageOf(ctx context.Context, tx *bbolt.Tx, file *os.File) error {
	if _, err := readJournal(tx, file); err != nil {
		return err
	}
	p, err := newPages(tx, file)
	if err == nil {
		p.stop = ctx.Err
		_, err = p.check()
	}
	return err
}

// read returns the writes of the commits that are kept, and counts them and the others. Its
// error tells of damage outside of the journal.
func (s *Salvaged) read(p *pages) (*table, error) {
	buckets, err := p.buckets()
	if err != nil {
		return nil, err
	}
	if err := p.places(buckets, func(element) error { return nil }); err != nil {
		return nil, err
	}
	o := &overlaid{young: newTable()}
	var last uint64
	damaged := false
	err = p.journal(buckets, func(r record) error {
		if last = max(last, r.number); !damaged {
			var writes []func()
			set := func(key string, value []byte) { writes = append(writes, func() { o.young.set(key, value) }) }
			if err := o.replay(r, set); err == nil {
				for _, write := range writes {
					write()
				}
				s.Kept++
				s.LastKept = r.time
				return nil
			}
			damaged, s.FirstDropped = true, r.time
			if o.last == 0 {
				o.last = r.number - 1
			}
		}
		s.LastDropped = r.time
		return nil
	})
	if err := p.stop(); err != nil {
		return nil, err
	}
	// What was noted tells of records that cannot be seen any more.
	noted, places := buckets[string(journalBucket)].sequence(), buckets[string(root)].sequence()
	s.AtLeast = err != nil && noted == 0 || noted != 0 && last == 0
	if noted != 0 && last == 0 {
		o.last = min(noted, places-1)
	}
	last = max(last, noted, o.last)
	s.Dropped = int64(last - o.last)
	s.Mixed = (s.Dropped > 0 || s.AtLeast) && (noted == 0 || s.AtLeast || places > o.last+1)
	return o.young, nil
}

// copyKeys writes what a transaction beneath a table has to an empty file.
func copyKeys(ctx context.Context, tx *bbolt.Tx, kept *table, to *bbolt.DB) (err error) {
	from, err := newReader(tx, []*table{kept})
	if err != nil {
		return err
	}
	var writing *bbolt.Tx
	defer func() {
		if writing != nil {
			err = errors.Join(err, writing.Rollback())
		}
	}()
	var bucket *bbolt.Bucket
	begin := func() error {
		if writing, err = to.Begin(true); err != nil {
			return err
		}
		if bucket, err = writing.CreateBucketIfNotExists(root); err == nil {
			bucket.FillPercent = fillPercent
		}
		return err
	}
	end := func() error {
		err := writing.Commit()
		writing = nil
		return err
	}
	if err := begin(); err != nil {
		return err
	}
	size := 0
	err = from.Scan("", "", func(key string, value []byte) (bool, error) {
		if size += len(key) + len(value); size > compactBytes {
			size = 0
			if err := errors.Join(ctx.Err(), end()); err != nil {
				return false, err
			}
			if err := begin(); err != nil {
				return false, err
			}
		}
		return true, bucket.Put([]byte(key), value)
	})
	if err != nil {
		return err
	}
	return end()
}

package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpareto/dpareto/server/store"
)

// Scratch implements store.Files. The file is in [os.TempDir].
func (d *DB) Scratch() (*os.File, error) {
	file, err := store.ScratchIn(os.TempDir(), "dpareto")
	if err != nil {
		return nil, store.Unwritable(err)
	}
	return file, nil
}

// Snapshot implements store.Files. The file is a dump (see store.WriteDump).
func (d *DB) Snapshot(ctx context.Context) (*os.File, error) {
	file, err := d.Scratch()
	if err != nil {
		return nil, err
	}
	if err = store.WriteDump(file, store.All(ctx, d)); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// fenced runs fn in a transaction that ends before another process can take the store alone, and is refused
// if one has.
func (d *DB) fenced(ctx context.Context, fn func(pgx.Tx) error) error {
	if f := d.failure.Load(); f != nil {
		return f
	}
	tx, err := d.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // of nothing after a commit
	var b pgx.Batch
	var epoch int64
	var now time.Time
	d.owner.queueFence(&b)
	d.owner.queueEpoch(&b, &epoch, &now)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	if epoch != d.owner.epoch {
		return d.fail(fencedReason, errFenced)
	}
	if err := fn(tx); err != nil {
		return err
	}
	// A commit that is interrupted may have happened or not.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return tx.Commit(ctx)
}

// Fill writes records to an empty store, all or none. Like an Update it is refused if another process has
// had the store alone since Open.
func (d *DB) Fill(ctx context.Context, records store.Records) error {
	return d.fenced(ctx, func(tx pgx.Tx) error {
		var holds bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM dpareto_records)").Scan(&holds); err != nil {
			return err
		}
		if holds {
			return fmt.Errorf("%s: %w", d.name, errNotEmpty)
		}
		var rows [][]any
		size := 0
		flush := func(to string) error {
			_, err := tx.CopyFrom(ctx, pgx.Identifier{to}, []string{"key", "value"}, pgx.CopyFromRows(rows))
			rows, size = rows[:0], 0
			return err
		}
		to := table("")
		err := records(func(key string, value []byte) error {
			if next := table(key); next != to || size > fillBytes {
				if err := flush(to); err != nil {
					return err
				}
				to = next
			}
			size += len(key) + len(value)
			rows = append(rows, []any{[]byte(key), bytes.Clone(value)})
			return nil
		})
		if err != nil {
			return err
		}
		return flush(to)
	})
}

// Compact returns the space of deleted records to the file system, and the size before and after in
// bytes. It rewrites the tables, and needs as much space for as long.
func (d *DB) Compact(ctx context.Context) (before, after int64, err error) {
	before = d.Stats(ctx).Size
	for _, name := range []string{table(""), table("\x00"), "dpareto_scopes"} {
		if _, err := d.pool.Exec(ctx, "VACUUM (FULL, ANALYZE) "+name); err != nil {
			return 0, 0, fmt.Errorf("%s: %w", d.name, err)
		}
	}
	return before, d.Stats(ctx).Size, nil
}

// Clear removes all records, unless another process has had the store alone since Open.
func (d *DB) Clear(ctx context.Context) error {
	return d.fenced(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "TRUNCATE dpareto_records, dpareto_totals")
		return err
	})
}

// fillBytes is how much Fill sends at a time.
const fillBytes = 16 << 20

// errNotEmpty says that a store would be written over.
var errNotEmpty = errors.New("it already holds a store")

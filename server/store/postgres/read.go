package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpareto/dpareto/server/store"
)

// The rows that a Scan reads at a time: first a few, then as many as have about scanBytes.
const (
	firstRows = 16
	mostRows  = 1024
	scanBytes = 1 << 20
)

// reader is a store.Reader within a transaction.
type reader struct {
	db     *DB
	conn   *pgx.Conn
	caller context.Context   //nolint:containedctx // of the View; nil in an Update
	known  map[string][]byte // in an Update: values that it has read or written; nil for no record
	err    error             // of the first statement that failed: the transaction is of no more use
}

// statement calls fn with a context for one statement. A caller who goes away does not break the
// connection.
func (r *reader) statement(fn func(ctx context.Context) error) error {
	if r.err != nil {
		return r.err
	}
	parent := context.Background()
	if r.caller != nil {
		if err := r.caller.Err(); err != nil {
			return err
		}
		parent = context.WithoutCancel(r.caller)
	}
	ctx, cancel := context.WithTimeout(parent, r.db.answer)
	defer cancel()
	r.err = fn(ctx)
	if r.err != nil && r.caller != nil {
		r.err = r.db.unreachable(r.caller, r.err)
	}
	return r.err
}

// run calls fn in a transaction with one snapshot.
func (r *reader) run(fn func(store.Reader) error) error {
	const begin = "begin read only isolation level repeatable read; select 1" // the first query takes the snapshot
	if err := r.exec(begin); err != nil {
		return err
	}
	defer func() {
		r.caller = context.WithoutCancel(r.caller) // who may have gone
		_ = r.exec("rollback")                     // nothing was written
	}()
	return fn(r)
}

// Time implements store.Timed: for ages, which need no exact time.
func (r *reader) Time() (now, since time.Time) { return r.db.clock.now() }

// exec runs a statement without a result.
func (r *reader) exec(sql string) error {
	return r.statement(func(ctx context.Context) error {
		_, err := r.conn.Exec(ctx, sql)
		return err
	})
}

// table returns the table for keys with a prefix.
func table(prefix string) string {
	if strings.HasPrefix(prefix, "\x00") {
		return "dpareto_totals"
	}
	return "dpareto_records"
}

// Get implements store.Reader.
func (r *reader) Get(key string) (value []byte, err error) {
	if had, known := r.known[key]; known {
		return had, nil
	}
	err = r.statement(func(ctx context.Context) error {
		err := r.conn.QueryRow(ctx, "SELECT value FROM "+table(key)+" WHERE key = $1", []byte(key)).Scan(&value)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err == nil && r.known != nil {
		r.known[key] = value
	}
	return value, err
}

// row is a record.
type row struct{ key, value []byte }

// Scan implements store.Reader.
func (r *reader) Scan(prefix, from string, fn func(string, []byte) (bool, error)) error {
	start, limit := []byte(max(prefix, from)), firstRows
	sql, args := "SELECT key, value FROM "+table(prefix)+" WHERE key >= $1", []any{nil, nil}
	if end := after(prefix); end != "" {
		sql, args = sql+" AND key < $3", append(args, []byte(end))
	}
	sql += " ORDER BY key LIMIT $2"
	for {
		var rows []row
		err := r.statement(func(ctx context.Context) (err error) {
			args[0], args[1] = start, limit
			found, err := r.conn.Query(ctx, sql, args...)
			if err == nil {
				rows, err = pgx.CollectRows(found, func(one pgx.CollectableRow) (read row, err error) {
					return read, one.Scan(&read.key, &read.value)
				})
			}
			return err
		})
		if err != nil {
			return err
		}
		size := 1
		for _, one := range rows {
			if more, err := fn(string(one.key), one.value); !more || err != nil {
				return err
			}
			size += len(one.value)
		}
		if len(rows) < limit {
			return nil
		}
		last := rows[len(rows)-1].key
		start = append(last, 0) //nolint:gocritic // the next key that is possible
		limit = min(mostRows, max(firstRows, scanBytes/size*len(rows)))
	}
}

// after returns the first string behind all that have a prefix, "" for none.
func after(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}

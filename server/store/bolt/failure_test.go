package bolt

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/storetest"
)

// failing opens a store whose commits go through commit.
func failing(t *testing.T, path string, commit func(*bbolt.Tx) error) *DB {
	t.Helper()
	d, err := newDB(path, toWrite)
	require.NoError(t, err)
	d.commitTx = commit
	d.writer.Go(d.write)
	return d
}

// rolledBack fails a commit as bbolt does when pages cannot be written.
func rolledBack(tx *bbolt.Tx, cause error) error { return errors.Join(tx.Rollback(), cause) }

// A full disk refuses Updates one by one: nothing of them is left, and the next is tried anew.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	random := rand.New(rand.NewPCG(1, 1))
	var cause error
	d := failing(t, path, func(tx *bbolt.Tx) error {
		if cause != nil {
			return rolledBack(tx, cause)
		}
		return tx.Commit()
	})
	committed := make(map[string]string)
	for step := range 60 {
		cause = []error{nil, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}[random.IntN(4)]
		wanted := maps.Clone(committed)
		err := d.Update(t.Context(), nil, func(tx store.ReadWriter) error {
			for range 1 + random.IntN(6) {
				key := strconv.Itoa(random.IntN(40))
				if random.IntN(3) == 0 {
					tx.Delete(key)
					delete(wanted, key)
					continue
				}
				wanted[key] = strconv.Itoa(step) + strings.Repeat("x", random.IntN(20_000))
				tx.Put(key, []byte(wanted[key]))
			}
			return nil
		})
		if cause == nil {
			require.NoError(t, err)
			committed = wanted
		} else if unwritable, ok := errors.AsType[*store.UnwritableError](err); !ok || !unwritable.Full || !errors.Is(err, cause) || strings.Contains(unwritable.Reason, path) {
			t.Fatalf("Update returned %v", err)
		}
		if diff := cmp.Diff(committed, storetest.Dump(t, d)); diff != "" {
			t.Fatalf("with %v: %s", cause, diff)
		}
		copyFile(t, path, path+".crashed")
		if got := contents(t, path+".crashed"); !maps.Equal(got, committed) {
			t.Fatalf("after a crash: %s", cmp.Diff(committed, got))
		}
	}
	require.NoError(t, d.Close())
	if diff := cmp.Diff(committed, contents(t, path)); diff != "" {
		t.Fatalf("opened again: %s", diff)
	}
}

// After any other failed commit, and after one of which nobody knows whether it counts, everything
// is refused, and Close says why. What was acknowledged before is there when the file is opened again.
func TestFailed(t *testing.T) {
	for name, commit := range map[string]func(*bbolt.Tx) error{
		"not written":   func(tx *bbolt.Tx) error { return rolledBack(tx, syscall.EIO) },
		"read-only":     func(tx *bbolt.Tx) error { return rolledBack(tx, syscall.EROFS) },
		"not synced":    func(tx *bbolt.Tx) error { return errors.Join(tx.Commit(), syscall.EIO) },
		"full and seen": func(tx *bbolt.Tx) error { return errors.Join(tx.Commit(), syscall.ENOSPC) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			d := failing(t, path, (*bbolt.Tx).Commit)
			put(t, d, "before", "1")
			d.commitTx = commit
			write := func() error {
				return d.Update(t.Context(), nil, func(tx store.ReadWriter) error { tx.Put("after", []byte("2")); return nil })
			}
			if err := write(); !errors.Is(err, store.ErrUnwritable) {
				t.Errorf("Update returned %v", err)
			}
			<-d.Failed()
			d.commitTx = (*bbolt.Tx).Commit
			if err := write(); !errors.Is(err, store.ErrUnwritable) {
				t.Errorf("the next Update returned %v", err)
			}
			err := d.View(t.Context(), func(tx store.Reader) error {
				value, err := tx.Get("after")
				if value != nil {
					t.Error("what was refused is seen")
				}
				return err
			})
			if err != nil && !errors.Is(err, store.ErrUnwritable) {
				t.Errorf("View returned %v", err)
			}
			if err := d.Close(); !errors.Is(err, store.ErrUnwritable) {
				t.Errorf("Close returned %v", err)
			}
			if got := contents(t, path); got["before"] != "1" {
				t.Errorf("what was acknowledged is lost: %v", got)
			}
		})
	}
}

// A panic of bbolt in a commit ends the store, not the process.
func TestPanicInCommit(t *testing.T) {
	d := failing(t, filepath.Join(t.TempDir(), "store.db"), func(*bbolt.Tx) error { panic("page 7 already freed") })
	err := d.Update(t.Context(), nil, func(tx store.ReadWriter) error { tx.Put("a", nil); return nil })
	if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "page 7") {
		t.Errorf("Update returned %v", err)
	}
	<-d.Failed()
	if err := d.Close(); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Close returned %v", err)
	}
}

// Who reads while a commit is under way reads it when it is durable, and if it fails never.
func TestReadsWhatIsDurable(t *testing.T) {
	for _, cause := range []error{nil, syscall.EIO} {
		path := filepath.Join(t.TempDir(), "store.db")
		d := failing(t, path, (*bbolt.Tx).Commit)
		put(t, d, "key", "before")
		type answer struct {
			value string
			err   error
		}
		answered := make(chan answer, 1)
		get := func(ctx context.Context) (a answer) {
			a.err = d.View(ctx, func(tx store.Reader) error {
				v, err := tx.Get("key")
				a.value = string(v)
				return err
			})
			return a
		}
		d.commitTx = func(tx *bbolt.Tx) error {
			if err := tx.Commit(); err != nil {
				return err
			}
			go func() { answered <- get(context.Background()) }()
			for d.db.Stats().OpenTxN == 0 && len(answered) == 0 {
				runtime.Gosched()
			}
			if len(answered) > 0 {
				t.Error("a reader got what was not durable yet")
			}
			ended, end := context.WithCancel(t.Context())
			other := make(chan answer)
			go func() { other <- get(ended) }()
			for d.db.Stats().OpenTxN < 2 {
				runtime.Gosched()
			}
			end()
			if a := <-other; !errors.Is(a.err, context.Canceled) {
				t.Errorf("a reader whose context has ended got error %v", a.err)
			}
			return cause
		}
		err := d.Update(t.Context(), nil, func(tx store.ReadWriter) error { tx.Put("key", []byte("after")); return nil })
		if !errors.Is(err, cause) {
			t.Errorf("Update returned %v", err)
		}
		if a := <-answered; cause == nil && (a.value != "after" || a.err != nil) || cause != nil && !errors.Is(a.err, store.ErrUnwritable) {
			t.Errorf("with %v a reader during the commit got %q, %v", cause, a.value, a.err)
		}
		d.commitTx = (*bbolt.Tx).Commit
		if err := d.Close(); (err != nil) != (cause != nil) {
			t.Error(err)
		}
	}
}

// A damaged meta page under a running store does not undo what was acknowledged in silence.
func TestMetaPageDamagedWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := failing(t, path, (*bbolt.Tx).Commit)
	for _, value := range []string{"1", "2", "3"} {
		put(t, d, "key", value)
	}
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, require.ErrOf(file.WriteAt([]byte{content[latestMeta(content)+metaChecksum] ^ 1}, int64(latestMeta(content)+metaChecksum))))
	require.NoError(t, file.Close())
	err = d.View(t.Context(), func(store.Reader) error {
		t.Error("an earlier state can be read")
		return nil
	})
	if !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("View returned %v", err)
	}
	err = d.Update(t.Context(), nil, func(store.ReadWriter) error {
		t.Error("an earlier state can be changed")
		return nil
	})
	if !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Update returned %v", err)
	}
	<-d.Failed()
	if err := d.Close(); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Close returned %v", err)
	}
}

// A file that loses its first pages under a running store hangs nobody.
func TestFirstPagesLost(t *testing.T) {
	for _, size := range []int{0, pageSize} {
		path := filepath.Join(t.TempDir(), "store.db")
		d, err := Open(path)
		require.NoError(t, err)
		put(t, d, "key", "1")
		require.NoError(t, os.Truncate(path, int64(size)))
		for range 2 {
			err := d.View(t.Context(), func(tx store.Reader) error { _, err := tx.Get("key"); return err })
			if !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("View returned %v", err)
			}
		}
		err = d.Update(t.Context(), nil, func(tx store.ReadWriter) error { tx.Put("key", []byte("2")); return nil })
		if !errors.Is(err, store.ErrUnwritable) {
			t.Errorf("Update returned %v", err)
		}
		<-d.Failed()
		if err := d.Close(); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("Close returned %v", err)
		}
	}
}

// Whoever was refused because of what a neighbour in the same commit had written learns
// nothing from it if the commit fails.
func TestRefusedByWhatIsNotDurable(t *testing.T) {
	refused := errors.New("refused")
	for _, cause := range []error{nil, syscall.ENOSPC} {
		d, err := newDB(filepath.Join(t.TempDir(), "store.db"), toWrite)
		require.NoError(t, err)
		if cause != nil {
			d.commitTx = func(tx *bbolt.Tx) error { return rolledBack(tx, cause) }
		}
		refuse := func(tx store.ReadWriter) error {
			if value, err := tx.Get("key"); value == nil || err != nil {
				return err
			}
			return refused
		}
		write := func(tx store.ReadWriter) error { tx.Put("key", []byte("x")); return nil }
		var batch []*update
		for _, fn := range []func(store.ReadWriter) error{write, refuse} {
			batch = append(batch, &update{ctx: t.Context(), fn: fn, done: make(chan error, 1)})
		}
		d.commit(batch)
		want := refused
		if cause != nil {
			want = cause
		}
		if first, second := <-batch[0].done, <-batch[1].done; !errors.Is(first, cause) || !errors.Is(second, want) {
			t.Errorf("with %v the answers are %v and %v", cause, first, second)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A store that is open for reading refuses writes, and others may read it.
func TestReadOnly(t *testing.T) {
	path := filled(t, 2)
	want := contents(t, path)
	d, err := OpenReadOnly(path)
	require.NoError(t, err)
	if diff := cmp.Diff(want, contents(t, path)); diff != "" {
		t.Error(diff)
	}
	err = d.Update(t.Context(), nil, func(tx store.ReadWriter) error { tx.Put("a", nil); return nil })
	if !errors.Is(err, store.ErrUnwritable) {
		t.Errorf("Update returned %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := OpenReadOnly(filepath.Join(t.TempDir(), "none.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}

// What cannot be opened is named, with what to do.
func TestOpenErrors(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{"empty": "", "short": "short", "text": strings.Repeat("text ", 5000)} {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		if _, err := OpenReadOnly(path); err == nil || !strings.Contains(err.Error(), path) || !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package bolt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/server/store"
)

// openFast opens a store that tries again at once after a failure.
func openFast(t testing.TB, path string) *DB {
	t.Helper()
	d, err := newDB(path, false)
	if err != nil {
		t.Fatal(err)
	}
	d.retryEvery, d.generation = time.Microsecond, 32<<10
	d.writer.Go(d.write)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *DB) strikeOnce(at moment, cause error) {
	var struck atomic.Bool
	fault := func(m moment) error {
		if m != at || struck.Swap(true) {
			return nil
		}
		return cause
	}
	d.fault.Store(&fault)
}

// awaitHealth waits until the store can be written again.
func awaitHealth(t testing.TB, d *DB) {
	t.Helper()
	for d.Health() != nil {
		if t.Context().Err() != nil {
			t.Fatal("the store does not recover: ", d.Health())
		}
		if err := d.Update(context.Background(), func(store.ReadWriter) error { return nil }); err != nil && !errors.Is(err, store.ErrUnwritable) {
			t.Fatal(err)
		}
	}
}

// TestRecoversUnderLoad: clients that try again more often than the store does must not
// keep it from trying.
func TestRecoversUnderLoad(t *testing.T) {
	d, err := newDB(filepath.Join(t.TempDir(), "test.db"), false)
	if err != nil {
		t.Fatal(err)
	}
	d.retryEvery = 100 * time.Millisecond
	d.writer.Go(d.write)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	d.strikeOnce(beforeCommit, syscall.EIO)
	put := func() error {
		return d.Update(t.Context(), func(tx store.ReadWriter) error { tx.Put("key", nil); return nil })
	}
	if err := put(); !errors.Is(err, store.ErrUnwritable) {
		t.Fatalf("the update gave %v, want an error of the store", err)
	}
	const attempts = 1 << 20 // take far longer than the time between two attempts
	for range attempts {
		if put() == nil {
			return
		}
	}
	t.Fatalf("%d updates, one after the other, kept the store from recovering: %v", attempts, d.Health())
}

// contents returns what a copy of the file holds, and checks that it is sound.
func contents(t testing.TB, path string) map[string]string {
	t.Helper()
	d, err := OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	_, faults := d.check(context.Background())
	for _, fault := range faults {
		t.Errorf("%s: %v", path, fault)
	}
	return dump(t, d)
}

// copyFile copies the file as another process would find it.
func copyFile(t testing.TB, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A failed commit is undone whatever failed, in memory and on disk, and the store can be
// written again afterwards. What is on disk meanwhile, should the process end then, is
// sound, and has the failed commit whole or not at all.
func TestFailedCommits(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { failCommits(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func failCommits(t *testing.T, random *rand.Rand) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := openFast(t, path)
	committed := make(map[string]string)
	for step := range 25 {
		at := []moment{-1, beforeCommit, afterCommit, whileTakingBack}[random.IntN(4)]
		cause := []error{syscall.EIO, syscall.ENOSPC, syscall.EROFS}[random.IntN(3)]
		crashed, struck := false, 0
		fault := func(m moment) error {
			switch {
			case at == whileTakingBack && m == afterCommit && !crashed && struck == 0:
				return cause
			case m != at || struck == 2:
				return nil
			}
			if struck++; !crashed {
				crashed = true
				copyFile(t, path, path+".crashed")
			}
			return cause
		}
		d.fault.Store(&fault)
		wanted := maps.Clone(committed)
		err := d.Update(t.Context(), func(tx store.ReadWriter) error {
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
		if at == -1 {
			if err != nil {
				t.Fatal(err)
			}
			committed = wanted
			continue
		}
		unwritable, ok := errors.AsType[*store.UnwritableError](err)
		if !ok || !errors.Is(err, cause) || strings.Contains(unwritable.Reason, path) {
			t.Fatalf("Update returned %v", err)
		}
		awaitHealth(t, d)
		if diff := cmp.Diff(committed, dump(t, d)); diff != "" {
			t.Fatalf("after a failed commit: %s", diff)
		}
		if got := contents(t, path+".crashed"); !maps.Equal(got, committed) && !maps.Equal(got, wanted) {
			t.Fatalf("after a crash the failed commit is there in part: %s", cmp.Diff(committed, got))
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(committed, contents(t, path)); diff != "" {
		t.Fatalf("opened again: %s", diff)
	}
}

// While a store cannot be written reads go on, and Updates are refused at once, by a
// reason for anybody and details for the log.
func TestRefusesWhileFailed(t *testing.T) {
	d := open(t)
	put(t, d, "a", "1")
	d.strikeOnce(beforeCommit, syscall.ENOSPC)
	for range 3 {
		err := d.Update(t.Context(), func(tx store.ReadWriter) error {
			tx.Put("a", []byte("2"))
			return nil
		})
		if !errors.Is(err, store.ErrUnwritable) || !strings.Contains(err.Error(), "no space is left on the device") {
			t.Errorf("Update returned %v", err)
		}
		if !errors.Is(d.Health(), store.ErrUnwritable) {
			t.Errorf("healthy: %v", d.Health())
		}
		if got := dump(t, d)["a"]; got != "1" {
			t.Errorf("a = %q", got)
		}
	}
	if got := d.Stats().Failures; got != 1 {
		t.Errorf("%d commits failed, want 1: the rest must not be tried", got)
	}
}

// A watcher hears of a failure once, and of its end.
func TestWatch(t *testing.T) {
	d := openFast(t, filepath.Join(t.TempDir(), "store.db"))
	changes := make(chan error, 10)
	d.Watch(func(err error) { changes <- err })
	put(t, d, "a", "1")
	var struck atomic.Int64
	fault := func(m moment) error {
		if m != whileTakingBack && struck.Add(1) <= 3 { // also the first attempts to go on
			return syscall.EIO
		}
		return nil
	}
	d.fault.Store(&fault)
	if err := d.Update(t.Context(), func(tx store.ReadWriter) error { tx.Put("a", nil); return nil }); err == nil {
		t.Error("the Update did not fail")
	}
	if err := <-changes; !errors.Is(err, store.ErrUnwritable) {
		t.Errorf("first change: %v", err)
	}
	if err := <-changes; err != nil {
		t.Errorf("second change: %v", err)
	}
	if d.Health() != nil || d.Stats().Failures != 3 {
		t.Errorf("health %v after %d failures, want 3", d.Health(), d.Stats().Failures)
	}
}

// A file that somebody put in the place of the store is not written to.
func TestReplacedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := openFast(t, path)
	put(t, d, "a", "1")
	copyFile(t, path, path+".other")
	if err := os.Rename(path+".other", path); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d.strikeOnce(beforeCommit, syscall.EIO)
	var last error
	for last == nil || !strings.Contains(last.Error(), "replaced by another file") {
		last = d.Update(t.Context(), func(tx store.ReadWriter) error { tx.Put("a", []byte("2")); return nil })
		if last == nil {
			t.Fatal("a store whose file is gone was written")
		}
	}
	if got := dump(t, d)["a"]; got != "1" {
		t.Errorf("a = %q", got)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the other file was changed: %v", err)
	}
}

// Readers and writers go on while commits fail now and then: every acknowledged write is
// there in the end, and no other.
func TestFailuresUnderLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := openFast(t, path)
	var n atomic.Int64
	fault := func(m moment) error {
		if k := n.Add(1); (m == afterCommit && k%5 == 0) || (m == beforeCommit && k%7 == 0) {
			return syscall.EIO
		}
		return nil
	}
	d.fault.Store(&fault)
	var mu sync.Mutex
	acknowledged := make(map[string]string)
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			for i := range 60 {
				key := fmt.Sprintf("%d/%02d", w, i)
				err := d.Update(context.Background(), func(tx store.ReadWriter) error { tx.Put(key, []byte("x")); return nil })
				switch {
				case err == nil:
					mu.Lock()
					acknowledged[key] = "x"
					mu.Unlock()
				case !errors.Is(err, store.ErrUnwritable):
					t.Error(err)
				}
				if err := d.View(context.Background(), func(tx store.Reader) error { _, err := tx.Get(key); return err }); err != nil {
					t.Error(err)
				}
				d.Stats()
			}
		})
	}
	workers.Wait()
	none := func(moment) error { return nil }
	d.fault.Store(&none)
	awaitHealth(t, d)
	if len(acknowledged) == 0 || d.Stats().Failures == 0 {
		t.Fatalf("%d acknowledged, %d commits failed", len(acknowledged), d.Stats().Failures)
	}
	if diff := cmp.Diff(acknowledged, dump(t, d)); diff != "" {
		t.Error(diff)
	}
	if got := d.Stats(); got.Updates != int64(len(acknowledged)) || got.Syncs != 2*got.Commits || got.Commits > got.Updates {
		t.Errorf("%d writes were acknowledged, counted: %+v", len(acknowledged), got)
	}
}

func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	if _, err := OpenReadOnly(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
	d := openFast(t, path)
	put(t, d, "a", "1")
	if _, err := OpenReadOnly(path); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a file that is written: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	reader, err := OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := dump(t, reader)["a"]; got != "1" {
		t.Errorf("a = %q", got)
	}
	if err := reader.Update(t.Context(), func(store.ReadWriter) error { return nil }); !errors.Is(err, store.ErrUnwritable) {
		t.Errorf("Update returned %v", err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
}

// What is in the way is named.
func TestOpenErrors(t *testing.T) {
	folder := t.TempDir()
	if _, err := Open(folder); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("a folder: %v", err)
	}
	missing := filepath.Join(folder, "none", "store.db")
	if _, err := Open(missing); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("a folder that does not exist: %v", err)
	}
	short := filepath.Join(folder, "short.db")
	if err := os.WriteFile(short, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(short); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "restore it from a backup") {
		t.Errorf("a short file: %v", err)
	}
}

// A store can be read when it could be opened again and not be written, whatever became of
// the attempt.
func TestReadsAfterFailedProof(t *testing.T) {
	d, err := newDB(filepath.Join(t.TempDir(), "store.db"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	write := func(value string) error {
		u := &update{ctx: t.Context(), done: make(chan error, 1), fn: func(tx store.ReadWriter) error { tx.Put("key", []byte(value)); return nil }}
		d.commit([]*update{u})
		return <-u.done
	}
	read := func(want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := d.View(ctx, func(r store.Reader) error {
			value, err := r.Get("key")
			if string(value) != want {
				t.Errorf("read %q, want %q", value, want)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := write("1"); err != nil {
		t.Fatal(err)
	}
	fault := func(m moment) error {
		if m == afterCommit {
			return syscall.EIO
		}
		return nil
	}
	d.fault.Store(&fault)
	if err := write("2"); !errors.Is(err, store.ErrUnwritable) {
		t.Fatalf("the update gave %v, want an error of the store", err)
	}
	for range 3 {
		d.recover()
		read("1")
	}
	d.fault.Store(nil)
	d.recover()
	read("1")
	for i := range 3 {
		if err := write(strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
		read(strconv.Itoa(i))
		if o := d.overlaid.Load(); o.liesOver(o.transaction - 1) {
			t.Errorf("the tables of write %d are taken for those of the transaction before", i)
		}
	}
}

// A copy, whose first pages have other numbers than those of the file that it was made of, can
// be read and goes on when its first commit fails.
func TestFirstCommitOfCopyFails(t *testing.T) {
	for commits := range 2 {
		for _, at := range []moment{beforeCommit, afterCommit} {
			source := open(t)
			for i := range 3 + commits {
				put(t, source, "key", strconv.Itoa(i))
			}
			path := filepath.Join(t.TempDir(), "copy.db")
			file, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(source.CopyTo(t.Context(), file), file.Close()); err != nil {
				t.Fatal(err)
			}
			want := dump(t, source)
			d, err := newDB(path, false)
			if err != nil {
				t.Fatal(err)
			}
			write := func(value string) error {
				u := &update{ctx: t.Context(), done: make(chan error, 1), fn: func(tx store.ReadWriter) error { tx.Put("key", []byte(value)); return nil }}
				d.commit([]*update{u})
				return <-u.done
			}
			read := func(when string) {
				t.Helper()
				tx, err := d.beginLatest()
				if err != nil {
					t.Fatal(err)
				}
				id := tx.ID()
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
				if o := d.overlaid.Load(); !o.liesOver(id) { // readers would wait for ever
					t.Fatalf("%s: readers find transaction %d, the tables belong to %d", when, id, o.transaction)
				}
				if diff := cmp.Diff(want, dump(t, d)); diff != "" {
					t.Errorf("%s: %s", when, diff)
				}
			}
			read("opened")
			d.strikeOnce(at, syscall.EIO)
			if err := write("failed"); !errors.Is(err, syscall.EIO) {
				t.Fatalf("the update gave %v", err)
			}
			read("after the failure")
			if err := os.Rename(path, path+".away"); err != nil { // it cannot be opened again
				t.Fatal(err)
			}
			d.recover()
			read("taken back")
			if err := os.Rename(path+".away", path); err != nil {
				t.Fatal(err)
			}
			d.recover()
			read("recovered")
			for i := range 2 {
				if err := write(strconv.Itoa(i)); err != nil {
					t.Fatal(err)
				}
				want["key"] = strconv.Itoa(i)
				read("written")
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

package bolt

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/dpareto/dpareto/server/store"
)

// Who reads while a commit is under way reads it when it is durable, and if it fails
// reads what was there before, as everybody does from then on.
func TestReadsWhatIsDurable(t *testing.T) {
	for _, cause := range []error{nil, syscall.EIO} {
		d, err := newDB(filepath.Join(t.TempDir(), "store.db"), false)
		if err != nil {
			t.Fatal(err)
		}
		d.retryEvery = time.Hour // it stays as it is after the failure
		d.writer.Go(d.write)
		put := func(value string) error {
			return d.Update(t.Context(), func(tx store.ReadWriter) error { tx.Put("key", []byte(value)); return nil })
		}
		get := func() (value string) {
			err := d.View(t.Context(), func(tx store.Reader) error {
				v, err := tx.Get("key")
				value = string(v)
				return err
			})
			if err != nil {
				t.Error(err)
			}
			return value
		}
		if err := put("before"); err != nil {
			t.Fatal(err)
		}
		answered := make(chan string, 1)
		fault := func(m moment) error {
			if m != afterCommit {
				return nil
			}
			go func() { answered <- get() }()
			for d.db.Stats().OpenTxN == 0 && len(answered) == 0 {
				runtime.Gosched()
			}
			if len(answered) > 0 {
				t.Error("a reader got what was not durable yet")
			}
			ended, end := context.WithCancel(t.Context())
			end()
			if _, _, err := d.begin(ended); !errors.Is(err, context.Canceled) {
				t.Errorf("a reader whose context has ended got error %v", err)
			}
			return cause
		}
		d.fault.Store(&fault)
		want := "after"
		if cause != nil {
			want = "before"
		}
		if err := put("after"); !errors.Is(err, cause) {
			t.Errorf("Update returned %v", err)
		}
		if got := <-answered; got != want {
			t.Errorf("with %v a reader during the commit got %q, want %q", cause, got, want)
		}
		if got := get(); got != want {
			t.Errorf("with %v a reader after the commit got %q, want %q", cause, got, want)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Whoever was refused because of what a neighbour in the same commit had written learns
// nothing from it if the commit fails.
func TestRefusedByWhatIsNotDurable(t *testing.T) {
	refused := errors.New("refused")
	for _, cause := range []error{nil, syscall.EIO} {
		d, err := newDB(filepath.Join(t.TempDir(), "store.db"), false)
		if err != nil {
			t.Fatal(err)
		}
		if cause != nil {
			d.strikeOnce(afterCommit, cause)
		}
		refuse := func(tx store.ReadWriter) error {
			if value, err := tx.Get("key"); value == nil || err != nil {
				return err
			}
			return refused
		}
		write := func(tx store.ReadWriter) error { tx.Put("key", []byte("x")); return nil }
		fail := func(store.ReadWriter) error { return refused }
		var batch []*update
		for _, fn := range []func(store.ReadWriter) error{fail, write, refuse} {
			batch = append(batch, &update{ctx: t.Context(), fn: fn, done: make(chan error, 1)})
		}
		d.commit(batch)
		want := refused
		if cause != nil {
			want = cause
		}
		first, second, third := <-batch[0].done, <-batch[1].done, <-batch[2].done
		if !errors.Is(first, refused) || !errors.Is(second, cause) || !errors.Is(third, want) {
			t.Errorf("with %v the answers are %v, %v and %v", cause, first, second, third)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

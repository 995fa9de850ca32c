package operate_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/operate"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/postgres"
	"github.com/dpareto/dpareto/server/store/postgres/pgtest"
)

// interrupted is a context that is cancelled when its error has been asked for some number of times.
type interrupted struct {
	context.Context

	cancel context.CancelFunc
	left   atomic.Int64
}

func (c *interrupted) Err() error {
	if c.left.Add(-1) == 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// A copy that is interrupted, at whatever moment, leaves neither a file nor a store in a database.
func TestInterruptedCopy(t *testing.T) {
	from := filepath.Join(t.TempDir(), "from.db")
	address, stop := clitest.StartServer(t, "--listen", "127.0.0.1:0", "--store", from)
	clitest.Must(t, clitest.SmallStudy, "study", "create", "-", "--server", address)
	stop()
	t.Run("file", func(t *testing.T) {
		folder := t.TempDir()
		interruptCopies(t, from, filepath.Join(folder, "to.db"), func() {
			if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
				t.Errorf("%v is left, %v", left, err)
			}
		})
	})
	t.Run("database", func(t *testing.T) {
		to := pgtest.URL(t)
		interruptCopies(t, from, to, func() {
			db, err := postgres.OpenReadOnly(t.Context(), to, postgres.Options{})
			if err == nil {
				_ = db.Close()
			}
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("a store is left: %v", err)
			}
		})
	})
}

// interruptCopies begins a copy again and again, and interrupts it later each time until one ends before.
func interruptCopies(t *testing.T, from, to string, absent func()) {
	t.Helper()
	for n := int64(1); !t.Failed(); n += 1 + n/8 {
		parent, cancel := context.WithCancel(t.Context())
		ctx := &interrupted{Context: parent, cancel: cancel}
		ctx.left.Store(n)
		_, err := operate.CopyStore(ctx, from, to, false, postgres.Options{})
		cancel()
		if err == nil {
			if n < 10 {
				t.Errorf("it is interrupted at %d moments only", n)
			}
			return
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted at %d: %v", n, err)
		}
		absent()
	}
}

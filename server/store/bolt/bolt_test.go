package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/storetest"
)

func openKV(path string) (store.KV, error) { return Open(path) }

func TestMain(m *testing.M) {
	storetest.WriteUntilKilled(openKV)
	// examineInTime gives up what bbolt never ends.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("go.etcd.io/bbolt.(*Tx).Check.func1"),
		goleak.IgnoreAnyFunction("github.com/dpareto/dpareto/server/store/bolt.examineInTime.func1"))
}

func open(t testing.TB) *DB {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "store.db"))
}

// unclosed opens a store that the caller closes.
func unclosed(t testing.TB) *DB {
	t.Helper()
	db, err := Open(filepath.Join(t.TempDir(), "store.db"))
	require.NoError(t, err)
	return db
}

func openAt(t testing.TB, path string) *DB {
	t.Helper()
	db, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// contents returns what the file of a store that nobody uses holds, and checks its structure.
func contents(t testing.TB, path string) map[string]string {
	t.Helper()
	d, err := OpenReadOnly(path)
	require.NoError(t, err)
	defer func() { _ = d.Close() }()
	for _, fault := range d.check(context.Background()) {
		t.Errorf("%s: %v", path, fault)
	}
	return storetest.Dump(t, d)
}

// copyFile copies the file as another process would find it.
func copyFile(t testing.TB, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o600)
	}
	require.NoError(t, err)
}

func put(t testing.TB, db *DB, key, value string) {
	t.Helper()
	require.NoError(t, db.Update(context.Background(), nil, func(tx store.ReadWriter) error {
		tx.Put(key, []byte(value))
		return nil
	}))
}

func TestKV(t *testing.T) { storetest.KV(t, func(t testing.TB) store.KV { return unclosed(t) }) }

func TestKilledWriter(t *testing.T) {
	storetest.Killed(t, filepath.Join(t.TempDir(), "store.db"), openKV)
}

func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	db, err := Open(path)
	require.NoError(t, err)
	if _, err := Open(path); !errors.Is(err, store.ErrLocked) {
		t.Errorf("second Open returned %v", err)
	}
	require.NoError(t, db.Close())
}

func TestNotAStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("not a database\n", 1000)), 0o600))
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Open returned %v", err)
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, parallel := range []int{1, 8, 64} {
		b.Run(strconv.Itoa(parallel), func(b *testing.B) {
			db, err := Open(filepath.Join(b.TempDir(), "store.db"))
			require.NoError(b, err)
			defer func() {
				if err := db.Close(); err != nil {
					b.Error(err)
				}
			}()
			value := make([]byte, 512)
			var next atomic.Int64
			b.SetParallelism(parallel)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					key := fmt.Sprintf("%012d", next.Add(1))
					if err := db.Update(context.Background(), nil, func(tx store.ReadWriter) error {
						tx.Put(key, value)
						return nil
					}); err != nil {
						b.Error(err)
					}
				}
			})
			stats := db.Stats()
			b.ReportMetric(float64(stats.Syncs)/float64(stats.Updates), "syncs/op")
		})
	}
}

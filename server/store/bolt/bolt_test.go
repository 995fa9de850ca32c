package bolt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/server/store"
)

// writerFile is the environment variable that makes the test binary write to a store
// until it is killed (see TestKilledWriter).
const writerFile = "DPARETO_TEST_WRITER_FILE"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerFile); path != "" {
		writeUntilKilled(path)
	}
	// examineInTime gives up what bbolt never ends.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("go.etcd.io/bbolt.(*Tx).Check.func1"),
		goleak.IgnoreAnyFunction("github.com/dpareto/dpareto/server/store/bolt.examineInTime.func1"))
}

func open(t testing.TB) *DB {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "store.db"))
}

func openAt(t testing.TB, path string) *DB {
	t.Helper()
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	for _, fault := range d.check(context.Background()) {
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

func put(t testing.TB, db *DB, key, value string) {
	t.Helper()
	err := db.Update(context.Background(), nil, func(tx store.ReadWriter) error {
		tx.Put(key, []byte(value))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// dump returns everything in the store.
func dump(t testing.TB, db *DB) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := db.View(context.Background(), func(tx store.Reader) error {
		return tx.Scan("", "", func(key string, value []byte) (bool, error) {
			all[key] = string(value)
			return true, nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Any sequence of operations gives what a map and a sort give, within a transaction
// and after it, also when transactions fail.
func TestAgainstModel(t *testing.T) {
	db := open(t)
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringOfN(rapid.RuneFrom([]rune("ab/")), 1, 4, -1)
		committed := make(map[string]string)
		if err := db.Update(context.Background(), nil, func(tx store.ReadWriter) error {
			return tx.Scan("", "", func(key string, _ []byte) (bool, error) {
				tx.Delete(key)
				return true, nil
			})
		}); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 8).Draw(t, "transactions") {
			model := maps.Clone(committed)
			fails := rapid.Bool().Draw(t, "fails")
			failure := errors.New("refused")
			err := db.Update(context.Background(), nil, func(tx store.ReadWriter) error {
				for range rapid.IntRange(0, 10).Draw(t, "operations") {
					k := key.Draw(t, "key")
					switch rapid.SampledFrom([]string{"put", "delete", "get", "scan"}).Draw(t, "operation") {
					case "put":
						value := rapid.StringN(0, 3, -1).Draw(t, "value")
						tx.Put(k, []byte(value))
						model[k] = value
					case "delete":
						tx.Delete(k)
						delete(model, k)
					case "get":
						got, err := tx.Get(k)
						if want, ok := model[k]; err != nil || (got != nil) != ok || string(got) != want {
							t.Fatalf("Get(%q) = %q, %v, want %q, %v", k, got, err, want, ok)
						}
					case "scan":
						prefix, from := k[:len(k)/2], key.Draw(t, "from")
						limit := rapid.IntRange(1, 5).Draw(t, "limit")
						checkScan(t, tx, model, prefix, from, limit)
					}
				}
				if fails {
					return failure
				}
				return nil
			})
			if fails != errors.Is(err, failure) || (!fails && err != nil) {
				t.Fatalf("Update returned %v, fails %v", err, fails)
			}
			if !fails {
				committed = model
			}
		}
		got := make(map[string]string)
		if err := db.View(context.Background(), func(tx store.Reader) error {
			checkScan(t, tx, committed, "", "", len(committed)+1)
			return tx.Scan("", "", func(key string, value []byte) (bool, error) {
				got[key] = string(value)
				return true, nil
			})
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(committed, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// checkScan compares a scan, stopped after limit keys, with the model.
func checkScan(t *rapid.T, tx store.Reader, model map[string]string, prefix, from string, limit int) {
	var want []string
	for _, key := range slices.Sorted(maps.Keys(model)) {
		if strings.HasPrefix(key, prefix) && key >= from && len(want) < limit {
			want = append(want, key+"="+model[key])
		}
	}
	var got []string
	err := tx.Scan(prefix, from, func(key string, value []byte) (bool, error) {
		got = append(got, key+"="+string(value))
		return len(got) < limit, nil
	})
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("Scan(%q, %q) gave %q, %v, want %q", prefix, from, got, err, want)
	}
}

// Updates that share a commit are isolated: one that fails or panics loses its own
// writes only.
func TestFailuresDoNotSpread(t *testing.T) {
	db := open(t)
	failure := errors.New("refused")
	var failed, panicked, written atomic.Int64
	var workers sync.WaitGroup
	for i := range 300 {
		workers.Go(func() {
			err := db.Update(context.Background(), nil, func(tx store.ReadWriter) error {
				tx.Put(fmt.Sprintf("key/%03d", i), []byte("x"))
				switch i % 3 {
				case 1:
					return failure
				case 2:
					panic("bug")
				}
				return nil
			})
			switch {
			case err == nil:
				written.Add(1)
			case errors.Is(err, failure):
				failed.Add(1)
			case strings.Contains(err.Error(), "panic in a store transaction: bug"):
				panicked.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	workers.Wait()
	if written.Load() != 100 || failed.Load() != 100 || panicked.Load() != 100 {
		t.Errorf("%d written, %d failed, %d panicked, want 100 each", written.Load(), failed.Load(), panicked.Load())
	}
	for key := range dump(t, db) {
		if n, err := strconv.Atoi(strings.TrimPrefix(key, "key/")); err != nil || n%3 != 0 {
			t.Errorf("%s was written", key)
		}
	}
}

// Increments from many goroutines are serialisable.
func TestUpdatesAreSerial(t *testing.T) {
	db := open(t)
	put(t, db, "n", "0")
	var workers sync.WaitGroup
	for range 200 {
		workers.Go(func() {
			if err := db.Update(context.Background(), nil, func(tx store.ReadWriter) error {
				value, err := tx.Get("n")
				if err != nil {
					return err
				}
				n, err := strconv.Atoi(string(value))
				tx.Put("n", []byte(strconv.Itoa(n+1)))
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	if got := dump(t, db)["n"]; got != "200" {
		t.Errorf("n = %s, want 200", got)
	}
}

func TestSnapshotIsConsistent(t *testing.T) {
	db := open(t)
	put(t, db, "a", "1")
	err := db.View(context.Background(), func(tx store.Reader) error {
		put(t, db, "a", "2")
		if value, err := tx.Get("a"); err != nil || string(value) != "1" {
			t.Errorf("the snapshot changed to %q, %v", value, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCancelled(t *testing.T) {
	db := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	called := false
	if err := db.Update(ctx, nil, func(store.ReadWriter) error { called = true; return nil }); !errors.Is(err, context.Canceled) || called {
		t.Errorf("Update returned %v, called %v", err, called)
	}
	if err := db.View(ctx, func(store.Reader) error { called = true; return nil }); !errors.Is(err, context.Canceled) || called {
		t.Errorf("View returned %v, called %v", err, called)
	}
}

func TestClosed(t *testing.T) {
	db := open(t)
	for range 2 {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Update(context.Background(), nil, func(store.ReadWriter) error { return nil }); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Update returned %v", err)
	}
	if err := db.View(context.Background(), func(store.Reader) error { return nil }); !errors.Is(err, store.ErrClosed) {
		t.Errorf("View returned %v", err)
	}
}

func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	db, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, store.ErrLocked) {
		t.Errorf("second Open returned %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestNotAStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Open returned %v", err)
	}
}

// writeUntilKilled writes numbers from 64 goroutines and prints each after its Update
// has returned.
func writeUntilKilled(path string) {
	db, err := Open(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var next atomic.Int64
	for range 64 {
		go func() {
			for {
				n := next.Add(1)
				err := db.Update(context.Background(), nil, func(tx store.ReadWriter) error {
					tx.Put(fmt.Sprintf("%08d", n), []byte("x"))
					return nil
				})
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				fmt.Fprintln(os.Stdout, n)
			}
		}()
	}
	select {}
}

// What was acknowledged is there after SIGKILL.
func TestKilledWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	for round := range 5 {
		writer := exec.Command(os.Args[0])
		writer.Env = append(os.Environ(), writerFile+"="+path)
		writer.Stderr = os.Stderr
		out, err := writer.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := writer.Start(); err != nil {
			t.Fatal(err)
		}
		var acknowledged []string
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			acknowledged = append(acknowledged, lines.Text())
			if len(acknowledged) == 100*(round+1) {
				if err := writer.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := writer.Wait(); err == nil {
			t.Fatal("the writer ended by itself")
		}
		db, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		stored := dump(t, db)
		for i, line := range acknowledged {
			n, err := strconv.Atoi(line)
			if err != nil && i == len(acknowledged)-1 {
				continue // the kill cut the last line
			}
			if stored[fmt.Sprintf("%08d", n)] == "" {
				t.Errorf("round %d: acknowledged %q is lost", round, line)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, parallel := range []int{1, 8, 64} {
		b.Run(strconv.Itoa(parallel), func(b *testing.B) {
			db, err := Open(filepath.Join(b.TempDir(), "store.db"))
			if err != nil {
				b.Fatal(err)
			}
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

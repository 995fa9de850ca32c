package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
)

// scopes are the scopes of most updates here.
var scopes = store.In(store.StoreScope)

// KV tests a store.KV. open returns an empty one, which the caller closes.
func KV(t *testing.T, open func(testing.TB) store.KV) {
	for name, test := range map[string]func(*testing.T, store.KV){
		"AgainstModel":         testAgainstModel,
		"FailuresDoNotSpread":  testFailuresDoNotSpread,
		"UpdatesAreSerial":     testUpdatesAreSerial,
		"ScopesAreSerial":      testScopesAreSerial,
		"SnapshotIsConsistent": testSnapshotIsConsistent,
		"Cancelled":            testCancelled,
		"Closed":               testClosed,
		"Bytes":                testBytes,
		"LongScan":             testLongScan,
		"Totals":               testTotals,
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			t.Cleanup(func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
			test(t, db)
		})
	}
}

func put(t testing.TB, db store.KV, key, value string) {
	t.Helper()
	require.NoError(t, db.Update(context.Background(), scopes, func(tx store.ReadWriter) error {
		tx.Put(key, []byte(value))
		return nil
	}))
}

// Dump returns all records of a store but the summaries.
func Dump(t testing.TB, db store.KV) map[string]string {
	t.Helper()
	all := make(map[string]string)
	require.NoError(t, db.View(context.Background(), func(tx store.Reader) error {
		return tx.Scan("", "", func(key string, value []byte) (bool, error) {
			all[key] = string(value)
			return true, nil
		})
	}))
	return all
}

// Any sequence of operations gives what a map and a sort give, within a transaction
// and after it, also when transactions fail.
func testAgainstModel(t *testing.T, db store.KV) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringOfN(rapid.RuneFrom([]rune("ab/")), 1, 4, -1)
		committed := make(map[string]string)
		require.NoError(t, db.Update(context.Background(), scopes, func(tx store.ReadWriter) error {
			return tx.Scan("", "", func(key string, _ []byte) (bool, error) {
				tx.Delete(key)
				return true, nil
			})
		}))
		for range rapid.IntRange(1, 8).Draw(t, "transactions") {
			model := maps.Clone(committed)
			fails := rapid.Bool().Draw(t, "fails")
			failure := errors.New("refused")
			err := db.Update(context.Background(), scopes, func(tx store.ReadWriter) error {
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
		require.NoError(t, db.View(context.Background(), func(tx store.Reader) error {
			checkScan(t, tx, committed, "", "", len(committed)+1)
			return tx.Scan("", "", func(key string, value []byte) (bool, error) {
				got[key] = string(value)
				return true, nil
			})
		}))
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
func testFailuresDoNotSpread(t *testing.T, db store.KV) {
	failure := errors.New("refused")
	var failed, panicked, written atomic.Int64
	var workers sync.WaitGroup
	for i := range 300 {
		workers.Go(func() {
			err := db.Update(context.Background(), scopes, func(tx store.ReadWriter) error {
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
	for key := range Dump(t, db) {
		if n, err := strconv.Atoi(strings.TrimPrefix(key, "key/")); err != nil || n%3 != 0 {
			t.Errorf("%s was written", key)
		}
	}
}

// Increments from many goroutines are serialisable.
func testUpdatesAreSerial(t *testing.T, db store.KV) {
	put(t, db, "n", "0")
	var workers sync.WaitGroup
	for range 200 {
		workers.Go(func() {
			if err := db.Update(context.Background(), scopes, func(tx store.ReadWriter) error {
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
	if got := Dump(t, db)["n"]; got != "200" {
		t.Errorf("n = %s, want 200", got)
	}
}

func testSnapshotIsConsistent(t *testing.T, db store.KV) {
	put(t, db, "a", "1")
	require.NoError(t, db.View(context.Background(), func(tx store.Reader) error {
		put(t, db, "a", "2")
		if value, err := tx.Get("a"); err != nil || string(value) != "1" {
			t.Errorf("the snapshot changed to %q, %v", value, err)
		}
		return nil
	}))
}

func testCancelled(t *testing.T, db store.KV) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	called := false
	if err := db.Update(ctx, scopes, func(store.ReadWriter) error { called = true; return nil }); !errors.Is(err, context.Canceled) || called {
		t.Errorf("Update returned %v, called %v", err, called)
	}
	if err := db.View(ctx, func(store.Reader) error { called = true; return nil }); !errors.Is(err, context.Canceled) || called {
		t.Errorf("View returned %v, called %v", err, called)
	}
}

func testClosed(t *testing.T, db store.KV) {
	for range 2 {
		require.NoError(t, db.Close())
	}
	if err := db.Update(context.Background(), scopes, func(store.ReadWriter) error { return nil }); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Update returned %v", err)
	}
	if err := db.View(context.Background(), func(store.Reader) error { return nil }); !errors.Is(err, store.ErrClosed) {
		t.Errorf("View returned %v", err)
	}
}

// Updates that have scopes in common are serial, also where each has further scopes. No amount that
// moves between accounts is lost, and no snapshot sees a part of a move.
func testScopesAreSerial(t *testing.T, db store.KV) {
	const accounts, each = 4, 100
	key := func(i int) string { return fmt.Sprintf("account/%d", i) }
	get := func(tx store.Reader, i int) int {
		value, err := tx.Get(key(i))
		if err != nil {
			t.Error(err)
			return 0
		}
		n, err := strconv.Atoi(string(value))
		if err != nil {
			t.Error(err)
		}
		return n
	}
	for i := range accounts {
		put(t, db, key(i), strconv.Itoa(each))
	}
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for range 25 {
				from, to := random.IntN(accounts), random.IntN(accounts)
				if from == to {
					continue
				}
				between := store.In(store.StudyScope(strconv.Itoa(from)), store.StudyScope(strconv.Itoa(to)))
				if err := db.Update(context.Background(), between, func(tx store.ReadWriter) error {
					a, b := get(tx, from), get(tx, to)
					tx.Put(key(from), []byte(strconv.Itoa(a-1)))
					tx.Put(key(to), []byte(strconv.Itoa(b+1)))
					return nil
				}); err != nil {
					t.Error(err)
				}
				if err := db.View(context.Background(), func(tx store.Reader) error {
					sum := 0
					for i := range accounts {
						sum += get(tx, i)
					}
					if sum != accounts*each {
						t.Errorf("a snapshot has %d in all, want %d", sum, accounts*each)
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
}

// Keys and values are bytes: of any value, and as long as they may be.
func testBytes(t *testing.T, db store.KV) {
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return string(b)
	}
	want := map[string]string{
		"a\x00b": "", "a\x00": "\x00", "a": "x", "a\xff": "\xff\xfe", "a\xff\xff": "y", "\xff\xff": "z", "b": noise(3 << 20),
		"k" + noise(store.MaxKey-1): "longest",
	}
	for key, value := range want {
		put(t, db, key, value)
	}
	if diff := cmp.Diff(want, Dump(t, db)); diff != "" {
		t.Error(diff)
	}
	require.NoError(t, db.View(t.Context(), func(r store.Reader) error {
		for prefix, n := range map[string]int{"a": 5, "a\x00": 2, "a\xff": 2, "\xff": 1, "\xff\xff": 1, "c": 0} {
			found := 0
			err := r.Scan(prefix, "", func(string, []byte) (bool, error) {
				found++
				return true, nil
			})
			if err != nil || found != n {
				t.Errorf("%d keys with the prefix %q, %v; want %d", found, prefix, err, n)
			}
		}
		none, err := r.Get("none")
		empty, failed := r.Get("a\x00b")
		if none != nil || empty == nil {
			t.Errorf("no value is %v, an empty one %v", none, empty)
		}
		return errors.Join(err, failed)
	}))
}

// A scan passes every key once, in order, whatever its function reads meanwhile, and ends where it is
// told.
func testLongScan(t *testing.T, db store.KV) {
	const n = 5000
	value := bytes.Repeat([]byte("value "), 40)
	err := db.Update(t.Context(), scopes, func(tx store.ReadWriter) error {
		for i := range n {
			tx.Put(fmt.Sprintf("key/%05d", i), value)
		}
		return nil
	})
	require.NoError(t, err)
	for _, last := range []int{0, 1, 15, 16, 17, 1000, n - 1, n} {
		next := 0
		err := db.View(t.Context(), func(r store.Reader) error {
			return r.Scan("key/", "", func(key string, got []byte) (bool, error) {
				if key != fmt.Sprintf("key/%05d", next) || !bytes.Equal(got, value) {
					t.Errorf("key %d is %q", next, key)
				}
				if direct, err := r.Get(key); err != nil || !bytes.Equal(direct, value) {
					t.Errorf("%s read within the scan: %v", key, err)
				}
				next++
				return next <= last, nil
			})
		})
		if want := min(last+1, n); err != nil || next != want {
			t.Errorf("%d keys, %v; want %d", next, err, want)
		}
	}
	err = db.Update(t.Context(), scopes, func(tx store.ReadWriter) error {
		return tx.Scan("key/", "key/00100", func(key string, _ []byte) (bool, error) {
			tx.Delete(key)
			return true, nil
		})
	})
	if left := len(Dump(t, db)); err != nil || left != 100 {
		t.Errorf("%d keys are left, %v; want 100", left, err)
	}
}

// Keys that begin with a zero byte are not among the others.
func testTotals(t *testing.T, db store.KV) {
	put(t, db, "\x00a", "total")
	put(t, db, "a", "record")
	if diff := cmp.Diff(map[string]string{"a": "record"}, Dump(t, db)); diff != "" {
		t.Error(diff)
	}
	require.NoError(t, db.View(t.Context(), func(r store.Reader) error {
		value, err := r.Get("\x00a")
		if string(value) != "total" {
			t.Errorf("the total is %q", value)
		}
		found := 0
		return errors.Join(err, r.Scan("\x00", "", func(key string, _ []byte) (bool, error) {
			if found++; key != "\x00a" || found > 1 {
				t.Errorf("key %d is %q", found, key)
			}
			return true, nil
		}))
	}))
}

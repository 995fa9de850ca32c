package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/fault"
	"github.com/dpareto/dpareto/server/store/storetest"
)

// names returns the names of the files in the folder of path.
func names(t *testing.T, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// A snapshot taken while writers write holds what was there at one moment: of numbers
// written one after the other, all up to one.
func TestSnapshotWhileWriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := openAt(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if err := d.Update(context.Background(), nil, func(tx store.ReadWriter) error {
				tx.Put(fmt.Sprintf("%08d", i), make([]byte, 1000))
				return nil
			}); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range 5 {
		before := 0
		for before < 5*(i+1) {
			before = len(storetest.Dump(t, d))
		}
		snapshot, err := d.Snapshot(t.Context())
		require.NoError(t, err)
		copied := filepath.Join(t.TempDir(), "copy.db")
		file, err := os.Create(copied)
		require.NoError(t, err)
		require.NoError(t, require.ErrOf(io.Copy(file, snapshot)))
		require.NoError(t, errors.Join(file.Close(), snapshot.Close()))
		got := contents(t, copied)
		for n := range len(got) {
			if got[fmt.Sprintf("%08d", n)] == "" {
				t.Fatalf("snapshot %d: %d of %d is missing", i, n, len(got))
			}
		}
		if len(got) < before {
			t.Errorf("snapshot %d has %d numbers, there were %d before", i, len(got), before)
		}
	}
	cancel()
	writing.Wait()
	if got := names(t, path); len(got) != 1 {
		t.Errorf("left behind: %v", got)
	}
}

func TestRestore(t *testing.T) {
	source := filled(t, 12)
	want := contents(t, source)
	folder := t.TempDir()
	path := filepath.Join(folder, "store.db")
	require.NoError(t, require.ErrOf(Restore(t.Context(), source, path, false)))
	if diff := cmp.Diff(want, contents(t, path)); diff != "" {
		t.Error(diff)
	}
	if _, err := Restore(t.Context(), source, path, false); !errors.Is(err, os.ErrExist) {
		t.Errorf("a store that exists was replaced: %v", err)
	}
	d, err := Open(path)
	require.NoError(t, err)
	put(t, d, "new", "x")
	if _, err := Restore(t.Context(), source, path, true); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a store in use was replaced: %v", err)
	}
	if _, err := Restore(t.Context(), path, filepath.Join(folder, "copy.db"), false); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a store in use was copied: %v", err)
	}
	require.NoError(t, d.Close())
	changed := contents(t, path)
	damaged := filepath.Join(folder, "damaged.db")
	copyFile(t, source, damaged)
	require.NoError(t, fault.Garble(damaged, 1, 20))
	if _, err := Restore(t.Context(), damaged, path, true); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a damaged backup was restored: %v", err)
	}
	if diff := cmp.Diff(changed, contents(t, path)); diff != "" {
		t.Errorf("refused, but changed: %s", diff)
	}
	require.NoError(t, require.ErrOf(Restore(t.Context(), source, path, true)))
	if diff := cmp.Diff(want, contents(t, path)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(changed, contents(t, path+Backup)); diff != "" {
		t.Errorf("what was replaced: %s", diff)
	}
	if diff := cmp.Diff([]string{"damaged.db", "store.db", "store.db.bak"}, names(t, path)); diff != "" {
		t.Error(diff)
	}
}

// A process that waited for the lock of a file that was replaced meanwhile does not use it.
func TestInPlace(t *testing.T) {
	path := filled(t, 2)
	file, err := os.Open(path)
	require.NoError(t, err)
	if err := inPlace(path, file); err != nil {
		t.Error(err)
	}
	if _, _, err := Compact(t.Context(), path, true); err != nil {
		t.Fatal(err)
	}
	if err := inPlace(path, file); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a replaced file: %v", err)
	}
	require.NoError(t, errors.Join(file.Close(), os.Remove(path)))
}

func TestCompact(t *testing.T) {
	path := filled(t, 12)
	want := contents(t, path)
	before, after, err := Compact(t.Context(), path, false)
	require.NoError(t, err)
	if after >= before {
		t.Errorf("%d bytes became %d", before, after)
	}
	for _, file := range []string{path, path + Backup} {
		if diff := cmp.Diff(want, contents(t, file)); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
	}
	if _, _, err := Compact(t.Context(), path, true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"store.db"}, names(t, path)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, contents(t, path)); diff != "" {
		t.Error(diff)
	}
	d, err := Open(path)
	require.NoError(t, err)
	if _, _, err := Compact(t.Context(), path, true); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a store in use was compacted: %v", err)
	}
	require.NoError(t, d.Close())
	require.NoError(t, fault.Garble(path, 1, 20))
	if _, _, err := Compact(t.Context(), path, true); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a damaged store was compacted: %v", err)
	}
}

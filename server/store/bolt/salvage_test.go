package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/storetest"
)

// dumpFile returns what a file holds, sound or not.
func dumpFile(t *testing.T, path string) map[string]string {
	t.Helper()
	d, err := OpenReadOnly(path)
	require.NoError(t, err)
	defer func() { _ = d.Close() }()
	return storetest.Dump(t, d)
}

// Salvage keeps every record that is whole and tells which are not.
func TestSalvage(t *testing.T) {
	source := filled(t, 12)
	sound, want := used(t, source), contents(t, source)
	const trial = "studies/study-007\x00trial/\x00\x00\x00\x00\x00\x00\x00\x05"
	at := bytes.Index(sound, []byte(trial))
	leaf := at / pageSize * pageSize
	elements := int(binary.NativeEndian.Uint16(sound[leaf+10:]))
	for name, tt := range map[string]struct {
		damage func(b []byte)
		most   int    // records that are lost
		says   string // of what is lost
	}{
		"a record": {func(b []byte) { b[at+len(trial)+20] ^= 1 }, 1, "trial 5 of studies/study-007 has a wrong checksum"},
		"a page":   {func(b []byte) { binary.NativeEndian.PutUint16(b[leaf+8:], 64) }, elements, "studies/study-007 had "},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			from, to := filepath.Join(folder, "damaged.db"), filepath.Join(folder, "new.db")
			content := bytes.Clone(sound)
			tt.damage(content)
			require.NoError(t, os.WriteFile(from, content, 0o600))
			s, err := Salvage(t.Context(), from, to)
			require.NoError(t, err)
			got := dumpFile(t, to)
			for key, value := range got {
				if want[key] != value {
					t.Errorf("%q is %q", key, value)
				}
			}
			lost := len(want) - len(got)
			if lost < 1 || lost > tt.most || s.Kept != int64(len(got)) {
				t.Errorf("%d of %d records were lost, %d kept, want at most %d lost", lost, len(want), s.Kept, tt.most)
			}
			if text := errors.Join(s.Lost...).Error(); !strings.Contains(text, tt.says) {
				t.Errorf("lost: %s", text)
			}
			for _, fault := range s.Faults { // what is left is whole, but refers to what is lost
				if errors.Is(fault, store.ErrCorrupt) {
					t.Errorf("the new file: %v", fault)
				}
			}
			if len(s.Faults) == 0 {
				t.Error("a study without some of its trials is sound")
			}
			d, err := Open(to)
			require.NoError(t, err)
			require.NoError(t, d.Close())
		})
	}
}

// A damaged list of free pages keeps a file from being opened, and hides no record from salvage.
func TestSalvageFreeList(t *testing.T) {
	path := filled(t, 12)
	content, want := used(t, path), contents(t, path)
	page := int(binary.NativeEndian.Uint64(content[latestMeta(content)+16+32:]))
	clear(content[page*pageSize : (page+1)*pageSize])
	damaged := filepath.Join(t.TempDir(), "damaged.db") // bbolt panics, and keeps the lock
	for i, open := range []func(string) error{
		func(path string) error { _, err := Open(path); return err },
		func(path string) error { _, err := Verify(t.Context(), path); return err },
	} {
		path := damaged + strconv.Itoa(i)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		if err := open(path); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("opened with %v", err)
		}
	}
	require.NoError(t, os.WriteFile(damaged, content, 0o600))
	to := filepath.Join(t.TempDir(), "new.db")
	s, err := Salvage(t.Context(), damaged, to)
	require.NoError(t, err)
	if len(s.Lost) > 0 || len(s.Faults) > 0 {
		t.Errorf("lost %v, faults %v", s.Lost, s.Faults)
	}
	if diff := cmp.Diff(want, contents(t, to)); diff != "" {
		t.Error(diff)
	}
}

// A file that is sound, and one of which nothing can be read, are not salvaged.
func TestSalvageRefuses(t *testing.T) {
	path := filled(t, 3)
	to := filepath.Join(t.TempDir(), "new.db")
	if _, err := Salvage(context.Background(), path, to); !errors.Is(err, errWhole) {
		t.Errorf("a sound file: %v", err)
	}
	if _, err := Salvage(context.Background(), path, path); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file that exists: %v", err)
	}
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("text ", 5000)), 0o600))
	if _, err := Salvage(context.Background(), path, to); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("no store: %v", err)
	}
	if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was written: %v", err)
	}
}

package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/dpareto/dpareto/server/store"
)

// history is a store of which every commit is known.
type history struct {
	path string
	// states[n] is what the store held after the commit with record n.
	states map[uint64]map[string]string
	// first and last are the records of the journal, frozen is the last of which something can
	// be in its place.
	first, frozen, last uint64
}

// recorded writes to a store until a generation is being moved and some more commits wait.
func recorded(t *testing.T) *history {
	t.Helper()
	h := &history{path: filepath.Join(t.TempDir(), "store.db"), states: make(map[uint64]map[string]string)}
	d, err := openWith(h.path, small)
	if err != nil {
		t.Fatal(err)
	}
	state := make(map[string]string)
	commit := func(i int) *overlaid {
		err := d.Update(t.Context(), func(tx store.ReadWriter) error {
			for j := range 3 {
				key := fmt.Sprintf("%03d", (37*i+101*j)%200)
				if (i+j)%7 == 0 {
					tx.Delete(key)
					delete(state, key)
					continue
				}
				state[key] = fmt.Sprintf("%d/%d", i, j) + strings.Repeat("x", 50*((i+j)%9))
				tx.Put(key, []byte(state[key]))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		o := d.overlaid.Load()
		h.states[o.last] = maps.Clone(state)
		return o
	}
	i, generations := 0, 0
	for ; ; i++ {
		o := commit(i)
		if o.old != nil && o.last == o.frozen {
			generations++
		}
		if generations == 2 && o.old != nil && o.last == o.frozen+2 && o.moved != "" {
			h.first, h.frozen = o.first, o.frozen
			break
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	// A program that is started again has all of it before it, and goes on.
	if d, err = Open(h.path); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		i++
		h.last = commit(i).last
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if h.frozen-h.first < 10 {
		t.Fatalf("records %d to %d, frozen at %d: the test shows nothing", h.first, h.last, h.frozen)
	}
	return h
}

// spoil changes a byte of what a record of the journal says.
func spoil(t *testing.T, path string, number uint64) {
	t.Helper()
	var writes []byte
	inPages(t, path, func(p *pages) error {
		buckets, err := p.buckets()
		if err != nil {
			return err
		}
		return p.journal(buckets, func(r record) error {
			if r.number == number {
				writes = bytes.Clone(r.writes)
			}
			return r.err
		})
	})
	content, err := os.ReadFile(path)
	if err != nil || len(writes) == 0 {
		t.Fatalf("record %d has %d bytes, %v", number, len(writes), err)
	}
	for at := 0; ; at += len(writes) { // also where a copy is on a page that is free
		found := bytes.Index(content[at:], writes)
		if found < 0 {
			break
		}
		at += found
		content[at+len(writes)/2] ^= 1
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// salvaged is what a salvage of a file gives.
func salvaged(t *testing.T, path string) (*Salvaged, map[string]string) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "salvaged.db")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Salvage(t.Context(), path, to)
	if err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the damaged file was changed, %v", err)
	}
	got := contents(t, to)
	d, err := Open(to)
	if err != nil {
		t.Fatal(err)
	}
	put(t, d, "after", "x") // it is a store
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return s, got
}

// Of a journal with a damaged record there is what was committed before, exactly if nothing
// of what came later can be in its place. Else keys that only dropped commits wrote have
// a value that they had at some time, and others what they had.
func TestSalvage(t *testing.T) {
	h := recorded(t)
	for _, number := range []uint64{h.first, h.first + 1, h.frozen - 1, h.frozen, h.frozen + 1, h.last - 1, h.last} {
		t.Run(strconv.FormatUint(number-h.first, 10), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "damaged.db")
			copyFile(t, h.path, path)
			spoil(t, path, number)
			if _, err := Open(path); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "restore --salvage") {
				t.Errorf("Open returned %v", err)
			}
			s, got := salvaged(t, path)
			if s.Kept != int64(number-h.first) || s.Dropped != int64(h.last-number+1) || s.AtLeast || s.Damage == nil {
				t.Errorf("%+v, want %d kept and %d dropped", s, number-h.first, h.last-number+1)
			}
			if s.Kept > 0 && s.LastKept.IsZero() || s.FirstDropped.IsZero() || s.LastDropped.Before(s.FirstDropped) || s.FirstDropped.Before(s.LastKept) {
				t.Errorf("times %v, %v, %v", s.LastKept, s.FirstDropped, s.LastDropped)
			}
			if s.Dropped > 1 && s.FirstDropped.Equal(s.LastDropped) {
				t.Errorf("the first of %d dropped commits has the time of the last", s.Dropped)
			}
			want := h.states[number-1]
			if mixed := number <= h.frozen; s.Mixed != mixed {
				t.Errorf("mixed: %v, want %v", s.Mixed, mixed)
			}
			if !s.Mixed {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				return
			}
			differ := 0
			for i := range 200 {
				key := fmt.Sprintf("%03d", i)
				if got[key] == want[key] {
					continue
				}
				differ++
				later := false
				for n := number; n <= h.frozen; n++ {
					later = later || got[key] == h.states[n][key]
				}
				for n := h.first; n < number; n++ { // a kept commit that wrote it holds
					if h.states[n][key] != h.states[n-1][key] {
						later = false
					}
				}
				if !later {
					t.Errorf("key %s has %.10q, want %.10q or what a dropped commit wrote", key, got[key], want[key])
				}
			}
			if number == h.first && differ == 0 {
				t.Error("nothing of what was dropped was in its place: the test shows nothing")
			}
		})
	}
}

// A record that is missing, also the last one, and a journal that cannot be read at all are
// damage.
func TestSalvageMissing(t *testing.T) {
	h := recorded(t)
	remove := func(path string, numbers ...uint64) {
		t.Helper()
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bbolt.Tx) error {
			o := &overlaid{}
			for _, o.first = range numbers {
				if err := o.forget(tx.Bucket(journalBucket), o.first); err != nil {
					return err
				}
			}
			return nil
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for _, number := range []uint64{h.frozen + 2, h.last} {
		path := filepath.Join(t.TempDir(), "damaged.db")
		copyFile(t, h.path, path)
		remove(path, number)
		if _, err := Open(path); !errors.Is(err, errJournal) {
			t.Errorf("without record %d Open returned %v", number, err)
		}
		s, got := salvaged(t, path)
		if s.Dropped != int64(h.last-number+1) || s.Mixed || s.AtLeast {
			t.Errorf("without record %d: %+v", number, s)
		}
		if diff := cmp.Diff(h.states[number-1], got); diff != "" {
			t.Error(diff)
		}
	}
	path := filepath.Join(t.TempDir(), "damaged.db")
	copyFile(t, h.path, path)
	page := journalPage(t, path)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[int(page)*os.Getpagesize()+8] = freePage
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := salvaged(t, path)
	if s.Kept != 0 || !s.AtLeast || !s.Mixed || s.Dropped < int64(h.last-h.frozen) || s.Dropped > int64(h.last) {
		t.Errorf("without a journal: %+v", s)
	}
}

// A damaged list of free pages loses nothing.
func TestSalvageFreePages(t *testing.T) {
	for _, size := range []int{small, generation} {
		path := filled(t, size)
		want := contents(t, path)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(content); at += os.Getpagesize() {
			if content[at+8] == freePage {
				content[at+8] = leafPage
			}
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "restore --salvage") {
			t.Errorf("Open returned %v", err)
		}
		s, got := salvaged(t, path)
		if s.Dropped != 0 || s.AtLeast || s.Mixed {
			t.Errorf("%+v", s)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// journalPage returns the first page of the journal.
func journalPage(t *testing.T, path string) (id uint64) {
	t.Helper()
	d, err := OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	err = d.view(t.Context(), func(tx *bbolt.Tx, _ []*table) error {
		id = uint64(tx.Bucket(journalBucket).RootPage())
		return nil
	})
	if err := errors.Join(err, d.Close()); err != nil || id == 0 {
		t.Fatal(id, err)
	}
	return id
}

// Nothing is written where nothing can be salvaged, or would be lost.
func TestSalvageRefuses(t *testing.T) {
	h := recorded(t)
	to := filepath.Join(t.TempDir(), "salvaged.db")
	if _, err := Salvage(t.Context(), h.path, to); !errors.Is(err, errWhole) {
		t.Errorf("a whole file: %v", err)
	}
	d, err := Open(h.path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Salvage(t.Context(), h.path, to); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a file in use: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	spoil(t, h.path, h.last)
	if _, err := Salvage(t.Context(), h.path, h.path); !errors.Is(err, os.ErrExist) {
		t.Errorf("onto itself: %v", err)
	}
	if err := os.WriteFile(h.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Salvage(t.Context(), h.path, to); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("an empty file: %v", err)
	}
	if got := names(t, to); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
}

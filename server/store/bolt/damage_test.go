package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/fault"
)

// filled makes a store with studies whose trials fill many pages, some of them free. With a
// small generation all of it is in its place, with a large one in the journal.
func filled(t *testing.T, generation int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.db")
	d, err := openWith(path, generation)
	if err != nil {
		t.Fatal(err)
	}
	records, err := store.New(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		id := fmt.Sprintf("study-%02d", i)
		err := records.Update(t.Context(), func(tx *store.Tx) error {
			study := &storev1.StudyRecord{
				Study:           &dparetov1.Study{Name: "studies/" + id, Revision: 51, TrialCounts: &dparetov1.TrialCounts{Succeeded: 50}},
				NextTrialNumber: 51,
				OwnRevision:     1,
			}
			if err := tx.PutStudy(id, study); err != nil {
				return err
			}
			for n := int64(1); n <= 50; n++ {
				trial := &dparetov1.Trial{Number: n, Revision: n + 1, State: dparetov1.TrialState_TRIAL_STATE_SUCCEEDED, Note: strings.Repeat("note ", 50)}
				if err := tx.PutTrial(id, &storev1.TrialRecord{Trial: trial}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := records.Update(t.Context(), func(tx *store.Tx) error { return tx.DeleteStudy("study-05") }); err != nil {
		t.Fatal(err)
	}
	var used int64
	if err := d.view(t.Context(), func(tx *bbolt.Tx, _ []*table) error { used = tx.Size(); return nil }); err != nil {
		t.Fatal(err)
	}
	// Beyond what is used the file is empty: no damage is worth trying there.
	if err := errors.Join(d.Close(), os.Truncate(path, used)); err != nil {
		t.Fatal(err)
	}
	return path
}

// A damaged file is never more than an error: when it is opened, checked, read or written.
func TestDamagedFiles(t *testing.T) {
	for name, size := range map[string]int{"in its place": small, "partly in the journal": 256 << 10, "in the journal": generation} {
		t.Run(name, func(t *testing.T) { damage(t, filled(t, size), size != small) })
	}
}

// damage damages a sound store in many ways.
func damage(t *testing.T, sound string, inJournal bool) {
	report, err := Verify(t.Context(), sound)
	if err != nil || len(report.Faults) > 0 || report.Counts["trial"].Keys != 550 || report.Counts["study"].Keys != 11 {
		t.Fatalf("a sound store: %+v, %v", report, err)
	}
	info, err := os.Stat(sound)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "damaged.db")
	unopened, found := 0, 0
	for seed := range uint64(120) {
		copyFile(t, sound, path)
		var err error
		if seed%4 == 0 {
			err = os.Truncate(path, info.Size()*int64(seed)/120)
		} else {
			err = fault.Garble(path, seed, 1+int(seed%3))
		}
		if err != nil {
			t.Fatal(err)
		}
		report, err := Verify(t.Context(), path)
		switch {
		case err != nil:
			if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "nil pointer") {
				t.Errorf("seed %d: %v", seed, err)
			}
			unopened++
		case len(report.Faults) > 0:
			found++
		}
		use(t, path)
	}
	// Records of the journal have checksums, and are read when the file is opened.
	if unopened == 0 || !inJournal && (found == 0 || unopened+found == 120) {
		t.Errorf("of 120 damaged files %d were not opened and %d found damaged", unopened, found)
	}
}

// Pages that say what cannot be are told by a check, whatever would become of a program that
// believes them: it would be stopped by the system, follow them for ever, or run out of memory.
func TestDamagedPages(t *testing.T) {
	for _, size := range []int{small, generation} {
		sound, err := os.ReadFile(filled(t, size))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "damaged.db")
		put16, put32, put64 := binary.NativeEndian.PutUint16, binary.NativeEndian.PutUint32, binary.NativeEndian.PutUint64
		tried := make(map[uint16]int)
		for at := 2 * os.Getpagesize(); at < len(sound); at += os.Getpagesize() {
			id := uint64(at / os.Getpagesize())
			kind, count := binary.NativeEndian.Uint16(sound[at+8:]), int(binary.NativeEndian.Uint16(sound[at+10:]))
			if binary.NativeEndian.Uint64(sound[at:]) != id || count == 0 || tried[kind] > 8 {
				continue
			}
			tried[kind]++
			damages := []func(page []byte){func(page []byte) { put16(page[8:], 64) }, func(page []byte) { put32(page[12:], 1<<31) }}
			switch kind {
			case branchPage:
				for _, child := range []uint64{0, id, 1 << 24, 1 << 40, 1 << 60} {
					damages = append(damages, func(page []byte) { put64(page[pageHeader+8:], child) })
				}
			case leafPage:
				offset, length := binary.NativeEndian.Uint32(sound[at+pageHeader+4:]), binary.NativeEndian.Uint32(sound[at+pageHeader+8:])
				for _, first := range []uint64{0, id, 1 << 24, 1 << 40, 1 << 60} {
					damages = append(damages, func(page []byte) {
						put32(page[pageHeader:], bucketElement)
						put64(page[pageHeader+offset+length:], first)
						put64(page[pageHeader+offset+length+bucketHeader+8:], 1<<63)
					})
				}
				for field := uint32(4); field < pageElement; field += 4 {
					damages = append(damages, func(page []byte) { put32(page[pageHeader+field:], 1<<31) })
				}
			case freePage:
				for _, many := range []uint64{1 << 20, 1 << 38, 1 << 62} {
					damages = append(damages, func(page []byte) { put16(page[10:], manyFreePages); put64(page[pageHeader:], many) })
				}
				for _, free := range []uint64{0, 2, 1 << 40} {
					damages = append(damages, func(page []byte) { put64(page[pageHeader:], free) })
				}
			}
			for i, damage := range damages {
				page := append([]byte(nil), sound[at:]...)
				if damage(page); bytes.Equal(page, sound[at:]) {
					continue
				}
				if err := os.WriteFile(path, append(sound[:at:at], page...), 0o600); err != nil {
					t.Fatal(err)
				}
				report, err := Verify(t.Context(), path)
				if err != nil && !errors.Is(err, store.ErrCorrupt) {
					t.Errorf("page %d of type %d, damage %d: %v", id, kind, i, err)
				}
				if err == nil && len(report.Faults) == 0 && slices.Contains(reachable(t, path), id) {
					t.Errorf("page %d of type %d, damage %d is not found", id, kind, i)
				}
				if d, err := Open(path); err == nil { // reads what a damaged page could keep it from
					if err := d.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		}
		if tried[leafPage] < 4 || tried[freePage] == 0 || size == small && tried[branchPage] == 0 {
			t.Errorf("tried %v", tried)
		}
	}
}

// inPages looks at the pages of a file.
func inPages(t *testing.T, path string, fn func(*pages) error) {
	t.Helper()
	d, err := OpenReadOnly(path)
	if err != nil {
		t.Fatal(err)
	}
	err = d.view(t.Context(), func(tx *bbolt.Tx, _ []*table) error {
		p, err := newPages(tx, d.file)
		if err != nil {
			return err
		}
		return fn(p)
	})
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
}

// reachable returns the pages that a file uses, without the free ones.
func reachable(t *testing.T, path string) (ids []uint64) {
	t.Helper()
	inPages(t, path, func(p *pages) error {
		free := p.free
		p.free = noFreePages
		if _, err := p.check(); err != nil {
			return err
		}
		ids = append(ids, free)
		for id := range p.end {
			if p.seen[id/64]&(1<<(id%64)) != 0 {
				ids = append(ids, id)
			}
		}
		return nil
	})
	return ids
}

// A bucket has no place in a record of the journal.
func TestBucketInRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, d, "key", "1")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	beneath(t, path, func(tx *bbolt.Tx) error {
		journal := tx.Bucket(journalBucket)
		number, _ := journal.Cursor().Last()
		_, err := journal.Bucket(number).CreateBucket([]byte("bucket"))
		return err
	})
	if _, err := Open(path); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "is a bucket") {
		t.Errorf("Open returned %v", err)
	}
}

// What no program writes can be in a record that is whole otherwise.
func TestCheckOfStrangeRecord(t *testing.T) {
	path := filled(t, small)
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, d, "trial/study-00/\x00\x00\x00\x00\x00\x00\x00\x01", "") // a trial without a state
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if report, err := Verify(t.Context(), path); err != nil || len(report.Faults) == 0 {
		t.Errorf("Verify returned %+v, %v", report, err)
	}
}

// use reads and writes whatever a file lets.
func use(t *testing.T, path string) {
	t.Helper()
	d, err := Open(path)
	if err != nil {
		return
	}
	defer d.Close() // of a damaged file: may fail
	read := func(tx store.Reader) error {
		return tx.Scan("", "", func(string, []byte) (bool, error) { return true, nil })
	}
	if err := d.View(context.Background(), read); err != nil && !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("View returned %v", err)
	}
	for i := range 4 {
		err := d.Update(context.Background(), func(tx store.ReadWriter) error {
			tx.Put(fmt.Sprintf("trial/study-%02d/%08d", i%12, i), make([]byte, 100*i))
			return nil
		})
		if err != nil && !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrUnwritable) {
			t.Errorf("Update returned %v", err)
		}
	}
}

// A file that is cut while it is open makes reads of its tail fail, and nothing else.
func TestCutWhileOpen(t *testing.T) {
	path := filled(t, small)
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 32<<10); err != nil {
		t.Fatal(err)
	}
	err = d.View(t.Context(), func(tx store.Reader) error {
		return tx.Scan("", "", func(string, []byte) (bool, error) { return true, nil })
	})
	if !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("View returned %v", err)
	}
	err = d.Update(t.Context(), func(tx store.ReadWriter) error { tx.Put("trial/study-07/x", []byte("y")); return nil })
	if err == nil {
		t.Error("a write to a cut file was acknowledged")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// Panics of a function that reads are its own, also those of nil pointers.
func TestPanicInView(t *testing.T) {
	d := open(t)
	defer func() {
		if r := recover(); r == nil {
			t.Error("the panic was swallowed")
		}
		put(t, d, "a", "1") // nothing is left locked
	}()
	_ = d.View(t.Context(), func(store.Reader) error {
		var missing []*Stats
		missing = append(missing, nil)
		return errors.New(strconv.FormatInt(missing[0].Size, 10))
	})
}

package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/fault"
	"github.com/dpareto/dpareto/server/store/storetest"
)

// pageSize is the size of a page of the files that tests make.
var pageSize = os.Getpagesize()

const trialsPerStudy = 50

// charges is the number of charges to the ledger of a test store, and releases that of each study.
const charges, releases = 20, 5

// fill gives a store studies with trials, and a ledger with charges, whose texts tell the version.
func fill(t testing.TB, records *store.Store, studies int, version string) {
	t.Helper()
	for i := range studies {
		id := fmt.Sprintf("study-%03d", i)
		require.NoError(t, records.Update(t.Context(), store.In(store.StudyScope(id)), func(tx *store.Tx) error {
			study := &storev1.StudyRecord{
				Study:           &dparetov1.Study{Name: "studies/" + id, Revision: trialsPerStudy + 1, TrialCounts: &dparetov1.TrialCounts{Succeeded: trialsPerStudy}},
				NextTrialNumber: trialsPerStudy + 1,
				OwnRevision:     1,
			}
			if err := tx.PutStudy(id, study); err != nil {
				return err
			}
			for n := int64(1); n <= releases; n++ {
				if err := tx.PutRelease("studies/"+id, n, &storev1.ReleaseRecord{Release: &dparetov1.Release{Name: strconv.FormatInt(n, 10)}}); err != nil {
					return err
				}
			}
			for n := int64(1); n <= trialsPerStudy; n++ {
				trial := &dparetov1.Trial{Number: n, Revision: n + 1, State: dparetov1.TrialState_TRIAL_STATE_SUCCEEDED, Note: strings.Repeat(version+" ", 50)}
				if err := tx.PutTrial(id, &storev1.TrialRecord{Trial: trial}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	require.NoError(t, records.Update(t.Context(), store.In(store.LedgerScope("l")), func(tx *store.Tx) error {
		err := tx.PutLedger("l", &storev1.LedgerRecord{Ledger: &dparetov1.Ledger{
			Name: "ledgers/l", Epsilon: 100, Delta: 1e-3, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
		}})
		for n := int64(1); n <= charges && err == nil; n++ {
			err = tx.PutCharge("l", n, &storev1.ChargeRecord{Charge: &dparetov1.Charge{
				Resource: strconv.FormatInt(n, 10), Reason: version,
				Guarantee: &dparetov1.PrivacyGuarantee{Epsilon: .5, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE},
			}})
		}
		return err
	}))
}

// filled makes a store with studies whose trials fill many pages, without space at its end.
func filled(t testing.TB, studies int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "store.db")
	edit(t, path, func(records *store.Store) {
		fill(t, records, studies, "one")
		deleted := "study-001"
		require.NoError(t, records.Update(t.Context(), store.In(store.StudyScope(deleted)), func(tx *store.Tx) error { return tx.DeleteStudy(deleted) }))
	})
	require.NoError(t, os.WriteFile(path, used(t, path), 0o600))
	return path
}

// edit changes the store in a file.
func edit(t testing.TB, path string, fn func(*store.Store)) {
	t.Helper()
	d, err := Open(path)
	require.NoError(t, err)
	records, err := store.New(t.Context(), d)
	require.NoError(t, err)
	fn(records)
	require.NoError(t, d.Close())
}

// everything reads all of a store: by the names of the records what was read or, where a read
// failed, its error, which must tell of damage.
func everything(t testing.TB, d *DB, studies int) map[string]string {
	t.Helper()
	all := make(map[string]string)
	note := func(name string, record proto.Message, err error) {
		switch {
		case errors.Is(err, store.ErrCorrupt), errors.Is(err, store.ErrNotFound):
			all[name] = err.Error()
		case err != nil:
			t.Errorf("%s: %v", name, err)
		default:
			encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(record)
			require.NoError(t, err)
			all[name] = string(encoded)
		}
	}
	view := func(fn func(tx *store.ReadTx) error) {
		s, err := store.NewReader(t.Context(), d)
		if err != nil {
			all["store"] = err.Error()
		} else if err := s.View(t.Context(), fn); err != nil && !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
	}
	for i := range studies {
		id := fmt.Sprintf("study-%03d", i)
		view(func(tx *store.ReadTx) error {
			study, err := tx.Study(id)
			note(id, study, err)
			for n := int64(1); n <= trialsPerStudy; n++ {
				trial, err := tx.Trial(id, n)
				note(fmt.Sprint(id, "/", n), trial, err)
			}
			return tx.Trials(id, 0, func(r *storev1.TrialRecord) (bool, error) {
				note(fmt.Sprint("listed ", id, "/", r.GetTrial().GetNumber()), r, nil)
				return true, nil
			})
		})
		view(func(tx *store.ReadTx) error {
			for name, pageSize := range map[string]int{"all": 1e6, "pages": 7} {
				list := func(what string, scan func(after int64, fn func(int64) (bool, error)) error) {
					all[name+" "+what+" of "+id] = numbers(pageSize, scan)
				}
				list("trials", func(after int64, fn func(int64) (bool, error)) error {
					return tx.Trials(id, after, func(r *storev1.TrialRecord) (bool, error) { return fn(r.GetTrial().GetNumber()) })
				})
				list("releases", func(after int64, fn func(int64) (bool, error)) error {
					return tx.Releases("studies/"+id, after, func(n int64, _ *storev1.ReleaseRecord) (bool, error) { return fn(n) })
				})
				list("changes", func(after int64, fn func(int64) (bool, error)) error {
					if err := tx.CheckChanges(id); after == 0 && err != nil {
						return err
					}
					return tx.Changes(id, after, func(n int64, _ *storev1.RevisionRecord) (bool, error) { return fn(n) })
				})
			}
			return nil
		})
	}
	view(func(tx *store.ReadTx) error {
		var ids []string
		err := tx.Studies("", func(r *storev1.StudyRecord) (bool, error) {
			ids = append(ids, r.GetStudy().GetName())
			return true, nil
		})
		if all["studies"] = strings.Join(ids, " "); err != nil {
			all["studies"] = err.Error()
		}
		all["charges"] = numbers(7, func(after int64, fn func(int64) (bool, error)) error {
			return tx.Charges("l", after, func(n int64, _ *storev1.ChargeRecord) (bool, error) { return fn(n) })
		})
		return nil
	})
	view(func(tx *store.ReadTx) error {
		ledger, err := tx.Ledger("l")
		note("ledger", ledger, err)
		if err != nil {
			return err
		}
		account, err := tx.Account("l", ledger)
		if err == nil {
			all["account"] = fmt.Sprint(account.Filter.Spent(), account.Last)
		}
		return err
	})
	return all
}

// numbers returns the numbers that a scan passes in pages, or its error.
func numbers(pageSize int, scan func(after int64, fn func(int64) (bool, error)) error) string {
	var all []int64
	for last, more := int64(0), true; more; {
		more = false
		left := pageSize
		err := scan(last, func(n int64) (bool, error) {
			if left--; left < 0 {
				more = true
				return false, nil
			}
			last = n
			all = append(all, n)
			return true, nil
		})
		if err != nil {
			return err.Error()
		}
	}
	return fmt.Sprint(all)
}

// damages tries damages of a sound file. No read may return what was never written, and a check
// must find every damage that changes what is read. With before, stale pages may give what was
// written before.
func damages(t *testing.T, studies int, sound []byte, before map[string]string, damages map[string]func([]byte)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	write := func(content []byte) {
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
	read := func() (map[string]string, error) {
		d, err := OpenReadOnly(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = d.Close() }()
		return everything(t, d, studies), nil
	}
	write(sound)
	want, err := read()
	require.NoError(t, err)
	if report, err := Verify(t.Context(), path); err != nil || len(report.Faults) > 0 {
		t.Fatalf("a sound store: %+v, %v", report, err)
	}
	var refused, changed, found int
	for name, damage := range damages {
		content := bytes.Clone(sound)
		damage(content)
		write(content)
		report, err := Verify(t.Context(), path)
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		isFound := err != nil || len(report.Faults) > 0
		got, err := read()
		if err != nil {
			refused++
			if !isFound {
				t.Errorf("%s: a check found nothing, but it cannot be opened: %v", name, err)
			}
			continue
		}
		isChanged := false
		for record, value := range want {
			if got[record] == value {
				continue
			}
			isChanged = true
			stale := before != nil && got[record] == before[record]
			isLost := got[record] == store.ErrNotFound.Error() // not known to be damaged
			if got[record] != "" && !stale && (isLost || !strings.HasPrefix(got[record], "store: ")) {
				t.Errorf("%s: %s was read as %q", name, record, got[record])
			}
		}
		if isChanged {
			changed++
		}
		if isFound {
			found++
		}
		if isChanged && !isFound {
			t.Errorf("%s changes what is read, and a check finds nothing", name)
		}
	}
	t.Logf("of %d damages %d keep the store from being opened, %d change what is read, of all others a check finds %d",
		len(damages), refused, changed, found)
	if found == 0 {
		t.Error("nothing was found")
	}
}

// used returns a file without the space beyond its last page: no damage is worth trying there.
func used(t testing.TB, path string) []byte {
	t.Helper()
	d, err := OpenReadOnly(path)
	require.NoError(t, err)
	var size int64
	err = d.view(t.Context(), func(tx *bbolt.Tx) error { size = tx.Size(); return nil })
	content, readErr := os.ReadFile(path)
	if _ = d.Close(); err != nil || readErr != nil {
		t.Fatal(err, readErr)
	}
	return content[:size]
}

// Bits and bytes that turn over at rest, in every page alike.
func damageBits(t *testing.T, studies, n int) {
	path := filled(t, studies)
	if _, _, err := Compact(t.Context(), path, true); err != nil {
		t.Fatal(err)
	}
	sound := used(t, path)
	random := rand.New(rand.NewPCG(1, uint64(studies)))
	tried := make(map[string]func([]byte))
	for i := range n {
		at, bit, mask := random.IntN(len(sound)), random.IntN(8), byte(1+random.IntN(255))
		if i%2 == 0 {
			tried[fmt.Sprintf("bit %d of byte %d of page %d", bit, at%pageSize, at/pageSize)] = func(b []byte) { b[at] ^= 1 << bit }
		} else {
			tried[fmt.Sprintf("byte %d of page %d", at%pageSize, at/pageSize)] = func(b []byte) { b[at] ^= mask }
		}
	}
	damages(t, studies, sound, nil, tried)
}

// Pages that were not written, though the disk said so, and hold what was there before, and pages
// that went to each other's place.
func damagePages(t *testing.T, studies, n int) {
	path := filled(t, studies)
	old := used(t, path)
	d, err := OpenReadOnly(path)
	require.NoError(t, err)
	before := everything(t, d, studies)
	require.NoError(t, d.Close())
	edit(t, path, func(records *store.Store) { fill(t, records, studies, "two") })
	sound := used(t, path)
	random := rand.New(rand.NewPCG(2, uint64(studies)))
	tried := make(map[string]func([]byte))
	page := func(b []byte, i int) []byte { return b[i*pageSize : (i+1)*pageSize] }
	for len(tried) < n {
		i, j := 2+random.IntN(len(sound)/pageSize-2), 2+random.IntN(len(sound)/pageSize-2)
		switch kind := random.IntN(3); {
		case kind == 0 && (i+1)*pageSize <= len(old) && !bytes.Equal(page(old, i), page(sound, i)):
			tried[fmt.Sprintf("page %d as it was before", i)] = func(b []byte) { copy(page(b, i), page(old, i)) }
		case kind == 1:
			tried[fmt.Sprintf("page %d never written", i)] = func(b []byte) { clear(page(b, i)) }
		case kind == 2 && i != j:
			tried[fmt.Sprintf("pages %d and %d swapped", i, j)] = func(b []byte) {
				k := bytes.Clone(page(b, i))
				copy(page(b, i), page(b, j))
				copy(page(b, j), k)
			}
		}
	}
	damages(t, studies, sound, before, tried)
}

func TestDamagedBits(t *testing.T) { damageBits(t, 12, 400) }

func TestDamagedPages(t *testing.T) { damagePages(t, 12, 50) }

// A flipped bit in the latest of the first two pages after a clean stop loses nothing, and is told.
func TestDamagedFirstPage(t *testing.T) {
	path := filled(t, 3)
	sound := used(t, path)
	want := contents(t, path)
	random := rand.New(rand.NewPCG(3, 3))
	for i := range 20 {
		content := bytes.Clone(sound)
		at := latestMeta(sound) + 16 + random.IntN(64) // of what bbolt knows the checksum of
		content[at] ^= 1 << random.IntN(8)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		d, err := Open(path)
		if err != nil {
			t.Fatalf("byte %d: %v", at, err)
		}
		if d.Notice() == "" {
			t.Errorf("damage %d, of byte %d, is not noticed", i, at)
		}
		for key, value := range storetest.Dump(t, d) {
			if want[key] != value {
				t.Errorf("%q is %q", key, value)
			}
		}
		require.NoError(t, d.Close())
		d, err = Open(path)
		if err != nil || d.Notice() != "" {
			t.Fatalf("after another stop: %v, %q", err, d.Notice())
		}
		require.NoError(t, d.Close())
	}
}

// metaChecksum is the offset of the checksum in a meta page.
const metaChecksum = 16 + 56

// latestMeta returns the offset of the latest meta page.
func latestMeta(content []byte) int {
	number := func(page int) uint64 { return binary.NativeEndian.Uint64(content[page*pageSize+16+48:]) }
	if number(1) > number(0) {
		return pageSize
	}
	return 0
}

// A damaged file is never more than an error: when it is opened, checked, read or written.
func TestDamagedFiles(t *testing.T) {
	sound := filled(t, 12)
	size := len(used(t, sound))
	folder := t.TempDir()
	unopened, found := 0, 0
	for seed := range uint64(120) {
		path := filepath.Join(folder, strconv.Itoa(int(seed))) // bbolt keeps the lock after a panic
		copyFile(t, sound, path)
		var err error
		if seed%4 == 0 {
			err = os.Truncate(path, int64(size)*int64(seed)/120)
		} else {
			err = fault.Garble(path, seed, 1+int(seed%3))
		}
		require.NoError(t, err)
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
		if err == nil {
			use(t, path)
		}
	}
	if unopened == 0 || found == 0 || unopened+found == 120 {
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
		err := d.Update(context.Background(), nil, func(tx store.ReadWriter) error {
			tx.Put(fmt.Sprintf("studies/study-%03d\x00trial/%08d", i%12, i), make([]byte, 100*i))
			return nil
		})
		if err != nil && !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrUnwritable) {
			t.Errorf("Update returned %v", err)
		}
	}
}

// An Update that meets a damaged page is refused alone: others of its commit are not.
func TestRefusedAlone(t *testing.T) {
	path := filled(t, 12)
	content := used(t, path)
	at := bytes.Index(content, []byte("studies/study-007\x00trial/"))
	binary.NativeEndian.PutUint16(content[at/pageSize*pageSize+8:], 64) // no type of a page
	require.NoError(t, os.WriteFile(path, content, 0o600))
	d, err := newDB(path, toWrite)
	require.NoError(t, err)
	put := func(key string) *update {
		return &update{ctx: t.Context(), done: make(chan error, 1), fn: func(tx store.ReadWriter) error { tx.Put(key, []byte("x")); return nil }}
	}
	batch := []*update{put("a"), put("studies/study-007\x00trial/\x00\x00\x00\x00\x00\x00\x00\x01"), put("z")}
	for rest := batch; len(rest) > 0; {
		rest = d.commit(rest)
	}
	first, second, third := <-batch[0].done, <-batch[1].done, <-batch[2].done
	if first != nil || !errors.Is(second, store.ErrCorrupt) || third != nil {
		t.Errorf("the answers are %v, %v and %v", first, second, third)
	}
	select {
	case <-d.Failed():
		t.Error("the store has failed")
	default:
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// What no program writes can be in a record that is whole otherwise.
func TestCheckOfStrangeRecord(t *testing.T) {
	path := filled(t, 3)
	edit(t, path, func(records *store.Store) {
		scope := store.StudyScope("study-000")
		require.NoError(t, records.Update(t.Context(), store.In(scope), func(tx *store.Tx) error {
			return tx.PutTrial("study-000", &storev1.TrialRecord{Trial: &dparetov1.Trial{Number: 1, Revision: 99}}) // without a state
		}))
	})
	if report, err := Verify(t.Context(), path); err != nil || len(report.Faults) == 0 {
		t.Errorf("Verify returned %+v, %v", report, err)
	}
}

// A file that is cut while it is open makes reads of its tail fail, and nothing else.
func TestCutWhileOpen(t *testing.T) {
	path := filled(t, 12)
	d, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, 32<<10))
	err = d.View(t.Context(), func(tx store.Reader) error {
		return tx.Scan("", "", func(string, []byte) (bool, error) { return true, nil })
	})
	if !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("View returned %v", err)
	}
	err = d.Update(t.Context(), nil, func(tx store.ReadWriter) error { tx.Put("studies/study-007\x00x", []byte("y")); return nil })
	if err == nil {
		t.Error("a write to a cut file was acknowledged")
	}
	_ = d.Close() // says why, if it has failed
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

// A file of an earlier format is refused with what to do.
func TestFormerFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	err = db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket(formerBucket); return err })
	require.NoError(t, errors.Join(err, db.Close()))
	for _, open := range []func(string) (*DB, error){Open, OpenReadOnly} {
		_, err := open(path)
		if !errors.Is(err, store.ErrFormat) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "export") {
			t.Errorf("opened with %v", err)
		}
	}
}

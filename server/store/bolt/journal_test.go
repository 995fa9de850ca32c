package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/dpareto/dpareto/server/store"
)

// pinned is a snapshot that is read long after it was taken, and what it must hold.
type pinned struct {
	tx     *bbolt.Tx
	layers []*table
	want   map[string]string
}

func (p *pinned) check(t *testing.T) {
	t.Helper()
	got := make(map[string]string)
	r, err := newReader(p.tx, p.layers)
	if err == nil {
		err = r.Scan("", "", func(key string, value []byte) (bool, error) { got[key] = string(value); return true, nil })
	}
	if err := errors.Join(err, p.tx.Rollback()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.want, got); diff != "" {
		t.Errorf("a snapshot has changed: %s", diff)
	}
}

// Wherever writes are on their way from the journal to their places a store holds what a
// map holds: when it is read, by readers that began long ago, after a crash, after a failed
// commit, and opened again.
func TestJournalAgainstModel(t *testing.T) {
	for _, size := range []int{1, 2 << 10, 32 << 10, generation} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("%d/%d", size, seed), func(t *testing.T) { journalAgainstModel(t, size, rand.New(rand.NewPCG(seed, 2))) })
		}
	}
}

func journalAgainstModel(t *testing.T, size int, random *rand.Rand) {
	path := filepath.Join(t.TempDir(), "store.db")
	open := func() *DB {
		d, err := newDB(path, false)
		if err != nil {
			t.Fatal(err)
		}
		d.generation, d.retryEvery = size, 0
		d.writer.Go(d.write)
		return d
	}
	d := open()
	model := make(map[string]string)
	moves := 0
	var snapshots []*pinned
	defer func() {
		for _, p := range snapshots { // else closing waits for them
			_ = p.tx.Rollback()
		}
		_ = d.Close()
	}()
	for step := range 400 {
		switch random.IntN(40) {
		case 0:
			copyFile(t, path, path+".crashed")
			if diff := cmp.Diff(model, contents(t, path+".crashed")); diff != "" {
				t.Fatalf("step %d, after a crash: %s", step, diff)
			}
		case 1:
			for _, p := range snapshots {
				p.check(t)
			}
			snapshots = nil
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			d = open()
		case 2, 3:
			tx, overlaid, err := d.begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			snapshots = append(snapshots, &pinned{tx, overlaid.layers(), maps.Clone(model)})
		case 4:
			if len(snapshots) == 0 { // recovery waits for readers
				d.strikeOnce([]moment{beforeCommit, afterCommit}[random.IntN(2)], syscall.EIO)
			}
		default:
			before := d.overlaid.Load().old
			wanted := maps.Clone(model)
			err := d.Update(t.Context(), func(tx store.ReadWriter) error {
				for range 1 + random.IntN(4) {
					// A few keys are written all the time, like those of studies.
					key := "trial/" + strconv.Itoa(random.IntN(300))
					if random.IntN(2) == 0 {
						key = "study/" + strconv.Itoa(random.IntN(5))
					}
					if random.IntN(3) == 0 {
						tx.Delete(key)
						delete(wanted, key)
						continue
					}
					wanted[key] = strconv.Itoa(step) + strings.Repeat("x", random.IntN(1<<random.IntN(13)))
					if random.IntN(10) == 0 {
						wanted[key] = ""
					}
					tx.Put(key, []byte(wanted[key]))
				}
				return nil
			})
			if err != nil {
				awaitHealth(t, d)
			} else {
				model = wanted
			}
			if after := d.overlaid.Load(); before != nil && after.old == nil {
				moves++
			}
		}
		if random.IntN(10) == 0 {
			if diff := cmp.Diff(model, dump(t, d)); diff != "" {
				t.Fatalf("step %d: %s", step, diff)
			}
		}
	}
	for _, p := range snapshots {
		p.check(t)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(model, contents(t, path)); diff != "" {
		t.Errorf("opened again: %s", diff)
	}
	if size == 32<<10 && moves == 0 {
		t.Error("no table was moved: the test shows nothing")
	}
}

// What waits in the journal stays bounded, whatever the writes are like, and what is put and
// deleted meanwhile leaves nothing behind that scans would have to pass.
func TestJournalIsBounded(t *testing.T) {
	for _, value := range []int{0, 10, 700} {
		d := open(t)
		for i := range 600 {
			key := strconv.Itoa(i)
			put(t, d, "trial/"+key, strings.Repeat("x", value))
			put(t, d, "open/"+key, "")
			if err := d.Update(t.Context(), func(tx store.ReadWriter) error { tx.Delete("open/" + key); return nil }); err != nil {
				t.Fatal(err)
			}
			o := d.overlaid.Load()
			if records := o.last + 1 - o.first; o.young.bytes > 2*small || records > (maxJournal+1)*small/recordSize {
				t.Fatalf("after %d writes %d bytes and %d records wait", i, o.young.bytes, records)
			}
			bytes, deletions := 0, 0
			o.young.writes.Scan(func(key string, value []byte) bool {
				bytes += len(key) + len(value) + entrySize
				if value == nil {
					deletions++
				}
				return true
			})
			if bytes != o.young.bytes {
				t.Fatalf("a table of %d bytes says %d", bytes, o.young.bytes)
			}
			if deletions > 2 { // of keys that were moved before they were deleted
				t.Fatalf("after %d writes %d deletions wait", i, deletions)
			}
		}
	}
}

// What is moved with a commit is in proportion to what it writes, never all of a table, and
// enough for a table to be empty before the next one is full.
func TestPaceOfMoving(t *testing.T) {
	const size = 256 << 10
	for _, value := range []int{0, 100, 3000} {
		d, err := openWith(filepath.Join(t.TempDir(), "store.db"), size)
		if err != nil {
			t.Fatal(err)
		}
		write := 3 * (len("00000000") + value + entrySize) // what a commit writes
		largest := 3000 + entrySize + len("00000000")
		tables, most, waiting := 0, 0, 0
		for i := 0; tables < 3; i++ {
			before := d.overlaid.Load()
			if err := d.Update(t.Context(), func(tx store.ReadWriter) error {
				for j := range 3 { // all over the table, none of them twice
					tx.Put(fmt.Sprintf("%08d", (3*i+j)*7919%10_000_019), make([]byte, value))
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			o := d.overlaid.Load()
			moving, from := o.old, before.moved
			switch {
			case before.old == nil && o.old != nil:
				from = ""
			case before.old != nil && o.old == nil:
				moving, tables = before.old, tables+1
			case before.old != o.old:
				t.Fatalf("commit %d: a table is put aside before the one before it is empty", i)
			}
			if moving == nil {
				continue
			}
			moved := 0
			moving.writes.Ascend(from, func(key string, value []byte) bool {
				if o.old != nil && key >= o.moved {
					return false
				}
				moved += len(key) + len(value) + entrySize
				return true
			})
			most, waiting = max(most, moved), max(waiting, o.young.recorded)
			if limit := moveFactor*(write+recordSize) + largest; moved > limit {
				t.Fatalf("commit %d of %d bytes moves %d, at most %d", i, write, moved, limit)
			}
			if o.old != nil && moved < moveFactor*write {
				t.Fatalf("commit %d of %d bytes moves %d", i, write, moved)
			}
		}
		if most == 0 || waiting > maxRecords*size/moveFactor+2*recordSize {
			t.Errorf("values of %d bytes: at most %d bytes are moved at once, while %d come", value, most, waiting)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A key stays deleted that is in a table on its way, before it is in its place and after it,
// and can be put again.
func TestDeleteOnTheWay(t *testing.T) {
	d := open(t)
	want := make(map[string]string)
	write := func(key, value string) {
		want[key] = value
		put(t, d, key, value)
	}
	remove := func(keys ...string) {
		t.Helper()
		if err := d.Update(t.Context(), func(tx store.ReadWriter) error {
			for _, key := range keys {
				delete(want, key)
				tx.Delete(key)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string) {
		t.Helper()
		if diff := cmp.Diff(want, dump(t, d)); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
		copyFile(t, d.path, d.path+".crashed")
		if diff := cmp.Diff(want, contents(t, d.path+".crashed")); diff != "" {
			t.Errorf("%s, after a crash: %s", when, diff)
		}
	}
	for i := 0; d.overlaid.Load().old == nil; i++ {
		write(fmt.Sprintf("a/%03d", i), strings.Repeat("x", 3000))
	}
	write("b", "")
	var moved, waiting []string
	o := d.overlaid.Load()
	o.old.writes.Scan(func(key string, _ []byte) bool {
		if key < o.moved {
			moved = append(moved, key)
		} else {
			waiting = append(waiting, key)
		}
		return true
	})
	if len(moved) < 2 || len(waiting) < 10 {
		t.Fatalf("%d keys are in their places and %d on their way: the test shows nothing", len(moved), len(waiting))
	}
	again := []string{moved[0], waiting[len(waiting)-1]}
	gone := []string{moved[1], waiting[len(waiting)-2], "b", "nowhere"}
	remove(append(gone, again...)...)
	check("deleted")
	for _, key := range again {
		write(key, "again")
	}
	check("put again")
	for d.overlaid.Load().old != nil {
		write("c", "y")
	}
	check("moved")
	remove(again...)
	check("deleted in its place")
	for i := range 3 {
		for d.overlaid.Load().old == nil {
			write(fmt.Sprintf("d/%d/%03d", i, len(want)), strings.Repeat("x", 3000))
		}
		for d.overlaid.Load().old != nil {
			write("c", strconv.Itoa(i))
		}
	}
	check("in its place")
}

// A key that is written again and again fills no table, and still not the journal.
func TestJournalOfOneKey(t *testing.T) {
	d := open(t)
	moved := 0
	for i := range 200 {
		put(t, d, "key", strconv.Itoa(i))
		o := d.overlaid.Load()
		if o.last+1-o.first > maxRecords*small/recordSize {
			t.Fatalf("after %d writes %d records wait", i, o.last+1-o.first)
		}
		if o.first > o.last {
			moved++
		}
	}
	if moved == 0 {
		t.Error("nothing was moved: the test shows nothing")
	}
}

// A program that is started again and again, and never comes to the end of a table, does
// not leave a journal that grows.
func TestJournalOfManyStarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	want := make(map[string]string)
	for i := range 100 {
		d, err := openWith(path, small)
		if err != nil {
			t.Fatal(err)
		}
		for j := range 3 {
			key := strconv.Itoa(10*i + j)
			want[key] = strings.Repeat("x", 500)
			put(t, d, key, want[key])
		}
		if recorded := d.overlaid.Load().recorded(); recorded > (maxJournal+1)*small {
			t.Fatalf("after %d starts %d bytes wait", i, recorded)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, contents(t, path)); diff != "" {
		t.Error(diff)
	}
}

// beneath changes a file in a transaction of bbolt.
func beneath(t *testing.T, path string, fn func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(fn), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// A program that knows no journal must see the store's format, and a store that it wrote is
// one with an empty journal.
func TestWithoutJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	put(t, d, store.FormatKey, "4")
	put(t, d, "key", "1")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	beneath(t, path, func(tx *bbolt.Tx) error {
		main := tx.Bucket(root)
		if got := main.Get([]byte(store.FormatKey)); string(got) != "4" {
			t.Errorf("the format in its place is %q", got)
		}
		if got := main.Get([]byte("key")); got != nil {
			t.Errorf("the key is in its place already, with %q: the test shows nothing", got)
		}
		return errors.Join(main.Put([]byte("key"), []byte("2")), tx.DeleteBucket(journalBucket))
	})
	want := map[string]string{store.FormatKey: "4", "key": "2"}
	if diff := cmp.Diff(want, contents(t, path)); diff != "" {
		t.Errorf("opened for reading: %s", diff)
	}
	if d, err = Open(path); err != nil {
		t.Fatal(err)
	}
	put(t, d, "key", "3")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	want["key"] = "3"
	if diff := cmp.Diff(want, contents(t, path)); diff != "" {
		t.Error(diff)
	}
}

// A key that has no place is an error of the Update that puts it, and of no other.
func TestLongKey(t *testing.T) {
	d := open(t)
	long := func(n int) error {
		return d.Update(t.Context(), func(tx store.ReadWriter) error { tx.Put(strings.Repeat("k", n), []byte("x")); return nil })
	}
	if err := long(store.MaxKey); err != nil {
		t.Errorf("a key of %d bytes: %v", store.MaxKey, err)
	}
	if err := long(store.MaxKey + 1); err == nil || d.Health() != nil {
		t.Errorf("a key of %d bytes: %v, health %v", store.MaxKey+1, err, d.Health())
	}
	if err := d.Update(t.Context(), func(tx store.ReadWriter) error { tx.Delete(""); return nil }); err != nil {
		t.Errorf("an empty key is deleted: %v", err)
	}
	copyFile(t, d.path, d.path+".crashed")
	if got := len(contents(t, d.path+".crashed")); got != 1 {
		t.Errorf("after a crash %d keys, want 1", got)
	}
	for i := range 100 { // all of it moves
		put(t, d, strconv.Itoa(i), strings.Repeat("x", 900))
	}
	if got := len(dump(t, d)); got != 101 {
		t.Errorf("%d keys, want 101", got)
	}
}

// Whatever is in a record is an error or what was written.
func FuzzDecodeWrites(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(encodeWrites(map[string][]byte{"a": []byte("1"), "b": {}, "c": nil}))
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, record := range [][]byte{content, withChecksum(content)} {
			writes := make(map[string][]byte)
			if err := decodeWrites(record, func(key string, value []byte) { writes[key] = value }); err != nil {
				continue
			}
			again := make(map[string][]byte)
			if err := decodeWrites(encodeWrites(writes), func(key string, value []byte) { again[key] = value }); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(writes, again); diff != "" {
				t.Error(diff)
			}
		}
	})
}

// withChecksum returns a record with the checksum of its content.
func withChecksum(content []byte) []byte {
	record := append(make([]byte, checksumSize), content...)
	sum := bytes.NewBuffer(nil)
	for shift := 24; shift >= 0; shift -= 8 {
		sum.WriteByte(byte(crc32c(content) >> shift))
	}
	copy(record, sum.Bytes())
	return record
}

// crc32c is the CRC-32C bit by bit.
func crc32c(content []byte) uint32 {
	crc := ^uint32(0)
	for _, b := range content {
		crc ^= uint32(b)
		for range 8 {
			crc = crc>>1 ^ 0x82f63b78*(crc&1)
		}
	}
	return ^crc
}

// Writes of many studies at random, as workers make them: two of each trial, in studies whose
// other trials are on other pages.
func BenchmarkManyStudies(b *testing.B) {
	for _, studies := range []int{1, 1000} {
		b.Run(strconv.Itoa(studies), func(b *testing.B) {
			d, err := Open(filepath.Join(b.TempDir(), "store.db"))
			if err != nil {
				b.Fatal(err)
			}
			defer func() {
				if err := d.Close(); err != nil {
					b.Error(err)
				}
			}()
			const trials = 200
			random := rand.New(rand.NewPCG(1, 1))
			trial := func(tx store.ReadWriter, study, number int) {
				id := strconv.Itoa(study)
				tx.Put("study/"+id, make([]byte, 500))
				tx.Put("trial/"+id+"/"+strconv.Itoa(1_000_000+number), make([]byte, 600))
			}
			for study := range studies {
				if err := d.Update(b.Context(), func(tx store.ReadWriter) error {
					for number := range trials {
						trial(tx, study, number)
					}
					return nil
				}); err != nil {
					b.Fatal(err)
				}
			}
			next := make([]int, studies)
			batch := make([]*update, 0, 64)
			b.ReportAllocs()
			before := d.db.Stats().TxStats
			b.ResetTimer()
			for b.Loop() {
				batch = batch[:0]
				for range cap(batch) {
					study := random.IntN(studies)
					next[study]++
					number := trials + next[study]/2
					batch = append(batch, &update{ctx: context.Background(), done: make(chan error, 1), fn: func(tx store.ReadWriter) error {
						trial(tx, study, number)
						return nil
					}})
				}
				d.commit(batch)
			}
			after := d.db.Stats().TxStats
			pages := after.GetPageAlloc() - before.GetPageAlloc()
			b.ReportMetric(float64(pages)/1e3/float64(b.N), "KB/op")
			b.ReportMetric(float64(after.GetWrite()-before.GetWrite())/float64(b.N), "writes/op")
		})
	}
}

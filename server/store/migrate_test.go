package store_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

// interrupted is a KV whose Updates fail after some.
type interrupted struct {
	store.KV
	left int
}

var errInterrupted = errors.New("interrupted")

func (k *interrupted) Update(ctx context.Context, fn func(store.ReadWriter) error) error {
	if k.left == 0 {
		return errInterrupted
	}
	k.left--
	return k.KV.Update(ctx, fn)
}

// old writes a store of format 1: study a with so many trials, every one put again later
// and every tenth deleted, the empty study b, and a remembered request for every second trial.
func old(t *testing.T, kv store.KV, trials int64) {
	t.Helper()
	err := kv.Update(t.Context(), func(w store.ReadWriter) error {
		write := func(key string, record proto.Message) {
			value, err := proto.Marshal(record)
			if err != nil {
				t.Fatal(err)
			}
			w.Put(key, value)
		}
		key := func(prefix string, n int64) string {
			return prefix + "/a/" + string(binary.BigEndian.AppendUint64(nil, uint64(n)))
		}
		counts := &dparetov1.TrialCounts{}
		revision := 1 + trials // of the creation of all
		for n := int64(1); n <= trials; n++ {
			revision++
			record := &storev1.TrialRecord{Trial: &dparetov1.Trial{Number: n, State: queued, Revision: revision}}
			if n%10 == 0 {
				revision++
				write(key("deleted", n), record)
				continue
			}
			counts.Queued++
			write(key("trial", n), record)
			write(key("open", n), &storev1.OpenTrialRecord{State: queued})
		}
		write("study/a", &storev1.StudyRecord{NextTrialNumber: trials + 1, Study: &dparetov1.Study{
			Name: "studies/a", Revision: revision, TrialCounts: counts,
		}})
		write("study/b", &storev1.StudyRecord{NextTrialNumber: 1, Study: &dparetov1.Study{
			Name: "studies/b", Revision: 1, TrialCounts: new(dparetov1.TrialCounts),
		}})
		for i := range trials / 2 { // more than a transaction migrates
			at := time.Unix(1_800_000_000+i%7, i)
			id := fmt.Sprint("caller/", i)
			write("request/"+id, &storev1.RequestRecord{Type: "t", Response: []byte(id), Time: timestamppb.New(at)})
			w.Put("expiry/"+string(binary.BigEndian.AppendUint64(nil, uint64(at.UnixNano())))+id, nil)
		}
		write("store", &storev1.StoreRecord{Format: 1})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// dump returns all keys and values.
func dump(t *testing.T, kv store.KV) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := kv.View(t.Context(), func(r store.Reader) error {
		return r.Scan("", "", func(key string, value []byte) (bool, error) {
			all[key] = string(value)
			return true, nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A store of format 1 is rewritten; interrupted anywhere, with the same result.
func TestMigrate(t *testing.T) {
	const trials = 2345
	var want map[string]string
	// Uninterrupted it takes 3 transactions for format 2, 2 for format 4 and one to end with,
	// after the one that looks at the format.
	for left := range 8 {
		db, err := bolt.Open(filepath.Join(t.TempDir(), "store.db"))
		if err != nil {
			t.Fatal(err)
		}
		old(t, db, trials)
		_, err = store.New(t.Context(), &interrupted{db, left})
		if (err == nil) != (left == 7) || err != nil && !errors.Is(err, errInterrupted) {
			t.Errorf("interrupted after %d: %v", left, err)
		}
		s, err := store.New(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range s.Check(t.Context()) {
			t.Error(fault)
		}
		got := dump(t, db)
		if want == nil {
			want = got
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("interrupted after %d: %s", left, d)
		}
		if _, err := store.New(t.Context(), db); err != nil || cmp.Diff(want, dump(t, db)) != "" {
			t.Errorf("opening again changes something: %v", err)
		}
		// Every deletion comes after everything that a reader may have seen.
		const last = 1 + trials + trials + trials/10
		deletions := changes(t, s, "a", last)
		if len(deletions) != trials/10 || deletions[0] != fmt.Sprint(last+1, " deleted 10") {
			t.Errorf("changes after revision %d: %d, %q", last, len(deletions), deletions[:1])
		}
		if d := cmp.Diff([]string{"1 study"}, changes(t, s, "b", 0)); d != "" {
			t.Error(d)
		}
		if got := changes(t, s, "a", 0)[:2]; got[0] != "1 study" || got[1] != fmt.Sprint(trials+2, " trial 1") {
			t.Errorf("changes %q", got)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A store of format 2 or 3, in which only requests have another form, keeps all else; one whose
// conversion from format 1 was interrupted by the program that wrote format 2 goes on. One of
// format 4 has the records of today.
func TestMigrateFromLater(t *testing.T) {
	kv := func() *bolt.DB {
		db, err := bolt.Open(filepath.Join(t.TempDir(), "store.db"))
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
	setFormat := func(db store.KV, record *storev1.StoreRecord) {
		err := db.Update(t.Context(), func(w store.ReadWriter) error {
			value, err := proto.Marshal(record)
			w.Put("store", value)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	converted, two, three, four, half := kv(), kv(), kv(), kv(), kv()
	old(t, converted, 45)
	requests := dump(t, converted)
	old(t, half, 45)
	if _, err := store.New(t.Context(), converted); err != nil {
		t.Fatal(err)
	}
	want := dump(t, converted)
	for _, db := range []store.KV{two, three, four} {
		if err := db.Update(t.Context(), func(w store.ReadWriter) error {
			for key, value := range want {
				if before, ok := requests[key]; ok && db != four && (strings.HasPrefix(key, "request/") || strings.HasPrefix(key, "expiry/")) {
					value = before
				}
				w.Put(key, []byte(value))
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	setFormat(two, &storev1.StoreRecord{Format: 2})
	setFormat(three, &storev1.StoreRecord{Format: 3})
	setFormat(four, &storev1.StoreRecord{Format: 4})
	setFormat(half, &storev1.StoreRecord{Format: 2, Migration: &storev1.Migration{From: 1}})
	for _, db := range []store.KV{two, three, four, half} {
		s, err := store.New(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, dump(t, db)); d != "" {
			t.Error(d)
		}
		if err := s.View(t.Context(), func(tx *store.ReadTx) error {
			request, err := tx.Request("caller/1")
			if string(request.GetResponse()) != "caller/1" {
				t.Errorf("a remembered request is %v", request)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		for _, fault := range s.Check(t.Context()) {
			t.Error(fault)
		}
	}
	record := new(storev1.StoreRecord)
	if err := proto.Unmarshal([]byte(want["store"]), record); err != nil || record.GetFormat() != store.Format || record.GetMigration() != nil {
		t.Errorf("store record %v, %v", record, err)
	}
}

// What was rewritten stays what it was when the pages that it was read from are used again.
func TestMigrateKeepsNoPages(t *testing.T) {
	source, err := bolt.Open(filepath.Join(t.TempDir(), "source.db"))
	if err != nil {
		t.Fatal(err)
	}
	old(t, source, 20)
	path := filepath.Join(t.TempDir(), "store.db")
	file, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	// As a program wrote it that put every key in its place.
	err = file.Update(func(tx *bbolt.Tx) error {
		root, err := tx.CreateBucket([]byte("dpareto"))
		for key, value := range dump(t, source) {
			err = errors.Join(err, root.Put([]byte(key), []byte(value)))
		}
		return err
	})
	if err := errors.Join(err, file.Close(), source.Close()); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	s, err := store.New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := s.Probe(t.Context()); err != nil { // rewrites a page
			t.Fatal(err)
		}
		if err := db.Update(t.Context(), func(w store.ReadWriter) error { w.Put("key", bytes.Repeat([]byte{0xff}, 100*i)); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.View(t.Context(), func(tx *store.ReadTx) error {
		request, err := tx.Request("caller/0")
		if string(request.GetResponse()) != "caller/0" {
			t.Errorf("a remembered request is %v", request)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
)

// verify returns the faults of study a.
func verify(t testing.TB, s *store.Store) (fault error) {
	t.Helper()
	require.NoError(t, s.View(context.Background(), func(tx *store.ReadTx) error {
		_, faults := tx.Verify(store.StudyScope("a"))
		fault = errors.Join(faults...)
		return nil
	}))
	return fault
}

// After any sequence of puts and deletes the total matches the records, within a transaction
// and after it, whether it was committed or refused.
func TestTotals(t *testing.T) {
	s, _ := open(t)
	scope := store.StudyScope("a")
	rapid.Check(t, func(rt *rapid.T) {
		for range rapid.IntRange(1, 4).Draw(rt, "transactions") {
			refuse := rapid.Bool().Draw(rt, "refuse")
			refused := errors.New("refused")
			err := s.Update(t.Context(), store.In(scope), func(tx *store.Tx) error {
				for range rapid.IntRange(0, 6).Draw(rt, "writes") {
					name := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "name")
					if rapid.Bool().Draw(rt, "delete") {
						if err := tx.DropRaw(scope, name); err != nil {
							return err
						}
					} else {
						tx.PutRaw(scope, name, "", []byte(rapid.StringN(0, 4, -1).Draw(rt, "value")))
					}
				}
				if _, faults := tx.Verify(scope); len(faults) > 0 {
					rt.Errorf("within a transaction: %v", faults)
				}
				if refuse {
					return refused
				}
				return nil
			})
			if err != nil && !errors.Is(err, refused) {
				rt.Fatal(err)
			}
			require.NoError(rt, verify(t, s))
		}
	})
}

// beneath changes what is kept of a store beneath its checksums.
func beneath(t *testing.T, kv store.KV, fn func(store.ReadWriter)) {
	t.Helper()
	require.NoError(t, kv.Update(t.Context(), nil, func(w store.ReadWriter) error { fn(w); return nil }))
}

const secondTrial = "studies/a\x00trial/\x00\x00\x00\x00\x00\x00\x00\x02"

// A record that is damaged, moved, lost, added or put back to what it was is found, and named;
// a read gives what was written or an error.
func TestDamage(t *testing.T) {
	get := func(w store.Reader, key string) []byte {
		value, err := w.Get(key)
		if err != nil || value == nil {
			t.Fatal(key, err)
		}
		return append([]byte(nil), value...)
	}
	for name, test := range map[string]struct {
		damage func(w store.ReadWriter, old []byte)
		want   string
		reads  bool // the trial can be read
	}{
		"bit": {func(w store.ReadWriter, _ []byte) {
			value := get(w, secondTrial)
			value[len(value)-1] ^= 4
			w.Put(secondTrial, value)
		}, "trial 2 of studies/a has a wrong checksum", false},
		"checksum": {func(w store.ReadWriter, _ []byte) {
			value := get(w, secondTrial)
			value[0] ^= 1
			w.Put(secondTrial, value)
		}, "trial 2 of studies/a has a wrong checksum", false},
		"short": {func(w store.ReadWriter, _ []byte) { w.Put(secondTrial, []byte("abc")) }, "trial 2 of studies/a has a wrong checksum", false},
		"moved": {func(w store.ReadWriter, _ []byte) {
			w.Put(secondTrial, get(w, strings.TrimSuffix(secondTrial, "\x02")+"\x01"))
		}, "trial 2 of studies/a has a wrong checksum", false},
		"lost":  {func(w store.ReadWriter, _ []byte) { w.Delete(secondTrial) }, "instead of", false},
		"stale": {func(w store.ReadWriter, old []byte) { w.Put(secondTrial, old) }, "that is not the latest", true},
		"total": {func(w store.ReadWriter, _ []byte) {
			w.Put("\x00studies/a", []byte("total"))
		}, "the total of studies/a has a wrong checksum", true},
		"no total": {func(w store.ReadWriter, _ []byte) { w.Delete("\x00studies/a") }, "records instead of 0", true},
	} {
		t.Run(name, func(t *testing.T) {
			s, kv := open(t)
			update(t, s, func(tx *store.Tx) error {
				return errors.Join(
					tx.PutStudy("a", study("a", 3, &dparetov1.TrialCounts{Active: 1, Succeeded: 1})),
					tx.PutTrial("a", trial(1, succeeded)), tx.PutTrial("a", trial(2, queued)))
			})
			var old []byte
			beneath(t, kv, func(w store.ReadWriter) { old = get(w, secondTrial) })
			update(t, s, func(tx *store.Tx) error { return tx.PutTrial("a", trial(2, active)) })
			if faults := s.Check(t.Context()); len(faults) > 0 {
				t.Fatal(faults)
			}
			beneath(t, kv, func(w store.ReadWriter) { test.damage(w, old) })
			fault := verify(t, s)
			if damage, ok := errors.AsType[*store.DamageError](fault); !ok || !strings.Contains(fault.Error(), test.want) {
				t.Errorf("found %v (%v), want %q", fault, damage, test.want)
			}
			if faults := s.Check(t.Context()); len(faults) == 0 {
				t.Error("a check finds nothing")
			}
			err := s.View(t.Context(), func(tx *store.ReadTx) error {
				_, err := tx.Trial("a", 2)
				return err
			})
			if test.reads != (err == nil) || err != nil && !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrNotFound) {
				t.Errorf("read: %v", err)
			}
		})
	}
}

// A read that would give less because records are lost fails: lists in whole and in part, and single
// records. So it is for totals of earlier versions, which have no numbers of kinds.
func TestLostRecords(t *testing.T) {
	none := func(*storev1.TrialRecord) (bool, error) { return true, nil }
	first := func(*storev1.TrialRecord) (bool, error) { return false, nil }
	trials := func(after int64, fn func(*storev1.TrialRecord) (bool, error)) func(*store.ReadTx) error {
		return func(tx *store.ReadTx) error { return tx.Trials("a", after, fn) }
	}
	single := func(tx *store.ReadTx) error { _, err := tx.Trial("a", 2); return err }
	open2 := func(tx *store.ReadTx) error {
		return tx.OpenTrials("a", func(int64, *storev1.OpenTrialRecord) (bool, error) { return true, nil })
	}
	changes := func(tx *store.ReadTx) error {
		return tx.Changes("a", 0, func(int64, *storev1.RevisionRecord) (bool, error) { return true, nil })
	}
	later := func(tx *store.ReadTx) error { return tx.CheckChanges("a") }
	deleted := func(tx *store.ReadTx) error { return tx.DeletedTrials("a", none) }
	studies := func(tx *store.ReadTx) error {
		return tx.Studies("", func(*storev1.StudyRecord) (bool, error) { return true, nil })
	}
	releases := func(after int64) func(tx *store.ReadTx) error {
		return func(tx *store.ReadTx) error {
			return tx.Releases("studies/a", after, func(int64, *storev1.ReleaseRecord) (bool, error) { return true, nil })
		}
	}
	number := func(kind string, n byte) string {
		return "studies/a\x00" + kind + "/\x00\x00\x00\x00\x00\x00\x00" + string(n)
	}
	for name, test := range map[string]struct {
		key   string
		reads map[string]func(*store.ReadTx) error
	}{
		"trial": {number("trial", 2), map[string]func(*store.ReadTx) error{
			"all": trials(0, none), "rest": trials(1, none), "single": single,
			"part": trials(0, func(r *storev1.TrialRecord) (bool, error) { return r.GetTrial().GetNumber() < 4, nil }),
		}},
		"first trial": {number("trial", 1), map[string]func(*store.ReadTx) error{"all": trials(0, none), "part": trials(0, first)}},
		"last trial":  {number("trial", 5), map[string]func(*store.ReadTx) error{"all": trials(0, none), "rest": trials(4, none)}},
		"open":        {number("unfinished", 2), map[string]func(*store.ReadTx) error{"all": open2}},
		"change":      {number("revision", 3), map[string]func(*store.ReadTx) error{"all": changes, "rest": later}},
		"deleted":     {number("deleted", 3), map[string]func(*store.ReadTx) error{"all": deleted, "trials": trials(2, first)}},
		"study": {"studies/a\x00study/", map[string]func(*store.ReadTx) error{
			"all": studies, "find": func(tx *store.ReadTx) error { return tx.FindStudy("a") },
			"single": func(tx *store.ReadTx) error { _, err := tx.Study("a"); return err },
		}},
		"total": {"\x00studies/a", map[string]func(*store.ReadTx) error{"studies": studies, "all": trials(0, none)}},
		"release": {number("release", 2), map[string]func(*store.ReadTx) error{
			"all": releases(0), "rest": releases(1), "last": func(tx *store.ReadTx) error { _, err := tx.LastRelease("studies/a"); return err },
		}},
	} {
		for _, earlier := range []bool{false, true} {
			s, kv := open(t)
			update(t, s, func(tx *store.Tx) error {
				err := tx.PutStudy("a", study("a", 6, &dparetov1.TrialCounts{Queued: 1, Succeeded: 3}))
				for n, state := range []dparetov1.TrialState{succeeded, queued, succeeded, succeeded, succeeded} {
					err = errors.Join(err, tx.PutTrial("a", trial(int64(n)+1, state)))
				}
				for n := range int64(2) {
					err = errors.Join(err, tx.PutRelease("studies/a", n+1, &storev1.ReleaseRecord{Release: &dparetov1.Release{Name: "x"}}))
				}
				return err
			})
			update(t, s, func(tx *store.Tx) error {
				record, err := tx.Trial("a", 3)
				record.GetTrial().Revision = 100
				return errors.Join(err, tx.DeleteTrial("a", record))
			})
			if earlier {
				beneath(t, kv, func(w store.ReadWriter) { store.ForgetKinds(t, w, store.StudyScope("a")) })
			}
			for read, fn := range test.reads {
				if err := s.View(t.Context(), fn); err != nil {
					t.Fatalf("%s, %s, before: %v", name, read, err)
				}
			}
			beneath(t, kv, func(w store.ReadWriter) { w.Delete(test.key) })
			for read, fn := range test.reads {
				if err := s.View(t.Context(), fn); !errors.Is(err, store.ErrCorrupt) {
					t.Errorf("%s, %s, total without kinds %v: %v", name, read, earlier, err)
				}
			}
		}
	}
}

// A total of an earlier version gets its numbers of kinds with the next write.
func TestTotalOfEarlierVersion(t *testing.T) {
	s, kv := open(t)
	update(t, s, func(tx *store.Tx) error { return tx.PutTrial("a", trial(1, succeeded)) })
	beneath(t, kv, func(w store.ReadWriter) { store.ForgetKinds(t, w, store.StudyScope("a")) })
	update(t, s, func(tx *store.Tx) error { return tx.PutTrial("a", trial(2, queued)) })
	require.NoError(t, verify(t, s))
	beneath(t, kv, func(w store.ReadWriter) {
		if !store.HasKinds(t, w, store.StudyScope("a")) {
			t.Error("the total has no kinds")
		}
	})
}

// Numbers that an import left out are no damage, and do not hide any.
func TestNumbersLeftOut(t *testing.T) {
	s, kv := open(t)
	update(t, s, func(tx *store.Tx) error {
		var err error
		for _, n := range []int64{2, 3, 7, 40, 41} {
			err = errors.Join(err, tx.PutTrial("a", trial(n, succeeded)))
		}
		return err
	})
	list := func(after int64, most int) (n int, err error) {
		err = s.View(t.Context(), func(tx *store.ReadTx) error {
			n = 0
			return tx.Trials("a", after, func(*storev1.TrialRecord) (bool, error) { n++; return n < most, nil })
		})
		return n, err
	}
	for after, want := range map[int64]int{0: 5, 1: 5, 2: 4, 3: 3, 7: 2, 39: 2, 40: 1, 41: 0, 100: 0} {
		if n, err := list(after, 10); n != want || err != nil {
			t.Errorf("after %d: %d, %v", after, n, err)
		}
	}
	if n, err := list(0, 2); n != 2 || err != nil {
		t.Errorf("in part: %d, %v", n, err)
	}
	beneath(t, kv, func(w store.ReadWriter) { w.Delete("studies/a\x00trial/\x00\x00\x00\x00\x00\x00\x00\x07") })
	for _, after := range []int64{0, 3, 7, 41} {
		if n, err := list(after, 3); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("after %d with damage: %d, %v", after, n, err)
		}
	}
}

// A damaged record is not replaced: the total would be wrong for ever.
func TestWriteOverDamage(t *testing.T) {
	s, kv := open(t)
	update(t, s, func(tx *store.Tx) error { return tx.PutTrial("a", trial(2, queued)) })
	beneath(t, kv, func(w store.ReadWriter) { w.Put(secondTrial, []byte("garbage")) })
	for _, fn := range []func(*store.Tx) error{
		func(tx *store.Tx) error {
			tx.PutRaw(store.StudyScope("a"), "trial", secondTrial[len(secondTrial)-8:], nil)
			return nil
		},
		func(tx *store.Tx) error { return tx.DeleteStudy("a") },
	} {
		if err := s.Update(t.Context(), store.In(store.StudyScope("a")), fn); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("Update returned %v", err)
		}
	}
}

// A ledger does not answer without all of its charges.
func TestDamagedLedger(t *testing.T) {
	s, kv := open(t)
	scope := store.In(store.LedgerScope("l"))
	guarantee := &dparetov1.PrivacyGuarantee{Epsilon: .5, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE}
	record := &storev1.LedgerRecord{Ledger: &dparetov1.Ledger{
		Name: "ledgers/l", Epsilon: 2, Delta: 1e-6, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
	}}
	require.NoError(t, s.Update(t.Context(), scope, func(tx *store.Tx) error {
		return errors.Join(tx.PutLedger("l", record),
			tx.PutCharge("l", 1, &storev1.ChargeRecord{Charge: &dparetov1.Charge{Resource: "a", Guarantee: guarantee}}),
			tx.PutCharge("l", 2, &storev1.ChargeRecord{Charge: &dparetov1.Charge{Resource: "b", Guarantee: guarantee}}))
	}))
	account := func() (a *store.Account, err error) {
		viewed := s.View(t.Context(), func(tx *store.ReadTx) error { a, err = tx.Account("l", record); return nil })
		return a, errors.Join(err, viewed)
	}
	if a, err := account(); err != nil || a.Last != 2 {
		t.Fatalf("%+v, %v", a, err)
	}
	last := "ledgers/l\x00charge/\x00\x00\x00\x00\x00\x00\x00\x02"
	var before []byte
	for name, damage := range map[string]func(w store.ReadWriter){
		"lost":    func(w store.ReadWriter) { w.Delete(last) },
		"damaged": func(w store.ReadWriter) { w.Put(last, append([]byte("x"), before[1:]...)) },
	} {
		beneath(t, kv, func(w store.ReadWriter) {
			value, _ := w.Get(last)
			before = append([]byte(nil), value...)
			damage(w)
		})
		if _, err := account(); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		err := s.Update(t.Context(), scope, func(tx *store.Tx) error { _, err := tx.Account("l", record); return err })
		if !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("%s, in an update: %v", name, err)
		}
		beneath(t, kv, func(w store.ReadWriter) { w.Put(last, before) })
	}
}

// An Update reads and writes its own scopes only, but for what it reads without protection.
func TestScopes(t *testing.T) {
	s, _ := open(t)
	update(t, s, func(tx *store.Tx) error {
		return errors.Join(tx.PutStudy("a", study("a", 1, nil)), tx.PutStudy("ab", study("ab", 1, nil)))
	})
	for name, fn := range map[string]func(tx *store.Tx) error{
		"read":  func(tx *store.Tx) error { _, err := tx.Study("ab"); return err },
		"write": func(tx *store.Tx) error { tx.BeginImport("ab"); return nil },
		"list": func(tx *store.Tx) error {
			return tx.Studies("", func(*storev1.StudyRecord) (bool, error) { return true, nil })
		},
		"verify": func(tx *store.Tx) error {
			_, faults := tx.Verify(store.StudyScope("ab"))
			return errors.Join(faults...)
		},
	} {
		if err := s.Update(t.Context(), store.In(store.StudyScope("a")), fn); err == nil || !strings.Contains(err.Error(), "outside of the scopes") {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := s.Update(t.Context(), store.In(store.StudyScope("a")), func(tx *store.Tx) error {
		for least, want := range map[int64]bool{1: true, 2: true, 3: false} {
			if got, err := tx.Unprotected().HasStudies(least); err != nil || got != want {
				t.Errorf("at least %d studies: %v, %v", least, got, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Answers are forgotten by their age, in one study at a time.
func TestForgetRequests(t *testing.T) {
	s, _ := open(t)
	a, ab := store.StudyScope("a"), store.StudyScope("ab")
	at := func(seconds int64) time.Time { return time.Unix(1_700_000_000+seconds, 0) }
	update(t, s, func(tx *store.Tx) error {
		var err error
		for i := range int64(2500) {
			err = errors.Join(err, tx.PutRequest(a, "id"+string(rune('A'+i%64))+at(i).String(), &storev1.RequestRecord{Time: timestamppb.New(at(i))}))
		}
		err = errors.Join(err, tx.PutRequest(ab, "x", &storev1.RequestRecord{Time: timestamppb.New(at(1))}))
		err = errors.Join(err, tx.PutRequest(a, "moved", &storev1.RequestRecord{Time: timestamppb.New(at(1))}))
		return errors.Join(err, tx.PutRequest(a, "moved", &storev1.RequestRecord{Time: timestamppb.New(at(9999))}))
	})
	n, err := s.ForgetRequests(t.Context(), a, at(2400))
	if err != nil || n != 2400 {
		t.Errorf("%d were forgotten, %v", n, err)
	}
	counts, err := s.Counts(t.Context())
	if err != nil || counts["request"].Keys != 102 {
		t.Errorf("left: %v, %v", counts, err)
	}
	if faults := s.Check(t.Context()); len(faults) > 0 {
		t.Error(faults)
	}
}

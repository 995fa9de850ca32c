package store_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/opentest"
)

func open(t *testing.T) (*store.Store, store.KV) {
	t.Helper()
	db := opentest.Open(t, filepath.Join(t.TempDir(), "store.db"))
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := store.New(t.Context(), db)
	require.NoError(t, err)
	return s, db
}

// study returns a study that trials below the next number, each put once, belong to.
func study(id string, next int64, counts *dparetov1.TrialCounts) *storev1.StudyRecord {
	return &storev1.StudyRecord{
		Study:           &dparetov1.Study{Name: "studies/" + id, TrialCounts: counts, Revision: next},
		NextTrialNumber: next,
		OwnRevision:     1,
	}
}

// trial returns a trial that was put once, after those with smaller numbers.
func trial(number int64, state dparetov1.TrialState) *storev1.TrialRecord {
	return &storev1.TrialRecord{Trial: &dparetov1.Trial{Number: number, State: state, Revision: number + 1}}
}

func update(t *testing.T, s *store.Store, fn func(*store.Tx) error) {
	t.Helper()
	scopes := store.In(store.StoreScope, store.StudyScope("a"), store.StudyScope("ab"), store.StudyScope("gone"), store.StudyScope("new"))
	require.NoError(t, s.Update(t.Context(), scopes, fn))
}

const (
	queued    = dparetov1.TrialState_TRIAL_STATE_QUEUED
	active    = dparetov1.TrialState_TRIAL_STATE_ACTIVE
	succeeded = dparetov1.TrialState_TRIAL_STATE_SUCCEEDED
)

func TestRecords(t *testing.T) {
	s, _ := open(t)
	// "ab" and "a" must not see each other's trials, nor numbers sort as text.
	numbers := []int64{1, 2, 9, 10, 255, 256, 1 << 40}
	update(t, s, func(tx *store.Tx) error {
		for _, id := range []string{"a", "ab"} {
			if err := tx.PutStudy(id, study(id, 1<<41, nil)); err != nil {
				return err
			}
			for _, n := range numbers {
				state := succeeded
				if n%2 == 0 {
					state = active
				}
				if err := tx.PutTrial(id, trial(n, state)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	err := s.View(t.Context(), func(tx *store.ReadTx) error {
		var got []int64
		if err := tx.Trials("a", 2, func(r *storev1.TrialRecord) (bool, error) {
			got = append(got, r.GetTrial().GetNumber())
			return true, nil
		}); err != nil {
			return err
		}
		if diff := cmp.Diff(numbers[2:], got); diff != "" {
			t.Error(diff)
		}
		got = nil
		if err := tx.OpenTrials("a", func(n int64, _ *storev1.OpenTrialRecord) (bool, error) {
			got = append(got, n)
			return len(got) < 3, nil
		}); err != nil {
			return err
		}
		if diff := cmp.Diff([]int64{2, 10, 256}, got); diff != "" {
			t.Error(diff)
		}
		one, err := tx.Trial("a", 256)
		if diff := cmp.Diff(trial(256, active), one, protocmp.Transform()); diff != "" || err != nil {
			t.Error(diff, err)
		}
		if _, err := tx.Trial("a", 3); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Trial(3): %v", err)
		}
		if _, err := tx.Study("b"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Study(b): %v", err)
		}
		return nil
	})
	require.NoError(t, err)
	update(t, s, func(tx *store.Tx) error { return tx.DeleteStudy("a") })
	require.NoError(t, s.View(t.Context(), func(tx *store.ReadTx) error {
		if _, err := tx.Trial("a", 1); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("trial of a deleted study: %v", err)
		}
		if _, err := tx.Trial("ab", 1); err != nil {
			t.Errorf("trial of another study: %v", err)
		}
		return nil
	}))
}

func TestFormat(t *testing.T) {
	s, kv := open(t)
	if _, err := store.New(t.Context(), kv); err != nil {
		t.Errorf("opening again: %v", err)
	}
	for _, format := range []int32{store.Format + 1, store.Format - 1} {
		update(t, s, func(tx *store.Tx) error {
			b, err := proto.Marshal(&storev1.StoreRecord{Format: format})
			tx.PutRaw(store.StoreScope, "format", "", b)
			return err
		})
		if _, err := store.New(t.Context(), kv); !errors.Is(err, store.ErrFormat) || !strings.Contains(err.Error(), "export") {
			t.Errorf("format %d: %v", format, err)
		}
		if _, err := store.NewReader(t.Context(), kv); !errors.Is(err, store.ErrFormat) {
			t.Errorf("format %d: %v", format, err)
		}
	}
}

// Check finds every kind of damage, and nothing in a sound store.
func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(*testing.T, *store.Store)
		want   string
	}{
		"none": {func(*testing.T, *store.Store) {}, ""},
		"counts": {func(t *testing.T, s *store.Store) {
			update(t, s, func(tx *store.Tx) error { return tx.PutStudy("a", study("a", 3, &dparetov1.TrialCounts{Queued: 2})) })
		}, "counts are"},
		"number": {func(t *testing.T, s *store.Store) {
			update(t, s, func(tx *store.Tx) error {
				return tx.PutStudy("a", study("a", 2, &dparetov1.TrialCounts{Active: 1, Succeeded: 1}))
			})
		}, "not below the next number"},
		"index": {func(t *testing.T, s *store.Store) {
			update(t, s, func(tx *store.Tx) error {
				return tx.DropRaw(store.StudyScope("a"), "unfinished")
			})
		}, "index says"},
		"orphan": {func(t *testing.T, s *store.Store) {
			update(t, s, func(tx *store.Tx) error { return tx.PutTrial("gone", trial(1, queued)) })
		}, "belongs to no study"},
		"no revision": {func(t *testing.T, s *store.Store) {
			update(t, s, func(tx *store.Tx) error {
				unindexed := trial(2, active)
				unindexed.Trial.Revision = 0
				return putRun(tx, unindexed)
			})
		}, "not in [1, 3]"},
		"same revision": {func(t *testing.T, s *store.Store) {
			update(t, s, func(tx *store.Tx) error {
				second := trial(2, active)
				second.Trial.Revision = 2 // as the first
				return putRun(tx, second)
			})
		}, "trial 1 has revision 2, index says"},
		"stale revision": {func(t *testing.T, s *store.Store) {
			update(t, s, func(tx *store.Tx) error {
				tx.PutRaw(store.StudyScope("a"), "revision", "\x00\x00\x00\x00\x00\x00\x00\x09", nil)
				return nil
			})
		}, "nothing has this revision"},
		"deleted garbage": {func(t *testing.T, s *store.Store) {
			update(t, s, func(tx *store.Tx) error {
				tx.PutRaw(store.StudyScope("a"), "deleted", "x", []byte("\xff\xff"))
				return nil
			})
		}, "cannot be decoded"},
		"deleted and not": {func(t *testing.T, s *store.Store) {
			record, err := proto.Marshal(trial(1, succeeded))
			require.NoError(t, err)
			update(t, s, func(tx *store.Tx) error {
				tx.PutRaw(store.StudyScope("a"), "deleted", "\x00\x00\x00\x00\x00\x00\x00\x01", record)
				return nil
			})
		}, "is of a trial that still exists"},
		"lost measurement": {func(t *testing.T, s *store.Store) {
			update(t, s, func(tx *store.Tx) error { return tx.DropRaw(store.StudyScope("a"), "underway") })
		}, "trial 2 has {measurements:0 attempts:1 past:1} in records of their own, and counts {measurements:1 attempts:1 past:1}"},
		"lost attempt": {func(t *testing.T, s *store.Store) {
			update(t, s, func(tx *store.Tx) error { return tx.DropRaw(store.StudyScope("a"), "attempt") })
		}, "counts {measurements:1 attempts:1 past:1}"},
		"measurement of no trial": {func(t *testing.T, s *store.Store) {
			update(t, s, func(tx *store.Tx) error { return tx.AddMeasurement("a", trial(9, active), new(dparetov1.Measurement)) })
		}, "trial 9 does not exist"},
		"measurement of a complete trial": {func(t *testing.T, s *store.Store) {
			update(t, s, func(tx *store.Tx) error {
				return tx.AddMeasurement("a", trial(1, succeeded), new(dparetov1.Measurement))
			})
		}, "trial 1 has {measurements:1"},
		"garbled key": {func(t *testing.T, s *store.Store) {
			update(t, s, func(tx *store.Tx) error { tx.PutRaw(store.StudyScope("a"), "attempt", "x", nil); return nil })
		}, "has no two numbers"},
		"import": {func(t *testing.T, s *store.Store) {
			update(t, s, func(tx *store.Tx) error { tx.BeginImport("new"); return tx.PutTrial("new", trial(1, queued)) })
		}, ""},
		"unknown": {func(t *testing.T, s *store.Store) {
			update(t, s, func(tx *store.Tx) error { tx.PutRaw(store.StoreScope, "new-kind", "x", nil); return nil })
		}, "unknown kind, \"new-kind\""},
		"garbage": {func(t *testing.T, s *store.Store) {
			update(t, s, func(tx *store.Tx) error {
				tx.PutRaw(store.StudyScope("new"), "study", "", []byte("\xff\xff"))
				return nil
			})
		}, "cannot be decoded"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := open(t)
			update(t, s, func(tx *store.Tx) error {
				return errors.Join(
					tx.PutStudy("a", study("a", 3, &dparetov1.TrialCounts{Active: 1, Succeeded: 1})),
					tx.PutTrial("a", trial(1, succeeded)),
					putRun(tx, trial(2, active)))
			})
			test.damage(t, s)
			faults := s.Check(t.Context())
			if test.want == "" {
				if len(faults) != 0 {
					t.Errorf("faults in a sound store: %v", faults)
				}
				return
			}
			if err := errors.Join(faults...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("faults %v, want %q", faults, test.want)
			}
		})
	}
}

package store_test

import (
	"errors"
	"testing"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
)

// Only what is marked is dropped, with all that belongs to it.
func TestDropImport(t *testing.T) {
	s, _ := open(t)
	update(t, s, func(tx *store.Tx) error {
		tx.BeginImport("a")
		return errors.Join(
			tx.PutTrial("a", trial(1, queued)), tx.DeleteTrial("a", trial(2, succeeded)),
			tx.PutStudy("ab", study("ab", 2, nil)), tx.PutTrial("ab", trial(1, succeeded)))
	})
	for range 2 {
		for _, id := range []string{"a", "ab", "none"} {
			require.NoError(t, s.DropImport(t.Context(), id))
		}
	}
	counts, err := s.Counts(t.Context())
	require.NoError(t, err)
	if counts["trial"].Keys != 1 || counts["study"].Keys != 1 || counts["unfinished"].Keys+counts["deleted"].Keys+counts["import"].Keys != 0 {
		t.Errorf("left: %v", counts)
	}
}

// A study with many trials is gone at once, and its trials in several transactions.
func TestDeleteLargeStudy(t *testing.T) {
	s, _ := open(t)
	const trials = 3000
	for _, id := range []string{"a", "ab"} {
		update(t, s, func(tx *store.Tx) error {
			err := tx.PutStudy(id, study(id, trials+1, &dparetov1.TrialCounts{Queued: trials}))
			for n := range int64(trials) {
				err = errors.Join(err, tx.PutTrial(id, trial(n+1, queued)))
			}
			return err
		})
	}
	update(t, s, func(tx *store.Tx) error { return tx.DeleteStudy("a") })
	if faults := s.Check(t.Context()); len(faults) > 0 {
		t.Errorf("while trials are left: %v", faults)
	}
	require.NoError(t, s.View(t.Context(), func(tx *store.ReadTx) error {
		marked, err := tx.Importing("a")
		if !marked || !errors.Is(tx.FindStudy("a"), store.ErrNotFound) || tx.FindStudy("ab") != nil {
			t.Errorf("marked: %t, study: %v, the other: %v", marked, tx.FindStudy("a"), tx.FindStudy("ab"))
		}
		return err
	}))
	require.NoError(t, s.DropImport(t.Context(), "a"))
	counts, err := s.Counts(t.Context())
	require.NoError(t, err)
	if counts["trial"].Keys != trials || counts["unfinished"].Keys != trials || counts["revision"].Keys != trials+1 || counts["import"].Keys != 0 {
		t.Errorf("left: %v", counts)
	}
}

func TestDeletedTrials(t *testing.T) {
	s, _ := open(t)
	update(t, s, func(tx *store.Tx) error {
		return errors.Join(tx.DeleteTrial("a", trial(256, succeeded)), tx.DeleteTrial("a", trial(2, succeeded)), tx.DeleteTrial("ab", trial(3, succeeded)))
	})
	var got []int64
	err := s.View(t.Context(), func(tx *store.ReadTx) error {
		return tx.DeletedTrials("a", func(r *storev1.TrialRecord) (bool, error) {
			got = append(got, r.GetTrial().GetNumber())
			return true, nil
		})
	})
	if err != nil || len(got) != 2 || got[0] != 2 || got[1] != 256 {
		t.Errorf("deleted trials %v, %v", got, err)
	}
}

// A reader changes nothing and refuses what is no store.
func TestNewReader(t *testing.T) {
	s, kv := open(t)
	if _, err := store.NewReader(t.Context(), kv); err != nil {
		t.Error(err)
	}
	update(t, s, func(tx *store.Tx) error { return tx.DropRaw(store.StoreScope, "format") })
	if _, err := store.NewReader(t.Context(), kv); err == nil || errors.Is(err, store.ErrFormat) {
		t.Errorf("without a format: %v", err)
	}
}

package store_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
)

// changes reads the index of revisions of study a after a revision, as text.
func changes(t *testing.T, s *store.Store, after int64) []string {
	t.Helper()
	var got []string
	require.NoError(t, s.View(t.Context(), func(tx *store.ReadTx) error {
		return tx.Changes("a", after, func(revision int64, change *storev1.RevisionRecord) (bool, error) {
			switch change := change.GetChange().(type) {
			case *storev1.RevisionRecord_Study:
				got = append(got, fmt.Sprint(revision, " study"))
			case *storev1.RevisionRecord_Trial:
				got = append(got, fmt.Sprint(revision, " trial ", change.Trial))
			case *storev1.RevisionRecord_DeletedTrial:
				got = append(got, fmt.Sprint(revision, " deleted ", change.DeletedTrial))
			}
			return true, nil
		})
	}))
	return got
}

// The index has one entry of everything, at its last change, whatever a trial holds.
func TestChanges(t *testing.T) {
	s, _ := open(t)
	record := study("a", 1, new(dparetov1.TrialCounts))
	put := func(number int64, measurements int) {
		record.Study.Revision++
		trial := trial(number, queued)
		trial.Trial.Revision = record.GetStudy().GetRevision()
		for i := range measurements {
			trial.Trial.Measurements = append(trial.Trial.Measurements, &dparetov1.Measurement{Step: int64(i)})
		}
		trial.LeaseTokens = make([]string, measurements)
		update(t, s, func(tx *store.Tx) error {
			if err := tx.PutTrial("a", trial); err != nil {
				return err
			}
			return tx.PutStudy("a", record)
		})
	}
	update(t, s, func(tx *store.Tx) error { return tx.PutStudy("a", record) })
	put(1, 0)
	put(2, 3)
	put(300, 0)
	if d := cmp.Diff([]string{"1 study", "2 trial 1", "3 trial 2", "4 trial 300"}, changes(t, s, 0)); d != "" {
		t.Error(d)
	}
	put(2, 50)
	put(1, 0)
	put(2, 0)
	if d := cmp.Diff([]string{"1 study", "4 trial 300", "6 trial 1", "7 trial 2"}, changes(t, s, 0)); d != "" {
		t.Error(d)
	}
	record.Study.Revision++
	gone := trial(300, queued)
	gone.Trial.Revision = record.GetStudy().GetRevision()
	update(t, s, func(tx *store.Tx) error { return tx.DeleteTrial("a", gone) })
	record.Study.Revision++
	record.OwnRevision = record.GetStudy().GetRevision()
	update(t, s, func(tx *store.Tx) error { return tx.PutStudy("a", record) })
	if d := cmp.Diff([]string{"7 trial 2", "8 deleted 300", "9 study"}, changes(t, s, 6)); d != "" {
		t.Error(d)
	}
	require.NoError(t, s.View(t.Context(), func(tx *store.ReadTx) error {
		deleted, err := tx.DeletedTrial("a", 300)
		if deleted.GetTrial().GetRevision() != 8 {
			t.Errorf("deleted trial %v", deleted)
		}
		return err
	}))
	update(t, s, func(tx *store.Tx) error { return tx.DeleteStudy("a") })
	if got := changes(t, s, 0); got != nil {
		t.Errorf("changes of a deleted study: %q", got)
	}
	if faults := s.Check(t.Context()); len(faults) > 0 {
		t.Error(faults)
	}
}

// Requests are found by their ids, and forgotten from the oldest on.
func TestRequests(t *testing.T) {
	s, _ := open(t)
	start := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	random := rand.New(rand.NewPCG(1, 2))
	put := func(i int, second int) {
		update(t, s, func(tx *store.Tx) error {
			return tx.PutRequest(store.StudyScope("a"), fmt.Sprint("id/", i), &storev1.RequestRecord{
				Type: "t", Response: []byte{byte(i)}, Time: timestamppb.New(start.Add(time.Duration(second) * time.Second)),
			})
		})
	}
	for _, i := range random.Perm(10) {
		put(i, i)
	}
	put(3, 30) // has happened again, later
	known := func() (known []int) {
		require.NoError(t, s.View(t.Context(), func(tx *store.ReadTx) error {
			for i := range 10 {
				if r, err := tx.Request(store.StudyScope("a"), fmt.Sprint("id/", i)); err == nil && r.GetResponse()[0] == byte(i) {
					known = append(known, i)
				}
			}
			return nil
		}))
		return known
	}
	for _, step := range []struct {
		second int
		want   []int
	}{
		{0, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{2, []int{2, 3, 4, 5, 6, 7, 8, 9}},
		{5, []int{3, 5, 6, 7, 8, 9}},
		{30, []int{3}},
		{31, nil},
	} {
		require.NoError(t, require.ErrOf(s.ForgetRequests(t.Context(), store.StudyScope("a"), start.Add(time.Duration(step.second)*time.Second))))
		if d := cmp.Diff(step.want, known()); d != "" {
			t.Errorf("after %v: %s", step, d)
		}
		if faults := s.Check(t.Context()); len(faults) > 0 {
			t.Error(faults)
		}
	}
	put(4, 12) // the clock was put back
	if d := cmp.Diff([]int{4}, known()); d != "" {
		t.Error(d)
	}
}

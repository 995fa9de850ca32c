package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
)

// putRun puts a trial that a worker holds, with a measurement and a past attempt of one.
func putRun(tx *store.Tx, record *storev1.TrialRecord) error {
	record.Trial.Measurements = []*dparetov1.Measurement{{Step: 1}}
	record.Trial.PastAttempts = []*dparetov1.Attempt{{Number: 1, Measurements: []*dparetov1.Measurement{{Step: 7}}}}
	return errors.Join(tx.PutParts("a", record), tx.PutTrial("a", record))
}

// steps returns the steps of measurements.
func steps(measurements []*dparetov1.Measurement) string {
	var all []int64
	for _, m := range measurements {
		all = append(all, m.GetStep())
	}
	return strings.Trim(fmt.Sprint(all), "[]")
}

// wantSteps reads a trial and compares the steps of its measurements, and of its past attempts'.
func wantSteps(t *testing.T, s *store.Store, number int64, own string, past ...string) {
	t.Helper()
	require.NoError(t, s.View(t.Context(), func(tx *store.ReadTx) error {
		record, err := tx.Trial("a", number)
		if err != nil {
			return err
		}
		if err := tx.JoinAttempts("a", record); err != nil {
			return err
		}
		var got []string
		for _, a := range record.GetTrial().GetPastAttempts() {
			got = append(got, steps(a.GetMeasurements()))
		}
		if steps(record.GetTrial().GetMeasurements()) != own || strings.Join(got, "|") != strings.Join(past, "|") {
			t.Errorf("trial %d has steps %s, past attempts %q; want %s, %q", number, steps(record.GetTrial().GetMeasurements()), got, own, past)
		}
		return nil
	}))
}

// Measurements are joined in the order of their steps, however they were added, and move with the
// trial: to a past attempt, back, and into the trial that completes.
func TestMeasurementsOfTrials(t *testing.T) {
	s, _ := open(t)
	update(t, s, func(tx *store.Tx) error {
		other := trial(3, active) // must see nothing of trial 2
		other.Trial.Measurements = []*dparetov1.Measurement{{Step: 5}}
		return errors.Join(
			tx.PutStudy("a", study("a", 4, &dparetov1.TrialCounts{Active: 2})),
			putRun(tx, trial(2, active)), tx.PutParts("a", other), tx.PutTrial("a", other))
	})
	change := func(fn func(*store.Tx, *storev1.TrialRecord) error) {
		t.Helper()
		update(t, s, func(tx *store.Tx) error {
			record, err := tx.Trial("a", 2)
			if err != nil {
				return err
			}
			return errors.Join(fn(tx, record), tx.PutTrial("a", record))
		})
	}
	add := func(step int64) {
		t.Helper()
		update(t, s, func(tx *store.Tx) error {
			record, err := tx.BareTrial("a", 2)
			if err != nil || len(record.GetTrial().GetMeasurements()) > 0 {
				t.Errorf("the bare trial is %v, %v", record, err)
			}
			return errors.Join(tx.AddMeasurement("a", record, &dparetov1.Measurement{Step: step}), tx.PutTrial("a", record))
		})
	}
	add(1 << 40)
	add(256)
	wantSteps(t, s, 2, "1 256 1099511627776", "7")
	change(func(tx *store.Tx, record *storev1.TrialRecord) error {
		return tx.EndAttempt("a", record, &dparetov1.Attempt{Number: 2})
	})
	wantSteps(t, s, 2, "", "7", "1 256 1099511627776")
	wantSteps(t, s, 3, "5")
	add(9)
	change(func(tx *store.Tx, record *storev1.TrialRecord) error { // as a late completion does
		if err := tx.EndAttempt("a", record, &dparetov1.Attempt{Number: 3}); err != nil {
			return err
		}
		attempt, err := tx.TakeAttempt("a", record, 1)
		record.Trial.Measurements, record.Trial.State = attempt.GetMeasurements(), succeeded
		return err
	})
	wantSteps(t, s, 2, "7", "1 256 1099511627776", "9")
	update(t, s, func(tx *store.Tx) error {
		return tx.PutStudy("a", study("a", 4, &dparetov1.TrialCounts{Active: 1, Succeeded: 1}))
	})
	for _, fault := range s.Check(t.Context()) {
		t.Error(fault)
	}
	update(t, s, func(tx *store.Tx) error { return tx.DeleteStudy("a") })
	for _, fault := range s.Check(t.Context()) {
		t.Errorf("after the deletion: %v", fault)
	}
}

// A trial that was read without its measurements cannot complete, and a lost measurement or attempt
// is an error of every read.
func TestMeasurementsAreNotForgotten(t *testing.T) {
	s, _ := open(t)
	update(t, s, func(tx *store.Tx) error {
		return errors.Join(tx.PutStudy("a", study("a", 3, &dparetov1.TrialCounts{Active: 1})), putRun(tx, trial(1, active)))
	})
	err := s.Update(t.Context(), store.In(store.StudyScope("a")), func(tx *store.Tx) error {
		record, err := tx.BareTrial("a", 1)
		if err != nil {
			return err
		}
		record.Trial.State = succeeded
		return tx.PutTrial("a", record)
	})
	if err == nil || !strings.Contains(err.Error(), "would lose 1 of 1 measurements") {
		t.Errorf("completed without measurements: %v", err)
	}
	wantSteps(t, s, 1, "1", "7")
	update(t, s, func(tx *store.Tx) error {
		return errors.Join(tx.DropRaw(store.StudyScope("a"), "underway"), tx.DropRaw(store.StudyScope("a"), "attempt"))
	})
	err = s.View(t.Context(), func(tx *store.ReadTx) error {
		record, err := tx.BareTrial("a", 1)
		if err != nil {
			return err
		}
		_, read := tx.Trial("a", 1)
		listed := tx.Trials("a", 0, func(*storev1.TrialRecord) (bool, error) { return true, nil })
		joined := tx.JoinAttempts("a", record)
		if !errors.Is(read, store.ErrCorrupt) || !errors.Is(listed, store.ErrCorrupt) || !errors.Is(joined, store.ErrCorrupt) {
			t.Errorf("errors %v, %v and %v", read, listed, joined)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	err = s.Update(t.Context(), store.In(store.StudyScope("a")), func(tx *store.Tx) error {
		_, err := tx.TakeAttempt("a", trial(1, active), 1)
		return err
	})
	if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "attempt 1 of trial 1 of studies/a") {
		t.Errorf("the lost attempt is %v", err)
	}
}

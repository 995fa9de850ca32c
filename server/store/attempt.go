package store

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// isHeld reports whether a worker holds a trial. Its measurements then have records of their own, so
// that each one added costs the same. All others are in the trial's record, which is read as a whole.
func isHeld(trial *dparetov1.Trial) bool {
	return trial.GetState() == dparetov1.TrialState_TRIAL_STATE_ACTIVE || trial.GetState() == dparetov1.TrialState_TRIAL_STATE_STOPPING
}

// measurementKey returns the key of a measurement of a held trial at a step, which must not be
// negative.
func measurementKey(study string, number, step int64) string {
	return numberedPart(StudyScope(study), measurementKind, number, step)
}

// Measurement returns the measurement of a held trial at a step, or ErrNotFound.
func (t *ReadTx) Measurement(study string, number, step int64) (*dparetov1.Measurement, error) {
	m := new(dparetov1.Measurement)
	return m, get(t.r, measurementKey(study, number, step), m)
}

// joinMeasurements adds the measurements of a held trial to its record.
func (t *ReadTx) joinMeasurements(study string, record *storev1.TrialRecord) error {
	if record.GetMeasurementRecords() == 0 {
		return nil
	}
	trial := record.GetTrial()
	err := partsOf(t.r, StudyScope(study), measurementKind, trial.GetNumber(), func(m *dparetov1.Measurement) {
		trial.Measurements = append(trial.Measurements, m)
	})
	if n := len(trial.GetMeasurements()); err == nil && n != int(record.GetMeasurementRecords()) {
		err = damaged(numbered(StudyScope(study), trialKind, trial.GetNumber()), "has %d measurements instead of %d", n, record.GetMeasurementRecords())
	}
	return err
}

// JoinAttempts adds its past attempts to the record of a trial, which may be deleted.
func (t *ReadTx) JoinAttempts(study string, record *storev1.TrialRecord) error {
	if record.GetPastAttempts() == 0 {
		return nil
	}
	trial := record.GetTrial()
	err := partsOf(t.r, StudyScope(study), attemptKind, trial.GetNumber(), func(a *dparetov1.Attempt) {
		trial.PastAttempts = append(trial.PastAttempts, a)
	})
	if n := len(trial.GetPastAttempts()); err == nil && n != int(record.GetPastAttempts()) {
		err = damaged(numbered(StudyScope(study), trialKind, trial.GetNumber()), "has %d past attempts instead of %d", n, record.GetPastAttempts())
	}
	return err
}

// AddMeasurement writes a measurement of a held trial, which must have none at this step, and counts
// it in the trial's record. The caller puts that.
func (t *Tx) AddMeasurement(study string, record *storev1.TrialRecord, m *dparetov1.Measurement) error {
	record.MeasurementRecords++
	return put(t.w, measurementKey(study, record.GetTrial().GetNumber(), m.GetStep()), m)
}

// dropMeasurements removes the measurements' own records of a trial that was read with them.
func (t *Tx) dropMeasurements(study string, record *storev1.TrialRecord) error {
	trial := record.GetTrial()
	if n := len(trial.GetMeasurements()); n < int(record.GetMeasurementRecords()) {
		return fmt.Errorf("store: trial %d of study %s would lose %d of %d measurements", trial.GetNumber(), study, int(record.GetMeasurementRecords())-n, record.GetMeasurementRecords())
	}
	record.MeasurementRecords = 0
	return t.r.Scan(numbered(StudyScope(study), measurementKind, trial.GetNumber()), "", func(key string, _ []byte) (bool, error) {
		t.w.Delete(key)
		return true, nil
	})
}

// EndAttempt moves the measurements of a trial, which was read with them, to a past attempt. The
// caller puts the trial's record.
func (t *Tx) EndAttempt(study string, record *storev1.TrialRecord, attempt *dparetov1.Attempt) error {
	if err := t.dropMeasurements(study, record); err != nil {
		return err
	}
	trial := record.GetTrial()
	attempt.Measurements, trial.Measurements = trial.GetMeasurements(), nil
	return t.putAttempt(study, record, attempt)
}

// putAttempt writes a past attempt of a trial and counts it in the trial's record.
func (t *Tx) putAttempt(study string, record *storev1.TrialRecord, attempt *dparetov1.Attempt) error {
	record.PastAttempts++
	record.PastMeasurements += int64(len(attempt.GetMeasurements()))
	return put(t.w, numberedPart(StudyScope(study), attemptKind, record.GetTrial().GetNumber(), int64(attempt.GetNumber())), attempt)
}

// TakeAttempt removes a past attempt of a trial and returns it. The caller puts the trial's record.
func (t *Tx) TakeAttempt(study string, record *storev1.TrialRecord, number int32) (*dparetov1.Attempt, error) {
	key := numberedPart(StudyScope(study), attemptKind, record.GetTrial().GetNumber(), int64(number))
	attempt := new(dparetov1.Attempt)
	err := get(t.r, key, attempt)
	if errors.Is(err, ErrNotFound) {
		return nil, damaged(key, "is missing")
	}
	if err != nil {
		return nil, err
	}
	t.w.Delete(key)
	record.PastAttempts--
	record.PastMeasurements -= int64(len(attempt.GetMeasurements()))
	return attempt, nil
}

// PutParts writes what has records of its own beside a trial's: the measurements of a held trial, and
// the past attempts, as they are in the trial. It sets their numbers in the trial's record, which the
// caller puts. Parts that were stored before must be among them.
func (t *Tx) PutParts(study string, record *storev1.TrialRecord) error {
	trial := record.GetTrial()
	record.MeasurementRecords, record.PastAttempts, record.PastMeasurements = 0, 0, 0
	for _, attempt := range trial.GetPastAttempts() {
		if err := t.putAttempt(study, record, attempt); err != nil {
			return err
		}
	}
	if !isHeld(trial) {
		return nil
	}
	for _, m := range trial.GetMeasurements() {
		if err := t.AddMeasurement(study, record, m); err != nil {
			return err
		}
	}
	return nil
}

// putTrialRecord writes the record of a trial under a key, without what has records of its own.
func putTrialRecord(w ReadWriter, key string, record *storev1.TrialRecord) error {
	trial := record.GetTrial()
	measurements, attempts := trial.GetMeasurements(), trial.GetPastAttempts()
	defer func() { trial.Measurements, trial.PastAttempts = measurements, attempts }()
	trial.PastAttempts = nil
	if isHeld(trial) {
		trial.Measurements = nil
	}
	return put(w, key, record)
}

// partsOf calls fn for the records of a kind that are part of a trial, in ascending order.
func partsOf[M any, P interface {
	*M
	proto.Message
}](r Reader, scope Scope, k kind, number int64, fn func(P)) error {
	prefix := numbered(scope, k, number)
	return r.Scan(prefix, "", func(key string, value []byte) (bool, error) {
		record := P(new(M))
		if err := unmarshal(key, value, record); err != nil {
			return false, err
		}
		fn(record)
		return true, nil
	})
}

package store

import (
	"encoding/binary"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// parts are the numbers of a trial's parts that have records of their own.
type parts struct {
	measurements, attempts int
	past                   int64 // measurements of the attempts
}

// partsCheck compares the records of measurements and past attempts with the trials of a study.
type partsCheck struct {
	id     string
	found  map[int64]parts // by number of the trial
	faultf func(string, ...any)
}

// countParts counts the parts of a study's trials, and reports those that cannot be read.
func countParts(tx *ReadTx, id string, faultf func(string, ...any)) *partsCheck {
	c := &partsCheck{id: id, found: make(map[int64]parts), faultf: faultf}
	count := func(key string, change func(*parts)) {
		_, _, name := split(key)
		if len(name) != 16 {
			faultf("%s has no two numbers", describe(key))
			return
		}
		number := int64(binary.BigEndian.Uint64([]byte(name)))
		found := c.found[number]
		change(&found)
		c.found[number] = found
	}
	err := records(tx.r, StudyScope(id), measurementKind, 0, func(key string, _ *dparetov1.Measurement) (bool, error) {
		count(key, func(p *parts) { p.measurements++ })
		return true, nil
	})
	if err != nil {
		faultf("study %s: measurements: %w", id, err)
	}
	err = records(tx.r, StudyScope(id), attemptKind, 0, func(key string, attempt *dparetov1.Attempt) (bool, error) {
		count(key, func(p *parts) { p.attempts++; p.past += int64(len(attempt.GetMeasurements())) })
		return true, nil
	})
	if err != nil {
		faultf("study %s: past attempts: %w", id, err)
	}
	return c
}

// check compares the parts of a trial with its record.
func (c *partsCheck) check(record *storev1.TrialRecord) {
	trial := record.GetTrial()
	want := parts{int(record.GetMeasurementRecords()), int(record.GetPastAttempts()), record.GetPastMeasurements()}
	if found := c.found[trial.GetNumber()]; found != want {
		c.faultf("study %s: trial %d has %+v in records of their own, and counts %+v", c.id, trial.GetNumber(), found, want)
	}
	delete(c.found, trial.GetNumber())
	if isHeld(trial) && len(trial.GetMeasurements()) > 0 || !isHeld(trial) && want.measurements > 0 {
		c.faultf("study %s: the measurements of trial %d, which is %s, are in the wrong place", c.id, trial.GetNumber(), trial.GetState())
	}
}

// checkRest checks the deleted trials, and reports parts of trials that do not exist.
func (c *partsCheck) checkRest(tx *ReadTx) {
	err := tx.DeletedTrials(c.id, func(trial *storev1.TrialRecord) (bool, error) {
		c.check(trial)
		return true, nil
	})
	if err != nil {
		c.faultf("study %s: deleted trials: %w", c.id, err)
	}
	for number, found := range c.found {
		c.faultf("study %s: trial %d does not exist, but has %+v in records of their own", c.id, number, found)
	}
}

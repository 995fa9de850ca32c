package store

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Changes calls fn with the index entry of every trial, and of the study itself, that last changed
// or was deleted after a revision, in ascending order of revision, until fn returns false or an
// error.
func (t *ReadTx) Changes(study string, after int64, fn func(revision int64, change *storev1.RevisionRecord) (bool, error)) error {
	return records(t.r, StudyScope(study), revisionKind, after+1, numbers(fn))
}

// CheckChanges returns an error that matches ErrCorrupt if the index that Changes reads has lost an
// entry. Changes itself notices that only if it reads the whole index.
func (t *ReadTx) CheckChanges(study string) error {
	want, err := t.r.total(StudyScope(study))
	if err != nil {
		return err
	}
	_, err = countKeys(t.r, StudyScope(study), revisionKind, want, "", "")
	return err
}

// DeletedTrials calls fn for every deleted trial of a study, in ascending order of number, until fn
// returns false or an error. Their privacy cost remains.
func (t *ReadTx) DeletedTrials(study string, fn func(*storev1.TrialRecord) (bool, error)) error {
	return records(t.r, StudyScope(study), deletedKind, 0, func(_ string, record *storev1.TrialRecord) (bool, error) {
		return fn(record)
	})
}

// DeletedTrial returns a deleted trial, or ErrNotFound.
func (t *ReadTx) DeletedTrial(study string, number int64) (*storev1.TrialRecord, error) {
	record := new(storev1.TrialRecord)
	return record, get(t.r, numbered(StudyScope(study), deletedKind, number), record)
}

// indexStudy moves the study's index entry to its new revision.
func (t *Tx) indexStudy(study string, record *storev1.StudyRecord) error {
	key := numbered(StudyScope(study), revisionKind, record.GetOwnRevision())
	existing, err := t.r.Get(key)
	if err != nil || existing != nil {
		return err
	}
	switch before, err := t.Study(study); {
	case err == nil:
		t.w.Delete(numbered(StudyScope(study), revisionKind, before.GetOwnRevision()))
	case !errors.Is(err, ErrNotFound):
		return err
	}
	return put(t.w, key, &storev1.RevisionRecord{Change: &storev1.RevisionRecord_Study{Study: true}})
}

// indexTrial moves a trial's index entry to its new revision, before the trial is written.
func (t *Tx) indexTrial(study string, trial *dparetov1.Trial, change *storev1.RevisionRecord) error {
	before, err := t.r.Get(numbered(StudyScope(study), trialKind, trial.GetNumber()))
	if err != nil {
		return err
	}
	revision, err := revisionOf(before)
	if err != nil {
		return fmt.Errorf("store: decode trial %d of study %s: %w", trial.GetNumber(), study, err)
	}
	if revision > 0 {
		t.w.Delete(numbered(StudyScope(study), revisionKind, revision))
	}
	return put(t.w, numbered(StudyScope(study), revisionKind, trial.GetRevision()), change)
}

// Field numbers that lead to the revision in an encoded TrialRecord.
const (
	recordTrial   = 1  // TrialRecord.trial
	trialRevision = 19 // Trial.revision
)

// revisionOf returns the revision in an encoded TrialRecord, 0 for no record. It does not decode the
// record, which may have thousands of measurements.
func revisionOf(record []byte) (int64, error) {
	trial, err := lastField(record, recordTrial, protowire.BytesType)
	if err != nil {
		return 0, err
	}
	trial, n := protowire.ConsumeBytes(trial)
	if n < 0 {
		return 0, nil
	}
	revision, err := lastField(trial, trialRevision, protowire.VarintType)
	if err != nil {
		return 0, err
	}
	v, n := protowire.ConsumeVarint(revision)
	if n < 0 {
		return 0, nil
	}
	return int64(v), nil
}

// lastField returns the encoding of the last value of a field, nil if it is not set.
func lastField(message []byte, field protowire.Number, kind protowire.Type) ([]byte, error) {
	var found []byte
	for len(message) > 0 {
		number, wire, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, wire, message); n < 0 {
			return nil, protowire.ParseError(n)
		}
		if number == field && wire == kind {
			found = message[:n]
		}
		message = message[n:]
	}
	return found, nil
}

// revisionCheck compares the revision index of a study with the study.
type revisionCheck struct {
	id      string
	record  *storev1.StudyRecord
	entries map[int64]*storev1.RevisionRecord
	faultf  func(string, ...any)
}

// checkRevisions reads the index of a study, and checks the entries of the study itself and of
// deleted trials.
func checkRevisions(tx *ReadTx, id string, record *storev1.StudyRecord, faultf func(string, ...any)) *revisionCheck {
	c := &revisionCheck{id: id, record: record, entries: make(map[int64]*storev1.RevisionRecord), faultf: faultf}
	err := tx.Changes(id, -1, func(revision int64, change *storev1.RevisionRecord) (bool, error) {
		c.entries[revision] = change
		return true, nil
	})
	if err != nil {
		faultf("study %s: index of revisions: %w", id, err)
	}
	c.check("the study", record.GetOwnRevision(), &storev1.RevisionRecord{Change: &storev1.RevisionRecord_Study{Study: true}})
	err = tx.DeletedTrials(id, func(deleted *storev1.TrialRecord) (bool, error) {
		c.checkTrial(deleted.GetTrial(), true)
		return true, nil
	})
	if err != nil {
		faultf("study %s: deleted trials: %w", id, err)
	}
	return c
}

// checkTrial checks the entry of a trial.
func (c *revisionCheck) checkTrial(trial *dparetov1.Trial, deleted bool) {
	want := &storev1.RevisionRecord{Change: &storev1.RevisionRecord_Trial{Trial: trial.GetNumber()}}
	if deleted {
		want.Change = &storev1.RevisionRecord_DeletedTrial{DeletedTrial: trial.GetNumber()}
	}
	c.check(fmt.Sprintf("trial %d", trial.GetNumber()), trial.GetRevision(), want)
}

// check checks one entry.
func (c *revisionCheck) check(what string, revision int64, want *storev1.RevisionRecord) {
	if latest := c.record.GetStudy().GetRevision(); revision < 1 || revision > latest {
		c.faultf("study %s: %s has revision %d, not in [1, %d]", c.id, what, revision, latest)
	}
	if got := c.entries[revision]; !proto.Equal(got, want) {
		c.faultf("study %s: %s has revision %d, index says {%v}", c.id, what, revision, got)
		return
	}
	delete(c.entries, revision)
}

// checkRest reports entries without a change.
func (c *revisionCheck) checkRest() {
	for revision, change := range c.entries {
		c.faultf("study %s: index has revision %d {%v}, but nothing has this revision", c.id, revision, change)
	}
}

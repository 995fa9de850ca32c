package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Format is the format number of the records that this version writes. It reads no other.
const Format = 7

// formatKey is the key of the record with the format number.
var formatKey = keyOf(StoreScope, formatKind)

// Store keeps typed records in a KV. It is safe for concurrent use.
type Store struct {
	kv       KV
	shared   Shared // kv, nil if this process has it alone
	observer UpdateObserver
	locks    localLocks
}

// over returns a Store over kv.
func over(kv KV) *Store {
	shared, _ := kv.(Shared)
	return &Store{kv: kv, shared: shared}
}

// New returns a store over kv. It initialises an empty kv, and returns ErrFormat if another version
// wrote it.
func New(ctx context.Context, kv KV) (*Store, error) {
	s := over(kv)
	err := s.Update(ctx, In(StoreScope), func(tx *Tx) error {
		err := checkFormat(&tx.ReadTx)
		if errors.Is(err, ErrNotFound) {
			return put(tx.w, formatKey, &storev1.StoreRecord{Format: Format})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// NewReader returns a read-only store over an existing kv. It returns ErrFormat if another version
// wrote it.
func NewReader(ctx context.Context, kv KV) (*Store, error) {
	s := over(kv)
	err := s.View(ctx, checkFormat)
	if errors.Is(err, ErrNotFound) {
		return nil, errors.New("store: the file holds no store")
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// checkFormat returns ErrFormat for another format, and ErrNotFound for an empty store.
func checkFormat(tx *ReadTx) error {
	var record storev1.StoreRecord
	if err := get(tx.r, formatKey, &record); err != nil {
		return err
	}
	if record.GetFormat() != Format {
		return FormatError(fmt.Sprintf("format %d", record.GetFormat()))
	}
	return nil
}

// FormatError returns the error for a store of another format. It matches ErrFormat.
func FormatError(format string) error {
	return fmt.Errorf("%w: it has %s, but this program reads format %d; export its studies with the version that wrote it (dpareto export) and import them here",
		ErrFormat, format, Format)
}

// View calls fn with a consistent snapshot.
func (s *Store) View(ctx context.Context, fn func(*ReadTx) error) error {
	return s.kv.View(ctx, func(r Reader) error {
		tx := newReadTx(sealedReader{r}, s.timed(r))
		return fn(&tx)
	})
}

// Update calls fn and returns nil once its writes are durable. If fn or the commit fails, nothing is
// written. fn may read and write only the given scopes. It may be called more than once (see KV), so
// other effects belong in AfterCommit.
func (s *Store) Update(ctx context.Context, scopes Scopes, fn func(*Tx) error) error {
	var tx *Tx
	err := s.observed(ctx, scopes, func(w ReadWriter) error {
		sealed := newSealedWriter(w, scopes)
		tx = &Tx{ReadTx: newReadTx(sealed, s.timed(w)), w: sealed}
		if err := fn(tx); err != nil {
			return err
		}
		return sealed.flush()
	})
	if err != nil {
		return err
	}
	for _, after := range tx.after {
		after()
	}
	return nil
}

// ReadTx reads records from a snapshot. The caller owns the records.
type ReadTx struct {
	ledgerReader
	r     scoped
	timed Timed // nil if the store is not shared
}

func newReadTx(r scoped, timed Timed) ReadTx { return ReadTx{ledgerReader{r}, r, timed} }

// Tx reads and writes records.
type Tx struct {
	ReadTx
	w     ReadWriter
	after []func()
}

// Unprotected returns a reader of all scopes. Records outside the Update's scopes may change before
// the Update commits.
func (t *Tx) Unprotected() *ReadTx {
	if w, ok := t.r.(*sealedWriter); ok {
		tx := newReadTx(unprotectedReader{w.sealedReader, w}, t.timed)
		return &tx
	}
	return &t.ReadTx
}

// Study returns a study, or ErrNotFound.
func (t *ReadTx) Study(study string) (*storev1.StudyRecord, error) {
	record := new(storev1.StudyRecord)
	return record, get(t.r, keyOf(StudyScope(study), studyKind), record)
}

// FindStudy returns ErrNotFound if the study does not exist.
func (t *ReadTx) FindStudy(study string) error {
	key := keyOf(StudyScope(study), studyKind)
	value, err := t.r.Get(key)
	if value == nil && err == nil {
		err = missing(t.r, key)
	}
	return err
}

// Studies calls fn for every study whose id is above after, in ascending order,
// until fn returns false or an error.
func (t *ReadTx) Studies(after string, fn func(*storev1.StudyRecord) (bool, error)) error {
	return wholeScopes(t.r, string(StudyScope("")), scopeAfter(StudyScope, after), func(scope Scope) (bool, error) {
		record := new(storev1.StudyRecord)
		switch err := get(t.r, keyOf(scope, studyKind), record); {
		case errors.Is(err, ErrNotFound): // responses to requests outlive a study
			return true, nil
		case err != nil:
			return false, err
		default:
			return fn(record)
		}
	})
}

// scopeAfter returns the scope of an id, "" for "".
func scopeAfter(of func(string) Scope, id string) Scope {
	if id == "" {
		return ""
	}
	return of(id)
}

// studyOf returns the id in a study's scope.
func studyOf(scope Scope) string { return strings.TrimPrefix(string(scope), string(StudyScope(""))) }

// HasStudies reports whether there are at least a number of studies.
func (t *ReadTx) HasStudies(least int64) (bool, error) {
	var scopes, studies int64
	// There are at most as many studies as scopes, and counting scopes is one quick scan of the
	// totals. Deleted studies can still have scopes, for responses to requests.
	err := t.Scopes("", func(scope Scope) (bool, error) {
		if strings.HasPrefix(string(scope), string(StudyScope(""))) {
			scopes++
		}
		return scopes < least, nil
	})
	if err != nil || scopes < least {
		return false, err
	}
	err = t.Studies("", func(*storev1.StudyRecord) (bool, error) {
		studies++
		return studies < least, nil
	})
	return studies >= least, err
}

// Trial returns a trial without its past attempts, or ErrNotFound.
func (t *ReadTx) Trial(study string, number int64) (*storev1.TrialRecord, error) {
	record, err := t.BareTrial(study, number)
	if err == nil {
		err = t.joinMeasurements(study, record)
	}
	return record, err
}

// BareTrial returns a trial, or ErrNotFound. If a worker holds the trial, its measurements are
// missing, and it must stay held when it is put.
func (t *ReadTx) BareTrial(study string, number int64) (*storev1.TrialRecord, error) {
	record := new(storev1.TrialRecord)
	return record, get(t.r, numbered(StudyScope(study), trialKind, number), record)
}

// Trials calls fn for every trial of a study whose number is above after, without past attempts, in
// ascending order, until fn returns false or an error.
func (t *ReadTx) Trials(study string, after int64, fn func(*storev1.TrialRecord) (bool, error)) error {
	return records(t.r, StudyScope(study), trialKind, after+1, func(_ string, record *storev1.TrialRecord) (bool, error) {
		if err := t.joinMeasurements(study, record); err != nil {
			return false, err
		}
		return fn(record)
	})
}

// OpenTrials calls fn with the number and index entry of every trial that is queued, active or
// stopping, in ascending order of number, until fn returns false or an error.
func (t *ReadTx) OpenTrials(study string, fn func(int64, *storev1.OpenTrialRecord) (bool, error)) error {
	return records(t.r, StudyScope(study), openKind, 0, numbers(fn))
}

// PutStudy writes a study and its revision index entry.
func (t *Tx) PutStudy(study string, record *storev1.StudyRecord) error {
	if err := t.indexStudy(study, record); err != nil {
		return err
	}
	return put(t.w, keyOf(StudyScope(study), studyKind), record)
}

// DeleteStudy removes a study and its trials. If there are too many trials for one transaction, it
// marks the study: the rest is hidden, and DropImport removes it.
func (t *Tx) DeleteStudy(study string) error {
	t.w.Delete(keyOf(StudyScope(study), studyKind))
	done, err := t.dropSome(study)
	if err == nil && !done {
		t.BeginImport(study)
	}
	return err
}

// PutTrial writes a trial and its index entries. The trial's revision must be unique in the study.
// If a worker holds the trial, its measurements stay as they are stored, and so do past attempts (see
// AddMeasurement, EndAttempt and PutParts).
func (t *Tx) PutTrial(study string, record *storev1.TrialRecord) error {
	trial := record.GetTrial()
	change := &storev1.RevisionRecord{Change: &storev1.RevisionRecord_Trial{Trial: trial.GetNumber()}}
	if err := t.indexTrial(study, trial, change); err != nil {
		return err
	}
	key := numbered(StudyScope(study), openKind, trial.GetNumber())
	if entry := openEntry(record); entry == nil {
		t.w.Delete(key)
	} else if err := put(t.w, key, entry); err != nil {
		return err
	}
	if !isHeld(trial) && record.GetMeasurementRecords() > 0 {
		if err := t.dropMeasurements(study, record); err != nil {
			return err
		}
	}
	return putTrialRecord(t.w, numbered(StudyScope(study), trialKind, trial.GetNumber()), record)
}

// DeleteTrial removes a trial that no worker holds. It keeps the record, with the revision of the
// deletion, and the past attempts, for their privacy cost.
func (t *Tx) DeleteTrial(study string, record *storev1.TrialRecord) error {
	number := record.GetTrial().GetNumber()
	change := &storev1.RevisionRecord{Change: &storev1.RevisionRecord_DeletedTrial{DeletedTrial: number}}
	if err := t.indexTrial(study, record.GetTrial(), change); err != nil {
		return err
	}
	t.w.Delete(numbered(StudyScope(study), trialKind, number))
	t.w.Delete(numbered(StudyScope(study), openKind, number))
	return putTrialRecord(t.w, numbered(StudyScope(study), deletedKind, number), record)
}

// openEntry returns the index entry of a trial, nil for a terminal one.
func openEntry(record *storev1.TrialRecord) *storev1.OpenTrialRecord {
	trial := record.GetTrial()
	switch trial.GetState() {
	case dparetov1.TrialState_TRIAL_STATE_QUEUED,
		dparetov1.TrialState_TRIAL_STATE_ACTIVE,
		dparetov1.TrialState_TRIAL_STATE_STOPPING:
		return &storev1.OpenTrialRecord{
			State:    trial.GetState(),
			WorkerId: trial.GetLease().GetWorkerId(),
			LeaseEnd: record.GetLeaseEnd(),
		}
	default:
		return nil
	}
}

// AddToCounts adds n to the count of trials in a state.
func AddToCounts(counts *dparetov1.TrialCounts, state dparetov1.TrialState, n int64) {
	switch state {
	case dparetov1.TrialState_TRIAL_STATE_QUEUED:
		counts.Queued += n
	case dparetov1.TrialState_TRIAL_STATE_ACTIVE:
		counts.Active += n
	case dparetov1.TrialState_TRIAL_STATE_STOPPING:
		counts.Stopping += n
	case dparetov1.TrialState_TRIAL_STATE_SUCCEEDED:
		counts.Succeeded += n
	case dparetov1.TrialState_TRIAL_STATE_INFEASIBLE:
		counts.Infeasible += n
	case dparetov1.TrialState_TRIAL_STATE_FAILED:
		counts.Failed += n
	case dparetov1.TrialState_TRIAL_STATE_UNSPECIFIED:
		panic("store: trial without a state")
	}
}

func get(r scoped, key string, record proto.Message) error {
	value, err := r.Get(key)
	if err != nil {
		return err
	}
	if value == nil {
		return missing(r, key)
	}
	return unmarshal(key, value, record)
}

// records calls fn for every numbered record of a kind in a scope, starting at number from, in
// ascending order, until fn returns false or an error. Its error matches ErrCorrupt if a record is
// lost (see numberedKeys).
func records[M any, P interface {
	*M
	proto.Message
}](r scoped, scope Scope, k kind, from int64, fn func(key string, record P) (bool, error)) error {
	return numberedKeys(r, scope, k, from, func(key string, value []byte) (bool, error) {
		record := P(new(M))
		if err := unmarshal(key, value, record); err != nil {
			return false, err
		}
		return fn(key, record)
	})
}

// numbers adapts fn to take the number in a key.
func numbers[P any](fn func(int64, P) (bool, error)) func(string, P) (bool, error) {
	return func(key string, record P) (bool, error) {
		number, err := numberOf(key)
		if err != nil {
			return false, err
		}
		return fn(number, record)
	}
}

func put(w ReadWriter, key string, record proto.Message) error {
	value, err := proto.Marshal(record)
	if err != nil {
		return fmt.Errorf("store: encode %s: %w", describe(key), err)
	}
	w.Put(key, value)
	return nil
}

func unmarshal(key string, value []byte, record proto.Message) error {
	if err := proto.Unmarshal(value, record); err != nil {
		return damaged(key, "cannot be decoded: %v", err)
	}
	return nil
}

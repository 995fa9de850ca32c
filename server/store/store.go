package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Format is the format number of the records that this version writes.
const Format = 5

// FormatKey is the key of the record that says which format the others have.
const FormatKey = "store"

const (
	studyPrefix    = "study/"
	trialPrefix    = "trial/"
	openPrefix     = "open/"
	deletedPrefix  = "deleted/"
	revisionPrefix = "revision/"
	requestPrefix  = "request/"
	expiryPrefix   = "expiry/"
	ledgerPrefix   = "ledger/"
	chargePrefix   = "charge/"
	releasePrefix  = "release/"
	repeatPrefix   = "repeat/"
	endedPrefix    = "ended/"
)

// Store keeps typed records in a KV. It is safe for concurrent use.
type Store struct {
	kv        KV
	observer  UpdateObserver
	forgotten atomic.Pointer[string] // the last key that ForgetRequests removed
}

// New returns a store over kv, which it marks with its format when it is empty. Records
// of an older format are rewritten, in many transactions; if that is interrupted the next
// New goes on. It returns ErrFormat when kv was written by a newer version.
func New(ctx context.Context, kv KV) (*Store, error) {
	err := kv.Update(ctx, func(w ReadWriter) error {
		var record storev1.StoreRecord
		switch err := get(w, FormatKey, &record); {
		case errors.Is(err, ErrNotFound):
			return put(w, FormatKey, &storev1.StoreRecord{Format: Format})
		case err != nil:
			return err
		case record.GetFormat() > Format:
			return fmt.Errorf("%w: format %d, this program knows up to %d", ErrFormat, record.GetFormat(), Format)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, kv); err != nil {
		return nil, err
	}
	return &Store{kv: kv}, nil
}

// View calls fn with a consistent snapshot.
func (s *Store) View(ctx context.Context, fn func(*ReadTx) error) error {
	return s.kv.View(ctx, func(r Reader) error { return fn(&ReadTx{r}) })
}

// Update calls fn once and makes its writes durable before it returns nil; if fn or
// the commit fails nothing is written (see KV).
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) error {
	tx := &Tx{forgotten: &s.forgotten}
	err := s.observed(ctx, func(w ReadWriter) error {
		tx.ReadTx, tx.w = ReadTx{w}, w
		return fn(tx)
	})
	if err != nil {
		return err
	}
	for _, after := range tx.after {
		after()
	}
	return nil
}

// ReadTx reads records from a snapshot. Records belong to the caller.
type ReadTx struct{ r Reader }

// Tx reads and writes records.
type Tx struct {
	ReadTx
	w         ReadWriter
	after     []func()
	forgotten *atomic.Pointer[string]
}

// Study returns a study, or ErrNotFound.
func (t *ReadTx) Study(study string) (*storev1.StudyRecord, error) {
	record := new(storev1.StudyRecord)
	return record, get(t.r, studyPrefix+study, record)
}

// FindStudy returns ErrNotFound if there is no such study.
func (t *ReadTx) FindStudy(study string) error {
	value, err := t.r.Get(studyPrefix + study)
	if value == nil && err == nil {
		err = ErrNotFound
	}
	return err
}

// Studies calls fn for every study whose id is above after, in ascending order,
// until fn returns false or an error.
func (t *ReadTx) Studies(after string, fn func(*storev1.StudyRecord) (bool, error)) error {
	return t.r.Scan(studyPrefix, studyPrefix+after, func(key string, value []byte) (bool, error) {
		if key == studyPrefix+after {
			return true, nil
		}
		record := new(storev1.StudyRecord)
		if err := unmarshal(key, value, record); err != nil {
			return false, err
		}
		return fn(record)
	})
}

// Trial returns a trial, or ErrNotFound.
func (t *ReadTx) Trial(study string, number int64) (*storev1.TrialRecord, error) {
	record := new(storev1.TrialRecord)
	return record, get(t.r, numbered(trialPrefix, study, number), record)
}

// Trials calls fn for every trial of a study whose number is above after, in
// ascending order, until fn returns false or an error.
func (t *ReadTx) Trials(study string, after int64, fn func(*storev1.TrialRecord) (bool, error)) error {
	return t.r.Scan(trialPrefix+study+"/", numbered(trialPrefix, study, after+1), func(key string, value []byte) (bool, error) {
		record := new(storev1.TrialRecord)
		if err := unmarshal(key, value, record); err != nil {
			return false, err
		}
		return fn(record)
	})
}

// OpenTrials calls fn with the number and the index entry of every trial of a study
// that is queued, active or stopping, in ascending order of their numbers, until fn
// returns false or an error.
func (t *ReadTx) OpenTrials(study string, fn func(int64, *storev1.OpenTrialRecord) (bool, error)) error {
	prefix := openPrefix + study + "/"
	return t.r.Scan(prefix, "", func(key string, value []byte) (bool, error) {
		record := new(storev1.OpenTrialRecord)
		if err := unmarshal(key, value, record); err != nil {
			return false, err
		}
		number, err := numberOf(key, prefix)
		if err != nil {
			return false, err
		}
		return fn(number, record)
	})
}

// PutStudy writes a study and its entry in the index of revisions.
func (t *Tx) PutStudy(study string, record *storev1.StudyRecord) error {
	if err := t.indexStudy(study, record); err != nil {
		return err
	}
	return put(t.w, studyPrefix+study, record)
}

// DeleteStudy removes a study with its trials. Of a study with many trials some remain,
// and it is marked: nobody sees them, and DropImport removes them.
func (t *Tx) DeleteStudy(study string) error {
	t.w.Delete(studyPrefix + study)
	done, err := t.dropSome(study)
	if err == nil && !done {
		t.BeginImport(study)
	}
	return err
}

// PutTrial writes a trial and its index entries. Its revision must be one that no other
// change of the study has.
func (t *Tx) PutTrial(study string, record *storev1.TrialRecord) error {
	trial := record.GetTrial()
	change := &storev1.RevisionRecord{Change: &storev1.RevisionRecord_Trial{Trial: trial.GetNumber()}}
	if err := t.indexTrial(study, trial, change); err != nil {
		return err
	}
	key := numbered(openPrefix, study, trial.GetNumber())
	if entry := openEntry(trial); entry == nil {
		t.w.Delete(key)
	} else if err := put(t.w, key, entry); err != nil {
		return err
	}
	return put(t.w, numbered(trialPrefix, study, trial.GetNumber()), record)
}

// DeleteTrial removes a trial from the study. Its record, with the revision of the
// deletion, is kept aside: what its runs spent of the data's privacy is spent.
func (t *Tx) DeleteTrial(study string, record *storev1.TrialRecord) error {
	number := record.GetTrial().GetNumber()
	change := &storev1.RevisionRecord{Change: &storev1.RevisionRecord_DeletedTrial{DeletedTrial: number}}
	if err := t.indexTrial(study, record.GetTrial(), change); err != nil {
		return err
	}
	t.w.Delete(numbered(trialPrefix, study, number))
	t.w.Delete(numbered(openPrefix, study, number))
	return put(t.w, numbered(deletedPrefix, study, number), record)
}

// openEntry returns the index entry of a trial, nil for one in a terminal state.
func openEntry(trial *dparetov1.Trial) *storev1.OpenTrialRecord {
	switch trial.GetState() {
	case dparetov1.TrialState_TRIAL_STATE_QUEUED,
		dparetov1.TrialState_TRIAL_STATE_ACTIVE,
		dparetov1.TrialState_TRIAL_STATE_STOPPING:
		return &storev1.OpenTrialRecord{
			State:      trial.GetState(),
			WorkerId:   trial.GetLease().GetWorkerId(),
			ExpireTime: trial.GetLease().GetExpireTime(),
		}
	default:
		return nil
	}
}

// Check reads the whole store and returns every violated invariant: records that do
// not decode, trials without a study, indexes, counts or numbers that disagree with
// the trials, requests without an expiry, charges beyond the budget of their ledger,
// releases that were not charged.
func (s *Store) Check(ctx context.Context) []error {
	var faults []error
	faultf := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	err := s.View(ctx, func(tx *ReadTx) error {
		studies := make(map[string]bool)
		err := tx.Studies("", func(record *storev1.StudyRecord) (bool, error) {
			id := strings.TrimPrefix(record.GetStudy().GetName(), "studies/")
			studies[id] = true
			checkStudy(tx, id, record, faultf)
			return true, ctx.Err()
		})
		if err != nil {
			return err
		}
		// Studies that are being imported have trials before they exist.
		if err := tx.Imports(func(study string) error { studies[study] = true; return nil }); err != nil {
			return err
		}
		if err := checkDeleted(tx, faultf); err != nil {
			return err
		}
		for _, prefix := range studyPrefixes {
			err := tx.r.Scan(prefix, "", func(key string, _ []byte) (bool, error) {
				id, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
				if !studies[id] {
					faultf("%q belongs to no study", key)
				}
				return true, ctx.Err()
			})
			if err != nil {
				return err
			}
		}
		if err := checkLedgers(tx, faultf); err != nil {
			return err
		}
		return checkRequests(ctx, tx, faultf)
	})
	if err != nil {
		faultf("check: %w", err)
	}
	return faults
}

// checkStudy checks one study's trials, index and counts.
func checkStudy(tx *ReadTx, id string, record *storev1.StudyRecord, faultf func(string, ...any)) {
	open := make(map[int64]*storev1.OpenTrialRecord)
	err := tx.OpenTrials(id, func(number int64, entry *storev1.OpenTrialRecord) (bool, error) {
		open[number] = entry
		return true, nil
	})
	if err != nil {
		faultf("study %s: index of open trials: %w", id, err)
	}
	revisions := checkRevisions(tx, id, record, faultf)
	counts := new(dparetov1.TrialCounts)
	err = tx.Trials(id, 0, func(trial *storev1.TrialRecord) (bool, error) {
		number := trial.GetTrial().GetNumber()
		if number >= record.GetNextTrialNumber() {
			faultf("study %s: trial %d is not below the next number %d", id, number, record.GetNextTrialNumber())
		}
		if want := openEntry(trial.GetTrial()); !proto.Equal(open[number], want) && (open[number] != nil || want != nil) {
			faultf("study %s: trial %d: index says %v, trial %v", id, number, open[number], want)
		}
		delete(open, number)
		revisions.checkTrial(trial.GetTrial(), false)
		AddToCounts(counts, trial.GetTrial().GetState(), 1)
		return true, nil
	})
	if err != nil {
		faultf("study %s: trials: %w", id, err)
	}
	revisions.checkRest()
	for number := range open {
		faultf("study %s: index names trial %d, which does not exist", id, number)
	}
	if !proto.Equal(counts, record.GetStudy().GetTrialCounts()) {
		faultf("study %s: counts are %v, trials say %v", id, record.GetStudy().GetTrialCounts(), counts)
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

// numbered returns the key of a study's trial; keys sort by number.
func numbered(prefix, study string, number int64) string {
	return prefix + study + "/" + string(binary.BigEndian.AppendUint64(nil, uint64(number)))
}

// numberOf is the inverse of numbered.
func numberOf(key, prefix string) (int64, error) {
	suffix := strings.TrimPrefix(key, prefix)
	if len(suffix) != 8 {
		return 0, fmt.Errorf("store: malformed key %q", key)
	}
	return int64(binary.BigEndian.Uint64([]byte(suffix))), nil
}

func get(r Reader, key string, record proto.Message) error {
	value, err := r.Get(key)
	if err != nil {
		return err
	}
	if value == nil {
		return ErrNotFound
	}
	return unmarshal(key, value, record)
}

func put(w ReadWriter, key string, record proto.Message) error {
	value, err := proto.Marshal(record)
	if err != nil {
		return fmt.Errorf("store: encode %q: %w", key, err)
	}
	w.Put(key, value)
	return nil
}

func unmarshal(key string, value []byte, record proto.Message) error {
	if err := proto.Unmarshal(value, record); err != nil {
		return fmt.Errorf("store: decode %q: %w", key, err)
	}
	return nil
}

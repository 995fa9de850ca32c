package store

import (
	"context"
	"errors"
	"slices"
	"strings"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
)

// maxMigrated bounds the records that one transaction of a migration visits.
const maxMigrated = 1000

// steps lead from one format to a later one by rewriting records. Two formats have a number
// only to keep older programs away: format 3 added ledgers and releases, which these would
// leave when they delete a study, and since format 5 a file notes how long its journal is,
// which these would not.
var steps = []step{
	{2, []migration{{deletedPrefix, migrateDeleted}, {studyPrefix, migrateStudy}, {trialPrefix, migrateTrial}}},
	{4, []migration{{requestPrefix, migrateRequest}}},
}

// step is a step to a format.
type step struct {
	format  int32
	records []migration
}

// migration rewrites the records of a prefix. Those of a step have ascending prefixes.
type migration struct {
	prefix  string
	migrate func(tx *Tx, key string, value []byte) error
}

// migrate rewrites the records of a store of an older format.
func migrate(ctx context.Context, kv KV) error {
	for done := false; !done; {
		err := kv.Update(ctx, func(w ReadWriter) (err error) {
			done, err = migrateSome(&Tx{ReadTx: ReadTx{w}, w: w})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// migrateSome rewrites the next records and notes how far it came. The first transaction
// gives the store its new format, so that no older program goes on with a store that is
// partly of the new one. It returns true when there is nothing left to do.
func migrateSome(tx *Tx) (done bool, err error) {
	var record storev1.StoreRecord
	if err := get(tx.r, FormatKey, &record); err != nil {
		return false, err
	}
	if record.GetFormat() < Format && record.GetMigration() == nil {
		record.Migration = &storev1.Migration{From: record.GetFormat()}
	}
	record.Format = Format
	at := record.GetMigration()
	if at == nil {
		return true, nil
	}
	step := slices.IndexFunc(steps, func(s step) bool { return s.format > at.GetFrom() })
	if step < 0 {
		record.Migration = nil
		return true, put(tx.w, FormatKey, &record)
	}
	start := string(at.GetLastKey())
	last, visited, full := start, 0, false
	for _, m := range steps[step].records {
		err := tx.r.Scan(m.prefix, start, func(key string, value []byte) (bool, error) {
			if key == start {
				return true, nil
			}
			if full = visited == maxMigrated; full {
				return false, nil
			}
			visited++
			last = key
			return true, m.migrate(tx, key, value)
		})
		if err != nil {
			return false, err
		}
	}
	if full {
		at.LastKey = []byte(last)
	} else {
		record.Migration = &storev1.Migration{From: steps[step].format}
	}
	return false, put(tx.w, FormatKey, &record)
}

// migrateDeleted gives a deletion a revision of its own. At which it happened is not
// known; a later one has every reader hear of it.
func migrateDeleted(tx *Tx, key string, value []byte) error {
	trial := new(storev1.TrialRecord)
	if err := unmarshal(key, value, trial); err != nil {
		return err
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(key, deletedPrefix), "/")
	study, err := tx.Study(id)
	if errors.Is(err, ErrNotFound) {
		return nil // Check reports it
	}
	if err != nil {
		return err
	}
	study.Study.Revision++
	trial.Trial.Revision = study.GetStudy().GetRevision()
	change := &storev1.RevisionRecord{Change: &storev1.RevisionRecord_DeletedTrial{DeletedTrial: trial.GetTrial().GetNumber()}}
	return errors.Join(
		put(tx.w, key, trial),
		put(tx.w, numbered(revisionPrefix, id, trial.GetTrial().GetRevision()), change),
		put(tx.w, studyPrefix+id, study),
	)
}

// migrateStudy indexes a study. Its own fields never changed in format 1.
func migrateStudy(tx *Tx, key string, value []byte) error {
	record := new(storev1.StudyRecord)
	if err := unmarshal(key, value, record); err != nil {
		return err
	}
	record.OwnRevision = 1
	return tx.PutStudy(strings.TrimPrefix(key, studyPrefix), record)
}

// migrateTrial indexes a trial.
func migrateTrial(tx *Tx, key string, value []byte) error {
	record := new(storev1.TrialRecord)
	if err := unmarshal(key, value, record); err != nil {
		return err
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(key, trialPrefix), "/")
	change := &storev1.RevisionRecord{Change: &storev1.RevisionRecord_Trial{Trial: record.GetTrial().GetNumber()}}
	return put(tx.w, numbered(revisionPrefix, id, record.GetTrial().GetRevision()), change)
}

// migrateRequest exchanges what a request and its index entry hold: in the order of their
// ids answers would be written all over the store.
func migrateRequest(tx *Tx, key string, value []byte) error {
	record := new(storev1.RequestRecord)
	if err := unmarshal(key, value, record); err != nil {
		return err
	}
	at := timeKey(record.GetTime().AsTime())
	tx.w.Put(expiryPrefix+at+strings.TrimPrefix(key, requestPrefix), slices.Clone(value))
	tx.w.Put(key, []byte(at))
	return nil
}

package store

import (
	"context"
	"errors"
	"strings"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
)

// maxMigrated bounds the records that one transaction of a migration visits.
const maxMigrated = 1000

// indexedFormat is the first format with an index of revisions. Format 3 adds ledgers and
// releases, which no record before it has: only its number keeps programs away that would
// delete a study and leave its releases.
const indexedFormat = 2

// migrations rewrite the records of format 1, by prefix in ascending order.
var migrations = []struct {
	prefix  string
	migrate func(tx *Tx, key string, value []byte) error
}{
	{deletedPrefix, migrateDeleted},
	{studyPrefix, migrateStudy},
	{trialPrefix, migrateTrial},
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
	if err := get(tx.r, storeKey, &record); err != nil {
		return false, err
	}
	from := record.GetFormat()
	record.Format = Format
	if from < indexedFormat {
		record.Migration = &storev1.Migration{From: from}
	}
	if record.GetMigration() == nil {
		if from < Format {
			return true, put(tx.w, storeKey, &record)
		}
		return true, nil
	}
	start := string(record.GetMigration().GetLastKey())
	last, visited, full := start, 0, false
	for _, m := range migrations {
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
	record.Migration.LastKey = []byte(last)
	if !full {
		record.Migration = nil
	}
	return !full, put(tx.w, storeKey, &record)
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

package store

import (
	"context"
	"strings"
)

// importPrefix marks studies that are being imported. Their trials are written in several
// Updates; until the study itself is written, in the last, nobody sees them, and the study
// cannot be created. Studies with many trials that are being deleted have the same mark.
const importPrefix = "import/"

// maxDropped bounds the keys that one transaction removes, and so the time that others
// wait for it.
const maxDropped = 5000

// studyPrefixes are those of all that belongs to a study, before its id.
var studyPrefixes = []string{
	trialPrefix, openPrefix, deletedPrefix, revisionPrefix,
	releasePrefix + "studies/", repeatPrefix + "studies/",
}

// BeginImport marks a study, which must not exist, as being imported.
func (t *Tx) BeginImport(study string) { t.w.Put(importPrefix+study, nil) }

// EndImport takes the mark away.
func (t *Tx) EndImport(study string) { t.w.Delete(importPrefix + study) }

// Importing reports whether a study is marked as being imported or deleted, or was when the
// server crashed.
func (t *ReadTx) Importing(study string) (bool, error) {
	value, err := t.r.Get(importPrefix + study)
	return value != nil, err
}

// Imports calls fn for every study that is marked, until it returns an error.
func (t *ReadTx) Imports(fn func(study string) error) error {
	return t.r.Scan(importPrefix, "", func(key string, _ []byte) (bool, error) {
		return true, fn(strings.TrimPrefix(key, importPrefix))
	})
}

// DropImport removes whatever there is of a study that is marked as being imported, with
// the mark, in several Updates. It does nothing where there is no mark. Nobody may import
// the study meanwhile.
func (s *Store) DropImport(ctx context.Context, study string) error {
	for done := false; !done; {
		err := s.Update(ctx, func(tx *Tx) error {
			marked, err := tx.Importing(study)
			if err != nil {
				return err
			}
			if done = !marked; done {
				return nil
			}
			if done, err = tx.dropSome(study); done {
				tx.EndImport(study)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// dropSome removes the next keys of a study's trials, and returns true if there are no
// more.
func (t *Tx) dropSome(study string) (done bool, err error) {
	dropped := 0
	for _, prefix := range studyPrefixes {
		err := t.r.Scan(prefix+study+"/", "", func(key string, _ []byte) (bool, error) {
			if dropped++; dropped > maxDropped {
				return false, nil
			}
			t.w.Delete(key)
			return true, nil
		})
		if err != nil || dropped > maxDropped {
			return false, err
		}
	}
	return true, nil
}

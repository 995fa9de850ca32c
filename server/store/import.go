package store

import (
	"context"
)

// maxDropped bounds the keys that one transaction removes, and so the time that others
// wait for it.
const maxDropped = 5000

// studyKinds are the kinds of what goes with a study. Answers to requests stay until they are
// forgotten.
var studyKinds = []kind{trialKind, openKind, deletedKind, revisionKind, releaseKind, repeatKind}

// BeginImport marks a study, which must not exist, as being imported. Its trials are written in
// several Updates; until the study itself is written, in the last, nobody sees them, and the
// study cannot be created. Studies with many trials that are being deleted have the same mark.
func (t *Tx) BeginImport(study string) { t.w.Put(keyOf(StudyScope(study), importKind), nil) }

// EndImport takes the mark away.
func (t *Tx) EndImport(study string) { t.w.Delete(keyOf(StudyScope(study), importKind)) }

// Importing reports whether a study is marked as being imported or deleted, or was when the
// server crashed.
func (t *ReadTx) Importing(study string) (bool, error) {
	value, err := t.r.Get(keyOf(StudyScope(study), importKind))
	return value != nil, err
}

// Imports calls fn for every study that is marked, until it returns an error.
func (t *ReadTx) Imports(fn func(study string) error) error {
	return scopesFrom(t.r, string(StudyScope("")), "", func(scope Scope) (bool, error) {
		marked, err := t.r.Get(keyOf(scope, importKind))
		if err != nil || marked == nil {
			return err == nil, err
		}
		return true, fn(studyOf(scope))
	})
}

// DropImport removes the records of a study that is marked as being imported, with the mark, in
// several Updates. It does nothing without a mark. No import of the study may run meanwhile.
func (s *Store) DropImport(ctx context.Context, study string) error {
	for done := false; !done; {
		err := s.Update(ctx, In(StudyScope(study)), func(tx *Tx) error {
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
	for _, k := range studyKinds {
		err := scan(t.r, StudyScope(study), k, "", func(key string, _ []byte) (bool, error) {
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

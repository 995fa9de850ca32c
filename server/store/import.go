package store

import (
	"context"
	"crypto/rand"
)

// maxDropped bounds the keys removed in one transaction, and so the time that others wait for it.
const maxDropped = 5000

// studyKinds are the kinds of records deleted with a study. Responses to requests stay until they
// expire.
var studyKinds = []kind{trialKind, measurementKind, openKind, attemptKind, deletedKind, revisionKind, releaseKind, repeatKind, workerKind}

// BeginImport marks a study, which must not exist, as being imported. An import takes several
// Updates. Its trials are hidden until the last one writes the study, and meanwhile the study cannot
// be created. Large studies that are being deleted have the same mark. It returns a random text, which
// tells this import from others.
func (t *Tx) BeginImport(study string) (mark string) {
	mark = rand.Text()
	t.w.Put(keyOf(StudyScope(study), importKind), []byte(mark))
	return mark
}

// IsImporting reports whether the import that set a mark goes on.
func (t *ReadTx) IsImporting(study, mark string) (bool, error) {
	value, err := t.r.Get(keyOf(StudyScope(study), importKind))
	return value != nil && string(value) == mark, err
}

// EndImport removes the mark.
func (t *Tx) EndImport(study string) { t.w.Delete(keyOf(StudyScope(study), importKind)) }

// Importing reports whether a study is marked. A mark may be left over from a crash.
func (t *ReadTx) Importing(study string) (bool, error) {
	value, err := t.r.Get(keyOf(StudyScope(study), importKind))
	return value != nil, err
}

// Imports calls fn for every marked study, until it returns an error.
func (t *ReadTx) Imports(fn func(study string) error) error {
	return wholeScopes(t.r, string(StudyScope("")), "", func(scope Scope) (bool, error) {
		marked, err := t.r.Get(keyOf(scope, importKind))
		if err != nil || marked == nil {
			return err == nil, err
		}
		return true, fn(studyOf(scope))
	})
}

// DropImport removes the records and the mark of a marked study in several Updates. It does nothing
// without a mark. The import that set the mark cannot go on then, and another one that begins meanwhile is
// left alone.
func (s *Store) DropImport(ctx context.Context, study string) error {
	mark, next := "", ""
	for done := false; !done; {
		err := s.Update(ctx, In(StudyScope(study)), func(tx *Tx) error {
			marked, err := tx.Importing(study)
			if err == nil && marked && mark != "" {
				marked, err = tx.IsImporting(study, mark)
			}
			if err != nil {
				return err
			}
			if done = !marked; done {
				return nil
			}
			if mark == "" {
				next = tx.BeginImport(study)
			}
			if done, err = tx.dropSome(study); done {
				tx.EndImport(study)
			}
			return err
		})
		if err != nil {
			return err
		}
		mark = next
	}
	return nil
}

// dropSome removes a batch of a study's records, and returns true if none are left.
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

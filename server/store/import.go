package store

import (
	"context"
	"strings"
)

// importPrefix marks studies that are being imported. Their trials are written in several
// Updates; until the study itself is written, in the last, nobody sees them, and the study
// cannot be created.
const importPrefix = "import/"

// BeginImport marks a study, which must not exist, as being imported.
func (t *Tx) BeginImport(study string) { t.w.Put(importPrefix+study, nil) }

// EndImport takes the mark away.
func (t *Tx) EndImport(study string) { t.w.Delete(importPrefix + study) }

// Importing reports whether a study is marked as being imported, or was when the server
// crashed.
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
// the mark. It does nothing where there is no mark.
func (s *Store) DropImport(ctx context.Context, study string) error {
	return s.Update(ctx, func(tx *Tx) error {
		marked, err := tx.Importing(study)
		if err != nil || !marked {
			return err
		}
		if err := tx.DeleteStudy(study); err != nil {
			return err
		}
		tx.EndImport(study)
		return nil
	})
}

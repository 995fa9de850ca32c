package store

import (
	"strings"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
)

// HasStudies reports whether there are at least so many studies.
func (t *ReadTx) HasStudies(least int64) (bool, error) {
	var scopes, studies int64
	// Answers to requests can be left of studies that were deleted, so that there are no more
	// studies than scopes. Their totals are read in one go.
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

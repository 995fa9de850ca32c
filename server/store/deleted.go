package store

import storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"

// DeletedTrials calls fn for every deleted trial of a study, in ascending order of their
// numbers, until fn returns false or an error: what their runs spent is spent.
func (t *ReadTx) DeletedTrials(study string, fn func(*storev1.TrialRecord) (bool, error)) error {
	return scan(t.r, StudyScope(study), deletedKind, "", func(key string, value []byte) (bool, error) {
		record := new(storev1.TrialRecord)
		if err := unmarshal(key, value, record); err != nil {
			return false, err
		}
		return fn(record)
	})
}

package store

// CountStudies returns the number of studies, counting no further than most.
func (t *ReadTx) CountStudies(most int64) (int64, error) {
	var n int64
	err := scopesFrom(t.r, string(StudyScope("")), "", func(scope Scope) (bool, error) {
		study, err := t.r.Get(keyOf(scope, studyKind))
		if study != nil {
			n++
		}
		return n < most, err
	})
	return n, err
}

package store

// CountStudies returns the number of studies, counting no further than most.
func (t *ReadTx) CountStudies(most int64) (int64, error) {
	var n int64
	err := t.r.Scan(studyPrefix, studyPrefix, func(string, []byte) (bool, error) {
		n++
		return n < most, nil
	})
	return n, err
}

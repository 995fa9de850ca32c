package store

// Worker returns the name of the principal that uses a worker id in a study, "" if no principal
// does.
func (t *ReadTx) Worker(study, id string) (principal string, err error) {
	value, err := t.r.Get(named(StudyScope(study), workerKind, id))
	return string(value), err
}

// PutWorker writes the name of the principal that uses a worker id in a study.
func (t *Tx) PutWorker(study, id, principal string) {
	t.w.Put(named(StudyScope(study), workerKind, id), []byte(principal))
}

package store

// PutRaw writes a record of any kind and content, with a checksum, as no program would.
func (t *Tx) PutRaw(scope Scope, k, name string, value []byte) {
	t.w.Put(named(scope, kind(k), name), value)
}

// DropRaw removes the records of a kind.
func (t *Tx) DropRaw(scope Scope, k string) error {
	return scan(t.r, scope, kind(k), "", func(key string, _ []byte) (bool, error) { t.w.Delete(key); return true, nil })
}

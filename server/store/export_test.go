package store

import (
	"testing"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// ForgetKinds writes the total of a scope as earlier versions did, without numbers of kinds.
func ForgetKinds(t testing.TB, w ReadWriter, scope Scope) {
	t.Helper()
	stored, err := sealedReader{w}.total(scope)
	require.NoError(t, err)
	value, err := proto.Marshal(&storev1.TotalRecord{Records: stored.records, Sum: stored.sum, Bytes: stored.bytes})
	require.NoError(t, err)
	key := totalPrefix + string(scope)
	w.Put(key, seal(key, value))
}

// HasKinds reports whether the stored total of a scope has numbers of kinds.
func HasKinds(t testing.TB, w ReadWriter, scope Scope) bool {
	t.Helper()
	record := new(storev1.TotalRecord)
	key := totalPrefix + string(scope)
	value, err := sealedReader{w}.Get(key)
	if err == nil {
		err = proto.Unmarshal(value, record)
	}
	require.NoError(t, err)
	return len(record.GetKinds()) > 0
}

// PutRaw writes a record of any kind and content, with a checksum, as no program would.
func (t *Tx) PutRaw(scope Scope, k, name string, value []byte) {
	t.w.Put(named(scope, kind(k), name), value)
}

// DropRaw removes the records of a kind.
func (t *Tx) DropRaw(scope Scope, k string) error {
	return scan(t.r, scope, kind(k), "", func(key string, _ []byte) (bool, error) { t.w.Delete(key); return true, nil })
}

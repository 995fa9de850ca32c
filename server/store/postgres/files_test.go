package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/postgres/pgtest"
	"github.com/dpareto/dpareto/server/store/storetest"
)

// What is missing, or of another version, is not opened.
func TestVersions(t *testing.T) {
	url := pgtest.URL(t)
	open := map[string]func() (*DB, error){
		"Open":         func() (*DB, error) { return Open(t.Context(), url, Options{}) },
		"OpenReadOnly": func() (*DB, error) { return OpenReadOnly(t.Context(), url, Options{}) },
	}
	for name, open := range open {
		if _, err := open(); !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), "--create") {
			t.Errorf("%s without tables: %v", name, err)
		}
	}
	d := openAt(t, url)
	if err := d.Close(); err != nil || !d.IsNew() {
		t.Fatal(err)
	}
	for name, open := range open {
		if _, err := open(); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s of tables without records: %v", name, err)
		}
	}
	d = openAt(t, url)
	if err := errors.Join(put(d, "a", "k", "v"), d.Close()); err != nil || !d.IsNew() {
		t.Fatal(err)
	}
	d = openAt(t, url)
	if err := d.Close(); err != nil || d.IsNew() {
		t.Fatal(err)
	}
	pgtest.Exec(t, url, "UPDATE dpareto_store SET version = version + 1")
	for name, open := range open {
		if _, err := open(); !errors.Is(err, store.ErrFormat) {
			t.Errorf("%s with tables of a later version: %v", name, err)
		}
	}
	if _, err := Open(t.Context(), pgtest.Database(t, "none"), Options{Create: true}); err == nil || !strings.Contains(err.Error(), "no schema of the search_path") {
		t.Errorf("without a schema: %v", err)
	}
}

// A dump has everything, and makes an equal store of an empty one only.
func TestDump(t *testing.T) {
	d, to := openAt(t, pgtest.URL(t)), openAt(t, pgtest.URL(t))
	for i := range 3000 {
		if i%100 == 0 {
			require.NoError(t, put(d, "a", fmt.Sprintf("\x00total %d", i), "t"))
		}
	}
	err := d.Update(t.Context(), store.In("a"), func(tx store.ReadWriter) error {
		for i := range 3000 {
			tx.Put(fmt.Sprintf("key\x00\xff %d", i), bytes.Repeat([]byte{byte(i)}, i))
		}
		return nil
	})
	require.NoError(t, err)
	file, err := d.Snapshot(t.Context())
	require.NoError(t, err)
	content, err := io.ReadAll(file)
	require.NoError(t, errors.Join(err, file.Close()))
	cut := content[:len(content)-10]
	if err := to.Fill(t.Context(), store.ParseDump(bytes.NewReader(cut))); err == nil || len(storetest.Dump(t, to)) > 0 {
		t.Errorf("a dump that is cut: %v, %d records", err, len(storetest.Dump(t, to)))
	}
	require.NoError(t, to.Fill(t.Context(), store.ParseDump(bytes.NewReader(content))))
	n, sum, err := store.All(t.Context(), d).Sum()
	m, again, failed := store.All(t.Context(), to).Sum()
	if n != 3030 || m != n || sum != again || errors.Join(err, failed) != nil {
		t.Errorf("%d and %d records, sums %x and %x, %v, %v", n, m, sum, again, err, failed)
	}
	if err := to.Fill(t.Context(), store.ParseDump(bytes.NewReader(content))); !errors.Is(err, errNotEmpty) {
		t.Errorf("Fill of a store that holds records: %v", err)
	}
	if err := errors.Join(d.Close(), to.Close()); err != nil {
		t.Error(err)
	}
}

// Records may use the memory of a value again when put has returned.
func TestFillKeepsNoValue(t *testing.T) {
	d := openAt(t, pgtest.URL(t))
	err := d.Fill(t.Context(), func(put func(string, []byte) error) error {
		value := make([]byte, 1)
		for _, key := range []string{"a", "b", "c"} {
			value[0] = key[0]
			if err := put(key, value); err != nil {
				return err
			}
		}
		return nil
	})
	want := map[string]string{"a": "a", "b": "b", "c": "c"}
	if got := storetest.Dump(t, d); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, filled with %v", err, got)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// Neither Fill nor Clear writes to a store that another process has had alone, and that waits for them.
func TestFillIsFenced(t *testing.T) {
	url := pgtest.URL(t)
	record := func(put func(string, []byte) error) error { return put("k", []byte("v")) }
	for name, write := range map[string]func(*DB) error{
		"Fill":  func(d *DB) error { return d.Fill(t.Context(), record) },
		"Clear": func(d *DB) error { return d.Clear(t.Context()) },
	} {
		d := openAt(t, url)
		if name == "Clear" {
			require.NoError(t, d.Fill(t.Context(), record))
		}
		before := storetest.Dump(t, d)
		pgtest.Exec(t, url, "UPDATE dpareto_store SET epoch = epoch + 1")
		for range 2 {
			if err := write(d); !errors.Is(err, store.ErrUnwritable) || !strings.Contains(err.Error(), fencedReason) {
				t.Errorf("%s of an earlier server: %v", name, err)
			}
		}
		<-d.Failed()
		if got := storetest.Dump(t, d); !maps.Equal(got, before) {
			t.Errorf("%s of an earlier server: %v became %v", name, before, got)
		}
		_ = d.Close()
		d = openAt(t, url)
		require.NoError(t, errors.Join(d.Clear(t.Context()), d.Close()))
	}

	d := openAt(t, url)
	err := d.Fill(t.Context(), func(put func(string, []byte) error) error {
		var free bool
		err := d.pool.QueryRow(t.Context(), "SELECT pg_try_advisory_lock($1)", d.owner.fence).Scan(&free)
		if free || err != nil {
			t.Errorf("another server would start during Fill: %t, %v", free, err)
		}
		return record(put)
	})
	if err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	reading, err := OpenReadOnly(t.Context(), url, Options{})
	require.NoError(t, err)
	if err := reading.Clear(t.Context()); !errors.Is(err, store.ErrUnwritable) || len(storetest.Dump(t, reading)) != 1 {
		t.Errorf("Clear of a store that was opened for reading: %v", err)
	}
	if err := reading.Close(); err != nil {
		t.Error(err)
	}
}

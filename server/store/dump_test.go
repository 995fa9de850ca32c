package store_test

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
)

// recordsOf returns the records in a map, summaries last.
func recordsOf(all map[string]string) store.Records {
	return func(put func(string, []byte) error) error {
		keys := slices.Sorted(maps.Keys(all))
		slices.SortStableFunc(keys, func(a, b string) int {
			return strings.Compare(a[:1], b[:1]) * map[bool]int{true: -1, false: 1}[a[0] == 0 || b[0] == 0]
		})
		for _, key := range keys {
			if err := put(key, []byte(all[key])); err != nil {
				return err
			}
		}
		return nil
	}
}

// What is read from a dump is what was written, or an error: whatever byte is another, missing or too
// many.
func TestDump(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 1, 12).Draw(t, "key")) })
		value := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "value")) })
		all := rapid.MapOfN(key, value, 1, 8).Draw(t, "records")
		var dump bytes.Buffer
		require.NoError(t, store.WriteDump(&dump, recordsOf(all)))
		read := func(text []byte) (map[string]string, error) {
			got := make(map[string]string)
			err := store.ParseDump(bytes.NewReader(text))(func(key string, value []byte) error {
				got[key] = string(value)
				return nil
			})
			return got, err
		}
		got, err := read(dump.Bytes())
		if diff := cmp.Diff(all, got); diff != "" || err != nil {
			t.Fatalf("%v: %s", err, diff)
		}
		n, sum, err := recordsOf(all).Sum()
		m, again, failed := store.ParseDump(bytes.NewReader(dump.Bytes())).Sum()
		if n != int64(len(all)) || m != n || sum != again || errors.Join(err, failed) != nil {
			t.Fatalf("%d and %d records, %v, %v", n, m, err, failed)
		}
		text := slices.Clone(dump.Bytes())
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		switch rapid.SampledFrom([]string{"changed", "missing", "cut", "doubled"}).Draw(t, "damage") {
		case "changed":
			text[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		case "missing":
			text = slices.Delete(text, at, at+1)
		case "cut":
			text = text[:at]
		case "doubled":
			text = slices.Insert(text, at, text[at])
		}
		if _, err := read(text); err == nil {
			t.Fatalf("a damaged dump was read: %q", text)
		}
	})
}

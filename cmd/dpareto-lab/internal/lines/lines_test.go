package lines

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/require"
)

// A line that was being written is skipped, and gone once another one follows. Reading leaves the file as it is.
func TestUnfinishedLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results")
	check := func(want [][]int, content string) {
		t.Helper()
		all, err := Read[[]int](path)
		if diff := cmp.Diff(want, all); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if now, err := os.ReadFile(path); err == nil && string(now) != content {
			t.Errorf("the file is %q, want %q", now, content)
		}
	}
	check(nil, "")
	require.NoError(t, Append(path, []int{1}))
	require.NoError(t, Append(path, []int{2, 3}))
	check([][]int{{1}, {2, 3}}, "[1]\n[2,3]\n")
	require.NoError(t, os.Truncate(path, 8))
	check([][]int{{1}}, "[1]\n[2,3")
	require.NoError(t, Append(path, []int{4}))
	check([][]int{{1}, {4}}, "[1]\n[4]\n")
	require.NoError(t, os.Truncate(path, 2))
	check(nil, "[1")
	require.NoError(t, os.WriteFile(path, []byte("[1]\n[2]"), 0o600)) // as an editor may leave it
	check([][]int{{1}, {2}}, "[1]\n[2]")
	require.NoError(t, Append(path, []int{3}))
	check([][]int{{1}, {2}, {3}}, "[1]\n[2]\n[3]\n")
}

// A damaged line that ends is an error with its place.
func TestDamagedLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results")
	require.NoError(t, os.WriteFile(path, []byte("[1]\n[2,\n[3]\n"), 0o600))
	_, err := Read[[]int](path)
	if want := path + ": line 2: unexpected end of JSON input"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

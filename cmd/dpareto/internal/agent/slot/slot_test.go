package slot_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/agent/slot"
	"github.com/dpareto/dpareto/internal/require"
)

func take(t *testing.T, folder, kind string) (int, func()) {
	t.Helper()
	number, release, err := slot.Take(folder, kind)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no file locks on this platform")
	}
	require.NoError(t, err)
	t.Cleanup(release)
	return number, release
}

func TestTake(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "folder")
	first, releaseFirst := take(t, folder, "study a")
	second, _ := take(t, folder, "study a")
	other, _ := take(t, folder, "study b")
	if first != 1 || second != 2 || other != 1 {
		t.Errorf("slots %d, %d, %d, want 1, 2, 1", first, second, other)
	}
	releaseFirst()
	if again, _ := take(t, folder, "study a"); again != 1 {
		t.Errorf("slot %d after the first was released, want 1", again)
	}
	if third, _ := take(t, folder, "study a"); third != 3 {
		t.Errorf("slot %d, want 3", third)
	}
}

func TestTakeNoFolder(t *testing.T) {
	if _, _, err := slot.Take("/dev/null/folder", "study"); err == nil {
		t.Error("a folder that cannot be made: no error")
	}
}

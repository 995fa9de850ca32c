package filemode_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/filemode"
)

func TestCheck(t *testing.T) {
	folder := t.TempDir()
	path, link := filepath.Join(folder, "..data"), filepath.Join(folder, "tls.key") // as in a volume of Kubernetes
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Symlink("..data", link))
	for _, test := range []struct {
		mode, allowed fs.FileMode
		refused       bool
	}{
		{0o600, 0, false}, {0o400, 0, false}, {0o700, 0, false}, {0o640, 0, true}, {0o604, 0, true},
		{0o440, 0o640, false}, {0o640, 0o640, false}, {0o660, 0o640, true}, {0o644, 0o640, true}, {0o602, 0o640, true},
		{0o660, 0o660, false}, {0o666, 0o660, true}, {0o664, 0o660, true},
	} {
		require.NoError(t, os.Chmod(path, test.mode))
		info, err := os.Stat(link)
		require.NoError(t, err)
		err = filemode.Check(link, info, test.allowed, "others can read it")
		if (err != nil) != test.refused {
			t.Errorf("mode %#o where %#o is allowed: %v", test.mode, test.allowed, err)
		}
		if err != nil && (!strings.Contains(err.Error(), link) || !strings.Contains(err.Error(), "others can read it")) {
			t.Errorf("error %v", err)
		}
	}
}

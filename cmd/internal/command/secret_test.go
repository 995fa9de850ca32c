package command_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/console"
	"github.com/dpareto/dpareto/internal/require"
)

// A secret that goes to a file which others can read is warned of.
func TestWarnIfReadable(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing on Windows")
	}
	for mode, want := range map[os.FileMode]bool{0o644: true, 0o640: true, 0o604: true, 0o600: false, 0o400: false} {
		file, err := os.Create(filepath.Join(t.TempDir(), "token"))
		require.NoError(t, err)
		require.NoError(t, file.Chmod(mode))
		var said bytes.Buffer
		env := &command.Env{Stdout: file, Console: console.New(&said)}
		env.WarnIfReadable("the token", "give --file")
		if got := strings.Contains(said.String(), "chmod 600 it, or give --file"); got != want {
			t.Errorf("mode %o: said %q", mode, said.String())
		}
		require.NoError(t, file.Close())
	}
	var said bytes.Buffer
	env := &command.Env{Stdout: new(bytes.Buffer), Console: console.New(&said)}
	if env.WarnIfReadable("the token", "give --file"); said.Len() > 0 {
		t.Errorf("no file: said %q", said.String())
	}
}

package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/cli"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
)

// Commands that print secrets warn if these go to a file that other users can read.
func TestSecretsInReadableFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing on Windows")
	}
	isolateContexts(t)
	address, _ := clitest.StartServer(t, "--listen", "127.0.0.1:0")
	t.Setenv("DPARETO_SERVER", address)
	clitest.Must(t, clitest.SmallStudy, "study", "create", "-")
	credentials := filepath.Join(t.TempDir(), "auth.yaml")
	for line, isSecret := range map[string]bool{
		"token create --name ci --role viewer --auth-file " + credentials: true,
		"export": true,
		"trial suggest small --worker-id w --output json":  true,
		"trial suggest small --worker-id w --output table": false,
		"study list --output json":                         false,
	} {
		for _, mode := range []os.FileMode{0o600, 0o640, 0o644} {
			file, err := os.OpenFile(filepath.Join(t.TempDir(), "out"), os.O_CREATE|os.O_WRONLY, mode)
			require.NoError(t, err)
			require.NoError(t, file.Chmod(mode))
			var said bytes.Buffer
			code := command.Main(t.Context(), strings.Fields(line), strings.NewReader(""), file, &said, cli.New)
			if err := file.Close(); err != nil || code != command.ExitOK {
				t.Fatalf("dpareto %s: exit code %d, %v: %s", line, code, err, said.String())
			}
			if got, want := strings.Contains(said.String(), "warning: other users can read"), isSecret && mode != 0o600; got != want {
				t.Errorf("dpareto %s, mode %o: said %q", line, mode, said.String())
			}
		}
	}
}

// Every command, flag and environment variable that docs/reference/operations.md shows exists.
func TestOperationsNamesWhatExists(t *testing.T) { checkDocument(t, "reference/operations.md", 10) }

// checkDocument checks the commands, flags and environment variables of a document, which has at least so
// many commands.
func checkDocument(t *testing.T, name string, least int) {
	t.Helper()
	text := clitest.Document(t, "docs/"+name)
	checkVariables(t, name, text)
	commands := 0
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimSpace(line)
		rest, ok := strings.CutPrefix(strings.TrimPrefix(line, "sudo -u dpareto "), "dpareto ")
		if !ok {
			continue
		}
		rest, _, _ = strings.Cut(rest, " >")
		rest, _, _ = strings.Cut(rest, " #")
		rest, _, _ = strings.Cut(rest, " |")
		checkCommand(t, name, strings.Fields(strings.ReplaceAll(strings.TrimSuffix(rest, "&"), "'", "")))
		commands++
	}
	if commands < least {
		t.Errorf("%d commands", commands)
	}
}

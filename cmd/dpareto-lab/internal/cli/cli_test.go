package cli

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/command/commandtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// invoke runs the program in this process.
func invoke(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return invokeWith(t, strings.NewReader(""), args...)
}

func invokeWith(t *testing.T, stdin io.Reader, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, log bytes.Buffer
	code = command.Main(t.Context(), args, stdin, &out, &log, New)
	return out.String(), log.String(), code
}

func TestReadmeListsCommands(t *testing.T) {
	root := command.Root(new(command.Env), New)
	commandtest.CheckTable(t, filepath.Join("..", "..", "..", "..", "README.md"), root)
}

package study_test

import (
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/dpareto/studies"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
)

// Ledgers cannot be deleted: those that a file declares are created only for a study that the server
// finds valid, and each is named with its budget.
func TestCreateWithLedgers(t *testing.T) {
	address, _ := clitest.StartServer(t, "--listen", "127.0.0.1:0")
	t.Setenv("DPARETO_SERVER", address)
	content, err := studies.File("adult-private")
	require.NoError(t, err)
	create := func(file string, args ...string) (log string, code int) {
		t.Helper()
		_, log, code = clitest.Invoke(t, file, append([]string{"study", "create", "-"}, args...)...)
		return log, code
	}
	ledgers := func() int {
		t.Helper()
		return strings.Count(clitest.Succeed(t, "ledger list -o csv"), "\n") - 1
	}
	wrong := strings.Replace(string(content), "test_epsilon: 1", "test_epsilon: -1", 1)
	undeclared := strings.Replace(string(content), "train_ledger: ledgers/adult-train", "train_ledger: ledgers/other", 1)
	undeclared = strings.Replace(undeclared, "name: ledgers/adult-test", "name: ledgers/another", 1)
	for file, want := range map[string]string{wrong: "test_epsilon", undeclared: "ledgers/adult-test does not exist"} {
		for _, args := range [][]string{nil, {"--validate-only"}} {
			if log, code := create(file, args...); code == command.ExitOK || !strings.Contains(log, "create studies/adult-private: ") || !strings.Contains(log, want) {
				t.Errorf("%q: exit code %d: %s", args, code, log)
			}
			if n := ledgers(); n != 0 {
				t.Errorf("%q: a file with a mistake left %d ledgers", args, n)
			}
		}
	}
	if log, code := create(string(content), "--validate-only"); code != command.ExitOK || !strings.Contains(log, "nothing was created") || ledgers() != 0 {
		t.Errorf("validated only: exit code %d, %d ledgers: %s", code, ledgers(), log)
	}
	log, code := create(string(content))
	for _, want := range []string{
		"ledger=ledgers/adult-test epsilon=4 delta=1e-05 adjacency=replace-one records=16281",
		"ledger=ledgers/adult-train epsilon=8 delta=1e-05 adjacency=replace-one records=32561",
	} {
		if code != command.ExitOK || !strings.Contains(log, want) {
			t.Errorf("exit code %d: %q is missing in %s", code, want, log)
		}
	}
	if log, code := create(string(content), "--id", "again"); strings.Contains(log, "created a ledger") {
		t.Errorf("ledgers that exist: exit code %d: %s", code, log)
	}
	if n := ledgers(); n != 2 {
		t.Errorf("%d ledgers", n)
	}
}

package cli_test

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
)

func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		args string
		want string // of standard error
	}{
		{"bogus", `unknown command "bogus" for "dpareto"`},
		{"study bogus", `unknown command "bogus" for "dpareto study"`},
		{"stduy list", `unknown command "stduy" for "dpareto"; did you mean study?; see dpareto --help`},
		{"study lst", `did you mean get or list?`},
		{"check studies.db", `unknown command or argument "studies.db" for "dpareto check"; did you mean --store studies.db?`},
		{"create study.yaml", `did you mean dpareto ledger create or dpareto study create or`},
		{"study recommend svt", `did you mean dpareto recommend?`},
		{"zebra", `unknown command "zebra" for "dpareto"; see`},
		{"study list --oputut json", "unknown flag: --oputut; did you mean --output?"},
		{"serve --supervise", "unknown flag: --supervise\n"}, // --supervised is hidden
		{"study create", "accepts 1 arg(s), received 0; usage: dpareto study create FILE"},
		{"study list --bogus", "unknown flag: --bogus"},
		{"study list --output xml", "must be one of table, json, csv"},
		{"study list --server nowhere", "missing port in address"},
		{"study list --log-level loud", "log-level"},
		{"trial get svt first", `trial: must be its number, is "first"`},
		{"front svt --kind middle", "must be observed, posterior, best or worst"},
		{"front svt --plot front.pdf", ".svg, .png"},
		{"agent", "--study"},
		{"agent --study svt --workers 0", "must be at least 1, is 0"},
		{"serve --listen nowhere", "missing port in address"},
		{"serve --listen 0.0.0.0:8321", "--insecure-listen"},
		{"serve --listen :8321", "other machines can reach :8321"},
		{"serve --listen example.org:8321", "--insecure-listen"},
		{"data bogus", `unknown command "bogus" for "dpareto data"`},
		{"data fetch", "name a dataset (adult, "},
		{"data fetch iris", `dataset must be one of adult, `},
		{"data fetch --all mnist", "but not both"},
		{"demo --study cifar", "must be one of adult, "},
		{"demo --output csv", "table or json"},
		{"demo --trials -1", "must be at least 1, is -1"},
		{"demo --workers 0", "must be at least 1, is 0"},
		{"demo --plot front", ".svg, .png"},
	} {
		stdout, stderr, code := clitest.Invoke(t, "", strings.Fields(tt.args)...)
		if code != command.ExitUsage || stdout != "" || !strings.Contains(stderr, tt.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("dpareto %s: exit code %d, output %q, error %q, want %q", tt.args, code, stdout, stderr, tt.want)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range []string{"", "--help", "study", "serve --help", "agent --help", "study create --help", "front --help", "data", "data fetch --help", "demo --help"} {
		stdout, stderr, code := clitest.Invoke(t, "", strings.Fields(args)...)
		if code != command.ExitOK || stderr != "" || !strings.Contains(stdout, "Usage:") {
			t.Errorf("dpareto %s: exit code %d, error %q, output %q", args, code, stderr, stdout)
		}
		if strings.Contains(stdout, "supervised") {
			t.Errorf("dpareto %s shows a hidden flag", args)
		}
	}
	stdout, _, _ := clitest.Invoke(t, "", "agent", "--help")
	for _, want := range []string{"dp-sgd", "sparse-vector", "study init --help", "Examples:", "(env DPARETO_SERVER)"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the help of agent lacks %q", want)
		}
	}
}

func TestVersion(t *testing.T) {
	stdout, _, code := clitest.Invoke(t, "", "version")
	if code != command.ExitOK || !strings.HasPrefix(stdout, "dpareto ") {
		t.Errorf("exit code %d, output %q", code, stdout)
	}
	if data := clitest.Succeed(t, "version -o json"); !strings.HasPrefix(data, "{\n  \"program\": \"dpareto\"") {
		t.Errorf("as JSON: %s", data)
	}
	if flag, _, _ := clitest.Invoke(t, "", "--version"); !strings.Contains(stdout, strings.TrimSpace(flag)) {
		t.Errorf("--version prints %q, version %q", flag, stdout)
	}
}

func TestEnvironment(t *testing.T) {
	address, _ := clitest.StartServer(t, "--listen", "127.0.0.1:0")
	t.Setenv("DPARETO_SERVER", address)
	t.Setenv("DPARETO_OUTPUT", "json")
	if stdout, stderr, code := clitest.Invoke(t, "", "study", "list"); code != command.ExitOK || stdout != "[]\n" {
		t.Errorf("exit code %d, output %q, error %q", code, stdout, stderr)
	}
	if stdout, stderr, code := clitest.Invoke(t, "", "study", "list", "--output", "csv"); code != command.ExitOK || !strings.HasPrefix(stdout, "study,state,") {
		t.Errorf("a flag does not count more: exit code %d, output %q, error %q", code, stdout, stderr)
	}
	t.Setenv("DPARETO_OUTPUT", "xml")
	if _, stderr, code := clitest.Invoke(t, "", "study", "list"); code != command.ExitUsage || !strings.Contains(stderr, "environment variable DPARETO_OUTPUT") {
		t.Errorf("exit code %d, error %q", code, stderr)
	}
}

// Refusals of the server are one line each, and their codes say of what kind they are.
func TestRefusals(t *testing.T) {
	address, _ := clitest.StartServer(t, "--listen", "localhost:0")
	invalid := "study_id: a\nspec: {parameters: [{id: x, double_domain: {min: 1, max: 2}, scale: LOG}], " +
		"metrics: [{id: e, role: OBJECTIVE, reported: {}}], algorithm: {name: RANDOM}}"
	clitest.Must(t, clitest.SmallStudy, "study", "create", "-", "--server", address)
	other := strings.Replace(clitest.SmallStudy, "max: 9", "max: 8", 1)
	missing := command.ExitNotFound
	for _, tt := range []struct {
		stdin, args string
		code        int
		want        []string
	}{
		{"", "study get none", missing, []string{"NotFound", "studies/none"}},
		{"", "study delete none", missing, []string{"delete studies/none", "NotFound"}},
		{"", "trial list none", missing, []string{"NotFound", "studies/none"}},
		{"", "trial get none 1", missing, []string{"NotFound", "studies/none"}},
		{"", "front none", missing, []string{"NotFound", "studies/none"}},
		{"", "agent --study none", missing, []string{"NotFound", "studies/none"}},
		{other, "study create -", command.ExitRefused, []string{"AlreadyExists"}},
		{invalid, "study create -", command.ExitUsage, []string{
			"InvalidArgument", "study.spec.metrics[0].goal",
			"study.spec.metrics[0].transform",
		}},
		{"spec: {}", "study create -", command.ExitUsage, []string{"standard input", "study_id", "--id"}},
		{"spec: {sed: 1}", "study create -", command.ExitUsage, []string{"standard input", "spec.sed", "unknown field"}},
		{"", "study create /nonexistent/study.yaml", command.ExitFailure, []string{"/nonexistent/study.yaml"}},
	} {
		stdout, stderr, code := clitest.Invoke(t, tt.stdin, append(strings.Fields(tt.args), "--server", address)...)
		if code != tt.code || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "dpareto: ") {
			t.Errorf("dpareto %s: exit code %d, want %d, output %q, error %q", tt.args, code, tt.code, stdout, stderr)
		}
		for _, want := range tt.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("dpareto %s: error %q lacks %q", tt.args, stderr, want)
			}
		}
	}
}

func TestUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	listener.Close()
	for _, args := range [][]string{{"study", "list"}, {"health"}} {
		_, stderr, code := clitest.Invoke(t, "", append(args, "--server", address)...)
		if code != command.ExitUnavailable || !strings.Contains(stderr, "no server at "+address) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, error %q", args, code, stderr)
		}
	}
}

// Only a whole id names a study.
func TestStudyID(t *testing.T) {
	address, _ := clitest.StartServer(t, "--listen", "127.0.0.1:0")
	_, stderr, code := clitest.Invoke(t, "", "study", "delete", "other/svt", "--server", address)
	if code != command.ExitUsage || !strings.Contains(stderr, "InvalidArgument") {
		t.Errorf("exit code %d, error %q", code, stderr)
	}
}

// An address that others can reach has to be asked for, and is warned of.
func TestInsecureListen(t *testing.T) {
	_, stop := clitest.StartServer(t, "--listen", "0.0.0.0:0", "--insecure-listen")
	log, code := stop()
	if code != command.ExitOK || !strings.Contains(log, "level=WARN") || !strings.Contains(log, "ANYBODY") {
		t.Errorf("exit code %d, log %q", code, log)
	}
}

// A server that is stopped says so, and its store can be opened again.
func TestServeAgain(t *testing.T) {
	store := filepath.Join(t.TempDir(), "new", "test.db")
	for range 2 {
		_, stop := clitest.StartServer(t, "--listen", "[::1]:0", "--store", store)
		if log, code := stop(); code != command.ExitOK || !strings.Contains(log, "msg=stopped") {
			t.Errorf("exit code %d, log %q", code, log)
		}
	}
}

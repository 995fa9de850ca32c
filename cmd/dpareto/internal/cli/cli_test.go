package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/cmd/internal/command"
)

// invoke runs the command in this process.
func invoke(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, log bytes.Buffer
	code = command.Main(t.Context(), args, strings.NewReader(stdin), &out, &log, New)
	return out.String(), log.String(), code
}

// startServer runs a server in this process until the end of the test and returns its
// address and its log, which is complete when stop has returned.
func startServer(t *testing.T, args ...string) (address string, stop func() (log string, code int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	var log bytes.Buffer
	ended := make(chan int, 1)
	args = append([]string{"serve", "--store", filepath.Join(t.TempDir(), "test.db")}, args...)
	go func() {
		code := command.Main(ctx, args, strings.NewReader(""), writer, &log, New)
		writer.Close()
		ended <- code
	}()
	stop = func() (string, int) {
		cancel()
		code := <-ended
		ended <- code
		return log.String(), code
	}
	t.Cleanup(func() { stop() })
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		text, code := stop()
		t.Fatalf("the server ended with %d: %s", code, text)
	}
	return strings.TrimPrefix(strings.TrimSpace(line), listening), stop
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		args string
		want string // of standard error
	}{
		{"bogus", `unknown command "bogus" for "dpareto"`},
		{"study bogus", `unknown command "bogus" for "dpareto study"`},
		{"study create", "accepts 1 arg(s), received 0; usage: dpareto study create FILE"},
		{"study list --bogus", "unknown flag: --bogus"},
		{"study list --output xml", "want table, json, csv"},
		{"study list --server nowhere", "missing port in address"},
		{"study list --log-level loud", "log-level"},
		{"trial get svt first", `trial "first", want its number`},
		{"front svt --kind middle", "want observed, posterior, best or worst"},
		{"front svt --plot front.pdf", ".svg, .png"},
		{"agent", "--study"},
		{"agent --study svt --workers 0", "want at least 1"},
		{"agent --study svt --noise-source dice", "want seed or os"},
		{"serve --listen nowhere", "missing port in address"},
		{"serve --listen 0.0.0.0:8321", "--insecure-listen"},
		{"serve --listen :8321", "is not an address of this machine alone"},
		{"serve --listen example.org:8321", "--insecure-listen"},
		{"data bogus", `unknown command "bogus" for "dpareto data"`},
		{"data fetch", "name a dataset (adult, adult-raw, mnist, kddcup99, gisette, breast-cancer, breast-cancer-original), or give --all"},
		{"data fetch iris", `dataset "iris" is unknown`},
		{"data fetch --all mnist", "but not both"},
		{"demo --study cifar", "want one of adult, adult-adam, adult-private, adult-svm, adult-variance, mnist, mnist-mlp1, mnist-mlp2, svt"},
		{"demo --output csv", "table or json"},
		{"demo --trials -1", "want at least 1"},
		{"demo --workers 0", "want at least 1"},
		{"demo --plot front", ".svg, .png"},
	} {
		stdout, stderr, code := invoke(t, "", strings.Fields(tt.args)...)
		if code != command.ExitUsage || stdout != "" || !strings.Contains(stderr, tt.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("dpareto %s: exit code %d, output %q, error %q, want %q", tt.args, code, stdout, stderr, tt.want)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range []string{"", "--help", "study", "serve --help", "agent --help", "study create --help", "front --help", "data", "data fetch --help", "demo --help"} {
		stdout, stderr, code := invoke(t, "", strings.Fields(args)...)
		if code != command.ExitOK || stderr != "" || !strings.Contains(stdout, "Usage:") {
			t.Errorf("dpareto %s: exit code %d, error %q, output %q", args, code, stderr, stdout)
		}
		if strings.Contains(stdout, "supervised") {
			t.Errorf("dpareto %s shows a hidden flag", args)
		}
	}
	stdout, _, _ := invoke(t, "", "agent", "--help")
	for _, want := range []string{"dp-sgd", "sparse-vector", "split_seed", "Examples:", "(env DPARETO_SERVER)"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the help of agent lacks %q", want)
		}
	}
}

func TestVersion(t *testing.T) {
	stdout, _, code := invoke(t, "", "version")
	if code != command.ExitOK || !strings.HasPrefix(stdout, "dpareto ") {
		t.Errorf("exit code %d, output %q", code, stdout)
	}
	if flag, _, _ := invoke(t, "", "--version"); !strings.Contains(stdout, strings.TrimSpace(flag)) {
		t.Errorf("--version prints %q, version %q", flag, stdout)
	}
}

func TestEnvironment(t *testing.T) {
	address, _ := startServer(t, "--listen", "127.0.0.1:0")
	t.Setenv("DPARETO_SERVER", address)
	t.Setenv("DPARETO_OUTPUT", "json")
	if stdout, stderr, code := invoke(t, "", "study", "list"); code != command.ExitOK || stdout != "[]\n" {
		t.Errorf("exit code %d, output %q, error %q", code, stdout, stderr)
	}
	if stdout, stderr, code := invoke(t, "", "study", "list", "--output", "csv"); code != command.ExitOK || !strings.HasPrefix(stdout, "study,state,") {
		t.Errorf("a flag does not count more: exit code %d, output %q, error %q", code, stdout, stderr)
	}
	t.Setenv("DPARETO_OUTPUT", "xml")
	if _, stderr, code := invoke(t, "", "study", "list"); code != command.ExitUsage || !strings.Contains(stderr, "environment variable DPARETO_OUTPUT") {
		t.Errorf("exit code %d, error %q", code, stderr)
	}
}

// Refusals of the server are one line each.
func TestRefusals(t *testing.T) {
	address, _ := startServer(t, "--listen", "localhost:0")
	invalid := "study_id: a\nspec: {parameters: [{id: x, double_domain: {min: 1, max: 2}, scale: LOG}], " +
		"metrics: [{id: e, role: OBJECTIVE, reported: {}}], algorithm: {name: RANDOM}}"
	for _, tt := range []struct {
		stdin, args string
		want        []string
	}{
		{"", "study get none", []string{"NotFound", "studies/none"}},
		{"", "study delete none", []string{"delete studies/none", "NotFound"}},
		{"", "trial list none", []string{"NotFound", "studies/none"}},
		{"", "trial get none 1", []string{"NotFound", "studies/none"}},
		{"", "front none", []string{"NotFound", "studies/none"}},
		{"", "agent --study none", []string{"NotFound", "studies/none"}},
		{invalid, "study create -", []string{
			"InvalidArgument", "study.spec.metrics[0].goal",
			"study.spec.metrics[0].reference_value",
		}},
		{"spec: {}", "study create -", []string{"standard input", "study_id", "--id"}},
		{"spec: {sed: 1}", "study create -", []string{"standard input", "spec.sed", "unknown field"}},
		{"", "study create /nonexistent/study.yaml", []string{"/nonexistent/study.yaml"}},
	} {
		stdout, stderr, code := invoke(t, tt.stdin, append(strings.Fields(tt.args), "--server", address)...)
		if code != command.ExitFailure || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "dpareto: ") {
			t.Errorf("dpareto %s: exit code %d, output %q, error %q", tt.args, code, stdout, stderr)
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
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	for _, args := range [][]string{{"study", "list"}, {"health"}} {
		_, stderr, code := invoke(t, "", append(args, "--server", address)...)
		if code != command.ExitFailure || !strings.Contains(stderr, "no server at "+address) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, error %q", args, code, stderr)
		}
	}
}

// A server that is there is not said to be missing.
func TestUnreachableError(t *testing.T) {
	for message, want := range map[string]string{
		`connection error: desc = "transport: Error while dialing: connect: connection refused"`:                                      "start one with dpareto serve",
		`name resolver error: produced zero addresses`:                                                                                "start one with dpareto serve",
		`connection error: desc = "error reading server preface: EOF"`:                                                                "--tls-ca",
		`connection error: desc = "transport: authentication handshake failed: tls: first record does not look like a TLS handshake"`: "--plaintext",
		`connection error: desc = "transport: authentication handshake failed: x509: certificate has expired"`:                        "no secure connection with",
		`the server cannot write its store (no space is left on the device)`:                                                          "is not available: the server cannot write",
	} {
		err := &unreachableError{"127.0.0.1:1", status.Error(codes.Unavailable, message)}
		if got := err.Error(); !strings.Contains(got, want) || !strings.Contains(got, message) || !strings.Contains(got, "127.0.0.1:1") {
			t.Errorf("%q, want it to contain %q", got, want)
		}
	}
}

// Only a whole id names a study.
func TestStudyID(t *testing.T) {
	address, _ := startServer(t, "--listen", "127.0.0.1:0")
	_, stderr, code := invoke(t, "", "study", "delete", "other/svt", "--server", address)
	if code != command.ExitFailure || !strings.Contains(stderr, "InvalidArgument") {
		t.Errorf("exit code %d, error %q", code, stderr)
	}
}

// An address that others can reach has to be asked for, and is warned of.
func TestInsecureListen(t *testing.T) {
	_, stop := startServer(t, "--listen", "0.0.0.0:0", "--insecure-listen")
	log, code := stop()
	if code != command.ExitOK || !strings.Contains(log, "level=WARN") || !strings.Contains(log, "ANYBODY") {
		t.Errorf("exit code %d, log %q", code, log)
	}
}

// A server that is stopped says so, and its store can be opened again.
func TestServeAgain(t *testing.T) {
	store := filepath.Join(t.TempDir(), "new", "test.db")
	for range 2 {
		_, stop := startServer(t, "--listen", "[::1]:0", "--store", store)
		if log, code := stop(); code != command.ExitOK || !strings.Contains(log, "msg=stopped") {
			t.Errorf("exit code %d, log %q", code, log)
		}
	}
}

// Without --store the store is in the user's configuration folder.
func TestDefaultStore(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", folder)
	t.Setenv("HOME", folder)
	path, err := storePath("")
	if err != nil || !strings.HasPrefix(path, folder) || filepath.Base(path) != "dpareto.db" {
		t.Fatalf("%q: %v", path, err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder of the store: %v, %v", info, err)
	}
}

// The answer of a server to a raw call is shown with every field that it names.
func TestCallError(t *testing.T) {
	s, err := status.New(codes.InvalidArgument, "first of two").WithDetails(&errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: "name", Description: "must be set"}, {Field: "page_size", Description: "is negative"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	failed := &callError{"list the studies", s.Err()}
	if got, want := failed.Error(), "list the studies: InvalidArgument: name: must be set; page_size: is negative"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	if status.Code(failed) != codes.InvalidArgument {
		t.Errorf("code %v", status.Code(failed))
	}
}

// Two agents of one study have different worker ids; a restarted one has its own again.
func TestDefaultWorkerID(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", folder)
	t.Setenv("HOME", folder)
	a := &app{Env: new(command.Env)}
	first, release := a.defaultWorkerID("svt")
	second, releaseSecond := a.defaultWorkerID("svt")
	defer releaseSecond()
	if first == second {
		t.Errorf("both agents are %s", first)
	}
	release()
	again, releaseAgain := a.defaultWorkerID("svt")
	defer releaseAgain()
	if again != first {
		t.Errorf("the agent is %s after a restart, was %s", again, first)
	}
}

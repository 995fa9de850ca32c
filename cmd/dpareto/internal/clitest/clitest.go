// Package clitest runs the program dpareto within tests.
package clitest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/cli"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/serve"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/certs/certstest"
)

// Invoke runs the program in this process.
func Invoke(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, log bytes.Buffer
	code = command.Main(t.Context(), args, strings.NewReader(stdin), &out, &log, cli.New)
	return out.String(), log.String(), code
}

// Must runs the program and fails the test unless it succeeds.
func Must(t *testing.T, stdin string, args ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, code := Invoke(t, stdin, args...)
	if code != command.ExitOK {
		t.Fatalf("dpareto %s: exit code %d, error %q", strings.Join(args, " "), code, stderr)
	}
	return stdout, stderr
}

// Succeed runs a command line, which must succeed.
func Succeed(t *testing.T, line string) (stdout string) {
	t.Helper()
	stdout, _ = Must(t, "", strings.Fields(line)...)
	return stdout
}

// Fail runs a command line, which must end with an exit code, and returns its output.
func Fail(t *testing.T, code int, line string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, got := Invoke(t, "", strings.Fields(line)...)
	if got != code {
		t.Errorf("dpareto %s: exit code %d, want %d: %s", line, got, code, stderr)
	}
	return stdout, stderr
}

// WantFailure runs the program, which must fail with a message that contains want.
func WantFailure(t *testing.T, want string, args ...string) {
	t.Helper()
	_, stderr, code := Invoke(t, "", args...)
	if code == command.ExitOK || !strings.Contains(stderr, want) {
		t.Errorf("dpareto %s: exit code %d, error %q, want %q", strings.Join(args, " "), code, stderr, want)
	}
}

// Program is the program while it runs in this process.
type Program struct {
	Stdout *bufio.Reader

	cancel context.CancelFunc
	ended  chan int
	log    bytes.Buffer
}

// Start runs the program until it ends, or the test does.
func Start(t *testing.T, args ...string) *Program {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	p := &Program{Stdout: bufio.NewReader(reader), cancel: cancel, ended: make(chan int, 1)}
	go func() {
		code := command.Main(ctx, args, strings.NewReader(""), writer, &p.log, cli.New)
		_ = writer.Close() // never fails
		p.ended <- code
	}()
	t.Cleanup(func() {
		_ = reader.Close() // never fails
		p.Stop()
	})
	return p
}

// Wait waits for the end of the program and returns its log and its exit code.
func (p *Program) Wait() (log string, code int) {
	code = <-p.ended
	p.ended <- code
	return p.log.String(), code
}

// Stop interrupts the program, and waits for its end.
func (p *Program) Stop() (log string, code int) {
	p.cancel()
	return p.Wait()
}

// StartServer runs a server in this process until the end of the test and returns its
// address and its log, which is complete when stop has returned.
func StartServer(t *testing.T, args ...string) (address string, stop func() (log string, code int)) {
	t.Helper()
	// A later --listen takes precedence. Another server may use the default port.
	p := Start(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--store", filepath.Join(t.TempDir(), "test.db"), "--create"}, args...)...)
	line, err := p.Stdout.ReadString('\n')
	if err != nil {
		text, code := p.Stop()
		t.Fatalf("the server ended with %d: %s", code, text)
	}
	return strings.TrimPrefix(strings.TrimSpace(line), serve.Listening), p.Stop
}

// RunStudy starts a server, which all commands find, creates a study that "study init"
// writes for the given flags, in a folder of the test, with a number of runs per trial, and
// trains its trials.
func RunStudy(t *testing.T, id, flags string, replicates int) {
	t.Helper()
	address, _ := StartServer(t, "--listen", "localhost:0")
	t.Setenv("DPARETO_SERVER", address)
	t.Chdir(t.TempDir())
	file := Succeed(t, "study init --id "+id+" "+flags) + fmt.Sprintf("\n  seed: 1\n  replicates: %d\n", replicates)
	Must(t, file, "study", "create", "-")
	Succeed(t, "agent --workers 1 --seed 1 --study "+id)
}

// WriteFile writes a file in a folder of the test and returns its path.
func WriteFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// NewToken creates a token with the program and returns it with its file.
func NewToken(t *testing.T, args ...string) (file, token string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "auth.yaml")
	stdout, _ := Must(t, "", append([]string{"token", "create", "--auth-file", file}, args...)...)
	return file, strings.TrimSpace(stdout)
}

// ServerFiles returns flags of a server with TLS, and the file of its authority.
func ServerFiles(t *testing.T) (flags []string, ca string, authority *certstest.Authority) {
	t.Helper()
	authority = certstest.New(t, "authority")
	cert, key := authority.Server()
	paths := certstest.Write(t, t.TempDir(), map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": authority.PEM})
	return []string{"--tls-cert", paths["tls.crt"], "--tls-key", paths["tls.key"]}, paths["ca.crt"], authority
}

// Document returns a document of the repository, given by its path from the root.
func Document(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(Root(t), path))
	require.NoError(t, err)
	return string(content)
}

// Root returns the root of the repository.
func Root(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs(".")
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		if folder == filepath.Dir(folder) {
			t.Fatal("the test does not run within the repository")
		}
		folder = filepath.Dir(folder)
	}
}

// SmallStudy is the file of a study with one parameter of each kind.
const SmallStudy = `study_id: small
spec:
  parameters:
  - {id: depth, integer_domain: {min: 1, max: 9}, scale: LINEAR}
  - {id: rate, double_domain: {min: 0.001, max: 1}, scale: LOG}
  - {id: kind, categorical_domain: {categories: [a, b]}}
  metrics:
  - {id: error, role: OBJECTIVE, goal: MINIMIZE, transform: IDENTITY, reference_value: 1, reported: {}}
  - {id: size, role: OBJECTIVE, goal: MINIMIZE, transform: IDENTITY, reference_value: 10, computed: {expression: "double(depth)"}}
  algorithm: {name: RANDOM}
`

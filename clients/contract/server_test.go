package contract_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// binary is the server under test.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run builds the server, in the folder of a module above, and runs the tests.
func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "dpareto-contract-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	binary = filepath.Join(folder, "dpareto")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/dpareto")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		return 1
	}
	return m.Run()
}

// server is a server that can be killed and started again on its addresses.
type server struct {
	t           *testing.T
	arguments   []string
	grpc, http  string // addresses
	cmd         *exec.Cmd
	credentials map[string]string // tokens by name
}

// startServer starts a server, which asks for tokens if there are any.
func startServer(t *testing.T, tokens []token) *server {
	t.Helper()
	folder := t.TempDir()
	s := &server{t: t, grpc: freeAddress(t), http: freeAddress(t), credentials: make(map[string]string)}
	s.arguments = []string{"serve", "--store", filepath.Join(folder, "dpareto.db"), "--create", "--listen", s.grpc, "--http-listen", s.http}
	if len(tokens) > 0 {
		file := filepath.Join(folder, "auth.yaml")
		for _, token := range tokens {
			arguments := []string{"token", "create", "--auth-file", file, "--name", token.Name, "--role", token.Role}
			for _, pattern := range token.Studies {
				arguments = append(arguments, "--study", pattern)
			}
			out, err := s.command(arguments...).Output()
			if err != nil {
				t.Fatal(err)
			}
			s.credentials[token.Name] = strings.TrimSpace(string(out))
		}
		s.arguments = append(s.arguments, "--auth-file", file)
	}
	s.start()
	t.Cleanup(s.kill)
	return s
}

// freeAddress returns an unused address.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// command returns the program, without settings of ours in its environment.
func (s *server) command(arguments ...string) *exec.Cmd {
	cmd := exec.Command(binary, arguments...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DPARETO_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// start starts the server and waits until it listens.
func (s *server) start() {
	s.t.Helper()
	s.cmd = s.command(s.arguments...)
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for _, want := range []string{"listening on " + s.grpc, "page on http://" + s.http + "/"} {
		if !lines.Scan() || lines.Text() != want {
			s.t.Fatalf("the server printed %q, want %q", lines.Text(), want)
		}
	}
}

// kill ends the server as kill -9 does.
func (s *server) kill() {
	s.cmd.Process.Kill()
	s.cmd.Wait() // fails with "signal: killed"
}

// restart kills the server and starts it again.
func (s *server) restart() {
	s.t.Helper()
	s.kill()
	s.start()
}

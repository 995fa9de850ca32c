package contract_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store/opentest"
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

// server is a server that can be killed and started again on its addresses. On a store that servers share
// there is another one beside it.
type server struct {
	t           *testing.T
	beside      *server // nil for none
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
	s.arguments = []string{"serve", "--store", opentest.Name(t, filepath.Join(folder, "dpareto.db")), "--create"}
	if len(tokens) > 0 {
		file := filepath.Join(folder, "auth.yaml")
		for _, token := range tokens {
			arguments := []string{"token", "create", "--auth-file", file, "--name", token.Name, "--role", token.Role}
			for _, pattern := range token.Studies {
				arguments = append(arguments, "--study", pattern)
			}
			out, err := s.command(arguments...).Output()
			require.NoError(t, err)
			s.credentials[token.Name] = strings.TrimSpace(string(out))
		}
		s.arguments = append(s.arguments, "--auth-file", file)
	}
	if opentest.IsShared() {
		s.beside = &server{t: t, arguments: s.arguments, grpc: freeAddress(t), http: freeAddress(t)}
	}
	s.start()
	t.Cleanup(s.kill)
	return s
}

// target returns the address for a client, and its options: its calls go to all servers in turn.
func (s *server) target() (string, []dpareto.Option) {
	if s.beside == nil {
		return s.grpc, nil
	}
	both := manual.NewBuilderWithScheme("both")
	both.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: s.grpc}, {Addr: s.beside.grpc}}})
	return "both:///" + s.grpc, []dpareto.Option{dpareto.WithDialOptions(
		grpc.WithResolvers(both), grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`))}
}

// freeAddress returns an unused address.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
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
	s.cmd = s.command(append(slices.Clone(s.arguments), "--listen", s.grpc, "--http-listen", s.http)...)
	stdout, err := s.cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, s.cmd.Start())
	lines := bufio.NewScanner(stdout)
	for _, want := range []string{"listening on " + s.grpc, "page on http://" + s.http + "/"} {
		if !lines.Scan() || lines.Text() != want {
			s.t.Fatalf("the server printed %q, want %q", lines.Text(), want)
		}
	}
	if s.beside != nil {
		s.beside.start()
	}
}

// kill ends the server as kill -9 does.
func (s *server) kill() {
	if s.beside != nil {
		s.beside.kill()
	}
	s.cmd.Process.Kill()
	s.cmd.Wait() // fails with "signal: killed"
}

// restart kills the server and starts it again.
func (s *server) restart() {
	s.t.Helper()
	s.kill()
	s.start()
}

package serve_test

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/cli"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/serve"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/certs/certstest"
)

func TestServeSecurityUsage(t *testing.T) {
	file, _ := clitest.NewToken(t, "--name", "ann", "--role", "admin")
	for _, tt := range []struct{ args, want string }{
		{"--listen 0.0.0.0:0 --auth-file " + file, "--insecure-plaintext"},
		{"--listen 0.0.0.0:0 --insecure-listen --auth-file " + file, "--insecure-plaintext"},
		{"--listen 0.0.0.0:0 --insecure-plaintext", "--insecure-listen"},
		{"--tls-cert a", "tls-cert and tls-key"},
		{"--tls-client-ca a", "requires tls-cert"},
		{"--tls-client-ca a --tls-cert a --tls-key a", "requires auth-file"},
		{"--tls-require-client-cert", "requires tls-client-ca"},
		{"--reflection maybe", "auto, on or off"},
		{"--max-calls 0", "max-calls must be positive"},
		{"--max-call-time -1s", "max-call-time must be positive"},
		{"--http-listen none --pprof", "require http-listen"},
		{"--http-listen none --http-allow-host example.org", "require http-listen"},
		{"--http-allow-host https://example.org", "http-allow-host"},
		{"--http-listen 127.0.0.1:0 --http-allow-origin example.org", "http-allow-origin"},
		{"--otlp-endpoint 127.0.0.1:4317", "otlp-endpoint"},
		{"--max-streams -1", "max-streams must be positive"},
		{"--max-connections 0", "max-connections must be positive"},
		{"--max-connections-per-address -1", "must not be negative"},
		{"--max-idle-time 0s", "max-idle-time must be positive"},
		{"--shutdown-grace -1s", "negative"},
	} {
		_, stderr, code := clitest.Invoke(t, "", append([]string{"serve"}, strings.Fields(tt.args)...)...)
		if code != command.ExitUsage || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: exit code %d, error %q, want %q", tt.args, code, stderr, tt.want)
		}
	}
	if _, stderr, code := clitest.Invoke(t, "", "serve", "--auth-file", "/nonexistent/auth.yaml"); code != command.ExitFailure || !strings.Contains(stderr, "auth-file") {
		t.Errorf("exit code %d, error %q", code, stderr)
	}
}

// An address has a number of connections, over all ports; another is served.
func TestConnectionsOfAnAddress(t *testing.T) {
	address, url, stop := startWeb(t, "--max-connections-per-address", "2")
	const http2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	var open []net.Conn
	for i, c := range []struct{ port, says string }{
		{address, http2}, {strings.TrimPrefix(url, "http://"), "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"}, {address, http2},
	} {
		conn, err := net.Dial("tcp", c.port)
		require.NoError(t, err)
		open = append(open, conn)
		_, _ = conn.Write([]byte(c.says)) // fails if the server has closed it already
		if n, err := conn.Read(make([]byte, 1)); (n == 1) != (i < 2) {
			t.Errorf("connection %d: read %d bytes, %v", i, n, err)
		}
	}
	for _, conn := range open {
		conn.Close()
	}
	if log, _ := stop(); strings.Count(log, "refused connections") != 1 {
		t.Errorf("log: %s", log)
	}
}

// A server with TLS and tokens, called as the documentation says.
func TestTokensOverTLS(t *testing.T) {
	file, admin := clitest.NewToken(t, "--name", "ann", "--role", "admin")
	flags, ca, _ := clitest.ServerFiles(t)
	audit := filepath.Join(t.TempDir(), "audit.jsonl")
	address, stop := clitest.StartServer(t, append(flags, "--listen", "127.0.0.1:0", "--auth-file", file, "--audit-file", audit, "--log-level", "debug")...)
	call := func(token string, args ...string) (stdout, stderr string, code int) {
		t.Setenv("DPARETO_TOKEN", token)
		return clitest.Invoke(t, "", append(args, "--server", address, "--tls-ca", ca)...)
	}
	study := filepath.Join("..", "..", "studies", "svt.yaml")
	if _, stderr, code := call(admin, "study", "create", study); code != command.ExitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if _, stderr, code := call("", "study", "list"); code != command.ExitDenied || !strings.Contains(stderr, "Unauthenticated: a bearer token is required") {
		t.Errorf("without a token: exit code %d, error %q", code, stderr)
	}

	// A token that is created while the server runs, for other studies.
	limited, log, created := clitest.Invoke(t, "", "token", "create", "--auth-file", file, "--name", "bob", "--role", "worker", "--study", "adult-*")
	if created != command.ExitOK {
		t.Fatal(log)
	}
	limited = strings.TrimSpace(limited)
	tokenFile := clitest.WriteFile(t, "token", limited+"\n")
	t.Setenv("DPARETO_TOKEN", "")
	deadline := time.Now().Add(time.Minute)
	for {
		stdout, stderr, code := clitest.Invoke(t, "", "study", "list", "--output", "json", "--server", address, "--tls-ca", ca, "--token-file", tokenFile)
		if code == command.ExitOK {
			if strings.Contains(stdout, "svt") {
				t.Errorf("bob sees %s", stdout)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the new token is not valid: %s", stderr)
		}
	}
	if _, stderr, code := call(limited, "study", "get", "svt"); code != command.ExitDenied || !strings.Contains(stderr, "PermissionDenied") {
		t.Errorf("exit code %d, error %q", code, stderr)
	}
	if _, stderr, code := call(limited, "study", "pause", "svt"); code != command.ExitDenied || !strings.Contains(stderr, "PermissionDenied") {
		t.Errorf("exit code %d, error %q", code, stderr)
	}

	log, ended := stop()
	if ended != command.ExitOK {
		t.Errorf("exit code %d: %s", ended, log)
	}
	records, err := os.ReadFile(audit)
	if err != nil || strings.Count(string(records), "\n") != 2 || !strings.Contains(string(records), `"principal":"bob"`) {
		t.Errorf("audit log %s, %v", records, err)
	}
	for _, token := range []string{admin, limited} {
		if strings.Contains(log+string(records), token) {
			t.Error("a token is in the logs")
		}
	}
}

func TestClientCertificates(t *testing.T) {
	flags, ca, authority := clitest.ServerFiles(t)
	file := clitest.WriteFile(t, "auth.yaml", `credentials:
- {id: agent-7, name: agent, role: viewer, certificate_subject: CN=agent-7}
`)
	address, _ := clitest.StartServer(t, append(flags, "--listen", "127.0.0.1:0", "--auth-file", file, "--tls-client-ca", ca, "--tls-require-client-cert")...)
	for name, want := range map[string]string{"agent-7": "", "agent-8": "Unauthenticated"} {
		cert, key := authority.Client(name, time.Now().Add(time.Hour))
		paths := certstest.Write(t, t.TempDir(), map[string][]byte{"client.crt": cert, "client.key": key})
		_, stderr, code := clitest.Invoke(t, "", "study", "list", "--server", address, "--tls-ca", ca, "--client-cert", paths["client.crt"], "--client-key", paths["client.key"])
		if (code == command.ExitOK) != (want == "") || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, error %q", name, code, stderr)
		}
	}
}

// What a client refuses before it calls.
func TestClientSecurityUsage(t *testing.T) {
	t.Setenv("DPARETO_TOKEN", "dpareto_x")
	for args, want := range map[string]string{
		"--server example.org:1 --plaintext":        "in plain text",
		"--plaintext --tls":                         "exclude each other",
		"--tls-ca /nonexistent/ca":                  "/nonexistent/ca",
		"--client-cert /nonexistent/cert":           "/nonexistent/cert",
		"--token-file /nonexistent/token":           "/nonexistent/token",
		"--token-file " + os.DevNull:                "must be printable",
		"--tls-ca " + os.DevNull + " --output json": "holds no certificate",
	} {
		_, stderr, code := clitest.Invoke(t, "", append([]string{"study", "list"}, strings.Fields(args)...)...)
		if code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, error %q, want %q", args, code, stderr, want)
		}
	}
}

// A token can go to a file of its own, which only its owner can read.
func TestTokenFile(t *testing.T) {
	folder := t.TempDir()
	auth, file := filepath.Join(folder, "auth.yaml"), filepath.Join(folder, "token")
	create := []string{"token", "create", "--name", "ci", "--role", "viewer", "--auth-file", auth, "--file", file}
	if stdout, _ := clitest.Must(t, "", create...); stdout != "" {
		t.Errorf("printed %q", stdout)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" || info.Size() < 32 {
		t.Errorf("%v, %v", info, err)
	}
	clitest.WantFailure(t, "file exists", create...) // and makes no other token
	if list, _ := clitest.Must(t, "", "token", "list", "--auth-file", auth, "-o", "csv"); strings.Count(list, "\n") != 2 {
		t.Error(list)
	}
}

func TestTokenCommands(t *testing.T) {
	file, token := clitest.NewToken(t, "--name", "ann", "--role", "worker", "--study", "a-*", "--study", "b", "--expires", "720h")
	if !strings.HasPrefix(token, "dpareto_") || strings.Contains(token, "\n") {
		t.Errorf("token %q", token)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	a, err := auth.Open(file, auth.Options{})
	require.NoError(t, err)
	p, err := a.Authenticate(t.Context(), token, nil)
	if err != nil || p.On("a-1") != auth.Worker || p.On("b") != auth.Worker || p.On("c") != auth.None || p.Role != auth.None {
		t.Errorf("%+v, %v", p, err)
	}
	if _, _, code := clitest.Invoke(t, "", "token", "create", "--name", "bob", "--role", "viewer", "--auth-file", file); code != command.ExitOK {
		t.Fatal(code)
	}
	clitest.Must(t, "", "token", "create", "--name", "prometheus", "--metrics", "--auth-file", file)
	clitest.Must(t, "", "token", "create", "--name", "dan", "--metrics", "--role", "worker", "--study", "c", "--auth-file", file)
	stdout, _, code := clitest.Invoke(t, "", "token", "list", "--auth-file", file)
	if code != command.ExitOK || !strings.Contains(stdout, "worker of c, metrics") || !strings.Contains(stdout, "worker of a-*, worker of b") || !strings.Contains(stdout, "never") || strings.Contains(stdout, token) {
		t.Errorf("exit code %d, output %q", code, stdout)
	}
	stdout, _, code = clitest.Invoke(t, "", "token", "list", "--auth-file", file, "--output", "json")
	var listed []auth.Credential
	if err := json.Unmarshal([]byte(stdout), &listed); err != nil || len(listed) != 4 || listed[0].TokenHash != "" || code != command.ExitOK {
		t.Errorf("%s: %v", stdout, err)
	}
	if _, stderr, code := clitest.Invoke(t, "", "token", "revoke", "ann", "--auth-file", file); code != command.ExitOK || !strings.Contains(stderr, "credentials=1") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	if left, err := auth.Read(file); err != nil || len(left) != 3 || left[0].Name != "bob" {
		t.Errorf("%v, %v", left, err)
	}
	for _, tt := range []struct {
		args string
		want string
		code int
	}{
		{"revoke ann", "no credential has", command.ExitFailure},
		{"create --name x --role king", `must be one of viewer, worker, admin, is "king"`, command.ExitUsage},
		{"create --name x", "role: must be one of", command.ExitUsage},
		{"create --name x --metrics --role king", "role: must be one of", command.ExitUsage},
		{"create --name x --metrics --study a", "role: must be one of", command.ExitUsage},
		{"create --role viewer", "name must have", command.ExitUsage},
		{"create --name x --role viewer --study A/b", "studies", command.ExitUsage},
		{"create --name x --role viewer --expires -1h", "positive", command.ExitUsage},
	} {
		_, stderr, code := clitest.Invoke(t, "", append(append([]string{"token"}, strings.Fields(tt.args)...), "--auth-file", file)...)
		if code != tt.code || !strings.Contains(stderr, tt.want) {
			t.Errorf("token %s: exit code %d, error %q", tt.args, code, stderr)
		}
	}
	if _, stderr, code := clitest.Invoke(t, "", "token", "list"); code != command.ExitUsage || !strings.Contains(stderr, "--auth-file") {
		t.Errorf("exit code %d, error %q", code, stderr)
	}
}

// settings runs serve --check-config and returns what it prints.
func settings(t *testing.T, args ...string) map[string]any {
	t.Helper()
	stdout, stderr, code := clitest.Invoke(t, "", append([]string{"serve", "--check-config"}, args...)...)
	if code != command.ExitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var all map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(stdout), &all))
	return all
}

// Settings are texts as they are written, with or without a byte order mark.
func TestConfigurationIsKept(t *testing.T) {
	for _, text := range []string{"3.10", "007", "1e3", "2026-11-28", "0x10"} {
		if got := settings(t, "--config", clitest.WriteFile(t, "server.yaml", "\ufeffstore: "+text+"\n")); got["store"] != text {
			t.Errorf("store: %s is %v", text, got["store"])
		}
	}
}

// A setting comes from the flag, else from the environment, else from the file.
func TestConfigurationPrecedence(t *testing.T) {
	path := clitest.WriteFile(t, "server.yaml", "listen: 127.0.0.1:1\nstore: file.db\nmax-calls: 1000000\nshutdown-grace: 7s\nlog-level: warn\n")
	t.Setenv("DPARETO_LISTEN", "127.0.0.1:2")
	t.Setenv("DPARETO_STORE", "env.db")
	got := settings(t, "--config", path, "--listen", "127.0.0.1:3")
	for name, want := range map[string]string{
		"listen": "127.0.0.1:3", "store": "env.db", "max-calls": "1000000", "shutdown-grace": "7s", "log-level": "WARN", "max-streams": "1000",
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %s", name, got[name], want)
		}
	}
	// The file can be named by the environment, and what is printed is such a file.
	t.Setenv("DPARETO_CONFIG", path)
	printed, _, code := clitest.Invoke(t, "", "serve", "--check-config")
	if code != command.ExitOK {
		t.Fatal(code)
	}
	t.Setenv("DPARETO_CONFIG", clitest.WriteFile(t, "again.yaml", printed))
	t.Setenv("DPARETO_LISTEN", "")
	t.Setenv("DPARETO_STORE", "")
	if again, _, _ := clitest.Invoke(t, "", "serve", "--check-config"); again != printed {
		t.Errorf("printed %s, then %s", printed, again)
	}
}

func TestConfigurationErrors(t *testing.T) {
	for content, want := range map[string]string{
		"lisen: x":                    `unknown key "lisen"`,
		"config: x":                   `unknown key "config"`,
		"supervised: true":            `unknown key "supervised"`,
		"create: true":                "use --create",
		"max-calls: many":             `max-calls: must be a whole number, is "many"`,
		"max-calls: [1, 2]":           "max-calls: must be one value",
		"max-calls: {a: 1}":           "max-calls: must be a text",
		"listen: null":                "listen: must be a text",
		"listen: a\nlisten: b":        "listen",
		"- listen":                    "must be a mapping of flags to values",
		"listen: [":                   "yaml",
		"shutdown-grace: 7":           `shutdown-grace: must be a duration, such as 90s or 1h30m, is "7"`,
		"listen: 0.0.0.0:1":           "--insecure-listen",
		"a: 1\nb: 2":                  `unknown key "b"`,
		"tls-cert: /nonexistent/cert": "tls-cert and tls-key",
		"max-calls: 1\nlisten: {}":    "line 2: listen: must be a text",
		"store: a\n\nstore: b":        "line 3: store: is given twice, first in line 1",
		"store: caf\xe9":              "line 1: is not UTF-8",
	} {
		_, stderr, code := clitest.Invoke(t, "", "serve", "--check-config", "--config", clitest.WriteFile(t, "server.yaml", content))
		if code == command.ExitOK || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d, error %q, want %q", content, code, stderr, want)
		}
	}
}

// The log has the level that the file sets.
func TestConfiguredLogLevel(t *testing.T) {
	_, stop := clitest.StartServer(t, "--listen", "127.0.0.1:0", "--config", clitest.WriteFile(t, "server.yaml", "log-level: error"))
	if log, code := stop(); code != command.ExitOK || log != "" {
		t.Errorf("exit code %d, log %q", code, log)
	}
}

// The help of serve shows every flag under a topic, with its environment variable.
func TestServeHelp(t *testing.T) {
	stdout, _, _ := clitest.Invoke(t, "", "serve", "--help")
	for _, topic := range []string{"Storage:", "Network:", "Security:", "Limits:", "Configuration:", "General:"} {
		if !strings.Contains(stdout, "\n"+topic+"\n") {
			t.Errorf("the help has no topic %s", topic)
		}
	}
	help := strings.Join(strings.Fields(stdout), " ") // lines are wrapped
	flags(t).VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || flag.Name == "help" {
			return
		}
		variable := "(env DPARETO_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_")) + ")"
		if !strings.Contains(help, " --"+flag.Name+" ") || !strings.Contains(help, variable) {
			t.Errorf("the help lacks --%s with %s", flag.Name, variable)
		}
	})
}

// A server that stops first says so, and goes on answering calls until the delay has passed.
func TestShutdownDelay(t *testing.T) {
	delays, passed := make(chan time.Duration), make(chan struct{})
	t.Cleanup(serve.SetPause(func(d time.Duration) {
		delays <- d
		<-passed
	}))
	address, stop := clitest.StartServer(t, "--listen", "127.0.0.1:0", "--shutdown-delay", "3s")
	stopped := make(chan int, 1)
	go func() {
		_, code := stop()
		stopped <- code
	}()
	if d := <-delays; d != 3*time.Second {
		t.Errorf("the delay is %v", d)
	}
	if stdout, stderr, _ := clitest.Invoke(t, "", "health", "--server", address); !strings.Contains(stdout+stderr, "NOT_SERVING") {
		t.Errorf("within the delay health was %q, error %q", stdout, stderr)
	}
	if _, stderr, code := clitest.Invoke(t, "", "study", "list", "--server", address); code != command.ExitOK {
		t.Errorf("a call within the delay: exit code %d, error %q", code, stderr)
	}
	if len(stopped) > 0 {
		t.Error("the server has stopped within the delay")
	}
	close(passed)
	if code := <-stopped; code != command.ExitOK {
		t.Errorf("exit code %d", code)
	}
}

// Health is told without a token.
func TestHealth(t *testing.T) {
	file, _ := clitest.NewToken(t, "--name", "ann", "--role", "admin")
	flags, ca, _ := clitest.ServerFiles(t)
	address, stop := clitest.StartServer(t, append(flags, "--listen", "127.0.0.1:0", "--auth-file", file)...)
	if stdout, stderr, code := clitest.Invoke(t, "", "health", "--server", address, "--tls-ca", ca); code != command.ExitOK || stdout != "SERVING\n" {
		t.Errorf("exit code %d, output %q, error %q", code, stdout, stderr)
	}
	stop()
	if _, stderr, code := clitest.Invoke(t, "", "health", "--server", address, "--tls-ca", ca); code != command.ExitUnavailable || !strings.Contains(stderr, "no server at "+address) {
		t.Errorf("exit code %d, error %q", code, stderr)
	}
}

// flags returns all flags of serve.
func flags(t *testing.T) *pflag.FlagSet {
	t.Helper()
	cmd, _, err := command.Root(new(command.Env), cli.New).Find([]string{"serve"})
	require.NoError(t, err)
	if err := cmd.ParseFlags(nil); err != nil && !errors.Is(err, pflag.ErrHelp) { // adds the flags of the root
		t.Fatal(err)
	}
	return cmd.Flags()
}

package serve_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/serve"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store/postgres/pgtest"
)

// Servers on a database keep what each has acknowledged, and go on when their sessions end. If the store was
// replaced meanwhile they end with a failure.
func TestDatabase(t *testing.T) {
	url := pgtest.URL(t)
	if served, log := begins(t, "--store", url); served || !strings.Contains(log, "--create") {
		t.Errorf("a database without a store: served %t: %s", served, log)
	}
	address, stop := clitest.StartServer(t, "--listen", "127.0.0.1:0", "--store", url)
	clitest.Must(t, clitest.SmallStudy, "study", "create", "-", "--server", address)
	other, stopOther := clitest.StartServer(t, "--listen", "127.0.0.1:0", "--store", url)
	if studies := clitest.Succeed(t, "study list --server "+other); !strings.Contains(studies, "small") {
		t.Errorf("studies of a second server: %s", studies)
	}
	if log, code := stopOther(); code != command.ExitOK || !strings.Contains(log, "new_store=false") {
		t.Errorf("the second server ended with %d: %s", code, log)
	}
	if log, code := stop(); code != command.ExitOK || !strings.Contains(log, "new_store=true") {
		t.Errorf("the server ended with %d: %s", code, log)
	}

	p := clitest.Start(t, "serve", "--store", url, "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--shutdown-grace", "100ms")
	read := func(prefix string) string {
		line, err := p.Stdout.ReadString('\n')
		after, found := strings.CutPrefix(strings.TrimSpace(line), prefix)
		if err != nil || !found {
			t.Fatalf("the server printed %q, %v", line, err)
		}
		return after
	}
	address = read(serve.Listening)
	page := read(serve.PageOn)
	if studies := clitest.Succeed(t, "study list --server "+address); !strings.Contains(studies, "small") {
		t.Errorf("studies: %s", studies)
	}
	response, err := http.Get(strings.TrimSuffix(page, "/") + "/metrics")
	require.NoError(t, err)
	metrics, err := io.ReadAll(response.Body)
	response.Body.Close()
	require.NoError(t, err)
	for _, want := range []string{"\ndpareto_store_commits_total ", "\ndpareto_store_conflicts_total 0", "\ndpareto_store_connections ", "\ndpareto_store_size_bytes "} {
		if !strings.Contains(string(metrics), want) {
			t.Errorf("no metric%s", want)
		}
	}
	const endSessions = "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'"
	pgtest.Exec(t, url, endSessions)
	clitest.Succeed(t, "study pause small --server "+address)
	pgtest.Exec(t, url, "UPDATE dpareto_store SET epoch = epoch + 1")
	pgtest.Exec(t, url, endSessions)
	// It ends by itself.
	if log, code := p.Wait(); code != command.ExitFailure || !strings.Contains(log, "the store has failed") || !strings.Contains(log, "the store was replaced") {
		t.Errorf("the server ended with %d: %s", code, log)
	}
}

// Wrong settings of a database are found before it is used, and nothing prints a password.
func TestDatabaseSettings(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(secret, []byte("secret\n"), 0o644))
	for args, want := range map[string]string{
		"--store postgres://u:secret@db/x":                                "must not hold a password",
		"--store postgres://u@db/x?sslmode=never":                         "sslmode",
		"--store postgres://u@db/x --store-password-file " + secret:       "chmod 600",
		"--store postgres://u@db/x --store-password-file " + secret + "x": "no such file",
	} {
		if _, stderr := clitest.Fail(t, command.ExitUsage, "serve --check-config "+args); !strings.Contains(stderr, want) || strings.Contains(stderr, "secret@") {
			t.Errorf("%s: %s", args, stderr)
		}
	}
	if printed := clitest.Succeed(t, "serve --check-config --store postgres://u@db/x"); !strings.Contains(printed, "store: postgres://u@db/x") {
		t.Errorf("the settings are %s", printed)
	}
}

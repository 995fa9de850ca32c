package serve

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

// Connections leave files for the store and the logs.
func TestAffordableConnections(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	for _, test := range []struct{ connections, files, want int }{
		{10_000, 0, 10_000}, {10_000, 65_536, 10_000}, {10_000, 1024, 896}, {10_000, 256, 192}, {100, 1024, 100}, {10, 64, 1},
	} {
		f := settings{connections: test.connections}
		if got := f.affordable(logger, test.files); got != test.want {
			t.Errorf("%d connections with %d files: %d, want %d", test.connections, test.files, got, test.want)
		}
	}
	if n := openFiles(); n < 0 {
		t.Errorf("%d files may be open", n)
	}
}

// Calls have a processor beside a computation, also where there is one; the environment has the last word.
func TestSetProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	slots := pool.Slots()
	for _, test := range []struct {
		environment  string
		before, want int
	}{{"", 1, 2}, {"", 2, 2}, {"", 5, 5}, {"1", 1, 1}} {
		t.Setenv("GOMAXPROCS", test.environment)
		runtime.GOMAXPROCS(test.before)
		setProcessors()
		if got := runtime.GOMAXPROCS(0); got != test.want {
			t.Errorf("GOMAXPROCS=%s, %d processors: Go uses %d, want %d", test.environment, test.before, got, test.want)
		}
		if got := pool.Slots(); got != slots {
			t.Errorf("%d slots, want %d as before", got, slots)
		}
	}
}

// A proxy on this machine does not make those on others local.
func TestFromThisMachine(t *testing.T) {
	for _, header := range []string{"", "Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP"} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.RemoteAddr = "127.0.0.1:1234"
		if header != "" {
			r.Header.Set(header, "192.0.2.1")
		}
		if err := fromThisMachine(r); (err == nil) != (header == "") {
			t.Errorf("with header %q: %v", header, err)
		}
	}
}

// Metrics and profiles are for this machine or, where callers are known, for those that
// may read everything, and administrators.
func TestHTTPAuthentication(t *testing.T) {
	file := filepath.Join(t.TempDir(), "auth.yaml")
	add := func(name string, role auth.Role, studies string) string {
		t.Helper()
		c := auth.Credential{Name: name, Role: role, Metrics: role == auth.None}
		if studies != "" {
			c = auth.Credential{Name: name, Grants: []auth.Grant{{Studies: studies, Role: role}}}
		}
		made, token, err := auth.NewToken(c)
		require.NoError(t, err)
		require.NoError(t, auth.Change(file, func(all []*auth.Credential) ([]*auth.Credential, error) { return append(all, made), nil }))
		return token
	}
	admin, viewer, limited := add("ann", auth.Admin, ""), add("bob", auth.Viewer, ""), add("eve", auth.Worker, "a")
	worker, scraper := add("wim", auth.Worker, ""), add("prometheus", auth.None, "")
	callers, err := auth.Open(file, auth.Options{})
	require.NoError(t, err)
	db, err := bolt.Open(filepath.Join(t.TempDir(), "store.db"))
	require.NoError(t, err)
	records, err := store.New(t.Context(), db)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	const ok, unknown, denied = http.StatusOK, http.StatusUnauthorized, http.StatusForbidden
	for _, test := range []struct {
		name, remote, token string
		auth                *auth.Authenticator
		metrics, profiles   int
	}{
		{"this machine", "127.0.0.1:1234", "", nil, ok, ok},
		{"this machine", "[::1]:1234", "", nil, ok, ok},
		{"another one", "192.0.2.1:1234", "", nil, denied, denied},
		{"an administrator", "192.0.2.1:1234", admin, callers, ok, ok},
		{"a token for metrics", "192.0.2.1:1234", scraper, callers, ok, denied},
		{"a viewer", "192.0.2.1:1234", viewer, callers, denied, denied},
		{"a worker", "192.0.2.1:1234", worker, callers, denied, denied},
		{"a worker on one study", "192.0.2.1:1234", limited, callers, denied, denied},
		{"no token, this machine", "127.0.0.1:1234", "", callers, unknown, unknown},
		{"a wrong token", "127.0.0.1:1234", viewer + "x", callers, unknown, unknown},
	} {
		o := httpOptions{server: server.New(server.Options{Store: records}), metrics: metrics.New("test"), auth: test.auth}
		mux := httpMux(http.NotFoundHandler(), http.NotFoundHandler(), httpFlags{pprof: true}, o)
		for path, want := range map[string]int{
			"/metrics": test.metrics, "/debug/pprof/": test.profiles, "/debug/pprof/cmdline": test.profiles, "/healthz": ok, "/readyz": ok,
		} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.RemoteAddr = test.remote
			if test.token != "" {
				r.Header.Set("Authorization", "Bearer "+test.token)
			}
			answer := httptest.NewRecorder()
			mux.ServeHTTP(answer, r)
			if answer.Code != want {
				t.Errorf("%s: %s: HTTP status %d, want %d", test.name, path, answer.Code, want)
			}
		}
		o.server.Drain()
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if answer.Code != http.StatusServiceUnavailable || answer.Body.String() != "the server is shutting down\n" {
			t.Errorf("/readyz: HTTP status %d, %q", answer.Code, answer.Body)
		}
		o.server.Close()
		o.server.Close()
	}
}

// pipes is a listener of connections within the process.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.close()
	return nil
}

func (p *pipes) Addr() net.Addr { return new(net.UnixAddr) }

// A server does not wait for connections that a browser has opened ahead of requests. Without care it takes five
// seconds of the bubble's clock.
func TestCloseUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		listener.close = sync.OnceFunc(func() { close(listener.closed) })
		web := new(http.Server)
		closeUnread(web)
		go web.Serve(listener)
		client, server := net.Pipe()
		listener.conns <- server
		synctest.Wait()
		began := time.Now()
		if err := web.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took >= time.Second {
			t.Errorf("the server stopped after %v", took)
		}
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the connection: %v", err)
		}
	})
}

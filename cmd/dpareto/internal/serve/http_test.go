package serve_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	tracev1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/serve"
	"github.com/dpareto/dpareto/cmd/dpareto/studies"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
)

// startWeb runs a server with an HTTP port until stop is called, which returns the log.
func startWeb(t *testing.T, args ...string) (address, url string, stop func() (log string, code int)) {
	t.Helper()
	p := clitest.Start(t, append([]string{
		"serve", "--store", filepath.Join(t.TempDir(), "test.db"), "--create", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0",
	}, args...)...)
	stop = sync.OnceValues(func() (string, int) {
		http.DefaultClient.CloseIdleConnections()
		return p.Stop()
	})
	t.Cleanup(func() { stop() })
	lines := bufio.NewScanner(p.Stdout)
	for _, line := range []*string{&address, &url} {
		if !lines.Scan() {
			text, code := stop()
			t.Fatalf("the server ended with %d: %s", code, text)
		}
		*line = lines.Text()
	}
	return strings.TrimPrefix(address, serve.Listening), strings.TrimSuffix(strings.TrimPrefix(url, serve.PageOn), "/"), stop
}

// get asks for a URL under the name of a host, "" for the host of the URL.
func get(t *testing.T, url, host string) (code int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	r.Host = host
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

func TestHTTPPort(t *testing.T) {
	address, url, stop := startWeb(t, "--log-format", "json", "--log-level", "debug")
	if _, stderr, code := clitest.Invoke(t, "", "study", "list", "--server", address); code != command.ExitOK {
		t.Fatal(stderr)
	}
	for _, test := range []struct {
		path, host string
		code       int
		want       string
	}{
		{"/healthz", "", 200, "alive\n"},
		{"/readyz", "", 200, "ready\n"},
		{"/v1/studies", "", 200, "{}"},
		{"/v1/studies", "localhost", 200, "{}"},
		{"/v1/studies", "attacker.example", 421, `"attacker.example"; http-allow-host`},
		{"/metrics", "attacker.example", 421, `"attacker.example"; http-allow-host`},
		{"/metrics", "", 200, `dpareto_requests_total{code="OK",method="ListStudies",service="StudyService"} 3`},
		{"/openapi.json", "", 200, `"/v1/studies/{study}/trials:suggest"`},
		{"/debug/pprof/", "", 404, ""},
		{"/sign-in", "", 200, "<html"},
		{"/", "attacker.example", 421, "http-allow-host"},
		{"/static/nothing", "", 404, ""},
	} {
		code, body := get(t, url+test.path, test.host)
		if code != test.code || !strings.Contains(body, test.want) {
			t.Errorf("%s as %q: HTTP status %d\n%s", test.path, test.host, code, body)
		}
	}
	log, code := stop()
	if code != command.ExitOK {
		t.Errorf("exit code %d", code)
	}
	calls := 0
	for line := range strings.Lines(log) {
		var record struct {
			Message string `json:"msg"`
			ID      string `json:"request_id"`
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if record.Message == "call" && record.ID != "" {
			calls++
		}
	}
	if calls != 3 || !strings.Contains(log, `"msg":"stopped"`) {
		t.Errorf("%d calls in the log:\n%s", calls, log)
	}
}

func TestProfiles(t *testing.T) {
	_, url, _ := startWeb(t, "--pprof")
	if code, body := get(t, url+"/debug/pprof/goroutine?debug=1", ""); code != http.StatusOK || !strings.Contains(body, "goroutine profile") {
		t.Errorf("HTTP status %d\n%s", code, body)
	}
}

// JSON over HTTP and TLS knows callers by token and by certificate, as gRPC does.
func TestHTTPOverTLS(t *testing.T) {
	flags, ca, authority := clitest.ServerFiles(t)
	file := clitest.WriteFile(t, "auth.yaml", "credentials:\n- {id: agent-7, name: agent, role: viewer, certificate_subject: CN=agent-7}\n")
	token, stderr, code := clitest.Invoke(t, "", "token", "create", "--auth-file", file, "--name", "ann", "--role", "admin")
	if code != command.ExitOK {
		t.Fatal(stderr)
	}
	scraper, _ := clitest.Must(t, "", "token", "create", "--auth-file", file, "--name", "prometheus", "--metrics")
	_, url, _ := startWeb(t, append(flags, "--auth-file", file, "--tls-client-ca", ca)...)
	if !strings.HasPrefix(url, "https://") {
		t.Fatalf("URL %q", url)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM)
	certificate := func(name string) []tls.Certificate {
		pair, err := tls.X509KeyPair(authority.Client(name, time.Now().Add(time.Hour)))
		require.NoError(t, err)
		return []tls.Certificate{pair}
	}
	for _, test := range []struct {
		name         string
		certificates []tls.Certificate
		token        string
		method, path string
		want         int
	}{
		{"a token", nil, token, http.MethodGet, "/v1/studies", http.StatusOK},
		{"a certificate", certificate("agent-7"), "", http.MethodGet, "/v1/studies", http.StatusOK},
		{"a viewer's certificate", certificate("agent-7"), "", http.MethodDelete, "/v1/studies/a", http.StatusForbidden},
		{"another certificate", certificate("agent-8"), "", http.MethodGet, "/v1/studies", http.StatusUnauthorized},
		{"nothing", nil, "", http.MethodGet, "/v1/studies", http.StatusUnauthorized},
		{"a certificate", certificate("agent-7"), "", http.MethodGet, "/studies", http.StatusOK},
		{"nothing", nil, "", http.MethodGet, "/studies", http.StatusSeeOther},
		{"a viewer's certificate", certificate("agent-7"), "", http.MethodGet, "/metrics", http.StatusForbidden},
		{"an admin's token", nil, token, http.MethodGet, "/metrics", http.StatusOK},
		{"a token for metrics", nil, scraper, http.MethodGet, "/metrics", http.StatusOK},
		{"a token for metrics", nil, scraper, http.MethodGet, "/v1/studies", http.StatusForbidden},
		{"nothing", nil, "", http.MethodGet, "/metrics", http.StatusUnauthorized},
		{"nothing", nil, "", http.MethodGet, "/healthz", http.StatusOK},
	} {
		client := &http.Client{
			Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: test.certificates}, ForceAttemptHTTP2: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		r, err := http.NewRequestWithContext(t.Context(), test.method, url+test.path, nil)
		require.NoError(t, err)
		if test.token != "" {
			r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(test.token))
		}
		answer, err := client.Do(r)
		require.NoError(t, err)
		answer.Body.Close()
		client.CloseIdleConnections()
		if answer.StatusCode != test.want {
			t.Errorf("%s %s with %s: HTTP status %d, want %d", test.method, test.path, test.name, answer.StatusCode, test.want)
		}
	}
}

func TestHTTPUsage(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"serve --http-listen 0.0.0.0:8081", "--insecure-listen"},
		{"serve --http-listen nowhere", "missing port in address"},
		{"serve --log-format xml", `must be text or json, is "xml"`},
	} {
		_, stderr, code := clitest.Invoke(t, "", strings.Fields(test.args)...)
		if code != command.ExitUsage || !strings.Contains(stderr, test.want) {
			t.Errorf("dpareto %s: exit code %d, error %q", test.args, code, stderr)
		}
	}
	store := filepath.Join(t.TempDir(), "test.db")
	_, stderr, code := clitest.Invoke(t, "", "serve", "--store", store, "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--http-allow-origin", "example.org")
	if code != command.ExitUsage || !strings.Contains(stderr, "http-allow-origin") {
		t.Errorf("exit code %d, error %q", code, stderr)
	}
}

// collector is an OpenTelemetry collector that keeps the names of spans, by service.
type collector struct {
	tracev1.UnimplementedTraceServiceServer

	mu    sync.Mutex
	spans map[string][]string
}

// Export implements TraceService.
func (c *collector) Export(_ context.Context, req *tracev1.ExportTraceServiceRequest) (*tracev1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range req.GetResourceSpans() {
		service := ""
		for _, attribute := range resource.GetResource().GetAttributes() {
			if attribute.GetKey() == "service.name" {
				service = attribute.GetValue().GetStringValue()
			}
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				c.spans[service] = append(c.spans[service], span.GetName())
			}
		}
	}
	return &tracev1.ExportTraceServiceResponse{}, nil
}

// Spans go to a collector, named by the flag or by OpenTelemetry's own variables.
func TestTracesAreDelivered(t *testing.T) {
	c := &collector{spans: make(map[string][]string)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := grpc.NewServer()
	tracev1.RegisterTraceServiceServer(g, c)
	go g.Serve(listener)
	defer g.Stop()
	endpoint := "http://" + listener.Addr().String()
	for _, test := range []struct {
		name, service string
		environment   map[string]string
		args          []string
		want          bool
	}{
		{"flag", "dpareto", nil, []string{"--otlp-endpoint", endpoint}, true},
		{"environment", "mine", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_SERVICE_NAME": "mine"}, nil, true},
		{"switched off", "off", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_SERVICE_NAME": "off", "OTEL_SDK_DISABLED": "true"}, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			for name, value := range test.environment {
				t.Setenv(name, value)
			}
			address, _, stop := startWeb(t, test.args...)
			if _, stderr, code := clitest.Invoke(t, "", "study", "list", "--server", address); code != command.ExitOK {
				t.Fatal(stderr)
			}
			log, code := stop()
			if code != command.ExitOK {
				t.Errorf("exit code %d\n%s", code, log)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if got := strings.Contains(strings.Join(c.spans[test.service], " "), "dpareto.v1.StudyService/ListStudies"); got != test.want {
				t.Errorf("spans: %v\n%s", c.spans, log)
			}
		})
	}
}

// Callers without a token are refused before their words are read, whatever the method.
func TestHTTPReadsNothingOfStrangers(t *testing.T) {
	file, _ := clitest.NewToken(t, "--name", "ann", "--role", "admin")
	_, url, _ := startWeb(t, "--auth-file", file)
	for method, paths := range map[string][]string{
		http.MethodPost:  {"/v1/studies", "/v1/studies/a/trials:suggest", "/v1/studies:import"},
		http.MethodPatch: {"/v1/studies/a", "/v1/studies/a/trials/1"},
	} {
		for _, path := range paths {
			r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader("not JSON"))
			require.NoError(t, err)
			resp, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			resp.Body.Close()
			if resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s %s: HTTP status %d, want 401", method, path, resp.StatusCode)
			}
		}
	}
}

// As many streams pass through the HTTP port as the limits say, and do not keep others out.
func TestHTTPStreams(t *testing.T) {
	const streams = 1001 // more than gRPC lets through one connection by itself
	address, url, _ := startWeb(t, "--max-streams", "2000", "--max-streams-per-principal", "2000", "--max-connections-per-address", "0", "--log-level", "error")
	content, err := studies.File("svt")
	require.NoError(t, err)
	if _, stderr, code := clitest.Invoke(t, "", "study", "create", clitest.WriteFile(t, "svt.yaml", string(content)), "--server", address); code != command.ExitOK {
		t.Fatal(stderr)
	}
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ask := func(path string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
		require.NoError(t, err)
		resp, err := client.Do(r)
		require.NoError(t, err)
		return resp
	}
	for range streams {
		defer ask("/v1/studies/svt:watch").Body.Close()
	}
	resp := ask("/v1/studies/svt")
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("HTTP status %d", resp.StatusCode)
	}
	cancel() // all of them
}

// A request whose body never comes does not keep its connection, with or without credentials.
func TestBodiesMayNotStall(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the server's patience to end")
	}
	_, url, _ := startWeb(t)
	for _, request := range []string{
		"GET /healthz", "GET /openapi.json", "GET /metrics",
	} {
		t.Run(request, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			require.NoError(t, err)
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(time.Minute))
			io.WriteString(conn, request+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n")
			if answer, err := io.ReadAll(conn); err != nil {
				t.Errorf("after %q: %v", answer, err)
			}
		})
	}
}

// ask sends a request with headers, given as pairs, and returns the HTTP status.
func ask(t *testing.T, method, url, body string, headers ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	resp.Body.Close()
	return resp.StatusCode
}

// A running server is safe from pages of other origins, those whose names lead to it (DNS rebinding)
// and those that send it forms, on all its URLs.
func TestAttacksFromBrowsers(t *testing.T) {
	_, url, _ := startWeb(t, "--http-allow-origin", "https://friend.example", "--http-allow-host", "lab.example")
	const form = "application/x-www-form-urlencoded"
	for _, path := range []string{"/", "/v1/studies", "/studies/svt/pause", "/openapi.json", "/healthz"} {
		for host, refused := range map[string]bool{"attacker.example": true, "192.0.2.1": true, "lab.example": false, "localhost:8322": false} {
			if code := ask(t, http.MethodGet, url+path, "", "Host", host); (code == http.StatusMisdirectedRequest) != refused {
				t.Errorf("GET %s as %s: HTTP status %d", path, host, code)
			}
		}
		// A rebound page is of the same origin.
		if code := ask(t, http.MethodPost, url+path, "{}", "Host", "attacker.example", "Origin", "http://attacker.example", "Sec-Fetch-Site", "same-origin"); code != http.StatusMisdirectedRequest {
			t.Errorf("POST %s of a rebound page: HTTP status %d", path, code)
		}
		for _, origin := range []string{"https://attacker.example", "null"} {
			if code := ask(t, http.MethodPost, url+path, "a=b", "Content-Type", form, "Origin", origin, "Sec-Fetch-Site", "cross-site"); code != http.StatusForbidden {
				t.Errorf("POST %s from %s: HTTP status %d", path, origin, code)
			}
		}
		code := ask(t, http.MethodPost, url+path, "{}", "Origin", "https://friend.example", "Sec-Fetch-Site", "cross-site")
		if isAPI := strings.HasPrefix(path, "/v1/"); path != "/openapi.json" && (code == http.StatusForbidden) == isAPI {
			t.Errorf("POST %s from a friend: HTTP status %d", path, code)
		}
	}
}

// An HTTP address that was set must be free, wherever it was set, and "none" opens no port.
func TestHTTPListen(t *testing.T) {
	serveArgs := func(args ...string) []string {
		return append([]string{"serve", "--store", filepath.Join(t.TempDir(), "test.db"), "--create"}, args...)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	check := func(args ...string) {
		t.Helper()
		if _, stderr, code := clitest.Invoke(t, "", serveArgs(args...)...); code == command.ExitOK || !strings.Contains(stderr, "http-listen: ") {
			t.Errorf("%v: exit code %d: %s", args, code, stderr)
		}
	}
	check("--listen", "127.0.0.1:0", "--http-listen", taken.Addr().String())
	check("--listen", "127.0.0.1:0", "--config", clitest.WriteFile(t, "server.yaml", "http-listen: "+taken.Addr().String()))
	t.Setenv("DPARETO_HTTP_LISTEN", taken.Addr().String())
	check("--listen", "127.0.0.1:0")

	t.Setenv("DPARETO_HTTP_LISTEN", "none")
	p := clitest.Start(t, serveArgs("--listen", "127.0.0.1:0")...)
	require.NoError(t, require.ErrOf(p.Stdout.ReadString('\n')))
	log, code := p.Stop()
	if rest, err := io.ReadAll(p.Stdout); code != command.ExitOK || err != nil || len(rest) > 0 || strings.Contains(log, "serving HTTP") {
		t.Errorf("exit code %d, printed %q, %v\n%s", code, rest, err, log)
	}
}

// A server on all addresses prints a URL that leads somewhere, and keeps rebound names out.
func TestPageOnAllAddresses(t *testing.T) {
	_, url, _ := startWeb(t, "--insecure-listen", "--http-listen", "0.0.0.0:0", "--log-level", "error")
	port, ok := strings.CutPrefix(url, "http://localhost:")
	if !ok {
		t.Fatalf("URL %q", url)
	}
	url = "http://127.0.0.1:" + port
	for host, want := range map[string]int{"": 200, "192.0.2.1:" + port: 200, "attacker.example:" + port: 421} {
		if code, body := get(t, url+"/healthz", host); code != want {
			t.Errorf("as %q: HTTP status %d, want %d: %s", host, code, want, body)
		}
	}
}

// An open page does not hold up a server that stops: neither its streams nor the connections that a
// browser opens ahead.
func TestStopWithAnOpenPage(t *testing.T) {
	address, url, stop := startWeb(t, "--shutdown-grace", "1m", "--log-level", "error")
	clitest.Must(t, clitest.SmallStudy, "study", "create", "-", "--server", address)
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	follow := func(path, want string) *bufio.Reader {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		require.NoError(t, err)
		resp, err := client.Do(r)
		require.NoError(t, err)
		t.Cleanup(func() { resp.Body.Close() })
		events := bufio.NewReader(resp.Body)
		if line, err := events.ReadString('\n'); err != nil || !strings.Contains(line, want) {
			t.Fatalf("%s: read %q, %v", path, line, err)
		}
		return events
	}
	events, page := follow("/v1/studies/small:watch", "small"), follow("/studies/small/live?part=state", "event: state")
	ahead, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	defer ahead.Close()
	require.NoError(t, require.ErrOf(ahead.Write(nil)))
	if code, _ := get(t, url+"/healthz", ""); code != http.StatusOK { // the server has accepted ahead, which came before
		t.Fatalf("HTTP status %d", code)
	}
	if _, code := stop(); code != command.ExitOK {
		t.Errorf("exit code %d", code)
	}
	if rest, err := io.ReadAll(events); err != nil || !strings.Contains(string(rest), "error") {
		t.Errorf("the stream ended with %q, %v", rest, err)
	}
	if _, err := io.ReadAll(page); err != nil {
		t.Errorf("the page's stream ended with %v", err)
	}
}

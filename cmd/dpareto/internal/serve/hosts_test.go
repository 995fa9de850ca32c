package serve

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/metrics"
)

// Without a setting every server has an HTTP port: the default one, or a free one.
func TestDefaultPort(t *testing.T) {
	taken, err := net.Listen("tcp", freeLoopback)
	require.NoError(t, err)
	defer taken.Close()
	// Other servers may have the real default, so that another address stands for it.
	for _, test := range []struct {
		name, grpc string
		flags      httpFlags
		want       bool
	}{
		{"taken", "127.0.0.1:8321", httpFlags{listen: taken.Addr().String(), isDefault: true}, true},
		{"free", "127.0.0.1:8321", httpFlags{listen: freeLoopback, isDefault: true}, true},
		{"set and taken", "127.0.0.1:8321", httpFlags{listen: taken.Addr().String()}, false},
		{"set and taken, beside a free port", "127.0.0.1:0", httpFlags{listen: taken.Addr().String()}, false},
		{"beside a free port", "127.0.0.1:0", httpFlags{listen: taken.Addr().String(), isDefault: true}, true},
	} {
		listener, err := test.flags.open(t.Context(), test.grpc)
		if (err == nil) != test.want {
			t.Errorf("%s: %v", test.name, err)
		}
		if err != nil {
			continue
		}
		if address, ok := listener.Addr().(*net.TCPAddr); !ok || !address.IP.IsLoopback() || address.Port == taken.Addr().(*net.TCPAddr).Port {
			t.Errorf("%s: listens on %v", test.name, listener.Addr())
		}
		listener.Close()
	}
	var flags pflag.FlagSet
	var added httpFlags
	addHTTPFlags(&flags, &added)
	if added.listen != remote.DefaultHTTPAddress {
		t.Errorf("the default is %s", added.listen)
	}
}

// A page whose name was made to lead to the server (DNS rebinding) reads and changes nothing.
func TestRebinding(t *testing.T) {
	const loopback, everywhere = "127.0.0.1", "0.0.0.0"
	for _, test := range []struct {
		listener      string
		authenticated bool
		allowed       string
		accepted      string
		refused       string
	}{
		{loopback, false, "", "localhost localhost:80 LOCALHOST localhost. 127.0.0.1 127.0.0.1:8322 127.8.8.8 [::1] [::1]:80", "attacker.example attacker.example:8322 192.0.2.1 localhost.attacker.example 127.0.0.1.attacker.example [::2] 0.0.0.0"},
		{loopback, true, "", "localhost 127.0.0.1", "attacker.example 192.0.2.1"},
		{"::1", false, "", "localhost [::1]:8322", "attacker.example"},
		{loopback, false, "Lab.example", "localhost lab.example LAB.example:80", "attacker.example sub.lab.example 192.0.2.1"},
		{everywhere, false, "", "localhost 127.0.0.1 192.0.2.1 192.0.2.1:8322 [2001:db8::1]:8322", "attacker.example lab.example:80"},
		{everywhere, false, "lab.example", "localhost 192.0.2.1 lab.example", "attacker.example"},
		{"192.0.2.1", false, "", "192.0.2.1 192.0.2.2 localhost", "attacker.example"},
		{everywhere, true, "", "localhost 192.0.2.1 lab.example", ""},
		{everywhere, true, "lab.example", "localhost 192.0.2.1 lab.example", "attacker.example"},
	} {
		handler := allowHosts(http.NotFoundHandler(), &net.TCPAddr{IP: net.ParseIP(test.listener), Port: 8322}, test.authenticated, strings.Fields(test.allowed))
		for hosts, want := range map[string]int{test.accepted: http.StatusNotFound, test.refused: http.StatusMisdirectedRequest} {
			for host := range strings.FieldsSeq(hosts) {
				for _, r := range []*http.Request{
					httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRequest(http.MethodGet, "/v1/studies", nil),
					httptest.NewRequest(http.MethodPost, "/studies/svt/pause", strings.NewReader("confirm=yes")),
				} {
					r.Host = host
					answer := httptest.NewRecorder()
					handler.ServeHTTP(answer, r)
					if answer.Code != want {
						t.Errorf("a listener on %s, authenticated %t, allowed %q: %s %s as %q: HTTP status %d, want %d",
							test.listener, test.authenticated, test.allowed, r.Method, r.URL, host, answer.Code, want)
					}
				}
			}
		}
	}
}

// Other pages cannot make a browser change something (forged requests), with forms or scripts, whatever
// the method: not even those that may call the API, since forms of the page need no token.
func TestForgedRequests(t *testing.T) {
	var changed int
	change := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		changed++
	})
	mux := httpMux(http.NotFoundHandler(), change, httpFlags{pprof: true}, httpOptions{server: new(server.Server), metrics: metrics.New("test")})
	const host = "127.0.0.1:8322"
	for _, test := range []struct {
		name, origin, site string
		want               int
	}{
		{"the page itself", "http://" + host, "same-origin", http.StatusOK},
		{"the page itself, in an old browser", "http://" + host, "", http.StatusOK},
		{"no browser", "", "", http.StatusOK},
		{"a form of another page", "https://attacker.example", "cross-site", http.StatusForbidden},
		{"a form of another page, in an old browser", "https://attacker.example", "", http.StatusForbidden},
		{"another port of this machine", "http://127.0.0.1:3000", "same-site", http.StatusForbidden},
		{"a sandboxed frame", "null", "cross-site", http.StatusForbidden},
	} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			r := httptest.NewRequest(method, "http://"+host+"/studies/svt/pause", strings.NewReader("confirm=yes"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			if test.origin != "" {
				r.Header.Set("Origin", test.origin)
			}
			if test.site != "" {
				r.Header.Set("Sec-Fetch-Site", test.site)
			}
			changed = 0
			answer := httptest.NewRecorder()
			mux.ServeHTTP(answer, r)
			if answer.Code != test.want || (changed == 1) != (test.want == http.StatusOK) {
				t.Errorf("%s: %s: HTTP status %d, want %d; %d changes", test.name, method, answer.Code, test.want, changed)
			}
		}
	}
}

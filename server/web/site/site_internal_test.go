package site

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

// After signing in, a link leads to a view of this site, whatever somebody has put into it.
func TestLocalPath(t *testing.T) {
	for target, want := range map[string]string{
		"":                                    "/studies",
		"/studies":                            "/studies",
		"/studies/a/choose?value=1&bound=%CE": "/studies/a/choose?value=1&bound=%CE",
		"/compare?study=a":                    "/compare?study=a",
		"/about":                              "/about",
		"/studies/../\\evil.example":          "/studies",
		"/studies/..//evil.example":           "/studies",
		"/studies/%2e%2e/%5Cevil.example":     "/studies",
		"//evil.example/studies":              "/studies",
		"https://evil.example/studies":        "/studies",
		"/studies@evil.example":               "/studies",
		"/studies\r\nSet-Cookie: a=b":         "/studies",
		"javascript:alert(1)":                 "/studies",
		"/sign-out":                           "/studies",
	} {
		if got := localPath(target); got != want {
			t.Errorf("%q leads to %q, want %q", target, got, want)
		}
	}
}

// No text in a part ends its event, begins another, or sets the time to connect again.
func TestEventsHoldTheirText(t *testing.T) {
	answer := httptest.NewRecorder()
	events := &eventWriter{w: answer, controller: http.NewResponseController(answer)}
	require.NoError(t, events.send("state", []byte("one\rretry: 3600000\r\revent: other\r\ndata: forged\n\nlast")))
	lines := strings.Split(strings.TrimSuffix(answer.Body.String(), "\n\n"), "\n")
	for i, line := range lines {
		if prefix := map[bool]string{true: "event: state", false: "data: "}[i == 0]; !strings.HasPrefix(line, prefix) {
			t.Errorf("line %d is %q", i, line)
		}
	}
	if len(lines) != 8 || bytes.ContainsRune(answer.Body.Bytes(), '\r') {
		t.Errorf("%q", answer.Body)
	}
}

// Two servers on ports of one host have cookies of their own.
func TestCookieNames(t *testing.T) {
	names := make(map[string]bool)
	for _, host := range []string{"127.0.0.1:8322", "127.0.0.1:8323", "dpareto.example.org", "host:what"} {
		r := httptest.NewRequest(http.MethodGet, "/studies", http.NoBody)
		r.Host = host
		names[new(Site).cookieName(r)] = true
		if name := (&Site{options: Options{Secure: true}}).cookieName(r); !strings.HasPrefix(name, "__Host-dpareto-token") {
			t.Errorf("with TLS: %s", name)
		}
	}
	if len(names) != 3 || !names["dpareto-token"] || !names["dpareto-token-8322"] {
		t.Errorf("%v", names)
	}
}

// Pages of other sites can link here, but load nothing from here.
func TestOtherSitesLoadNothing(t *testing.T) {
	handler := secured(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for mode, want := range map[string]int{"no-cors": http.StatusForbidden, "cors": http.StatusForbidden, "navigate": http.StatusOK} {
		r := httptest.NewRequest(http.MethodGet, "/studies", http.NoBody)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", mode)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		if answer.Code != want {
			t.Errorf("%s: %d", mode, answer.Code)
		}
	}
}

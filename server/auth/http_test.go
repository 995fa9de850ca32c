package auth

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// request returns a request with a token and the certificate of a name; either can be "".
func request(f *fixture, token, certificate string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/v1/studies", nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if certificate != "" {
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{
			Subject: pkix.Name{CommonName: certificate}, NotAfter: f.now.Add(time.Hour),
		}}}}
	}
	return r
}

func TestPermit(t *testing.T) {
	f, tokens := open(t, Credential{Name: "ann", Role: Admin}, Credential{Name: "bob", Grants: []Grant{{"*", Admin}}},
		Credential{ID: "c", Name: "col", Role: Viewer, CertificateSubject: "CN=col"})
	twice := request(f, tokens[0], "")
	twice.Header.Add("Authorization", "Bearer x")
	for name, tt := range map[string]struct {
		r      *http.Request
		role   Role
		want   error
		denied bool
	}{
		"admin":            {request(f, tokens[0], ""), Admin, nil, false},
		"grants only":      {request(f, tokens[1], ""), Viewer, nil, true},
		"certificate":      {request(f, "", "col"), Viewer, nil, false},
		"role too low":     {request(f, "", "col"), Admin, nil, true},
		"nobody":           {request(f, "", ""), Viewer, ErrMissing, false},
		"unknown":          {request(f, "", "dan"), Viewer, ErrCertificate, false},
		"wrong token":      {request(f, "x", "col"), Viewer, ErrInvalid, false},
		"two tokens":       {twice, Viewer, ErrMalformed, false},
		"not verified yet": {&http.Request{Header: http.Header{}, TLS: new(tls.ConnectionState)}, Viewer, ErrMissing, false},
	} {
		err := f.Permit(tt.r, tt.role)
		if _, denied := errors.AsType[*DeniedError](err); denied != tt.denied || !denied && !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Metrics count the calls about every study: no role but admin on the whole server reads them without
// the right to.
func TestPermitMetrics(t *testing.T) {
	f, tokens := open(t, Credential{Name: "admin", Role: Admin}, Credential{Name: "prometheus", Metrics: true},
		Credential{Name: "both", Grants: []Grant{{"a-*", Worker}}, Metrics: true}, Credential{Name: "worker", Role: Worker},
		Credential{Name: "viewer", Role: Viewer}, Credential{Name: "owner", Grants: []Grant{{"*", Admin}}})
	for i, allowed := range []bool{true, true, true, false, false, false} {
		err := f.PermitMetrics(request(f, tokens[i], ""))
		if _, denied := errors.AsType[*DeniedError](err); denied == allowed || allowed && err != nil {
			t.Errorf("credential %d: %v", i, err)
		}
	}
	if err := f.PermitMetrics(request(f, "", "")); !errors.Is(err, ErrMissing) {
		t.Errorf("nobody: %v", err)
	}
	reader, err := f.AuthenticateRequest(request(f, tokens[1], ""))
	if err != nil || reader.Highest() != None {
		t.Errorf("a credential for metrics alone: %+v, %v", reader, err)
	}
}

// What a gateway passes on identifies the owner of the certificate, and nobody else.
func TestPassOnCertificates(t *testing.T) {
	f, tokens := open(t, Credential{Name: "ann", Role: Admin}, Credential{ID: "c", Name: "col", Role: Viewer, CertificateSubject: "CN=col"})
	for name, tt := range map[string]struct {
		r    *http.Request
		want string
		err  error
	}{
		"certificate":  {request(f, "", "col"), "col", nil},
		"token":        {request(f, tokens[0], "col"), "ann", nil},
		"wrong token":  {request(f, "x", "col"), "", ErrInvalid},
		"unknown":      {request(f, "", "dan"), "", ErrMissing},
		"without both": {request(f, "", ""), "", ErrMissing},
	} {
		before := tt.r.Header.Get("Authorization")
		called := false
		f.PassOnCertificates(http.HandlerFunc(func(_ http.ResponseWriter, passed *http.Request) {
			called = true
			passed.TLS = nil // it does not cross the process
			p, err := f.AuthenticateRequest(passed)
			if p.Name != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("%s: %q, %v", name, p.Name, err)
			}
		})).ServeHTTP(httptest.NewRecorder(), tt.r)
		if !called || tt.r.Header.Get("Authorization") != before {
			t.Errorf("%s: called %v, the request was changed", name, called)
		}
	}
}

// Nobody who is not known makes a gateway read anything.
func TestPassOnBodies(t *testing.T) {
	f, tokens := open(t, Credential{Name: "ann", Role: Admin}, Credential{ID: "c", Name: "col", Role: Viewer, CertificateSubject: "CN=col"})
	for name, tt := range map[string]struct {
		r    *http.Request
		want string
	}{
		"token":        {request(f, tokens[0], ""), "{}"},
		"certificate":  {request(f, "", "col"), "{}"},
		"wrong token":  {request(f, "x", "col"), ""},
		"unknown":      {request(f, "", "dan"), ""},
		"without both": {request(f, "", ""), ""},
	} {
		tt.r.Body, tt.r.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
		f.PassOnCertificates(http.HandlerFunc(func(_ http.ResponseWriter, passed *http.Request) {
			body, err := io.ReadAll(passed.Body)
			if err != nil || string(body) != tt.want || passed.ContentLength != int64(len(tt.want)) {
				t.Errorf("%s: %q of %d bytes, %v", name, body, passed.ContentLength, err)
			}
		})).ServeHTTP(httptest.NewRecorder(), tt.r)
	}
}

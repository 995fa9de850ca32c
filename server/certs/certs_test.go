package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/certs/certstest"
	"github.com/dpareto/dpareto/server/reload"
)

// handshake connects to a configuration and returns the certificate of the client that the
// server has verified.
func handshake(t *testing.T, server, client *tls.Config) (verified *x509.Certificate, err error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	right, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		left, err := listener.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		s := tls.Server(left, server)
		if s.Handshake() == nil {
			if chains := s.ConnectionState().VerifiedChains; len(chains) > 0 {
				verified = chains[0][0]
			}
			s.Write([]byte("x"))
		}
		left.Close()
	})
	c := tls.Client(right, client)
	if err = c.Handshake(); err == nil {
		_, err = c.Read(make([]byte, 1)) // in TLS 1.3 a refusal of the client comes here
	}
	right.Close()
	wg.Wait()
	return verified, err
}

func pool(t *testing.T, authority *certstest.Authority) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(authority.PEM) {
		t.Fatal("no certificate")
	}
	return p
}

func pair(t *testing.T, cert, key []byte) []tls.Certificate {
	t.Helper()
	p, err := tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	return []tls.Certificate{p}
}

// A server's authority, its certificate, and the authority of its clients are replaced
// while it runs.
func TestRotation(t *testing.T) {
	folder := t.TempDir()
	first, second := certstest.New(t, "first"), certstest.New(t, "second")
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	cert, key := first.Server()
	paths := certstest.Write(t, folder, map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": first.PEM})
	now := time.Now()
	config, err := server(Files{Cert: paths["tls.crt"], Key: paths["tls.key"], ClientCA: paths["ca.crt"]}, logger, func() time.Time { return now })
	require.NoError(t, err)
	later := time.Now().Add(time.Hour)
	old := &tls.Config{RootCAs: pool(t, first), ServerName: "localhost", Certificates: pairs(t)(first.Client("ann", later))}
	young := &tls.Config{RootCAs: pool(t, second), ServerName: "localhost", Certificates: pairs(t)(second.Client("bob", later))}
	want := func(client *tls.Config, name string) {
		t.Helper()
		verified, err := handshake(t, config, client)
		got := ""
		if err == nil && verified != nil {
			got = verified.Subject.CommonName
		}
		if got != name {
			t.Errorf("the server knows %q (%v), want %q", got, err, name)
		}
	}
	want(old, "ann")
	want(young, "")

	// A key that does not fit leaves things as they are.
	cert, key = second.Server()
	certstest.Write(t, folder, map[string][]byte{"tls.crt": cert})
	now = now.Add(2 * reload.Every)
	want(old, "ann")
	if !strings.Contains(log.String(), "stays valid") {
		t.Errorf("log %s", log.String())
	}

	certstest.Write(t, folder, map[string][]byte{"tls.key": key, "ca.crt": second.PEM})
	now = now.Add(2 * reload.Every)
	want(old, "")
	want(young, "bob")
}

// pairs is pair for the results of a call.
func pairs(t *testing.T) func(cert, key []byte) []tls.Certificate {
	return func(cert, key []byte) []tls.Certificate { return pair(t, cert, key) }
}

func TestClientCertificates(t *testing.T) {
	folder := t.TempDir()
	authority, other := certstest.New(t, "authority"), certstest.New(t, "other")
	cert, key := authority.Server()
	paths := certstest.Write(t, folder, map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": authority.PEM})
	later := time.Now().Add(time.Hour)
	for _, required := range []bool{false, true} {
		config, err := Server(Files{paths["tls.crt"], paths["tls.key"], paths["ca.crt"], required}, nil)
		require.NoError(t, err)
		for name, tt := range map[string]struct {
			certificates []tls.Certificate
			ok           bool
		}{
			"good":    {pairs(t)(authority.Client("ann", later)), true},
			"none":    {nil, !required},
			"foreign": {pairs(t)(other.Client("ann", later)), false},
			"expired": {pairs(t)(authority.Client("ann", time.Now().Add(-time.Hour))), false},
			"server":  {pair(t, cert, key), false}, // not for clients
		} {
			// A client that is told what the server accepts would not show the wrong ones.
			client := &tls.Config{RootCAs: pool(t, authority), ServerName: "localhost", GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if len(tt.certificates) == 0 {
					return new(tls.Certificate), nil
				}
				return &tt.certificates[0], nil
			}}
			if _, err := handshake(t, config, client); (err == nil) != tt.ok {
				t.Errorf("%s certificate, required %v: %v", name, required, err)
			}
		}
	}
}

func TestOldProtocolsAreRefused(t *testing.T) {
	authority := certstest.New(t, "authority")
	cert, key := authority.Server()
	paths := certstest.Write(t, t.TempDir(), map[string][]byte{"tls.crt": cert, "tls.key": key})
	config, err := Server(Files{Cert: paths["tls.crt"], Key: paths["tls.key"]}, nil)
	require.NoError(t, err)
	client := &tls.Config{RootCAs: pool(t, authority), ServerName: "localhost", MaxVersion: tls.VersionTLS12}
	if _, err := handshake(t, config, client); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.2: %v", err)
	}
}

func TestErrors(t *testing.T) {
	authority := certstest.New(t, "authority")
	cert, key := authority.Server()
	paths := certstest.Write(t, t.TempDir(), map[string][]byte{"tls.crt": cert, "tls.key": key, "empty": nil})
	for want, files := range map[string]Files{
		"no such file":         {Cert: paths["tls.crt"], Key: "/nonexistent/key"},
		"holds no certificate": {Cert: paths["tls.crt"], Key: paths["tls.key"], ClientCA: paths["empty"]},
		"failed to find":       {Cert: paths["empty"], Key: paths["tls.key"]},
		"cannot be required":   {Cert: paths["tls.crt"], Key: paths["tls.key"], RequireClient: true},
	} {
		if _, err := Server(files, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", files, err, want)
		}
	}
}

// An old certificate is served, since clients may be told to trust it, and shouted about.
func TestExpiryIsLogged(t *testing.T) {
	authority := certstest.New(t, "authority")
	for want, until := range map[string]time.Time{"HAS EXPIRED": time.Now().Add(-time.Minute), "expires soon": time.Now().Add(time.Hour)} {
		cert, key := authority.Client("server", until)
		paths := certstest.Write(t, t.TempDir(), map[string][]byte{"tls.crt": cert, "tls.key": key})
		var log bytes.Buffer
		require.NoError(t, require.ErrOf(Server(Files{Cert: paths["tls.crt"], Key: paths["tls.key"]}, slog.New(slog.NewTextHandler(&log, nil)))))
		if !strings.Contains(log.String(), want) {
			t.Errorf("log %q, want %q", log.String(), want)
		}
	}
}

// A key that everybody can read, or others can write, is refused; the files of a Kubernetes secret
// that are for a group are not.
func TestKeyModes(t *testing.T) {
	authority := certstest.New(t, "authority")
	cert, key := authority.Server()
	paths := certstest.Write(t, t.TempDir(), map[string][]byte{"tls.crt": cert, "tls.key": key})
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o440: true, 0o640: true, 0o644: false, 0o444: false, 0o660: false, 0o602: false} {
		require.NoError(t, os.Chmod(paths["tls.key"], mode))
		_, err := Server(Files{Cert: paths["tls.crt"], Key: paths["tls.key"]}, nil)
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "private key; chmod 600 it") {
			t.Errorf("mode %#o: %v", mode, err)
		}
	}
}

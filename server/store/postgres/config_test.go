package postgres

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpareto/dpareto/internal/require"
)

// Whatever may go over a network is encrypted for a verified server, unless told otherwise.
func TestTLSIsTheDefault(t *testing.T) {
	for _, variable := range []string{"PGSSLMODE", "PGHOST", "PGSERVICE", "PGSSLROOTCERT"} {
		t.Setenv(variable, "")
	}
	services := filepath.Join(t.TempDir(), "services")
	require.NoError(t, os.WriteFile(services, []byte("[plain]\nhost=db\nsslmode=disable\n[silent]\nhost=db\n"), 0o600))
	t.Setenv("PGSERVICEFILE", services)
	for _, tt := range []struct {
		url, mode string // mode is PGSSLMODE
		verified  bool
		plain     bool
	}{
		{url: "postgres://db/x", verified: true},
		{url: "postgresql://db1,db2/x", verified: true},
		{url: "postgres://db/x?sslmode=prefer", verified: true},
		{url: "postgres://db/x?sslmode=allow", verified: true},
		{url: "postgres://db/x?port=5433&", verified: true},
		{url: "postgres://db/x", mode: "prefer", verified: true},
		{url: "postgres:///x?service=silent", verified: true},
		{url: "postgres://127.0.0.1/x", verified: true},
		{url: "postgres://db/x?sslmode=verify-full", verified: true},
		{url: "postgres://db/x?sslmode=disable", plain: true},
		{url: "postgres://db/x", mode: "disable", plain: true},
		{url: "postgres:///x?service=plain", plain: true},
		{url: "postgres:///x?host=/run/postgresql", plain: true},
		{url: "postgres://db/x?sslmode=require"},
	} {
		t.Setenv("PGSSLMODE", tt.mode)
		config, err := parse(tt.url, Options{})
		if err != nil {
			t.Errorf("%s: %v", tt.url, err)
			continue
		}
		c := config.ConnConfig
		for _, f := range c.Fallbacks {
			if (f.TLSConfig == nil) != tt.plain {
				t.Errorf("%s: falls back to %+v", tt.url, f)
			}
		}
		if plain := c.TLSConfig == nil; plain != tt.plain {
			t.Errorf("%s (%q): plain %t", tt.url, tt.mode, plain)
		} else if verified := !plain && !c.TLSConfig.InsecureSkipVerify && c.TLSConfig.ServerName == c.Host; verified != tt.verified {
			t.Errorf("%s (%q): verified %t", tt.url, tt.mode, verified)
		}
	}
}

// What else a URL says, spaces and plus signs too, stays when TLS is made the default.
func TestParametersWithSpaces(t *testing.T) {
	for _, mode := range []string{"", "&sslmode=prefer", "&sslmode=disable"} {
		config, err := parse("postgres://db/x?options=-c%20a.b%3D1%2B1+1&search_path=%22of%20two%22"+mode, Options{})
		require.NoError(t, err)
		parameters := config.ConnConfig.RuntimeParams
		if options, path := parameters["options"], parameters["search_path"]; options != "-c a.b=1+1+1" || path != `"of two"` {
			t.Errorf("%q: options %q, search_path %q", mode, options, path)
		}
		if plain := config.ConnConfig.TLSConfig == nil; plain != (mode == "&sslmode=disable") {
			t.Errorf("%q: plain %t", mode, plain)
		}
	}
}

// A server whose certificate nobody vouches for, and one that speaks no TLS, gets no word, and so no
// password.
func TestUnverifiedServer(t *testing.T) {
	t.Setenv("PGPASSWORD", "secret")
	certificate, authority := selfSigned(t)
	for name, answer := range map[string]byte{"unknown": 'S', "plain": 'N'} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		var heard []string
		var serving sync.WaitGroup
		serving.Go(func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				heard = append(heard, talk(conn, answer, certificate))
			}
		})
		url := "postgres://u@" + listener.Addr().String() + "/x"
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err = Open(ctx, url, Options{})
		if err == nil || !strings.Contains(err.Error(), map[byte]string{'S': "certificate", 'N': "unless the URL says sslmode=disable"}[answer]) {
			t.Errorf("%s: %v", name, err)
		}
		if answer == 'S' { // with its authority it is heard out
			if _, err := Open(ctx, url+"?sslrootcert="+authority, Options{}); err == nil {
				t.Error("opened")
			}
		}
		cancel()
		listener.Close()
		serving.Wait()
		want := map[byte]string{'S': "^-+(startup)+$", 'N': "^-+$"}[answer]
		if got := strings.Join(heard, ""); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: the server heard %q", name, got)
		}
	}
}

// talk answers a request for TLS and returns "startup" if the client goes on, else "-".
func talk(conn net.Conn, answer byte, certificate tls.Certificate) string {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	request := make([]byte, 8)
	if _, err := conn.Read(request); err != nil {
		return "?"
	}
	conn.Write([]byte{answer})
	plain := conn
	if answer == 'S' {
		plain = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}})
	}
	if n, _ := plain.Read(make([]byte, 1)); n > 0 {
		return "startup"
	}
	return "-"
}

// selfSigned returns a certificate for 127.0.0.1, and a file with it.
func selfSigned(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}

// Passwords come from files and the environment, and never from the URL.
func TestPasswords(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	t.Setenv("PGPASSFILE", file("passfile", "db:*:*:u:of the passfile\n"))
	t.Setenv("PGSERVICEFILE", file("services", "[s]\nhost=db\nuser=v\npassword=of the service\n"))
	secret := file("secret", "of the secret\n")
	for _, tt := range []struct {
		url, file, want string
	}{
		{"postgres://u@db/x", "", "of the passfile"},
		{"postgres:///x?service=s", "", "of the service"},
		{"postgres://u@db/x", secret, "of the secret"},
	} {
		config, err := parse(tt.url, Options{PasswordFile: tt.file})
		if err != nil {
			t.Errorf("%s: %v", tt.url, err)
			continue
		}
		c := config.ConnConfig.Copy()
		if config.BeforeConnect != nil {
			if err := config.BeforeConnect(t.Context(), c); err != nil {
				t.Error(err)
			}
		}
		if c.Password != tt.want {
			t.Errorf("%s: password %q, want %q", tt.url, c.Password, tt.want)
		}
	}
	for _, url := range []string{"postgres://u:secret@db/x", "postgres://u@db/x?password=secret", "postgres://u:secret@db:port/x"} {
		if _, err := parse(url, Options{}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("a URL with a password: %v", err)
		}
	}
	if _, err := parse("postgres://u:secret@db/x", Options{}); !errors.Is(err, errPassword) {
		t.Errorf("a URL with a password: %v", err)
	}
	if err := Check("postgres://u@db/x", Options{PasswordFile: filepath.Join(folder, "none")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	require.NoError(t, os.Chmod(secret, 0o644))
	if err := Check("postgres://u@db/x", Options{PasswordFile: secret}); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that everybody reads: %v", err)
	}
}

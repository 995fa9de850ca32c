// Package certstest makes certificates for tests.
package certstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dpareto/dpareto/internal/require"
)

// Authority issues certificates.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// PEM is the authority's certificate.
	PEM []byte
}

// New returns an authority with a self-signed certificate.
func New(t testing.TB, name string) *Authority {
	t.Helper()
	a := &Authority{t: t, key: newKey(t)}
	a.cert, a.PEM = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, a.key)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

// sign issues a certificate for a key.
func (a *Authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, []byte) {
	a.t.Helper()
	parent := a.cert
	if parent == nil {
		parent = template
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(a.t, err)
	template.SerialNumber = serial
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	template.NotBefore = time.Now().Add(-2 * time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), a.key)
	require.NoError(a.t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// Server issues a certificate for 127.0.0.1 and localhost, and returns it with its key.
func (a *Authority) Server() (cert, key []byte) {
	return a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "server"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// Client issues a client certificate with a common name, and returns it with its key.
func (a *Authority) Client(name string, notAfter time.Time) (cert, key []byte) {
	return a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotAfter: notAfter, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *Authority) issue(template *x509.Certificate) (cert, key []byte) {
	a.t.Helper()
	private := newKey(a.t)
	_, cert = a.sign(template, private)
	der, err := x509.MarshalECPrivateKey(private)
	require.NoError(a.t, err)
	return cert, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// Write writes files to a folder, replacing each atomically, and returns their paths.
func Write(t testing.TB, folder string, files map[string][]byte) map[string]string {
	t.Helper()
	paths := make(map[string]string)
	for name, content := range files {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path+".new", content, 0o600))
		require.NoError(t, os.Rename(path+".new", path))
		paths[name] = path
	}
	return paths
}

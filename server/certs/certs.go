// Package certs serves TLS with certificates that are replaced while the server runs.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/dpareto/dpareto/server/filemode"
	"github.com/dpareto/dpareto/server/reload"
)

// soon is how long before its expiry a certificate causes a warning.
const soon = 14 * 24 * time.Hour

// Files names the PEM files of a server.
type Files struct {
	// Cert holds the server's certificate chain without the root; Key holds its private key.
	Cert, Key string
	// ClientCA holds the authorities whose client certificates are accepted. Default: clients are
	// not asked for a certificate.
	ClientCA string
	// RequireClient refuses clients without a certificate. Otherwise they may use a token instead.
	RequireClient bool
}

// Server returns a TLS 1.3 configuration. New connections use the files' latest content, or the
// previous one if that is broken. Sessions are not resumed, so a client stays connected after its
// authority is removed only while its connection lasts. A key that everyone can read, or others can
// write, is refused.
func Server(f Files, logger *slog.Logger) (*tls.Config, error) { return server(f, logger, time.Now) }

func server(f Files, logger *slog.Logger, now func() time.Time) (*tls.Config, error) {
	if logger == nil {
		logger = slog.Default()
	}
	paths := []string{f.Cert, f.Key}
	switch {
	case f.ClientCA != "":
		paths = append(paths, f.ClientCA)
	case f.RequireClient:
		return nil, errors.New("client certificates cannot be required without a file of authorities that issue them")
	}
	value, err := reload.New(reload.Options{What: "the certificates", Paths: paths, Logger: logger, Now: now}, func() (*tls.Config, error) {
		return load(f, logger)
	})
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		NextProtos:         protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return value.Get(), nil },
	}, nil
}

// protocols are the ALPN names of HTTP/2, which gRPC uses, and HTTP/1.1.
var protocols = []string{"h2", "http/1.1"}

func load(f Files, logger *slog.Logger) (*tls.Config, error) {
	info, err := os.Stat(f.Key)
	if err == nil {
		err = filemode.Check(f.Key, info, 0o640, "others can read or replace the server's private key")
	}
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s, key %s: %w", f.Cert, f.Key, err)
	}
	switch left := time.Until(pair.Leaf.NotAfter); {
	case left <= 0:
		logger.Error("THE SERVER'S CERTIFICATE HAS EXPIRED", "file", f.Cert, "expired", pair.Leaf.NotAfter)
	case left < soon:
		logger.Warn("the server's certificate expires soon", "file", f.Cert, "expires", pair.Leaf.NotAfter)
	}
	config := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             protocols,
		Certificates:           []tls.Certificate{pair},
		SessionTicketsDisabled: true,
	}
	if f.ClientCA == "" {
		return config, nil
	}
	config.ClientCAs, err = Pool(f.ClientCA)
	if err != nil {
		return nil, err
	}
	config.ClientAuth = tls.VerifyClientCertIfGiven
	if f.RequireClient {
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}

// Pool returns the certificates in a PEM file.
func Pool(path string) (*x509.CertPool, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s: holds no certificate", path)
	}
	return pool, nil
}

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

	"github.com/dpareto/dpareto/server/reload"
)

// soon is how long before its end a certificate is warned of.
const soon = 14 * 24 * time.Hour

// Files names what a server proves itself with, in PEM.
type Files struct {
	// Cert holds the server's certificate and those of the authorities between it and a
	// root, Key its private key.
	Cert, Key string
	// ClientCA holds the authorities whose client certificates are accepted. "" asks for
	// none.
	ClientCA string
	// RequireClient refuses clients without a certificate. Otherwise they may come with a
	// token.
	RequireClient bool
}

// Server returns the configuration of a server. It takes TLS 1.3 only. Files that change
// hold for the next connection; broken ones leave things as they are. Sessions are not
// resumed, so that no connection outlives its authority for longer than it is open.
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
		return nil, errors.New("client certificates cannot be required without the authorities that issue them")
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

// protocols are those of gRPC and HTTP.
var protocols = []string{"h2", "http/1.1"}

func load(f Files, logger *slog.Logger) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s, key %s: %w", f.Cert, f.Key, err)
	}
	switch left := time.Until(pair.Leaf.NotAfter); {
	case left <= 0:
		logger.Error("THE CERTIFICATE OF THE SERVER HAS EXPIRED", "file", f.Cert, "expired", pair.Leaf.NotAfter)
	case left < soon:
		logger.Warn("the certificate of the server expires soon", "file", f.Cert, "expires", pair.Leaf.NotAfter)
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

// Pool returns the certificates in a file.
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

package dpareto

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/dpareto/dpareto/internal/text"
)

// security holds the credentials of a client, and which servers it trusts.
type security struct {
	token          func() (string, error) // nil: none
	tokenPlaintext bool

	tls        bool
	caFile     string
	certFile   string
	keyFile    string
	serverName string
}

// WithToken sends a bearer token with every call.
func WithToken(token string) Option {
	return optionFunc(func(c *config) {
		c.security.token = func() (string, error) { return token, nil }
	})
}

// WithTokenFile sends the bearer token in a file with every call. The file is read for
// every call, so that the token can be replaced while the client is in use; white space
// around the token is ignored, and so is a byte order mark.
func WithTokenFile(path string) Option {
	return optionFunc(func(c *config) {
		c.security.token = func() (string, error) {
			content, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			token, err := text.Decode(content) // editors may have put a byte order mark first
			return strings.TrimSpace(string(token)), err
		}
	})
}

// WithTokenInPlaintext allows sending the token to another machine in plain text, where
// others can read and use it. It is for connections that something else encrypts.
func WithTokenInPlaintext() Option {
	return optionFunc(func(c *config) { c.security.tokenPlaintext = true })
}

// WithTLS also uses TLS to servers on this machine.
func WithTLS() Option {
	return optionFunc(func(c *config) { c.security.tls = true })
}

// WithCA trusts servers whose certificate comes from an authority in a file of PEM
// certificates, and no others. The file is read for every connection, so that it can be
// replaced. It implies WithTLS.
func WithCA(path string) Option {
	return optionFunc(func(c *config) { c.security.caFile, c.security.tls = path, true })
}

// WithClientCertificate shows the server a certificate, from files in PEM, which are read
// for every connection. It implies WithTLS.
func WithClientCertificate(certFile, keyFile string) Option {
	return optionFunc(func(c *config) {
		c.security.certFile, c.security.keyFile, c.security.tls = certFile, keyFile, true
	})
}

// WithServerName expects the server's certificate to be for a name. Default: the host in
// the address. It implies WithTLS.
func WithServerName(name string) Option {
	return optionFunc(func(c *config) { c.security.serverName, c.security.tls = name, true })
}

// credentials returns the connection's credentials, and the options that add credentials
// to calls.
func (s *security) credentials(local, plaintext bool) (credentials.TransportCredentials, []grpc.DialOption, error) {
	if plaintext && s.tls {
		return nil, nil, errors.New("plain text and TLS exclude each other")
	}
	encrypted := s.tls || !local && !plaintext
	var transport credentials.TransportCredentials
	if encrypted {
		transport = &freshTLS{security: s}
		if _, err := s.config(); err != nil { // now, rather than at the first call
			return nil, nil, err
		}
	} else {
		transport = insecure.NewCredentials()
	}
	if s.token == nil {
		return transport, nil, nil
	}
	token, err := s.token()
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("token: %w", err)
	case token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return nil, nil, errors.New("token: must be printable ASCII without spaces")
	case !encrypted && !local && !s.tokenPlaintext:
		return nil, nil, errors.New("the token would go to another machine in plain text, where others can read it")
	}
	return transport, []grpc.DialOption{grpc.WithPerRPCCredentials(bearer{
		token: s.token, needsTLS: !local && !s.tokenPlaintext,
	})}, nil
}

// config returns the configuration of a connection.
func (s *security) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: s.serverName}
	if s.caFile != "" {
		content, err := os.ReadFile(s.caFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("%s: holds no certificate", s.caFile)
		}
	}
	if s.certFile != "" {
		pair, err := tls.LoadX509KeyPair(s.certFile, s.keyFile)
		if err != nil {
			return nil, fmt.Errorf("certificate %s, key %s: %w", s.certFile, s.keyFile, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// freshTLS reads the files of its configuration for every connection.
type freshTLS struct {
	*security

	override string // of the server's name
}

// ClientHandshake implements credentials.TransportCredentials.
func (f *freshTLS) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config, err := f.config()
	if err != nil {
		return nil, nil, err
	}
	if f.override != "" {
		config.ServerName = f.override
	}
	return credentials.NewTLS(config).ClientHandshake(ctx, authority, conn)
}

// ServerHandshake implements credentials.TransportCredentials.
func (f *freshTLS) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("dpareto: credentials of a client used by a server")
}

// Info implements credentials.TransportCredentials.
func (f *freshTLS) Info() credentials.ProtocolInfo {
	name := f.serverName
	if f.override != "" {
		name = f.override
	}
	return credentials.ProtocolInfo{SecurityProtocol: "tls", ServerName: name} //nolint:staticcheck // the name becomes the authority of calls
}

// Clone implements credentials.TransportCredentials.
func (f *freshTLS) Clone() credentials.TransportCredentials {
	clone := *f
	return &clone
}

// OverrideServerName implements credentials.TransportCredentials.
func (f *freshTLS) OverrideServerName(name string) error {
	f.override = name
	return nil
}

// bearer sends a token with every call.
type bearer struct {
	token    func() (string, error)
	needsTLS bool
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, err := b.token()
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (b bearer) RequireTransportSecurity() bool { return b.needsTLS }

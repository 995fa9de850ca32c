package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dpareto/dpareto/server/reload"
)

// Errors of Authenticate. Their texts go to callers, and reveal nothing about other credentials.
var (
	// ErrMissing says that a caller presents neither a token nor a certificate.
	ErrMissing = errors.New("a bearer token is required")
	// ErrMalformed says that an Authorization header does not have the form "Bearer TOKEN".
	ErrMalformed = errors.New(`the authorization header must have the form "Bearer TOKEN"`)
	// ErrInvalid says that a token is not, or no longer, in the file.
	ErrInvalid = errors.New("the token is not valid")
	// ErrExpired says that a credential has expired.
	ErrExpired = errors.New("the credential has expired")
	// ErrCertificate says that a verified certificate is not in the file.
	ErrCertificate = errors.New("the server does not accept this client certificate, and there is no token")
)

const (
	// ticketPrefix begins tickets of this process; ticketLife is how long they are valid.
	ticketPrefix = "dpareto-ticket_"
	ticketLife   = time.Minute
)

// Authenticator knows the credentials in a file. It reloads the file within about a second of a
// change, and keeps the old credentials if the new file is broken. It is safe for concurrent use.
type Authenticator struct {
	table *reload.Value[*table]
	now   func() time.Time
	key   [32]byte // authenticates tickets
}

// table is an index of credentials.
type table struct {
	byID          map[string]*Credential
	byCertificate map[string]*Credential // by certificateKeys
}

// Options configures an Authenticator.
type Options struct {
	// Logger logs changes of the file. Default: slog.Default().
	Logger *slog.Logger
	// Now is the clock for expiry. Default: time.Now.
	Now func() time.Time
}

// Open reads a file of credentials. It refuses a file that others can write to.
func Open(path string, o Options) (*Authenticator, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &Authenticator{now: o.Now}
	_, _ = rand.Read(a.key[:]) // never fails
	var err error
	a.table, err = reload.New(
		reload.Options{What: "the credentials file", Paths: []string{path}, Logger: o.Logger, Now: o.Now},
		func() (*table, error) { return load(path, o.Logger) })
	if err != nil {
		return nil, err
	}
	return a, nil
}

// load reads and indexes the file.
func load(path string, logger *slog.Logger) (*table, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	warning, err := checkMode(path, info)
	if err != nil {
		return nil, err
	}
	credentials, err := Read(path)
	if err != nil {
		return nil, err
	}
	t := &table{byID: make(map[string]*Credential), byCertificate: make(map[string]*Credential)}
	for _, c := range credentials {
		t.byID[c.ID] = c
		if c.CertificateSubject != "" {
			t.byCertificate["subject:"+c.CertificateSubject] = c
		}
		if c.CertificateSAN != "" {
			t.byCertificate[c.CertificateSAN] = c
		}
	}
	if warning != "" {
		logger.Warn("the credentials file "+warning, "file", path)
	}
	return t, nil
}

// Authenticate returns the principal behind a bearer token (without the word Bearer, "" for none)
// or, without a token, behind a client certificate that the transport has verified (nil for none).
// It refuses an invalid token whatever the certificate. Its errors are listed above.
func (a *Authenticator) Authenticate(_ context.Context, bearer string, peer *x509.Certificate) (Principal, error) {
	switch {
	case strings.HasPrefix(bearer, ticketPrefix):
		return a.redeem(bearer)
	case bearer != "":
		return a.byToken(bearer)
	case peer != nil:
		return a.byCertificate(peer)
	default:
		return Principal{}, ErrMissing
	}
}

func (a *Authenticator) byToken(token string) (Principal, error) {
	credential := a.table.Get().byID[tokenID(token)]
	want := make([]byte, sha256.Size) // matches no token, in the same time
	if credential != nil && credential.TokenHash != "" {
		want, _ = hex.DecodeString(credential.TokenHash) // validated when the file was read
	}
	if !matches(token, want) || credential == nil {
		return Principal{}, ErrInvalid
	}
	return a.unexpired(credential.principal())
}

func (a *Authenticator) byCertificate(peer *x509.Certificate) (Principal, error) {
	if a.now().After(peer.NotAfter) { // the transport checked this only at the start
		return Principal{}, ErrExpired
	}
	t := a.table.Get()
	for _, key := range certificateKeys(peer) {
		if credential := t.byCertificate[key]; credential != nil {
			p, err := a.unexpired(credential.principal())
			if p.expires.IsZero() || peer.NotAfter.Before(p.expires) {
				p.expires = peer.NotAfter
			}
			return p, err
		}
	}
	return Principal{}, ErrCertificate
}

func (a *Authenticator) unexpired(p Principal) (Principal, error) {
	if !p.expires.IsZero() && !a.now().Before(p.expires) {
		return Principal{}, ErrExpired
	}
	return p, nil
}

// sanKinds are the kinds of subject alternative names that the file supports.
var sanKinds = []string{"dns", "uri", "email"}

// certificateKeys returns the names in a certificate in the file's notation, the subject first.
func certificateKeys(c *x509.Certificate) []string {
	keys := []string{"subject:" + c.Subject.String()}
	for _, name := range c.DNSNames {
		keys = append(keys, "dns:"+name)
	}
	for _, uri := range c.URIs {
		keys = append(keys, "uri:"+uri.String())
	}
	for _, address := range c.EmailAddresses {
		keys = append(keys, "email:"+address)
	}
	return keys
}

// Renew returns the principal as the file describes it now, or an error if its credential was
// revoked or has expired. Long calls use it from time to time.
func (a *Authenticator) Renew(p Principal) (Principal, error) {
	credential := a.table.Get().byID[p.Credential]
	if credential == nil {
		return Principal{}, ErrInvalid
	}
	renewed := credential.principal()
	if renewed.expires.IsZero() || !p.expires.IsZero() && p.expires.Before(renewed.expires) {
		renewed.expires = p.expires // the certificate's
	}
	return a.unexpired(renewed)
}

// Ticket returns a bearer token for a principal that Authenticate has just returned. It is valid for
// a minute, in this process only, and while the principal's credential is valid. A gateway in this
// process that terminates TLS uses tickets to pass client certificates on to the server.
func (a *Authenticator) Ticket(p Principal) string {
	content := base64.RawURLEncoding.EncodeToString([]byte(p.Credential)) + "." +
		strconv.FormatInt(p.expires.Unix(), 10) + "." + strconv.FormatInt(a.now().Add(ticketLife).UnixNano(), 10)
	return ticketPrefix + content + "." + a.seal(content)
}

// seal returns the message authentication code of a ticket.
func (a *Authenticator) seal(content string) string {
	mac := hmac.New(sha256.New, a.key[:])
	mac.Write([]byte(content))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// redeem returns the principal of a ticket.
func (a *Authenticator) redeem(ticket string) (Principal, error) {
	text := strings.TrimPrefix(ticket, ticketPrefix)
	end := strings.LastIndexByte(text, '.')
	if end < 0 || !hmac.Equal([]byte(text[end+1:]), []byte(a.seal(text[:end]))) {
		return Principal{}, ErrInvalid
	}
	p, until, err := parseTicket(text[:end])
	if err != nil {
		return Principal{}, err
	}
	if !a.now().Before(until) {
		return Principal{}, ErrExpired
	}
	return a.Renew(p)
}

// parseTicket parses the authenticated content of a ticket.
func parseTicket(content string) (p Principal, until time.Time, err error) {
	parts := strings.Split(content, ".")
	if len(parts) != 3 {
		return p, until, ErrInvalid
	}
	id, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil {
		return p, until, ErrInvalid
	}
	expires, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return p, until, ErrInvalid
	}
	nanoseconds, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return p, until, ErrInvalid
	}
	p.Credential = string(id)
	if expires != (time.Time{}).Unix() {
		p.expires = time.Unix(expires, 0)
	}
	return p, time.Unix(0, nanoseconds), nil
}

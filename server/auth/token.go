package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// A token is tokenPrefix, the id of its credential, "_" and the secret. The prefix lets secret
// scanners find leaked tokens. The id finds the credential without a lookup whose time depends on
// the secret.
const (
	tokenPrefix = "dpareto_"
	idBytes     = 6
	secretBytes = 32
)

// newToken returns a new token and its id.
func newToken() (token, id string) {
	var random [idBytes + secretBytes]byte
	_, _ = rand.Read(random[:]) // never fails
	id = hex.EncodeToString(random[:idBytes])
	return tokenPrefix + id + "_" + base64.RawURLEncoding.EncodeToString(random[idBytes:]), id
}

// tokenID returns the id in a token, "" if it is malformed.
func tokenID(token string) string {
	rest, ok := strings.CutPrefix(token, tokenPrefix)
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(rest, "_")
	if len(id) != hex.EncodedLen(idBytes) {
		return ""
	}
	return id
}

// hash returns the hash of a token that the file stores.
func hash(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// matches compares a token with a hash in constant time.
func matches(token string, want []byte) bool {
	return subtle.ConstantTimeCompare(hash(token), want) == 1
}

// Bearer returns the token in an Authorization header with the scheme Bearer (RFC 6750), or
// ErrMalformed.
func Bearer(header string) (string, error) {
	scheme, token, ok := strings.Cut(header, " ")
	if token = strings.TrimSpace(token); !ok || !strings.EqualFold(scheme, "bearer") || token == "" {
		return "", ErrMalformed
	}
	return token, nil
}

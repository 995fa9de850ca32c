package auth

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// maxFile bounds the file of credentials, in bytes.
const maxFile = 16 << 20

// Credential is one entry of the file: how somebody proves who they are, and what they
// may do. It has either TokenHash or one of CertificateSubject and CertificateSAN.
type Credential struct {
	// ID tells credentials of one name apart, in logs and for revocation. For a token it
	// is part of the token.
	ID string `json:"id"`
	// Name is the name of the principal.
	Name string `json:"name"`
	// TokenHash is the SHA-256 of the token, in hexadecimal.
	TokenHash string `json:"token_sha256,omitempty"`
	// CertificateSubject is the subject of a client certificate, as in RFC 2253:
	// "CN=agent-7,O=Example".
	CertificateSubject string `json:"certificate_subject,omitempty"`
	// CertificateSAN is a subject alternative name of a client certificate with its kind:
	// "dns:agent-7.example.org", "uri:spiffe://example.org/agent" or
	// "email:ci@example.org".
	CertificateSAN string `json:"certificate_san,omitempty"`
	// Role is the role on the whole server.
	Role Role `json:"role,omitempty"`
	// Grants are roles on some studies.
	Grants []Grant `json:"grants,omitempty"`
	// CreateTime is for people.
	CreateTime *time.Time `json:"create_time,omitempty"`
	// ExpireTime is when the credential ends. Default: never.
	ExpireTime *time.Time `json:"expire_time,omitempty"`
}

// file is the document that keeps the credentials.
type file struct {
	Credentials []*Credential `json:"credentials"`
}

const fileHeader = `# Who may call the server: see docs/operations.md. "dpareto token" rewrites this file
# without its comments. A running server reads it again when it changes.
`

// Read reads a file of credentials and checks it. Unknown fields are errors.
func Read(path string) ([]*Credential, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(path, content)
}

func parse(path string, content []byte) ([]*Credential, error) {
	if len(content) > maxFile {
		return nil, fmt.Errorf("%s: has %d bytes, at most %d are read", path, len(content), maxFile)
	}
	var f file
	if err := yaml.UnmarshalStrict(content, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	seen := make(map[string]bool)
	for i, c := range f.Credentials {
		where := fmt.Sprintf("%s: credentials[%d]", path, i)
		if c == nil {
			return nil, fmt.Errorf("%s: is empty", where)
		}
		if err := c.validate(); err != nil {
			return nil, fmt.Errorf("%s (%.100q): %w", where, c.Name, err)
		}
		for _, key := range c.keys() {
			if seen[key] {
				return nil, fmt.Errorf("%s (%.100q): %s occurs twice", where, c.Name, key)
			}
			seen[key] = true
		}
	}
	return f.Credentials, nil
}

// keys returns what no two credentials may share.
func (c *Credential) keys() []string {
	keys := []string{"id " + c.ID}
	if c.CertificateSubject != "" {
		keys = append(keys, "certificate_subject "+c.CertificateSubject)
	}
	if c.CertificateSAN != "" {
		keys = append(keys, "certificate_san "+c.CertificateSAN)
	}
	return keys
}

func (c *Credential) validate() error {
	proofs := 0
	for _, proof := range []string{c.TokenHash, c.CertificateSubject, c.CertificateSAN} {
		if proof != "" {
			proofs++
		}
	}
	switch {
	case c.ID == "" || len(c.ID) > 100:
		return errors.New("id must have 1 to 100 bytes")
	case c.Name == "" || len(c.Name) > 100:
		return errors.New("name must have 1 to 100 bytes")
	case strings.ContainsFunc(c.ID+c.Name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("id and name must not hold control characters")
	case proofs != 1:
		return errors.New("must have one of token_sha256, certificate_subject and certificate_san")
	case c.Role == None && len(c.Grants) == 0:
		return errors.New("must have a role or grants")
	}
	if c.TokenHash != "" {
		if sum, err := hex.DecodeString(c.TokenHash); err != nil || len(sum) != len(hash("")) {
			return errors.New("token_sha256 must be the SHA-256 of a token, in hexadecimal")
		}
	}
	if kind, name, _ := strings.Cut(c.CertificateSAN, ":"); c.CertificateSAN != "" && (name == "" || !slices.Contains(sanKinds, kind)) {
		return fmt.Errorf(`certificate_san must begin with "%s:"`, strings.Join(sanKinds, `:", "`))
	}
	for _, g := range c.Grants {
		if err := g.validate(); err != nil {
			return fmt.Errorf("grants: %w", err)
		}
	}
	return nil
}

// principal returns who presents the credential.
func (c *Credential) principal() Principal {
	p := Principal{Name: c.Name, Credential: c.ID, Role: c.Role, Grants: c.Grants}
	if c.ExpireTime != nil {
		p.expires = *c.ExpireTime
	}
	return p
}

// NewToken returns a credential with a new token, which only the caller will ever know.
// It fails if the fields of c that are set (name, role, grants, times) are not valid.
func NewToken(c Credential) (*Credential, string, error) {
	token, id := newToken()
	c.ID, c.TokenHash = id, hex.EncodeToString(hash(token))
	if err := c.validate(); err != nil {
		return nil, "", err
	}
	return &c, token, nil
}

// Change reads a file of credentials, which need not exist, and replaces it by what
// change makes of them: at once and durably, readable by the owner that it had and, if it
// was before, its group. Where another process is changing the file it fails.
func Change(path string, change func([]*Credential) ([]*Credential, error)) (err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // the link stays
	}
	// The file to come is the lock, too.
	next := path + ".new"
	out, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: another change is under way; remove the file if one was interrupted", next)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(next))
		}
	}()
	err = writeNext(out, path, change)
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func writeNext(out *os.File, path string, change func([]*Credential) ([]*Credential, error)) error {
	credentials, err := Read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if info, err := os.Stat(path); err == nil {
		if err := keepOwner(out, info); err != nil {
			return err
		}
		if err := out.Chmod(0o600 | info.Mode().Perm()&0o040); err != nil {
			return err
		}
	}
	credentials, err = change(credentials)
	if err != nil {
		return err
	}
	content, err := yaml.Marshal(file{Credentials: credentials})
	if err != nil {
		return err
	}
	content = append([]byte(fileHeader), content...)
	if _, err := parse(path, content); err != nil { // never write what could not be read
		return err
	}
	if _, err := io.Copy(out, bytes.NewReader(content)); err != nil {
		return err
	}
	return out.Sync()
}

// syncFolder makes a rename within a folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// checkMode refuses a file that others can change. The warning, if any, is that everybody
// can read it: they learn names and grants, but no token. A group may read, as that of a
// service does.
func checkMode(path string, info fs.FileInfo) (warning string, err error) {
	switch mode := info.Mode().Perm(); {
	case mode&0o022 != 0:
		return "", fmt.Errorf("%s has mode %#o: others can make themselves administrators; chmod 600 it", path, mode)
	case mode&0o004 != 0:
		return fmt.Sprintf("has mode %#o: everybody can read who may do what; 600 is enough", mode), nil
	}
	return "", nil
}

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
	"runtime"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/dpareto/dpareto/internal/document"
	"github.com/dpareto/dpareto/server/filemode"
)

// maxFile bounds the credentials file, in bytes.
const maxFile = 16 << 20

// Credential is an entry of the file: a caller's credential and its permissions. It has exactly one
// of TokenHash, CertificateSubject and CertificateSAN.
type Credential struct {
	// ID identifies the credential, in logs and for revocation. For a token it is part of the token.
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
	// Role is the role on the whole server. Default: none.
	Role Role `json:"role,omitempty"`
	// Grants are roles on some studies.
	Grants []Grant `json:"grants,omitempty"`
	// Metrics lets the caller read the server's metrics, as an admin of the whole server can. They count
	// the calls about all studies, so no role on studies includes them.
	Metrics bool `json:"metrics,omitempty"`
	// CreateTime is informational.
	CreateTime *time.Time `json:"create_time,omitempty"`
	// ExpireTime is when the credential expires. Default: never.
	ExpireTime *time.Time `json:"expire_time,omitempty"`
}

// file is the document with the credentials.
type file struct {
	Credentials []*Credential `json:"credentials"`
}

const fileHeader = `# Who may call the server: see docs/reference/operations.md. "dpareto token" rewrites this file
# without its comments. A running server reads it again when it changes.
`

// Read reads and validates a file of credentials. Unknown fields are errors.
func Read(path string) ([]*Credential, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(path, content)
}

func parse(path string, content []byte) ([]*Credential, error) {
	if len(content) > maxFile {
		return nil, fmt.Errorf("%s: has %d bytes, must have at most %d", path, len(content), maxFile)
	}
	var f file
	if err := document.UnmarshalTexts(content, &f); err != nil {
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
				return nil, fmt.Errorf("%s (%.100q): duplicate %s", where, c.Name, key)
			}
			seen[key] = true
		}
	}
	return f.Credentials, nil
}

// keys returns the values that must be unique among credentials.
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
	case c.Role == None && len(c.Grants) == 0 && !c.Metrics:
		return errors.New("must have a role, grants or metrics")
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

// principal returns the principal that the credential stands for.
func (c *Credential) principal() Principal {
	p := Principal{Name: c.Name, Credential: c.ID, Role: c.Role, Grants: c.Grants, Metrics: c.Metrics}
	if c.ExpireTime != nil {
		p.expires = *c.ExpireTime
	}
	return p
}

// NewToken returns c with a new token, and the token, which is stored nowhere. It fails if other
// fields of c are invalid.
func NewToken(c Credential) (*Credential, string, error) {
	token, id := newToken()
	c.ID, c.TokenHash = id, hex.EncodeToString(hash(token))
	if err := c.validate(); err != nil {
		return nil, "", err
	}
	return &c, token, nil
}

// Change reads a file of credentials, which need not exist, and atomically and durably replaces it
// with the result of change. The new file keeps its owner and the group's read permission. Change
// fails while another process is changing the file.
func Change(path string, change func([]*Credential) ([]*Credential, error)) (err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // replace the target, not the link
	}
	// The new file also serves as the lock.
	next := path + ".new"
	out, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: another change is in progress; remove the file if it was interrupted", next)
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
	if _, err := parse(path, content); err != nil { // never write a file that Read would refuse
		return err
	}
	if _, err := io.Copy(out, bytes.NewReader(content)); err != nil {
		return err
	}
	return out.Sync()
}

// syncFolder makes a rename in a folder durable. Windows has no such call for folders.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// checkMode refuses a file that others can write. It returns a warning if everyone can read it:
// names and grants leak, but no tokens.
func checkMode(path string, info fs.FileInfo) (warning string, err error) {
	if err := filemode.Check(path, info, 0o644, "others can make themselves administrators"); err != nil {
		return "", err
	}
	if filemode.Exceeds(info, 0o640) {
		return fmt.Sprintf("has mode %#o, so everyone can read the permissions of all tokens: use mode 600", info.Mode().Perm()), nil
	}
	return "", nil
}

package fetch

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// Verify returns nil when the file at path has the expected content, and otherwise an
// error that names the fault.
func Verify(path string, want File) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return verify(f, want)
}

// VerifyCopy is Verify for a file that somebody may have compressed or decompressed.
func VerifyCopy(path string, want File) error {
	want.Size = 0 // of the other form
	want.Unpacked = false
	err := Verify(path, want)
	if err != nil {
		want.Unpacked = true
		if Verify(path, want) == nil {
			return nil
		}
	}
	return err
}

// verify checks what can be read from r.
func verify(r io.Reader, want File) error {
	if want.Unpacked {
		unpacked, err := gzip.NewReader(r)
		if err != nil {
			return err
		}
		r = unpacked
	}
	hash := sha256.New()
	n, err := io.Copy(hash, r)
	if err != nil {
		return err
	}
	if !want.Unpacked && n < want.Size {
		return &shortError{n, want.Size}
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != want.SHA256 {
		return fmt.Errorf("the file has SHA-256 %s, want %s", got, want.SHA256)
	}
	return nil
}

// shortError says that a file ends early.
type shortError struct{ got, want int64 }

// Error implements error.
func (e *shortError) Error() string {
	return fmt.Sprintf("the file ends after %d of %d bytes", e.got, e.want)
}

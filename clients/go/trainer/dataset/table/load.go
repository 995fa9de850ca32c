package table

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
)

// Request asks for the examples of a file.
type Request struct {
	// Path of the file, in a format of the package comment. A Split.TestFile stands in its folder.
	Path   string
	Schema *Schema
	// Seed of the division.
	Seed uint64
	// NoValidation leaves no examples for validation: they train.
	NoValidation bool
}

// Table is the result of reading a user's data.
type Table struct {
	Parts *dataset.Parts
	// Findings that do not prevent training.
	Findings []Finding
	// content has the SHA-256 of each file.
	content []byte
}

// Load reads and divides the examples. Problems of the rows give an *InvalidError. No error has a value of
// the file.
func Load(ctx context.Context, r Request) (*Table, error) {
	if err := r.Schema.Validate(); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	if r.Schema.Rows != Public {
		return nil, errors.New("rows: must be public, because every mechanism here reveals the number of rows. " +
			"State rows: public if everyone may know it (replace-one adjacency protects the content of a row, not the number of rows), " +
			"or train on a subset whose size was chosen without the data")
	}
	return newEncoder(r.Schema).load(ctx, r)
}

func (e *encoder) load(ctx context.Context, r Request) (*Table, error) {
	name := filepath.Base(r.Path)
	t := new(Table)
	files, testFrom := []string{r.Path}, 0
	if test := r.Schema.Split.TestFile; test != "" {
		files = append(files, filepath.Join(filepath.Dir(r.Path), test))
	}
	for i, path := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if i == 1 {
			testFrom = e.data.Rows
		}
		sum, err := e.readFile(path)
		if err != nil {
			return nil, err
		}
		t.content = append(t.content, sum...)
	}
	e.finish(name)
	if err := e.found.invalid(name); err != nil {
		return nil, err
	}
	if e.data.Rows == 0 {
		return nil, fmt.Errorf("%s: has no rows", name)
	}
	parts, err := e.divide(r.Seed, !r.NoValidation, testFrom)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := e.found.invalid(name); err != nil {
		return nil, err
	}
	t.Parts, t.Findings = parts, e.found.list
	return t, nil
}

// Features returns the examples of a file without labels, in the order of its rows, as a model of the schema
// takes them. Errors are as for Load.
func Features(path string, s *Schema) (*dataset.Dataset, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	e := newEncoder(s)
	e.unlabelled = true
	if _, err := e.readFile(path); err != nil {
		return nil, err
	}
	return e.finish(filepath.Base(path)), e.found.invalid(filepath.Base(path))
}

// readFile reads a file, and returns the SHA-256 of its content.
func (e *encoder) readFile(path string) (sum []byte, err error) {
	rows, sumOf, closer, err := openFile(path, e.schema.Separator, e.schema.libsvmDim())
	if err == nil {
		defer func() { err = errors.Join(err, closer.Close()) }()
		err = e.read(rows)
	}
	if err == nil {
		sum, err = sumOf()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return sum, err
}

// keySize is the size of a key in bytes.
const keySize = 32

// KeyPath returns where the key of a file is.
func KeyPath(path string) string { return path + ".key" }

// Digest returns a keyed digest of the files, 32 hexadecimal digits. Studies show it, so that a plain hash
// would be a leak: an attacker who knows all rows but one could try every candidate for it. The key stands
// beside the file, in KeyPath, and must be kept like the data.
func (t *Table) Digest(key []byte) string {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write(t.content) // never fails
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// ReadKey returns the key of the file at path. The error is fs.ErrNotExist if there is none.
func ReadKey(path string) ([]byte, error) {
	content, err := os.ReadFile(KeyPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing: copy it together with the data: %w", filepath.Base(KeyPath(path)), fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(content)))
	if err != nil || len(key) != keySize {
		return nil, fmt.Errorf("%s: must have %d hexadecimal digits", filepath.Base(KeyPath(path)), 2*keySize)
	}
	return key, nil
}

// MakeKey returns the key of the file at path, which it creates if there is none.
func MakeKey(path string) ([]byte, error) {
	key, err := ReadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	key = make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	f, err := os.OpenFile(KeyPath(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(hex.EncodeToString(key) + "\n")
	return key, errors.Join(err, f.Close())
}

// Duplicates returns the numbers of validation and test examples that equal a training example, label
// included, and of training examples that equal an earlier one.
func Duplicates(parts *dataset.Parts) (acrossParts, withinTraining int) {
	type example [sha256.Size]byte
	trained := make(map[example]bool, parts.Train.Rows)
	each := func(d *dataset.Dataset, do func(example)) {
		if d == nil {
			return
		}
		var b []byte
		for i := range d.Rows {
			indices, values := d.Row(i)
			b = fmt.Appendf(b[:0], "%v %v %v", d.Labels[i], indices, values)
			do(sha256.Sum256(b))
		}
	}
	each(parts.Train, func(x example) {
		if trained[x] {
			withinTraining++
		}
		trained[x] = true
	})
	for _, part := range []*dataset.Dataset{parts.Validation, parts.Test} {
		each(part, func(x example) {
			if trained[x] {
				acrossParts++
			}
		})
	}
	return acrossParts, withinTraining
}

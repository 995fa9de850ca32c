package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxLine is the longest line that ReadLIBSVM accepts, in bytes.
const maxLine = 64 << 20

// SyntaxError tells where a data file is malformed.
type SyntaxError struct {
	File   string // as given to the reader
	Line   int    // from 1
	Column int    // from 1, in bytes
	Reason string // in words
}

// Error implements error, in the form file:line:column: reason.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// LoadLIBSVM reads the file at path as ReadLIBSVM does. The dataset is named
// after the file.
func LoadLIBSVM(path string, dim int) (*Dataset, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	d, err := ReadLIBSVM(f, path, dim)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	d.Name = filepath.Base(path)
	return d, f.Close()
}

// ReadLIBSVM reads examples in the format of LIBSVM's data files, one a line:
//
//	label index:value … index:value
//
// Indices count from 1, increase within a line and become 0-based; labels and
// values are finite decimal numbers; blank lines and what follows a # are
// ignored. The input may be compressed with gzip, which is recognised by its
// first bytes. The file name serves as the dataset's name and in errors.
//
// The dimension dim is the number of features; an index above it is an error. It
// must be given where a file need not mention the last features, or the
// dimensions of two files would differ; 0 means the largest index found.
//
// Malformed input gives a *SyntaxError.
func ReadLIBSVM(r io.Reader, file string, dim int) (*Dataset, error) {
	if dim < 0 || dim > math.MaxInt32 {
		panic("dataset: dimension outside [0, 2³¹)")
	}
	r, err := gunzip(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, maxLine)
	b := newBuilder(0, 0)
	p := libsvmParser{dim: dim}
	for line := 1; scanner.Scan(); line++ {
		label, ok, err := p.parse(scanner.Text())
		if err != nil {
			return nil, &SyntaxError{File: file, Line: line, Column: p.column, Reason: err.Error()}
		}
		if ok {
			b.add(label, p.indices, p.values)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("%s: after %d examples: %w", file, len(b.labels), err)
	}
	if dim == 0 && len(b.indices) > 0 {
		dim = int(slices.Max(b.indices)) + 1
	}
	return b.dataset(file, dim), nil
}

// gunzip returns r, or what is compressed in it when it begins like a gzip file.
func gunzip(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(r)
	magic, err := buffered.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return buffered, nil
	}
	return gzip.NewReader(buffered)
}

// libsvmParser parses lines and keeps the features of the last one.
type libsvmParser struct {
	dim     int // indices above it are refused, unless it is 0
	column  int // of the last error
	indices []int32
	values  []float32
}

// parse parses a line; ok is false when it holds no example.
func (p *libsvmParser) parse(line string) (label float32, ok bool, err error) {
	p.indices, p.values = p.indices[:0], p.values[:0]
	line, _, _ = strings.Cut(line, "#")
	first := true
	for at := 0; ; {
		for at < len(line) && (line[at] == ' ' || line[at] == '\t' || line[at] == '\r') {
			at++
		}
		if at == len(line) {
			return label, !first, nil
		}
		token := line[at:]
		if end := strings.IndexAny(token, " \t\r"); end >= 0 {
			token = token[:end]
		}
		p.column = at + 1
		if first {
			label, err = parseFinite(token, "label")
			first = false
		} else {
			err = p.feature(token)
		}
		if err != nil {
			return 0, false, err
		}
		at += len(token)
	}
}

// feature parses index:value and appends it.
func (p *libsvmParser) feature(token string) error {
	left, right, found := strings.Cut(token, ":")
	if !found {
		return fmt.Errorf("feature %q is not of the form index:value", token)
	}
	index, err := strconv.ParseInt(left, 10, 32)
	if err != nil || index < 1 {
		return fmt.Errorf("index %q is not a whole number between 1 and 2³¹−1", left)
	}
	if p.dim > 0 && index > int64(p.dim) {
		return fmt.Errorf("index %d is above the dimension %d", index, p.dim)
	}
	index-- // from 0 from here on
	if n := len(p.indices); n > 0 && int64(p.indices[n-1]) >= index {
		return fmt.Errorf("index %d does not increase after %d", index+1, p.indices[n-1]+1)
	}
	value, err := parseFinite(right, "value")
	if err != nil {
		p.column += len(left) + 1
		return err
	}
	p.indices = append(p.indices, int32(index))
	p.values = append(p.values, value)
	return nil
}

// parseFinite parses a finite number; what names it in errors.
func parseFinite(s, what string) (float32, error) {
	if s == "1" { // nearly always, in one-hot data
		return 1, nil
	}
	v, err := strconv.ParseFloat(s, 32)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%s %q is not a finite number", what, s)
	}
	return float32(v), nil
}

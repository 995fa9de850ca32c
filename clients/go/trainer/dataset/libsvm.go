package dataset

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpareto/dpareto/internal/text"
)

// LoadLIBSVM reads the file at path as ReadLIBSVM does. The dataset is named
// after the file.
func LoadLIBSVM(path string, dim int) (*Dataset, error) {
	return load(path, func(r io.Reader) (*Dataset, error) { return ReadLIBSVM(r, path, dim) })
}

// ReadLIBSVM reads examples in the format of LIBSVM's data files, one a line:
//
//	label index:value … index:value
//
// Indices count from 1, increase within a line and become 0-based; labels and
// values are finite decimal numbers; blank lines, blanks after a colon and what follows
// a # are ignored, and so is a byte order mark. Lines may end as on any system. The input may be compressed with gzip, which is recognised by its
// first bytes. The file name serves as the dataset's name and in errors.
//
// The dimension dim is the number of features; an index above it is an error. It
// must be given where a file need not mention the last features, or the
// dimensions of two files would differ; 0 means the largest index found.
//
// The labels are kept as they are; trainers want −1 and 1, or 0 to K−1. Malformed input
// gives a *SyntaxError.
func ReadLIBSVM(r io.Reader, file string, dim int) (*Dataset, error) {
	if dim < 0 || dim > math.MaxInt32 {
		panic("dataset: dimension outside [0, 2³¹)")
	}
	b := newBuilder(0, 0, false)
	p := libsvmParser{dim: dim}
	err := scanLines(r, file, func(number int, line []byte) error {
		label, ok, err := p.parse(string(line))
		if err != nil {
			return &SyntaxError{File: file, Line: number, Column: p.column, Reason: err.Error()}
		}
		if ok {
			b.add(label, p.indices, p.values)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if dim == 0 && len(b.indices) > 0 {
		dim = int(slices.Max(b.indices)) + 1
	}
	return b.dataset(file, dim), nil
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
		for at < len(line) && strings.IndexByte(blank, line[at]) >= 0 {
			at++
		}
		if at == len(line) {
			return label, !first, nil
		}
		token := line[at:]
		end := endOfToken(token, 0)
		if !first && token[end-1] == ':' { // published files have blanks after some colons
			blanks := len(token[end:]) - len(strings.TrimLeft(token[end:], blank))
			end = endOfToken(token, end+blanks)
		}
		token = token[:end]
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

// blank are the characters between tokens.
const blank = " \t\r"

// endOfToken returns where the token ends in which a line has the given position.
func endOfToken(line string, at int) int {
	if end := strings.IndexAny(line[at:], blank); end >= 0 {
		return at + end
	}
	return len(line)
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
	number := strings.TrimLeft(right, blank)
	value, err := parseFinite(number, "value")
	if err != nil {
		p.column += len(left) + 1
		if number != "" {
			p.column += len(right) - len(number)
		}
		return err
	}
	p.indices = append(p.indices, int32(index))
	p.values = append(p.values, value)
	return nil
}

// parseFinite parses a finite decimal number; what names it in errors.
func parseFinite(s, what string) (float32, error) {
	switch s { // most of the values in sparse and in one-hot data, and of the rates of KDD Cup 99
	case "0", "0.00":
		return 0, nil
	case "1", "1.00":
		return 1, nil
	}
	v, ok := text.Number(s, 32)
	if !ok {
		return 0, fmt.Errorf("%s %q is not a finite number", what, s)
	}
	return float32(v), nil
}

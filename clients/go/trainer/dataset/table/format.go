package table

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/internal/text"
)

// reader reads the rows of a file, whatever its format.
type reader interface {
	// header returns the columns in the order of their cells. A column of several numbers has them one after the other.
	header() []field
	// next returns the cells of a row, which the next call may overwrite, or the fault of the row in words. Its error
	// is io.EOF after the last row. Neither the words nor an error has a value of the file.
	next() (row []cell, problem string, err error)
}

// field is a column of a file.
type field struct {
	name string
	// length of a column of several numbers, which are also columns called name0, name1 and so on; 0 for others.
	length int
}

// cell is a value of a file: a number, or a text, which may stand for a number or for a missing value.
type cell struct {
	text    string
	number  float64
	numeric bool
	// decimalComma says that a number in text may have a comma before its fraction.
	decimalComma bool
}

// String returns the text of the cell, of a number in decimal notation.
func (c cell) String() string {
	switch {
	case !c.numeric:
		return c.text
	case math.Abs(c.number) < 1e15 && c.number == math.Trunc(c.number):
		return strconv.FormatFloat(c.number, 'f', 0, 64)
	default:
		return strconv.FormatFloat(c.number, 'g', -1, 64)
	}
}

// finite returns the finite number in the cell.
func (c cell) finite() (x float64, ok bool) {
	if !c.numeric {
		number := c.text
		if c.decimalComma {
			number = strings.Replace(number, ",", ".", 1)
		}
		return text.Number(number, 64)
	}
	return c.number, !math.IsNaN(c.number) && !math.IsInf(c.number, 0)
}

// openFile opens a file in the format that its first bytes or its name show. dim is the number of features to expect
// in a LIBSVM file, which does not state it. sum returns the SHA-256 of the content, after the last row.
func openFile(path, separator string, dim int) (rows reader, sum func() ([]byte, error), closer io.Closer, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, nil, err
	}
	rows, sum, err = newReader(f, path, separator, dim)
	if err != nil {
		return nil, nil, nil, errors.Join(err, f.Close())
	}
	return rows, sum, f, nil
}

func newReader(f *os.File, path, separator string, dim int) (rows reader, sum func() ([]byte, error), err error) {
	content, err := dataset.Gunzip(f)
	if err != nil {
		return nil, nil, err
	}
	buffered := bufio.NewReaderSize(content, 1<<16)
	magic, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	whole := func() ([]byte, error) { return hashFiles(path) }
	switch {
	case string(magic) == "PAR1":
		rows, err = newParquet(f)
		return rows, whole, err
	case bytes.HasPrefix(magic, []byte("PK")):
		rows, err = newNPZ(f)
		return rows, whole, err
	case string(magic) == "\x93NUM":
		rows, err = newNPY(buffered)
		return rows, whole, err
	case len(magic) == 4 && magic[0] == 0 && magic[1] == 0:
		labels := labelsOf(path)
		rows, err = newIDX(buffered, path, labels)
		return rows, func() ([]byte, error) { return hashFiles(path, labels) }, err
	case hasSuffix(path, ".parquet", ".npy", ".npz", "-ubyte", ".idx"):
		return nil, nil, errors.New("does not begin as a file of this format does")
	case isLIBSVM(path):
		hash := sha256.New()
		return newLIBSVM(io.TeeReader(buffered, hash), dim), sumRest(buffered, hash), nil
	default:
		hash := sha256.New()
		rows, err = newCSV(io.TeeReader(buffered, hash), comma(separator, path))
		return rows, sumRest(buffered, hash), err
	}
}

func isLIBSVM(path string) bool { return hasSuffix(path, ".libsvm", ".svmlight", ".svm") }

// hasSuffix reports whether a file has one of the suffixes, perhaps before .gz.
func hasSuffix(path string, suffixes ...string) bool {
	name := strings.TrimSuffix(strings.ToLower(path), ".gz")
	return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// sumRest returns the hash of all bytes read and of the bytes after the last record, such as blanks.
func sumRest(r io.Reader, hash hash.Hash) func() ([]byte, error) {
	return func() ([]byte, error) {
		if _, err := io.Copy(hash, r); err != nil {
			return nil, err
		}
		return hash.Sum(nil), nil
	}
}

// hashFiles returns the SHA-256 of each file, one after the other, without those that do not exist.
func hashFiles(paths ...string) ([]byte, error) {
	var sums []byte
	for _, path := range paths {
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		hash := sha256.New()
		_, err = io.Copy(hash, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		sums = hash.Sum(sums)
	}
	return sums, nil
}

// comma returns the separator of a file, which the schema may give, or 0 where the header shows it.
func comma(separator, file string) rune {
	for _, r := range separator {
		return r
	}
	if hasSuffix(file, ".tsv") {
		return '\t'
	}
	return 0
}

// csvReader reads CSV with a header.
type csvReader struct {
	lines  *csv.Reader
	fields []field
	row    []cell
	rows   int

	skipped int // lines before the header
}

func newCSV(r io.Reader, comma rune) (*csvReader, error) {
	buffered := bufio.NewReaderSize(text.NewReader(r), 1<<16)
	head, _ := buffered.Peek(1 << 16) // the error shows again when the header is read
	shown, declaration := text.Separator(head)
	if comma == 0 {
		comma = shown
	}
	c := new(csvReader)
	if declaration > 0 {
		_, _ = buffered.Discard(declaration) // it was peeked at
		c.skipped = 1
	}
	c.lines = csv.NewReader(text.NewLineReader(buffered, true))
	c.lines.Comma = comma
	c.lines.TrimLeadingSpace = comma != ' ' && comma != '\t'
	c.lines.FieldsPerRecord = -1
	c.lines.ReuseRecord = true
	record, err := c.read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("is empty, must have a header with the names of the columns")
	}
	if err != nil {
		return nil, err
	}
	for _, name := range record {
		c.fields = append(c.fields, field{name: name})
	}
	c.row = make([]cell, len(c.fields))
	return c, nil
}

func (c *csvReader) header() []field { return c.fields }

// read returns the texts of the next line.
func (c *csvReader) read() ([]string, error) {
	record, err := c.lines.Read()
	if err != nil {
		return nil, c.withoutValues(err)
	}
	for i, value := range record {
		if !utf8.ValidString(value) {
			line, _ := c.lines.FieldPos(i)
			return nil, fmt.Errorf("line %d: is not UTF-8: save the file as UTF-8, or convert it, such as by iconv -f WINDOWS-1252 -t UTF-8", line+c.skipped)
		}
		record[i] = strings.TrimSpace(value)
	}
	return record, nil
}

func (c *csvReader) next() ([]cell, string, error) {
	record, err := c.read()
	if err != nil {
		return nil, "", err
	}
	c.rows++
	if len(record) != len(c.row) {
		return nil, fmt.Sprintf("rows do not have the %d fields of the header", len(c.row)), nil
	}
	for i, value := range record {
		c.row[i] = cell{text: value, decimalComma: c.lines.Comma == ';'}
	}
	return c.row, "", nil
}

// withoutValues returns an error of a reader of records, which may have come from deeper, or io.EOF.
func (c *csvReader) withoutValues(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if malformed, ok := errors.AsType[*csv.ParseError](err); ok {
		err = malformed.Err
	}
	return fmt.Errorf("is malformed after %d rows: %w", c.rows, err)
}

// Names of columns in files that have none.
const (
	columnLabel = "label"
	columnX     = "x"
)

// libsvmReader reads the format of LIBSVM: a label and index:value pairs a line, indices counting from 1. The columns
// are label and x, whose number k−1 has index k. Pairs that are not there are 0; larger indices are not used.
type libsvmReader struct {
	lines *bufio.Scanner
	row   []cell
}

func newLIBSVM(r io.Reader, dim int) *libsvmReader {
	l := &libsvmReader{bufio.NewScanner(text.NewLineReader(text.NewReader(r), false)), make([]cell, 1+dim)}
	l.lines.Buffer(nil, 1<<26)
	return l
}

func (l *libsvmReader) header() []field {
	return []field{{name: columnLabel}, {name: columnX, length: len(l.row) - 1}}[:min(2, len(l.row))]
}

func (l *libsvmReader) next() ([]cell, string, error) {
	for l.lines.Scan() {
		line, _, _ := strings.Cut(l.lines.Text(), "#")
		tokens := strings.Fields(line)
		if len(tokens) == 0 {
			continue
		}
		for i := range l.row {
			l.row[i] = cell{numeric: true}
		}
		if label, ok := text.Number(tokens[0], 64); ok {
			l.row[0].number = label
		} else {
			l.row[0] = cell{text: tokens[0]}
		}
		last := 0
		for _, token := range tokens[1:] {
			left, right, _ := strings.Cut(token, ":")
			index, _ := strconv.Atoi(left) // 0 is also wrong
			value, ok := text.Number(right, 64)
			if !ok || index <= last {
				return nil, "rows are not a label and pairs index:value, with finite numbers and increasing indices from 1", nil
			}
			if last = index; index < len(l.row) {
				l.row[index].number = value
			}
		}
		return l.row, "", nil
	}
	if err := l.lines.Err(); err != nil {
		return nil, "", err
	}
	return nil, "", io.EOF
}

// libsvmDim returns the largest index in the first rows of a LIBSVM file, 0 of other files.
func libsvmDim(path string, rows int) (dim int, err error) {
	if !isLIBSVM(path) {
		return 0, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	content, err := dataset.Gunzip(f)
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(text.NewReader(content))
	lines.Buffer(nil, 1<<26)
	for range rows {
		if !lines.Scan() {
			break
		}
		line, _, _ := strings.Cut(lines.Text(), "#")
		for token := range strings.FieldsSeq(line) {
			left, _, _ := strings.Cut(token, ":")
			if index, err := strconv.Atoi(left); err == nil && left != token {
				dim = max(dim, index)
			}
		}
	}
	return min(dim, maxValues), lines.Err()
}

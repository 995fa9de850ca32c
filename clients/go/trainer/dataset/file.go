package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dpareto/dpareto/internal/text"
)

// SyntaxError says where a data file is malformed.
type SyntaxError struct {
	File   string // as given to the reader
	Line   int    // of a text file, from 1; 0 in a binary file
	Column int    // from 1, in bytes; 0 where the whole line is meant
	Offset int64  // in bytes from the beginning of a binary file, after decompression
	Reason string // in words
}

// Error implements error, in the form file:line:column: reason; of a binary file it is
// file: byte offset: reason.
func (e *SyntaxError) Error() string {
	switch {
	case e.Line == 0:
		return fmt.Sprintf("%s: byte %d: %s", e.File, e.Offset, e.Reason)
	case e.Column == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
	default:
		return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
	}
}

// load reads the file at path, and names the dataset after it.
func load(path string, read func(io.Reader) (*Dataset, error)) (*Dataset, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	d, err := read(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	d.Name = filepath.Base(path)
	return d, f.Close()
}

// Gunzip returns r, or its decompressed content if it begins like a gzip file.
func Gunzip(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	magic, err := buffered.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return buffered, nil
	}
	return gzip.NewReader(buffered)
}

// maxLine is the longest line of a text file that is accepted, in bytes.
const maxLine = 64 << 20

// scanLines calls do for the lines of a text, perhaps compressed, from number 1. A line
// is only valid during its call.
func scanLines(r io.Reader, file string, do func(number int, line []byte) error) error {
	r, err := Gunzip(r)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	scanner := bufio.NewScanner(text.NewLineReader(text.NewReader(r), false))
	scanner.Buffer(nil, maxLine)
	number := 1
	for ; scanner.Scan(); number++ {
		if err := do(number, scanner.Bytes()); err != nil {
			return err
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("%s: line %d: %w", file, number, err)
	}
	return nil
}

package dataset

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"

	"github.com/dpareto/dpareto/internal/text"
)

// records reads lines of separated fields, perhaps compressed, and knows their positions.
type records struct {
	csv    *csv.Reader
	file   string
	width  int      // number of fields of a record
	fields []string // of the last record, until the next
	count  int      // of records so far
	err    error    // that ended the reading
}

func newRecords(r io.Reader, file string, width int) (*records, error) {
	r, err := Gunzip(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	reader := csv.NewReader(text.NewLineReader(text.NewReader(r), true))
	reader.FieldsPerRecord = -1 // counted here, for an error with both numbers
	reader.ReuseRecord = true
	return &records{csv: reader, file: file, width: width}, nil
}

// next reads a record into fields. It returns false at the end and for an error.
func (r *records) next() bool {
	fields, err := r.csv.Read()
	if malformed, ok := errors.AsType[*csv.ParseError](err); ok {
		r.err = &SyntaxError{File: r.file, Line: malformed.Line, Column: malformed.Column, Reason: malformed.Err.Error()}
		return false
	}
	if err != nil {
		if !errors.Is(err, io.EOF) {
			r.err = fmt.Errorf("%s: after %d records: %w", r.file, r.count, err)
		}
		return false
	}
	r.fields = fields
	if len(fields) != r.width {
		r.err = r.fail(0, "%d fields, want %d", len(fields), r.width)
		return false
	}
	r.count++
	return true
}

// fail returns an error about a field of the last record.
func (r *records) fail(field int, format string, args ...any) error {
	line, column := r.csv.FieldPos(field)
	return &SyntaxError{File: r.file, Line: line, Column: column, Reason: fmt.Sprintf(format, args...)}
}

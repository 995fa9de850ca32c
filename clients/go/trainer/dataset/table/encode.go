package table

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/internal/text"
)

// maxValues is the largest number of encoded values that are kept in memory, 2 GiB of them.
const maxValues = 1 << 28

// encoder turns the rows of files into examples.
type encoder struct {
	schema  *Schema
	file    string // that is read now, for errors
	most    int    // values that are kept
	dense   bool
	bound   float64
	missing []string
	found   findings

	data   dataset.Dataset
	groups []uint64 // hashes of the ids, if there is a group
	late   []bool   // rows from the time of the test examples on, if time divides

	columns []column
	label   map[string]int
	from    moment
	row     []float32 // the encoded row
	// features alone: the label, the id and the time are not read.
	unlabelled bool
}

// column is where a feature stands in the file and among the encoded features.
type column struct {
	*Feature
	field int // in the file that is read now
	first int // encoded feature
	codes map[string]int
	// cells that were seen: a column is constant while none differs from the first.
	seen, varies bool
	before       [2]float64 // position and value of the first
}

func newEncoder(s *Schema) *encoder {
	e := &encoder{schema: s, most: maxValues, bound: s.FeatureNorm(), missing: s.Missing, label: make(map[string]int), row: make([]float32, s.Dim())}
	if s.Missing == nil {
		e.missing = DefaultMissing
	}
	for i, value := range s.Label.Values {
		e.label[value] = i
	}
	first := 0
	for i := range s.Features {
		f := &s.Features[i]
		c := column{Feature: f, first: first, codes: make(map[string]int)}
		for k, category := range f.Categories {
			c.codes[category] = k
		}
		e.columns = append(e.columns, c)
		first += f.width()
	}
	e.dense = 2*len(s.Features) >= first
	e.data = dataset.Dataset{Dim: first, Classes: len(s.Label.Values), FeatureNorm: e.bound}
	if !e.dense {
		e.data.RowStart = []int{0}
	}
	if s.Split.Time != nil {
		e.from, _ = parseTime(s.Split.Time.TestFrom) // validated
	}
	return e
}

// read appends the rows of a file, and returns the SHA-256 of its decompressed content. Problems of rows
// are findings; an error is a problem of the file. Neither has a value of the file.
func (e *encoder) read(r io.Reader) ([]byte, error) {
	content, err := gunzip(r)
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	content = io.TeeReader(content, hash)
	lines := newLines(content, e.schema.comma(e.file))
	header, err := lines.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("is empty, must have a header with the names of the columns")
	}
	if err != nil {
		return nil, withoutValues(err, 0)
	}
	fields, err := e.resolve(header)
	if err != nil {
		return nil, err
	}
	for rows := 0; ; rows++ {
		record, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, withoutValues(err, rows)
		}
		if len(record) != fields.count {
			e.found.add(true, "", fmt.Sprintf("rows do not have the %d fields of the header", fields.count))
			continue
		}
		e.encode(record, fields)
		if len(e.data.Values)+len(e.data.Dense) > e.most {
			return nil, fmt.Errorf("is too large: more than %d encoded values; train on fewer rows or features, or write a worker of your own", e.most)
		}
	}
	// What follows the last record, such as blanks, belongs to the content.
	if _, err := io.Copy(io.Discard, content); err != nil {
		return nil, err
	}
	return hash.Sum(nil), nil
}

// newLines returns a reader of the records of a text.
func newLines(r io.Reader, comma rune) *csv.Reader {
	lines := csv.NewReader(text.NewLineReader(text.NewReader(r), true))
	lines.Comma = comma
	lines.TrimLeadingSpace = comma != ' ' && comma != '\t'
	lines.FieldsPerRecord = -1
	lines.ReuseRecord = true
	return lines
}

// comma returns the separator of a file.
func (s *Schema) comma(file string) rune {
	for _, r := range s.Separator {
		return r
	}
	if strings.HasSuffix(strings.TrimSuffix(file, ".gz"), ".tsv") {
		return '\t'
	}
	return ','
}

// withoutValues returns an error of a reader of records, which may have come from deeper.
func withoutValues(err error, rows int) error {
	if malformed, ok := errors.AsType[*csv.ParseError](err); ok {
		err = malformed.Err
	}
	return fmt.Errorf("is malformed after %d rows: %w", rows, err)
}

// gunzip returns r, or its decompressed content if it begins like a gzip file.
func gunzip(r io.Reader) (io.Reader, error) {
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

// fields are the positions of columns that are no features.
type fields struct {
	count, label, group, time int // −1 where there is no such column
}

// resolve finds the columns of the schema in a header. Its errors have no name of the header: without a
// header, the first row stands there.
func (e *encoder) resolve(header []string) (fields, error) {
	names := make([]string, len(header))
	for i, name := range header {
		names[i] = strings.TrimSpace(name)
	}
	f := fields{count: len(names), label: -1, group: -1, time: -1}
	var lacking, twice []string
	find := func(name string) int {
		i := slices.Index(names, name)
		switch {
		case i < 0:
			lacking = append(lacking, fmt.Sprintf("%q", name))
		case slices.Contains(names[i+1:], name):
			twice = append(twice, fmt.Sprintf("%q", name))
		}
		return i
	}
	if !e.unlabelled {
		f.label = find(e.schema.Label.Column)
	}
	for i := range e.columns {
		e.columns[i].field = find(e.columns[i].Column)
	}
	if e.schema.Group != "" && !e.unlabelled {
		f.group = find(e.schema.Group)
	}
	if e.schema.Split.Time != nil && !e.unlabelled {
		f.time = find(e.schema.Split.Time.Column)
	}
	if len(lacking) > 0 {
		return f, fmt.Errorf("header: has no column %s of the schema among its %d; the first line must have the names of the columns",
			strings.Join(lacking, ", "), len(names))
	}
	if len(twice) > 0 {
		return f, fmt.Errorf("header: has column %s of the schema twice", strings.Join(twice, ", "))
	}
	return f, nil
}

// Problems of rows.
const (
	problemLabel    = "labels are not among the values of the schema"
	problemMissing  = "values are missing; the schema can say missing: indicator"
	problemNumber   = "values are not finite numbers"
	problemCategory = "values are not among the categories of the schema, which can say unknown: other"
	problemID       = "ids are missing"
	problemTime     = "times are of another form than test_from"
	noteRange       = "numbers outside the range were moved to its ends"
	noteNorm        = "rows over the bound on the norm were scaled down"
	noteConstant    = "is constant"
)

// encode appends a row. A row with a fatal problem is appended in some form, to be counted.
func (e *encoder) encode(record []string, f fields) {
	clear(e.row)
	for i := range e.columns {
		e.cell(&e.columns[i], strings.TrimSpace(record[e.columns[i].field]))
	}
	scaleTo(e.row, e.bound, &e.found)
	e.data.Labels = append(e.data.Labels, e.labelOf(record, f))
	e.data.Rows++
	if f.group >= 0 {
		id := strings.TrimSpace(record[f.group])
		if slices.Contains(e.missing, id) {
			e.found.add(true, e.schema.Group, problemID)
		}
		sum := sha256.Sum256([]byte(id))
		e.groups = append(e.groups, binary.LittleEndian.Uint64(sum[:]))
	}
	if f.time >= 0 {
		e.late = append(e.late, e.isLate(strings.TrimSpace(record[f.time])))
	}
	if e.dense {
		e.data.Dense = append(e.data.Dense, e.row...)
		return
	}
	for i, v := range e.row {
		if v != 0 {
			e.data.Indices = append(e.data.Indices, int32(i))
			e.data.Values = append(e.data.Values, v)
		}
	}
	e.data.RowStart = append(e.data.RowStart, len(e.data.Indices))
}

// labelOf returns the label of a row, or 0 where none is read.
func (e *encoder) labelOf(record []string, f fields) float32 {
	if f.label < 0 {
		return 0
	}
	class, ok := e.label[strings.TrimSpace(record[f.label])]
	if !ok {
		e.found.add(true, e.schema.Label.Column, problemLabel)
	}
	if e.data.Classes == 2 {
		return float32(2*class - 1)
	}
	return float32(class)
}

// cell encodes the value of a column.
func (e *encoder) cell(c *column, cell string) {
	var at int
	value := 1.0
	code, known := c.codes[cell]
	switch {
	case known:
		at = code
	case slices.Contains(e.missing, cell):
		if c.Missing != Indicator {
			e.found.add(true, c.Column, problemMissing)
			return
		}
		at = c.width() - 1
	case len(c.Range) > 0:
		x, ok := text.Number(cell, 64)
		if !ok {
			e.found.add(true, c.Column, problemNumber)
			return
		}
		if x < c.Range[0] || x > c.Range[1] {
			e.found.add(false, c.Column, noteRange)
		}
		at, value = 0, position(x, c.Range)
	case c.Unknown == Other:
		at = len(c.Categories)
	default:
		e.found.add(true, c.Column, problemCategory)
		return
	}
	e.row[c.first+at] = float32(value)
	now := [2]float64{float64(at), value}
	c.varies = c.varies || c.seen && now != c.before
	c.seen, c.before = true, now
}

// position returns a number moved into a range and scaled to [−1, 1]. The range may be so wide that its
// width overflows only when doubled.
func position(x float64, ends []float64) float64 {
	x = min(max(x, ends[0]), ends[1])
	return min(max(2*((x-ends[0])/(ends[1]-ends[0]))-1, -1), 1)
}

// slack is how much shorter than the bound a scaled row becomes, so that rounding to float32 cannot make it
// longer.
const slack = 1 - 0x1p-20

// scaleTo scales a row to the bound if it exceeds it, even by rounding.
func scaleTo(row []float32, bound float64, found *findings) {
	norm := norm(row)
	if norm <= bound {
		return
	}
	found.add(false, "", noteNorm)
	for i, v := range row {
		row[i] = float32(float64(v) * (bound / norm * slack))
	}
}

func norm(row []float32) float64 {
	var sum float64
	for _, v := range row {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum)
}

// isLate reports whether a time is one of test examples.
func (e *encoder) isLate(cell string) bool {
	at, err := parseTime(cell)
	if err != nil || (at.date == "") != (e.from.date == "") {
		e.found.add(true, e.schema.Split.Time.Column, problemTime)
		return false
	}
	return at.number >= e.from.number && at.date >= e.from.date
}

// finish returns the examples, named after the file, after the last row.
func (e *encoder) finish(name string) *dataset.Dataset {
	if e.data.Rows > 0 {
		for _, c := range e.columns {
			if c.seen && !c.varies {
				e.found.addCount(false, c.Column, noteConstant, 0)
			}
		}
	}
	e.data.Name = name
	return &e.data
}

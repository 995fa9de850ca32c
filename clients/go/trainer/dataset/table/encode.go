package table

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
)

// maxValues is the largest number of encoded values that are kept in memory, 2 GiB of them.
const maxValues = 1 << 28

// encoder turns the rows of files into examples.
type encoder struct {
	schema  *Schema
	most    int // values that are kept
	dense   bool
	bound   float64
	missing []string
	found   findings

	data   dataset.Dataset
	groups []uint64 // hashes of the ids, if there is a group
	late   []bool   // rows from the time of the test examples on, if time divides

	columns []column
	label   map[string]int
	group   map[string]int // of Schema.Fairness
	from    moment
	row     []float32 // the encoded row
	// features alone: the label, the id and the time are not read.
	unlabelled bool
}

// column is where a feature stands in the file and among the encoded features.
type column struct {
	*Feature
	fields []int // in the file that is read now, one unless Length says more
	first  int   // encoded feature
	codes  map[string]int
	// cells that were seen: a column is constant while none differs from the first.
	seen, varies bool
	before       [2]float64 // position and value of the first
}

func newEncoder(s *Schema) *encoder {
	e := &encoder{schema: s, most: maxValues, bound: s.FeatureNorm(), missing: s.MissingTexts(), label: make(map[string]int), group: make(map[string]int), row: make([]float32, s.Dim())}
	for i, value := range s.Label.Values {
		e.label[value] = i
	}
	for i, value := range s.Fairness.Values {
		e.group[value] = i
	}
	first, numbers := 0, 0
	for i := range s.Features {
		f := &s.Features[i]
		numbers += max(1, f.Length)
		c := column{Feature: f, first: first, codes: make(map[string]int)}
		for k, category := range f.Categories {
			c.codes[category] = k
		}
		e.columns = append(e.columns, c)
		first += f.width()
	}
	e.dense = 2*numbers >= first
	e.data = dataset.Dataset{Dim: first, Classes: len(s.Label.Values), ClassNames: s.Label.Values, FeatureNorm: e.bound}
	if len(s.Label.Range) > 0 {
		e.data.LabelRange = [2]float64(s.Label.Range)
	}
	if !e.dense {
		e.data.RowStart = []int{0}
	}
	if s.Split.Time != nil {
		e.from, _ = parseTime(s.Split.Time.TestFrom) // validated
	}
	return e
}

// read appends the rows of a file. Problems of rows are findings; an error is a problem of the file. Neither has a
// value of the file.
func (e *encoder) read(rows reader) error {
	fields, err := e.resolve(rows.header())
	if err != nil {
		return err
	}
	for {
		row, problem, err := rows.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if problem != "" {
			e.found.add(true, "", problem)
			continue
		}
		e.encode(row, fields)
		if len(e.data.Values)+len(e.data.Dense) > e.most {
			return fmt.Errorf("is too large: more than %d encoded values; train on fewer rows or features, or write your own worker", e.most)
		}
	}
}

// positions are the positions of columns that are no features.
type positions struct {
	label, group, time, fairness int // −1 where there is no such column
}

// resolve finds the columns of the schema in a header. Its errors have no name of the header: without a
// header, the first row stands there.
func (e *encoder) resolve(header []field) (positions, error) {
	at, twice := make(map[string]int), make(map[string]bool)
	lengths := make(map[string]int)
	count := 0
	add := func(name string) {
		_, known := at[name]
		twice[name] = known
		at[name] = count
		count++
	}
	for _, f := range header {
		if f.length == 0 {
			add(f.name)
		}
		lengths[f.name] = f.length
		for k := range f.length {
			add(element(f.name, k))
		}
	}
	var lacking, repeated []string
	find := func(name string) int {
		i, ok := at[name]
		if !ok {
			lacking = append(lacking, fmt.Sprintf("%q", name))
			return -1
		}
		if twice[name] {
			repeated = append(repeated, fmt.Sprintf("%q", name))
		}
		return i
	}
	p := positions{label: -1, group: -1, time: -1, fairness: -1}
	if !e.unlabelled {
		p.label = find(e.schema.Label.Column)
	}
	for i := range e.columns {
		c := &e.columns[i]
		c.fields = c.fields[:0]
		if length := lengths[c.Column]; c.Length > 0 && length > 0 && length != c.Length {
			return p, fmt.Errorf("column %q has %d numbers in the file, but length %d in the schema", c.Column, length, c.Length)
		}
		if c.Length == 0 {
			c.fields = append(c.fields, find(c.Column))
		}
		for k := range c.Length {
			if c.fields = append(c.fields, find(element(c.Column, k))); len(lacking) > 0 {
				break // the first says enough
			}
		}
	}
	if e.schema.Group != "" && !e.unlabelled {
		p.group = find(e.schema.Group)
	}
	if e.schema.Split.Time != nil && !e.unlabelled {
		p.time = find(e.schema.Split.Time.Column)
	}
	if e.schema.Fairness.Column != "" && !e.unlabelled {
		p.fairness = find(e.schema.Fairness.Column)
	}
	if len(lacking) > 0 {
		return p, fmt.Errorf("header: has no column %s of the schema among its %d; a CSV file must have the names of the columns in the first line",
			strings.Join(lacking, ", "), count)
	}
	if len(repeated) > 0 {
		return p, fmt.Errorf("header: has column %s of the schema twice", strings.Join(repeated, ", "))
	}
	return p, nil
}

// element returns the name of a number in a column of several.
func element(name string, k int) string { return name + strconv.Itoa(k) }

// Problems of rows.
const (
	problemLabel       = "labels are not among the values of the schema; rows without a label must be left out"
	problemLabelNumber = "labels are not finite numbers; rows without a label must be left out"
	problemMissing     = "values are missing; the schema can say missing: indicator"
	problemNumber      = "values are not finite numbers; missing of the schema has the texts of missing values"
	problemCategory    = "values are not among the categories of the schema, which can say unknown: other"
	problemID          = "ids are missing"
	problemTime        = "times have another form than test_from"
	noteRange          = "numbers outside the range were moved to its ends"
	noteNorm           = "rows over the bound on the norm were scaled down"
	noteConstant       = "is constant"
)

// encode appends a row. A row with a fatal problem is appended in some form, to be counted.
func (e *encoder) encode(record []cell, f positions) {
	clear(e.row)
	for i := range e.columns {
		c := &e.columns[i]
		if c.Length > 0 {
			e.vector(c, record)
		} else {
			e.cell(c, record[c.fields[0]])
		}
	}
	scaleTo(e.row, e.bound, &e.found)
	e.data.Labels = append(e.data.Labels, e.labelOf(record, f))
	e.data.Rows++
	if f.group >= 0 {
		id := record[f.group].String()
		if slices.Contains(e.missing, id) {
			e.found.add(true, e.schema.Group, problemID)
		}
		sum := sha256.Sum256([]byte(id))
		e.groups = append(e.groups, binary.LittleEndian.Uint64(sum[:]))
	}
	if f.time >= 0 {
		e.late = append(e.late, e.isLate(record[f.time].String()))
	}
	if f.fairness >= 0 {
		group, ok := e.group[record[f.fairness].String()]
		if !ok {
			group = -1
		}
		e.data.Groups = append(e.data.Groups, group)
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
func (e *encoder) labelOf(record []cell, f positions) float32 {
	if f.label < 0 {
		return 0
	}
	if ends := e.schema.Label.Range; len(ends) > 0 {
		x, ok := record[f.label].finite()
		if !ok {
			e.found.add(true, e.schema.Label.Column, problemLabelNumber)
		} else if x < ends[0] || x > ends[1] {
			e.found.add(false, e.schema.Label.Column, noteRange)
		}
		return float32(position(x, ends))
	}
	class, ok := e.label[record[f.label].String()]
	if !ok {
		e.found.add(true, e.schema.Label.Column, problemLabel)
	}
	if e.data.Classes == 2 {
		return float32(2*class - 1)
	}
	return float32(class)
}

// vector encodes the numbers of a column.
func (e *encoder) vector(c *column, record []cell) {
	outside := false
	for k, at := range c.fields {
		x, ok := record[at].finite()
		if !ok {
			e.found.add(true, c.Column, problemNumber)
			return
		}
		outside = outside || x < c.Range[0] || x > c.Range[1]
		e.row[c.first+k] = float32(position(x, c.Range))
	}
	if outside {
		e.found.add(false, c.Column, noteRange)
	}
}

// cell encodes the value of a column.
func (e *encoder) cell(c *column, v cell) {
	var at int
	value := 1.0
	code, known := 0, false
	if len(c.codes) > 0 {
		code, known = c.codes[v.String()]
	}
	switch {
	case known:
		at = code
	case (!v.numeric || math.IsNaN(v.number)) && slices.Contains(e.missing, v.String()):
		if c.Missing != Indicator {
			e.found.add(true, c.Column, problemMissing)
			return
		}
		at = c.width() - 1
	case len(c.Range) > 0:
		x, ok := v.finite()
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

// Slack is how much shorter than the bound a scaled row becomes, so that rounding to float32 cannot make it
// longer.
const Slack = 1 - 0x1p-20

// scaleTo scales a row to the bound if it exceeds it, even by rounding.
func scaleTo(row []float32, bound float64, found *findings) {
	norm := norm(row)
	if norm <= bound {
		return
	}
	found.add(false, "", noteNorm)
	for i, v := range row {
		row[i] = float32(float64(v) * (bound / norm * Slack))
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
			if c.seen && !c.varies { // a column of several numbers is never seen
				e.found.addCount(false, c.Column, noteConstant, 0)
			}
		}
	}
	e.data.Name = name
	return &e.data
}

package dataset

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpareto/dpareto/internal/text"
)

// CSVOptions says how ReadCSV makes examples from a user's file.
//
// All of it must be public: labels, categories and ranges are given here, and never taken
// from the file, since the privacy of training does not cover choices that depend on the
// examples.
//
// A column is given by its name in the header, which no other may have, or, if no name matches, by its
// number from 1. Other columns are ignored.
type CSVOptions struct {
	// Comma separates fields. Zero means ','.
	Comma rune
	// Header means that the first line has the names of the columns.
	Header bool
	// Label is the column of the label.
	Label string
	// Labels are the texts that can be in it, at least two. Of two, the first becomes −1
	// and the second 1; of more, they become 0, 1, and so on.
	Labels []string
	// Numeric are the columns of numbers, a feature each.
	Numeric []NumericColumn
	// Categorical are the columns of categories, a feature for each category. Their
	// features come after those of the numbers.
	Categorical []CategoricalColumn
	// Missing are the texts that stand for an unknown value, in any column but the
	// label's: its features are 0. Nil means that no value may be missing.
	Missing []string
	// Dense asks for a dense dataset.
	Dense bool
}

// NumericColumn is a column of finite numbers.
type NumericColumn struct {
	Column string
	// Min and Max are the range that becomes [0, 1]; numbers outside are cut off. When
	// both are 0 the numbers are taken as they are.
	Min, Max float64
}

// CategoricalColumn is a column of categories, one-hot encoded.
type CategoricalColumn struct {
	Column string
	// Values are all categories, without repetitions. Another one is an error.
	Values []string
}

// validate returns an error for invalid options.
func (o *CSVOptions) validate() error {
	if len(o.Labels) < 2 {
		return fmt.Errorf("csv: %d labels, want at least 2", len(o.Labels))
	}
	if text, ok := repeated(o.Labels); ok {
		return fmt.Errorf("csv: label %q is named twice", text)
	}
	if len(o.Numeric)+len(o.Categorical) == 0 {
		return errors.New("csv: no columns of features")
	}
	for _, c := range o.Numeric {
		if width := c.Max - c.Min; (c.Min != 0 || c.Max != 0) && (!(width > 0) || math.IsInf(width, 1)) {
			return fmt.Errorf("csv: range from %v to %v of column %s is not an interval of finite numbers", c.Min, c.Max, c.Column)
		}
	}
	for _, c := range o.Categorical {
		if len(c.Values) == 0 {
			return fmt.Errorf("csv: no categories of column %s", c.Column)
		}
		if text, ok := repeated(c.Values); ok {
			return fmt.Errorf("csv: category %q of column %s is named twice", text, c.Column)
		}
	}
	return nil
}

// repeated returns a text that occurs twice.
func repeated(texts []string) (text string, ok bool) {
	for i, t := range texts {
		if slices.Contains(texts[:i], t) {
			return t, true
		}
	}
	return "", false
}

// dim returns the number of features.
func (o *CSVOptions) dim() int {
	dim := len(o.Numeric)
	for _, c := range o.Categorical {
		dim += len(c.Values)
	}
	return dim
}

// LoadCSV reads the file at path as ReadCSV does. The dataset is named after the file.
func LoadCSV(path string, options CSVOptions) (*Dataset, error) {
	return load(path, func(r io.Reader) (*Dataset, error) { return ReadCSV(r, path, options) })
}

// ReadCSV reads examples from a table in the format of RFC 4180, one a line: fields
// separated by commas, perhaps in double quotes; blanks around them are ignored, and so
// are blank lines and a byte order mark. Lines may end as on any system. The options say what the columns mean. The input may be compressed
// with gzip. The file name serves as the dataset's name and in errors.
//
// Malformed input, which includes unknown labels and categories, gives a *SyntaxError.
func ReadCSV(r io.Reader, file string, options CSVOptions) (*Dataset, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	comma := options.Comma
	if comma == 0 {
		comma = ','
	}
	records, err := newRecords(r, file, comma)
	if err != nil {
		return nil, err
	}
	records.csv.TrimLeadingSpace = comma != ' ' && comma != '\t'
	var header []string
	if options.Header {
		if !records.next() {
			if records.err == nil {
				records.err = &SyntaxError{File: file, Line: 1, Column: 1, Reason: "no header"}
			}
			return nil, records.err
		}
		for _, name := range records.fields {
			header = append(header, strings.TrimSpace(name))
		}
	}
	e := &csvEncoder{options: &options, builder: newBuilder(0, 0, options.Dense), values: make([]float32, options.dim())}
	for records.next() {
		if e.columns == nil {
			if err := e.resolve(header, len(records.fields)); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
		if err := e.encode(records); err != nil {
			return nil, err
		}
	}
	if records.err != nil {
		return nil, records.err
	}
	d := e.builder.dataset(file, options.dim())
	d.Classes = len(options.Labels)
	return d, nil
}

// csvEncoder turns records into examples.
type csvEncoder struct {
	options *CSVOptions
	builder *builder
	label   int   // its column, from 0
	columns []int // of the features: numeric, then categorical ones
	values  []float32
	indices []int32
	sparse  []float32
}

// resolve finds the columns that the options name among the given number of them.
func (e *csvEncoder) resolve(header []string, width int) error {
	used := make(map[int]string)
	column := func(name string) (int, error) {
		i := slices.Index(header, name)
		if i >= 0 && slices.Contains(header[i+1:], name) {
			return 0, fmt.Errorf("column %q occurs twice in the header", name)
		}
		if i < 0 {
			number, err := strconv.Atoi(name)
			if err != nil || number < 1 || number > width {
				return 0, fmt.Errorf("no column %q among the %d of the file", name, width)
			}
			i = number - 1
		}
		if other, ok := used[i]; ok {
			return 0, fmt.Errorf("column %q is used twice, also as %q", name, other)
		}
		used[i] = name
		return i, nil
	}
	var err error
	if e.label, err = column(e.options.Label); err != nil {
		return err
	}
	var names []string
	for _, c := range e.options.Numeric {
		names = append(names, c.Column)
	}
	for _, c := range e.options.Categorical {
		names = append(names, c.Column)
	}
	for _, name := range names {
		i, err := column(name)
		if err != nil {
			return err
		}
		e.columns = append(e.columns, i)
	}
	return nil
}

// encode adds the last record as an example.
func (e *csvEncoder) encode(r *records) error {
	class := slices.Index(e.options.Labels, strings.TrimSpace(r.fields[e.label]))
	if class < 0 {
		return r.fail(e.label, "label %q is unknown", r.fields[e.label])
	}
	clear(e.values)
	for i := range e.options.Numeric {
		if err := e.number(r, i); err != nil {
			return err
		}
	}
	first := len(e.options.Numeric)
	for i, c := range e.options.Categorical {
		column := e.columns[len(e.options.Numeric)+i]
		text := strings.TrimSpace(r.fields[column])
		if k := slices.Index(c.Values, text); k >= 0 {
			e.values[first+k] = 1
		} else if !slices.Contains(e.options.Missing, text) {
			return r.fail(column, "category %q of column %s is unknown", text, c.Column)
		}
		first += len(c.Values)
	}
	label := classLabel(class, len(e.options.Labels))
	if e.options.Dense {
		e.builder.add(label, nil, e.values)
		return nil
	}
	e.indices, e.sparse = e.indices[:0], e.sparse[:0]
	for i, v := range e.values {
		if v != 0 {
			e.indices = append(e.indices, int32(i))
			e.sparse = append(e.sparse, v)
		}
	}
	e.builder.add(label, e.indices, e.sparse)
	return nil
}

// number encodes the i-th numeric column.
func (e *csvEncoder) number(r *records, i int) error {
	c, column := e.options.Numeric[i], e.columns[i]
	cell := strings.TrimSpace(r.fields[column])
	if slices.Contains(e.options.Missing, cell) {
		return nil
	}
	if c.Min == 0 && c.Max == 0 {
		v, err := parseFinite(cell, "number")
		if err != nil {
			return r.fail(column, "%s", err)
		}
		e.values[i] = v
		return nil
	}
	x, ok := text.Number(cell, 64)
	if !ok {
		return r.fail(column, "number %q is not a finite number", cell)
	}
	e.values[i] = float32((min(max(x, c.Min), c.Max) - c.Min) / (c.Max - c.Min))
	return nil
}

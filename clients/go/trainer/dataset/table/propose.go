package table

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/dpareto/dpareto/internal/text"
)

// Bounds of the proposals of categories and of labels.
const (
	mostCategories = 50
	mostLabels     = 100
	mostClasses    = 20 // of labels that are numbers: more are a number to predict
)

// Sample asks for a schema that is proposed from the first rows of a file.
type Sample struct {
	Path  string
	Rows  int    // that are public: none after them is looked at
	Label string // column
	// Missing are texts that stand for a missing value, in addition to DefaultMissing.
	Missing []string
}

// Propose returns a schema that is proposed from public rows, and its omissions, in words. The schema holds the number
// of rows for private. Errors and notes have names of columns, which the header has, and texts of the public rows.
func Propose(sample Sample) (s *Schema, notes []string, err error) {
	if sample.Rows < 1 {
		return nil, nil, fmt.Errorf("public rows: must be at least 1, are %d: ranges and categories are never read from private rows; "+
			"write the schema from a code book, or declare the first rows public", sample.Rows)
	}
	dim, err := libsvmDim(sample.Path, sample.Rows)
	if err != nil {
		return nil, nil, err
	}
	rows, _, closer, err := openFile(sample.Path, "", dim)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	columns, err := samples(rows, sample)
	if err != nil {
		return nil, nil, err
	}
	s = &Schema{Rows: Private, Label: Label{Column: sample.Label}}
	missing := slices.Concat(DefaultMissing, sample.Missing)
	if len(sample.Missing) > 0 {
		s.Missing = missing
	}
	for _, c := range columns {
		f, why := c.propose(missing)
		if c.name == sample.Label {
			values := slices.Sorted(maps.Keys(c.counts))
			if len(values) > mostClasses && len(f.Range) > 0 && f.Missing == "" {
				s.Label.Range = f.Range
				continue
			}
			if len(values) < 2 || len(values) > mostLabels {
				err := fmt.Errorf("label %q: has %d values in the public rows, must have 2 to %d unless all are numbers", c.name, len(values), mostLabels)
				if texts := c.texts(c.counts); len(texts) > 0 {
					err = fmt.Errorf("%w, which %q are not; leave out rows without a label", err, texts[:min(3, len(texts))])
				}
				return nil, nil, err
			}
			s.Label.Values = values
			continue
		}
		if why != "" {
			notes = append(notes, fmt.Sprintf("%s is left out: %s", c.name, why))
		} else {
			s.Features = append(s.Features, f)
		}
	}
	return s, notes, s.Validate()
}

// sampled is a column with the texts of its public cells, and how often each occurs.
type sampled struct {
	field
	counts  map[string]int
	numbers map[string]float64 // of the texts that are finite numbers
}

// texts returns the cells that do not hold numbers, sorted.
func (c sampled) texts(cells map[string]int) []string {
	isNumber := func(text string) bool { _, ok := c.numbers[text]; return ok }
	return slices.DeleteFunc(slices.Sorted(maps.Keys(cells)), isNumber)
}

// samples returns the columns of a file with their public cells.
func samples(rows reader, sample Sample) ([]sampled, error) {
	var columns []sampled
	var names []string
	for _, f := range rows.header() {
		if _, isNumber := text.Number(f.name, 64); isNumber || f.name == "" {
			return nil, errors.New("header: must have the names of the columns, which are no numbers")
		}
		names = append(names, f.name)
		columns = append(columns, sampled{f, make(map[string]int), make(map[string]float64)})
	}
	if repeats(names) {
		return nil, errors.New("header: must have different names")
	}
	if !slices.Contains(names, sample.Label) {
		return nil, fmt.Errorf("header: has no column %q, the label", sample.Label)
	}
	for number := range sample.Rows {
		row, problem, err := rows.next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("public rows: are %d, but the file has only %d", sample.Rows, number)
		}
		if err != nil {
			return nil, err
		}
		if problem != "" {
			return nil, fmt.Errorf("is malformed after %d rows: %s", number, problem)
		}
		at := 0
		for _, c := range columns {
			for range max(1, c.length) {
				text := row[at].String()
				c.counts[text]++
				if x, ok := row[at].finite(); ok {
					c.numbers[text] = x
				}
				at++
			}
		}
	}
	return columns, nil
}

// propose returns a feature for the column, or why there is none.
func (c sampled) propose(missing []string) (f Feature, why string) {
	f.Column, f.Length = c.name, c.length
	cells := maps.Clone(c.counts)
	for _, text := range missing {
		if cells[text] > 0 {
			f.Missing = Indicator
			delete(cells, text)
		}
	}
	if len(cells) < 2 {
		return f, "it has fewer than two values"
	}
	least, largest, count := math.Inf(1), math.Inf(-1), 0
	for cell, n := range cells {
		count += n
		if x, ok := c.numbers[cell]; ok {
			least, largest = min(least, x), max(largest, x)
		}
	}
	texts := c.texts(cells)
	if width := largest - least; len(texts) == 0 && width > 0 && !math.IsInf(width, 1) {
		step := math.Pow(10, math.Floor(math.Log10(width)))
		f.Range = []float64{step * math.Floor(least/step), step * math.Ceil(largest/step)}
	}
	if c.length > 0 && (len(f.Range) == 0 || f.Missing != "") {
		return f, "it has several values a row, which are not all numbers"
	}
	if len(f.Range) > 0 {
		return f, ""
	}
	tooMany := len(cells) > mostCategories || 2*len(cells) > count
	if tooMany && len(texts) > 0 && 2*len(texts) < len(cells) {
		return f, fmt.Sprintf("%q are among its numbers; give those that stand for a missing value with --missing", texts[:min(3, len(texts))])
	}
	if tooMany {
		return f, "it has too many different texts for categories"
	}
	f.Categories, f.Unknown = slices.Sorted(maps.Keys(cells)), Other
	return f, ""
}

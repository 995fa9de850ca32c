package table

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dpareto/dpareto/internal/text"
)

// Bounds of what is proposed as categories and as labels.
const (
	mostCategories = 50
	mostLabels     = 100
)

// Sample asks for a schema that is proposed from the first rows of a file.
type Sample struct {
	File  string // name, for the separator
	Rows  int    // that are public: none after them is looked at
	Label string // column
}

// Propose returns a schema that is proposed from public rows, and what it leaves out, in words. The schema
// holds the number of rows for private. Errors and notes have names of columns, which the header has.
func Propose(r io.Reader, sample Sample) (s *Schema, notes []string, err error) {
	if sample.Rows < 1 {
		return nil, nil, fmt.Errorf("public rows: must be at least 1, are %d: ranges and categories are never read from private rows; "+
			"write the schema from a code book, or declare the first rows public", sample.Rows)
	}
	content, err := gunzip(r)
	if err != nil {
		return nil, nil, err
	}
	s = &Schema{Rows: Private, Label: Label{Column: sample.Label}}
	lines := newLines(content, s.comma(sample.File))
	record, err := lines.Read()
	if err != nil {
		return nil, nil, errors.New("must have a header with the names of the columns")
	}
	var header []string
	for _, name := range record {
		name = strings.TrimSpace(name)
		if _, isNumber := text.Number(name, 64); isNumber || name == "" {
			return nil, nil, errors.New("header: must have the names of the columns, which are no numbers")
		}
		header = append(header, name)
	}
	if repeats(header) {
		return nil, nil, errors.New("header: must have different names")
	}
	if !slices.Contains(header, sample.Label) {
		return nil, nil, fmt.Errorf("header: has no column %q, the label", sample.Label)
	}
	cells := make([]map[string]int, len(header)) // how often a text occurs, by column
	for i := range cells {
		cells[i] = make(map[string]int)
	}
	for rows := range sample.Rows {
		record, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && len(record) != len(header) {
			err = csv.ErrFieldCount
		}
		if err != nil {
			return nil, nil, withoutValues(err, rows)
		}
		for i, cell := range record {
			cells[i][strings.TrimSpace(cell)]++
		}
	}
	for i, name := range header {
		if name == sample.Label {
			values := slices.Sorted(maps.Keys(cells[i]))
			if len(values) < 2 || len(values) > mostLabels {
				return nil, nil, fmt.Errorf("label %q: has %d values in the public rows, must have 2 to %d; numbers to predict (regression) have no bundled trainer",
					name, len(values), mostLabels)
			}
			s.Label.Values = values
			continue
		}
		if f, why := propose(name, cells[i]); why != "" {
			notes = append(notes, fmt.Sprintf("%s is left out: %s", name, why))
		} else {
			s.Features = append(s.Features, f)
		}
	}
	return s, notes, s.Validate()
}

// propose returns a feature for the cells of a column, or why there is none.
func propose(name string, cells map[string]int) (f Feature, why string) {
	f.Column = name
	cells = maps.Clone(cells)
	for _, text := range DefaultMissing {
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
		x, ok := text.Number(cell, 64)
		if !ok {
			least = math.NaN()
			continue
		}
		least, largest = min(least, x), max(largest, x) // NaN stays
	}
	if width := largest - least; width > 0 && !math.IsInf(width, 1) {
		step := math.Pow(10, math.Floor(math.Log10(width)))
		f.Range = []float64{step * math.Floor(least/step), step * math.Ceil(largest/step)}
		return f, ""
	}
	if len(cells) > mostCategories || 2*len(cells) > count {
		return f, "it has too many different texts for categories"
	}
	f.Categories, f.Unknown = slices.Sorted(maps.Keys(cells)), Other
	return f, ""
}

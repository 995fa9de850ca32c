package dataset

import (
	"io"
	"slices"
	"strings"

	"github.com/dpareto/dpareto/internal/text"
)

// CSVOptions says how LoadCSV makes examples from a file: each line has Skip columns to ignore, then
// Features columns of numbers, then the label.
//
// All of it must be public: it is given here, and never taken from the file, since the privacy of training
// does not cover choices that depend on the examples.
type CSVOptions struct {
	Skip, Features int
	// Max > 0 is the number that becomes 1. Numbers outside of [0, Max] are cut off.
	Max float64
	// Missing is the text that stands for an unknown number, which becomes 0; "" for none.
	Missing string
	// Labels are the texts that a label can be, at least two. Of two, the first becomes −1 and the second 1;
	// of more, they become 0, 1, and so on.
	Labels []string
}

// LoadCSV reads examples from the table at path in the format of RFC 4180, one a line: fields separated by
// commas, perhaps in double quotes; blanks around them are ignored, and so are blank lines and a byte order
// mark. Lines may end as on any system, and the file may be compressed with gzip. The dataset is dense and
// named after the file.
//
// A malformed file gives a *SyntaxError.
func LoadCSV(path string, options CSVOptions) (*Dataset, error) {
	return load(path, func(r io.Reader) (*Dataset, error) { return readCSV(r, path, options) })
}

func readCSV(r io.Reader, file string, o CSVOptions) (*Dataset, error) {
	records, err := newRecords(r, file, o.Skip+o.Features+1)
	if err != nil {
		return nil, err
	}
	records.csv.TrimLeadingSpace = true
	b := newBuilder(0, 0, true)
	row := make([]float32, o.Features)
	for records.next() {
		for i := range row {
			column := o.Skip + i
			cell := strings.TrimSpace(records.fields[column])
			if row[i] = 0; cell == o.Missing && cell != "" {
				continue
			}
			x, ok := text.Number(cell, 64)
			if !ok {
				return nil, records.fail(column, "number %q is not a finite number", cell)
			}
			row[i] = float32(min(max(x, 0), o.Max) / o.Max)
		}
		last := records.width - 1
		class := slices.Index(o.Labels, strings.TrimSpace(records.fields[last]))
		if class < 0 {
			return nil, records.fail(last, "label %q is unknown", records.fields[last])
		}
		b.add(classLabel(class, len(o.Labels)), nil, row)
	}
	if records.err != nil {
		return nil, records.err
	}
	d := b.dataset(file, o.Features)
	d.Classes = len(o.Labels)
	return d, nil
}

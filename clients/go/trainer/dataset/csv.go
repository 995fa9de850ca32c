package dataset

import (
	"fmt"
	"io"
	"slices"

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
	cell := column{"number", 1, func(field string) (int, float32, error) {
		x, ok := text.Number(field, 64)
		if !ok {
			return 0, 0, fmt.Errorf("number %q is not a finite number", field)
		}
		return 0, float32(min(max(x, 0), o.Max) / o.Max), nil
	}}
	labels := make(map[string]float32, len(o.Labels))
	for k, text := range slices.Backward(o.Labels) { // of equal texts the first counts
		labels[text] = classLabel(k, len(o.Labels))
	}
	columns := slices.Concat(make([]column, o.Skip), slices.Repeat([]column{cell}, o.Features), []column{classes("label", "unknown", labels)})
	d, err := readColumns(r, file, layout{columns: columns, dense: true, trim: true, missing: o.Missing})
	if err != nil {
		return nil, err
	}
	d.Classes = len(o.Labels)
	return d, nil
}

package dataset

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// column is a column of a file and the features that stand for its fields.
type column struct {
	name string
	// features is the number of features; a column without features is the label.
	features int
	// encode returns the feature of a field, from 0, and its value, or the label. Nil for a column to ignore.
	encode func(field string) (feature int, value float32, err error)
}

// layout describes a file of separated fields. It is fixed and never taken from a file, so it costs no privacy.
type layout struct {
	columns []column
	dense   bool   // the dataset is dense; every column then has one feature
	trim    bool   // blanks around fields are ignored
	comment rune   // begins a line to ignore; 0 for none
	missing string // the field of an unknown value, whose features are 0; "" for none
}

// readColumns reads examples, one a line. Features are in the order of the columns. The dataset is named after the
// file. A malformed field gives a *SyntaxError.
func readColumns(r io.Reader, file string, l layout) (*Dataset, error) {
	records, err := newRecords(r, file, len(l.columns))
	if err != nil {
		return nil, err
	}
	records.csv.Comment, records.csv.TrimLeadingSpace = l.comment, l.trim
	b := newBuilder(0, 0, l.dense)
	var indices []int32
	var values []float32
	for records.next() {
		label, first := float32(0), 0
		indices, values = indices[:0], values[:0]
		for i := range l.columns {
			c, field := &l.columns[i], records.fields[i]
			if c.encode == nil {
				continue
			}
			if l.trim {
				field = strings.TrimSpace(field)
			}
			var k int
			var v float32
			if isMissing := field == l.missing && field != "" && c.features > 0; !isMissing {
				k, v, err = c.encode(field)
			}
			switch {
			case err != nil:
				return nil, records.fail(i, "%s", err)
			case c.features == 0:
				label = v
			case v != 0 || l.dense:
				indices, values = append(indices, int32(first+k)), append(values, v)
			}
			first += c.features
		}
		b.add(label, indices, values)
	}
	if records.err != nil {
		return nil, records.err
	}
	return b.dataset(file, dimOf(l.columns)), nil
}

// dimOf returns the number of features of columns.
func dimOf(columns []column) (dim int) {
	for _, c := range columns {
		dim += c.features
	}
	return dim
}

// classes is a label with a value for each text. The reason completes "is" in the error for another text.
func classes(name, reason string, values map[string]float32) column {
	return column{name, 0, func(field string) (int, float32, error) {
		label, ok := values[field]
		if !ok {
			return 0, 0, fmt.Errorf("%s %q is %s", name, field, reason)
		}
		return 0, label, nil
	}}
}

// category is a text, with a feature for each that it can be: 1 for the one it is.
func category(name string, texts ...string) column {
	return column{name, len(texts), func(field string) (int, float32, error) {
		k := slices.Index(texts, field)
		if k < 0 {
			return 0, 0, fmt.Errorf("%s %q is unknown", name, field)
		}
		return k, 1, nil
	}}
}

// interval is a whole number of at least 0 among ascending bounds: feature k is 1 for numbers up to bounds[k], the
// last one for all above.
func interval(name string, bounds ...int64) column {
	return column{name, len(bounds) + 1, func(field string) (int, float32, error) {
		x, err := strconv.ParseInt(field, 10, 64)
		if err != nil || x < 0 {
			return 0, 0, fmt.Errorf("%s %q is unknown", name, field)
		}
		k, _ := slices.BinarySearch(bounds, x)
		return k, 1, nil
	}}
}

// number is a number x of at least 0, with the feature x/limit. It is 1 for numbers above the limit.
func number(name string, limit float64) column {
	return scaled(name, func(x float64) float64 { return x / limit })
}

// logarithm is as number, with the feature log(1+x)/log(1+limit).
func logarithm(name string, limit float64) column {
	whole := math.Log1p(limit)
	return scaled(name, func(x float64) float64 { return math.Log1p(x) / whole })
}

// scaled is a number of at least 0, with a feature of at most 1.
func scaled(name string, scale func(float64) float64) column {
	return column{name, 1, func(field string) (int, float32, error) {
		x, err := parseFinite(field, name)
		switch {
		case err != nil || x == 0: // as most are
			return 0, x, err
		case x < 0:
			return 0, 0, fmt.Errorf("%s %s is negative", name, field)
		}
		return 0, float32(min(scale(float64(x)), 1)), nil
	}}
}

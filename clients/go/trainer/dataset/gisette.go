package dataset

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
)

const (
	// GisetteDim is the number of features of Gisette.
	GisetteDim = 5000
	// gisetteLevels is the largest value of a feature.
	gisetteLevels = 999
)

// LoadGisette reads examples of Gisette (Guyon, Gunn, Ben-Hur and Dror, "Result Analysis of
// the NIPS 2003 Feature Selection Challenge", 2004) from the challenge's own two files:
// gisette_train.data has 5000 whole numbers between 0 and 999 a line, separated by blanks,
// and gisette_train.labels a label −1 or 1 a line. Features are divided by 999, so that
// they are in [0, 1]. The dataset is sparse and named after the file of examples. Either
// file may be compressed with gzip.
//
// Malformed files give a *SyntaxError; a different number of examples and labels is
// also an error.
func LoadGisette(examples, labels string) (*Dataset, error) {
	values, err := loadLabels(labels)
	if err != nil {
		return nil, err
	}
	return load(examples, func(r io.Reader) (*Dataset, error) {
		b := newBuilder(len(values), 0, false)
		p := gisetteParser{}
		err := scanLines(r, examples, func(number int, line []byte) error {
			found, err := p.parse(line)
			if err != nil {
				return &SyntaxError{File: examples, Line: number, Column: p.column, Reason: err.Error()}
			}
			if found {
				if len(b.labels) == len(values) {
					return &SyntaxError{File: examples, Line: number, Reason: fmt.Sprintf("more examples than the %d labels of %s", len(values), labels)}
				}
				b.add(values[len(b.labels)], p.indices, p.values)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(b.labels) != len(values) {
			return nil, fmt.Errorf("%s has %d examples, %s %d labels", examples, len(b.labels), labels, len(values))
		}
		return b.dataset(examples, GisetteDim), nil
	})
}

// gisetteParser parses lines of examples and keeps the features of the last one.
type gisetteParser struct {
	column  int // of the last error
	indices []int32
	values  []float32
}

// parse parses a line; found is false when it is blank.
func (p *gisetteParser) parse(line []byte) (found bool, err error) {
	p.indices, p.values = p.indices[:0], p.values[:0]
	feature := 0
	for at := 0; at < len(line); {
		if isBlank(line[at]) {
			at++
			continue
		}
		p.column = at + 1
		value := 0
		start := at
		for ; at < len(line) && !isBlank(line[at]); at++ {
			digit := int(line[at]) - '0'
			if value = 10*value + digit; digit < 0 || digit > 9 || value > gisetteLevels {
				return false, fmt.Errorf("feature %d is not a whole number between 0 and %d", feature+1, gisetteLevels)
			}
		}
		if feature == GisetteDim {
			return false, fmt.Errorf("more than %d features: %q", GisetteDim, line[start:at])
		}
		if value != 0 {
			p.indices = append(p.indices, int32(feature))
			p.values = append(p.values, float32(value)/gisetteLevels)
		}
		feature++
	}
	if feature != 0 && feature != GisetteDim {
		p.column = len(line) + 1
		return false, fmt.Errorf("%d features, want %d", feature, GisetteDim)
	}
	return feature != 0, nil
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// loadLabels reads a label −1 or 1 a line.
func loadLabels(path string) (labels []float32, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	err = scanLines(f, path, func(number int, line []byte) error {
		text := string(bytes.TrimSpace(line))
		if text == "" {
			return nil
		}
		label, err := strconv.Atoi(text)
		if err != nil || label != 1 && label != -1 {
			return &SyntaxError{File: path, Line: number, Column: 1, Reason: fmt.Sprintf("label %q is not -1 or 1", text)}
		}
		labels = append(labels, float32(label))
		return nil
	})
	return labels, err
}

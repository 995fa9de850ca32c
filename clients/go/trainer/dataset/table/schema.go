package table

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dpareto/dpareto/internal/text"
)

// Schema gives the meaning of the columns of a file. All of it is public.
type Schema struct {
	// Rows is Public or Private: whether the number of rows of each part may be known to everyone who
	// sees a study, its statement or its ε. Every mechanism of the trainers depends on it.
	Rows string `json:"rows" yaml:"rows"`
	// Separator of the columns, one character. Empty means the comma, semicolon or tab that the header has most, and a
	// tab in a file called *.tsv. Numbers between semicolons may have decimal commas.
	Separator string `json:"separator,omitempty" yaml:"separator,omitempty"`
	// Missing are the texts that stand for a missing value. Nil means DefaultMissing.
	Missing []string `json:"missing,omitzero" yaml:"missing,omitempty,flow"`
	// Label is the predicted column.
	Label Label `json:"label" yaml:"label"`
	// Features are the columns that it is predicted from, in the order of their encoding. Other columns are not used.
	Features []Feature `json:"features" yaml:"features"`
	// Norm is a bound on the Euclidean norm of an encoded row, to which longer rows are scaled. 0 means
	// the norm that no row exceeds, the square root of the number of features (of numbers, in columns of several).
	Norm float64 `json:"norm,omitempty" yaml:"norm,omitempty"`
	// Group is the column of an id, such as a person's: rows with the same id stand in the same part.
	Group string `json:"group,omitempty" yaml:"group,omitempty"`
	// Split divides the rows into training, validation and test examples.
	Split Split `json:"split,omitzero" yaml:"split,omitempty"`
	// Fairness names groups of rows whose errors are compared.
	Fairness Fairness `json:"fairness,omitzero" yaml:"fairness,omitempty"`
}

// Values of Schema.Rows.
const (
	Public  = "public"
	Private = "private"
)

// DefaultMissing are the texts that stand for a missing value unless the schema names others, or a
// category of this name.
var DefaultMissing = []string{"", "?", "NA", "N/A", "NaN", "nan", "null"}

// Label is the column of the label.
type Label struct {
	Column string `json:"column" yaml:"column"`
	// Values are the texts that can be in it, at least two. Of two, the first becomes −1 and the second
	// 1; of more, they become 0, 1 and so on.
	Values []string `json:"values,omitempty" yaml:"values,omitempty,flow"`
	// Range has the least and the largest value of a number to predict, in the place of Values. Numbers outside are
	// moved to its ends.
	Range []float64 `json:"range,omitempty" yaml:"range,omitempty,flow"`
}

// Feature is a column that a model sees: a number with a Range, or one of Categories.
type Feature struct {
	Column string `json:"column" yaml:"column"`
	// Length of a column of several numbers, such as an embedding: a list, a matrix, or the columns of this name
	// with 0, 1 and so on behind it. All have the Range. 0 for a column of single values.
	Length int `json:"length,omitempty" yaml:"length,omitempty"`
	// Range has the least and the largest value of a number. Numbers outside are moved to its ends.
	Range []float64 `json:"range,omitempty" yaml:"range,omitempty,flow"`
	// Categories are the texts that can be in the column.
	Categories []string `json:"categories,omitempty" yaml:"categories,omitempty,flow"`
	// Missing is Indicator for a column in which values may be missing.
	Missing string `json:"missing,omitempty" yaml:"missing,omitempty"`
	// Unknown is Other for a column of categories that may have others.
	Unknown string `json:"unknown,omitempty" yaml:"unknown,omitempty"`
}

// Fairness is a column of groups, which may be a feature.
type Fairness struct {
	Column string `json:"column" yaml:"column"`
	// Values are the texts of the groups, at least two. Rows with others are in no group.
	Values []string `json:"values" yaml:"values,flow"`
}

// Values of Feature.Missing and Feature.Unknown.
const (
	Indicator = "indicator"
	Other     = "other"
)

// Split divides rows into parts. Rows go to a part at random, by their id if there is a Group and by their position
// otherwise, unless Time or TestFile says which rows are for testing.
type Split struct {
	// Test and Validation are the expected shares of the rows, or ids, for testing and for validation, in (0, 1).
	// 0 means DefaultTest and DefaultValidation.
	Test       float64 `json:"test,omitempty"       yaml:"test,omitempty"`
	Validation float64 `json:"validation,omitempty" yaml:"validation,omitempty"`
	// Time makes later rows test examples.
	Time *Time `json:"time,omitempty" yaml:"time,omitempty"`
	// TestFile has the test examples: a file with the same columns in the same folder.
	TestFile string `json:"test_file,omitempty" yaml:"test_file,omitempty"`
}

// Default shares of the rows.
const (
	DefaultTest       = 0.2
	DefaultValidation = 0.1
)

// Time divides rows by a column of numbers or of dates in the form of ISO 8601 (2026-11-28, perhaps with a
// time of day).
type Time struct {
	Column string `json:"column" yaml:"column"`
	// TestFrom is the first time of test examples.
	TestFrom string `json:"test_from" yaml:"test_from"`
}

// ParseSchema reads a schema in YAML or JSON. It refuses unknown fields, and what [Schema.Validate] does.
func ParseSchema(content []byte) (*Schema, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	s := new(Schema)
	if err := decoder.Decode(s); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("schema: is empty")
		}
		message := strings.TrimPrefix(err.Error(), "yaml: ")
		if several, ok := errors.AsType[*yaml.TypeError](err); ok {
			message = strings.Join(several.Errors, "; ")
		}
		return nil, fmt.Errorf("schema: %s", typeNames.Replace(message))
	}
	return s, s.Validate()
}

// typeNames replaces names of types in the errors of a decoder.
var typeNames = strings.NewReplacer(
	" in type table.Schema", "", " in type table.Label", " of label", " in type table.Feature", " of a feature",
	" in type table.Split", " of split", " in type table.Time", " of split.time",
	" in type table.Fairness", " of fairness", "not found", "is unknown")

// Validate returns an error for a schema that does not say enough, or contradicts itself.
func (s *Schema) Validate() error {
	if s.Rows != Public && s.Rows != Private {
		return fmt.Errorf("rows: must be %s or %s, is %q; say whether the number of rows may be known", Public, Private, s.Rows)
	}
	if n := len([]rune(s.Separator)); n > 1 {
		return fmt.Errorf("separator: must be one character, has %d", n)
	}
	if s.Label.Column == "" {
		return errors.New("label.column: is required")
	}
	switch width := span(s.Label.Range); {
	case len(s.Label.Range) > 0 && (len(s.Label.Values) > 0 || !(width > 0) || math.IsInf(width, 1)):
		return errors.New("label.range: must be [least, largest], two finite numbers that differ, without label.values")
	case len(s.Label.Range) == 0 && len(s.Label.Values) < 2:
		return fmt.Errorf("label.values: must be all values of the label, at least two, are %d; a number to predict has a label.range", len(s.Label.Values))
	}
	if repeats(s.Label.Values) {
		return errors.New("label.values: must be different")
	}
	if len(s.Features) == 0 {
		return errors.New("features: at least one is required")
	}
	names := []string{s.Label.Column}
	for i := range s.Features {
		if err := s.Features[i].validate(); err != nil {
			return fmt.Errorf("features[%d] (%s): %w", i, s.Features[i].Column, err)
		}
		names = append(names, s.Features[i].Column)
	}
	if repeats(names) {
		return errors.New("features: columns must be different, and no feature can be the label")
	}
	if !(s.Norm >= 0) || math.IsInf(s.Norm, 1) {
		return fmt.Errorf("norm: must be a positive number, is %g", s.Norm)
	}
	if slices.Contains(names, s.Group) {
		return errors.New("group: must not be a feature or the label: an id would identify people")
	}
	if f := s.Fairness; f.Column == s.Label.Column || len(f.Values) == 1 || (f.Column == "") != (len(f.Values) == 0) || repeats(f.Values) {
		return errors.New("fairness: must be a column that is not the label, and the different values of two groups or more")
	}
	return s.Split.validate()
}

func (f *Feature) validate() error {
	switch {
	case f.Column == "":
		return errors.New("column: is required")
	case (len(f.Range) > 0) == (len(f.Categories) > 0):
		return errors.New("must have either a range or categories, of public knowledge: they are never read from the rows; " +
			"take them from a code book, or from rows that you declare public (dpareto data schema --public-rows)")
	case f.Length < 0 || f.Length > maxValues || f.Length > 0 && (len(f.Range) == 0 || f.Missing != ""):
		return fmt.Errorf("length: must be a number of values with a range of which none is missing, is %d", f.Length)
	case f.Missing != "" && f.Missing != Indicator:
		return fmt.Errorf("missing: must be %s or left out, is %q", Indicator, f.Missing)
	case f.Unknown != "" && (f.Unknown != Other || len(f.Categories) == 0):
		return fmt.Errorf("unknown: must be %s, for categories alone, or left out", Other)
	case repeats(f.Categories):
		return errors.New("categories: must be different")
	case len(f.Range) > 0:
		if width := span(f.Range); !(width > 0) || math.IsInf(width, 1) {
			return errors.New("range: must be [least, largest], two finite numbers that differ")
		}
	}
	return nil
}

// span returns the width of a range, NaN if it has not two ends.
func span(ends []float64) float64 {
	if len(ends) != 2 {
		return math.NaN()
	}
	return ends[1] - ends[0]
}

func (s *Split) validate() error {
	if !(s.Test >= 0 && s.Validation >= 0 && s.test()+s.validation() < 1) {
		return fmt.Errorf("split: test and validation must be shares whose sum is below 1, are %g and %g", s.test(), s.validation())
	}
	if s.TestFile != "" && filepath.Base(s.TestFile) != s.TestFile {
		return errors.New("split.test_file: must be the name of a file in the folder of the data, without folders")
	}
	if s.Time == nil {
		if s.TestFile != "" && s.Test != 0 {
			return errors.New("split: must have one of test and test_file")
		}
		return nil
	}
	if s.TestFile != "" || s.Test != 0 {
		return errors.New("split: must have one of test, time and test_file")
	}
	if _, err := parseTime(s.Time.TestFrom); s.Time.Column == "" || err != nil {
		return errors.New("split.time: must have a column, and in test_from a number or a date such as 2026-11-28")
	}
	return nil
}

func (s *Split) test() float64 {
	if s.Test == 0 {
		return DefaultTest
	}
	return s.Test
}

func (s *Split) validation() float64 {
	if s.Validation == 0 {
		return DefaultValidation
	}
	return s.Validation
}

// repeats reports whether a text occurs twice.
func repeats(texts []string) bool {
	sorted := slices.Sorted(slices.Values(texts))
	return len(slices.Compact(sorted)) < len(texts)
}

// width returns the number of features that a column becomes.
func (f *Feature) width() int {
	n := max(1, len(f.Categories), f.Length)
	if f.Unknown == Other {
		n++
	}
	if f.Missing == Indicator {
		n++
	}
	return n
}

// Dim returns the number of features of an encoded row.
func (s *Schema) Dim() int {
	dim := 0
	for i := range s.Features {
		dim += s.Features[i].width()
	}
	return dim
}

// FeatureNorm returns the bound on the norm of encoded rows.
func (s *Schema) FeatureNorm() float64 {
	if s.Norm > 0 {
		return s.Norm
	}
	numbers := 0
	for _, f := range s.Features {
		numbers += max(1, f.Length)
	}
	return math.Sqrt(float64(numbers))
}

// MissingTexts returns the texts that stand for a missing value.
func (s *Schema) MissingTexts() []string {
	if s.Missing == nil {
		return DefaultMissing
	}
	return s.Missing
}

// libsvmDim returns the number of features that are read from a LIBSVM file: all that the schema names.
func (s *Schema) libsvmDim() int {
	dim := 0
	for _, f := range s.Features {
		if number, ok := strings.CutPrefix(f.Column, columnX); ok && f.Length == 0 {
			if k, err := strconv.Atoi(number); err == nil && k >= 0 && k < maxValues {
				dim = max(dim, k+1)
			}
		}
		if f.Column == columnX {
			dim = max(dim, f.Length)
		}
	}
	return dim
}

// Digest returns the first 32 hexadecimal digits of the SHA-256 of the schema's content, whatever its layout
// and comments.
func (s *Schema) Digest() string {
	content, err := json.Marshal(s)
	if err != nil {
		panic(err) // all numbers are finite
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}

// YAML returns the schema as a file.
func (s *Schema) YAML() ([]byte, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	err := errors.Join(encoder.Encode(s), encoder.Close())
	return b.Bytes(), err
}

// moment is a time as it is compared: numbers with numbers, dates with dates.
type moment struct {
	number float64
	date   string
}

// parseTime reads a number, or a date, perhaps with a time of day.
func parseTime(cell string) (moment, error) {
	if x, ok := text.Number(cell, 64); ok {
		return moment{number: x}, nil
	}
	if len(cell) >= len(dateForm) {
		for i, c := range dateForm {
			if digit := cell[i] >= '0' && cell[i] <= '9'; c == '0' && !digit || c == '-' && cell[i] != '-' {
				return moment{}, errNoTime
			}
		}
		return moment{date: cell}, nil
	}
	return moment{}, errNoTime
}

const dateForm = "0000-00-00"

var errNoTime = errors.New("neither a number nor a date")

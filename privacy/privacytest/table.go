package privacytest

import (
	"encoding/csv"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/internal/testsize"
)

// RelErr returns |got − want| / |want|, and 0 for equal values, infinite ones
// included.
func RelErr(got, want float64) float64 {
	if got == want {
		return 0
	}
	return math.Abs(got-want) / math.Abs(want)
}

// Table is a CSV file with a header line and comments that start with '#'.
type Table struct {
	t          *testing.T
	columns    map[string]int
	deviations map[string]*deviation // by column
	Rows       [][]string
}

// deviation holds the largest relative differences of computed values from the values of a column, in both
// directions.
type deviation struct {
	values       int
	above, below float64
}

// ReadTable reads a CSV file.
func ReadTable(t *testing.T, path string) Table {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	require.NoError(t, err)
	columns := make(map[string]int)
	for i, name := range rows[0] {
		columns[name] = i
	}
	return Table{t, columns, make(map[string]*deviation), rows[1:]}
}

// Text returns a cell.
func (tb Table) Text(row []string, column string) string {
	tb.t.Helper()
	i, ok := tb.columns[column]
	if !ok {
		tb.t.Fatalf("no column %q", column)
	}
	return row[i]
}

// Number returns a number.
func (tb Table) Number(row []string, column string) (float64, error) {
	return strconv.ParseFloat(tb.Text(row, column), 64)
}

// Float returns a number, or NaN for an empty cell.
func (tb Table) Float(row []string, column string) float64 {
	tb.t.Helper()
	if tb.Text(row, column) == "" {
		return math.NaN()
	}
	x, err := tb.Number(row, column)
	if err != nil {
		tb.t.Fatalf("column %q: %v", column, err)
	}
	return x
}

// Int returns a whole number.
func (tb Table) Int(row []string, column string) int64 {
	tb.t.Helper()
	return int64(tb.Float(row, column))
}

// Compare keeps by how much a computed value deviates from a column's value want, for the log of the test. It checks
// nothing.
func (tb Table) Compare(column string, got, want float64) {
	d, ok := tb.deviations[column]
	if !ok {
		d = &deviation{}
		tb.deviations[column] = d
	}
	switch relative := RelErr(got, want); {
	case math.IsNaN(relative) || math.IsInf(relative, 1): // no value, or 0
		return
	case got > want:
		d.above = math.Max(d.above, relative)
	default:
		d.below = math.Max(d.below, relative)
	}
	d.values++
}

// logDeviations writes a row of a table in Markdown for each compared column:
//
//	go test -v -run Shared ./privacy/... | grep -o '| .*_public.csv.*'
func (tb Table) logDeviations(name string) {
	for _, column := range slices.Sorted(maps.Keys(tb.deviations)) {
		d := tb.deviations[column]
		tb.t.Logf("| %s | %s | %s | %d | %.0e | %.0e |", name, tb.t.Name(), column, d.values, d.above, d.below)
	}
}

// SharedVectors reads a table of reference values from the optional folder
// $DPARETO_SHARED, by default the folder "shared" beside the repository. The
// test is skipped where the folder is absent.
func SharedVectors(t *testing.T, name string) Table {
	t.Helper()
	dir := os.Getenv("DPARETO_SHARED")
	if dir == "" {
		root, err := filepath.Abs(".")
		require.NoError(t, err)
		for {
			if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
				break
			}
			if filepath.Dir(root) == root {
				t.Fatal("no go.mod above the package")
			}
			root = filepath.Dir(root)
		}
		dir = filepath.Join(filepath.Dir(root), "shared")
	}
	path := filepath.Join(dir, "vectors", name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("reference values are absent: no %s", path)
	}
	tb := ReadTable(t, path)
	t.Cleanup(func() { tb.logDeviations(name) })
	return tb
}

// Few returns short, or long where tests take all of their settings.
func Few(short, long int) int {
	if testsize.Long {
		return long
	}
	return short
}

// Skips reports whether to leave the setting of a number out, which all but every few are where tests do not take
// all of them.
func Skips(setting, every int) bool { return !testsize.Long && setting%every != 0 }

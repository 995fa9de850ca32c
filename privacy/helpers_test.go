package privacy

import (
	"encoding/csv"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// relErr returns |got − want| / |want|, and 0 for equal values, infinite ones
// included.
func relErr(got, want float64) float64 {
	if got == want {
		return 0
	}
	return math.Abs(got-want) / math.Abs(want)
}

// table is a CSV file with a header line and comments that start with '#'.
type table struct {
	t       *testing.T
	columns map[string]int
	rows    [][]string
}

func readTable(t *testing.T, path string) table {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	columns := make(map[string]int)
	for i, name := range rows[0] {
		columns[name] = i
	}
	return table{t, columns, rows[1:]}
}

func (tb table) text(row []string, column string) string {
	tb.t.Helper()
	i, ok := tb.columns[column]
	if !ok {
		tb.t.Fatalf("no column %q", column)
	}
	return row[i]
}

func (tb table) number(row []string, column string) (float64, error) {
	return strconv.ParseFloat(tb.text(row, column), 64)
}

// float returns a number, or NaN for an empty cell.
func (tb table) float(row []string, column string) float64 {
	tb.t.Helper()
	if tb.text(row, column) == "" {
		return math.NaN()
	}
	x, err := tb.number(row, column)
	if err != nil {
		tb.t.Fatalf("column %q: %v", column, err)
	}
	return x
}

func (tb table) int(row []string, column string) int64 {
	tb.t.Helper()
	return int64(tb.float(row, column))
}

// sharedVectors reads a table of reference values from the optional folder
// $DPARETO_SHARED, by default the folder "shared" beside the repository. The
// test is skipped where the folder is absent.
func sharedVectors(t *testing.T, name string) table {
	t.Helper()
	dir := os.Getenv("DPARETO_SHARED")
	if dir == "" {
		root, err := filepath.Abs(".")
		if err != nil {
			t.Fatal(err)
		}
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
	return readTable(t, path)
}

// bits is the precision of the multi-precision references.
const bits = 4000

func bigFloat(x float64) *big.Float { return new(big.Float).SetPrec(bits).SetFloat64(x) }

// bigExp returns e^x by Taylor's series after halving x until it is small.
func bigExp(x *big.Float) *big.Float { return bigExpTo(bits, 400, x) }

// bigExpTo returns e^x from a number of terms in a precision of bits.
func bigExpTo(bits uint, terms int, x *big.Float) *big.Float {
	const halvings = 40
	y := new(big.Float).SetPrec(bits).SetMantExp(x, -halvings)
	sum, term := new(big.Float).SetPrec(bits).SetInt64(1), new(big.Float).SetPrec(bits).SetInt64(1)
	for k := 1; k < terms; k++ {
		term.Mul(term, y)
		term.Quo(term, new(big.Float).SetPrec(bits).SetInt64(int64(k)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// bigLog returns the float64 nearest to log x, for x > 0.
func bigLog(x *big.Float) float64 {
	mantissa := new(big.Float)
	exponent := x.MantExp(mantissa)
	m, _ := mantissa.Float64()
	return math.Log(m) + float64(exponent)*math.Ln2
}

package output

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// GeneratedLabel says that numbers are not about real data.
const GeneratedLabel = "generated data"

// Table holds data in rows. A cell is a string, an int64, a float64, a time.Time, or nil
// where there is no value.
type Table struct {
	Columns []string
	Rows    [][]any
}

// FieldTable returns an empty table for one thing, with a row for each of its fields.
func FieldTable() *Table { return &Table{Columns: []string{"field", "value"}} }

// Write prints the table in a format.
func (t *Table) Write(w io.Writer, format Format) error {
	switch format {
	case JSON:
		return t.WriteJSON(w)
	case CSV:
		return t.WriteCSV(w)
	default:
		return t.WriteText(w)
	}
}

// WriteText prints the table for people: aligned, with rounded numbers to the right.
func (t *Table) WriteText(w io.Writer) error {
	width := make([]int, len(t.Columns))
	right := make([]bool, len(t.Columns))
	cells := make([][]string, 0, len(t.Rows)+1)
	cells = append(cells, t.Columns)
	for _, row := range t.Rows {
		line := make([]string, len(row))
		for i, cell := range row {
			line[i] = Cell(cell)
			right[i] = right[i] || isNumber(cell)
		}
		cells = append(cells, line)
	}
	for _, line := range cells {
		for i, cell := range line {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, line := range cells {
		var b strings.Builder
		for i, cell := range line {
			if i > 0 {
				b.WriteString("  ")
			}
			padding := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if right[i] {
				b.WriteString(padding + cell)
			} else {
				b.WriteString(cell + padding)
			}
		}
		out.WriteString(strings.TrimRight(b.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// WriteCSV prints the table as CSV with a header and numbers in full.
func (t *Table) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(t.Columns); err != nil {
		return err
	}
	line := make([]string, len(t.Columns))
	for _, row := range t.Rows {
		for i, cell := range row {
			line[i] = Full(cell)
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// WriteJSON prints the table as an array of objects, one for each row. Cells without a
// value, and numbers that are not finite, are null.
func (t *Table) WriteJSON(w io.Writer) error {
	rows, err := t.objects()
	if err != nil {
		return err
	}
	return WriteJSON(w, rows)
}

// objects returns the rows as JSON objects.
func (t *Table) objects() ([]json.RawMessage, error) {
	rows := make([]json.RawMessage, len(t.Rows))
	for i, row := range t.Rows {
		var err error
		if rows[i], err = EncodeObject(t.Columns, row); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// WriteJSON prints a value as indented JSON.
func WriteJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func isNumber(cell any) bool {
	switch cell.(type) {
	case int64, float64, Bound, LowerBound, Delta:
		return true
	default:
		return false
	}
}

// Cell returns a cell as people read it.
func Cell(cell any) string {
	switch v := cell.(type) {
	case float64:
		return Number(v)
	case Bound:
		return NumberUp(float64(v))
	case LowerBound:
		return NumberDown(float64(v))
	case Delta:
		return deltaUp(float64(v))
	case time.Time:
		return v.Local().Format("2006-01-02 15:04")
	case string:
		return visible(v)
	default:
		return Full(cell)
	}
}

// visible returns a text with its control characters escaped as in Go. Names, notes and
// reasons come from other users, and could otherwise control the terminal or fake rows.
func visible(s string) string {
	if !strings.ContainsFunc(s, isHidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isHidden(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isHidden reports whether a character is invisible: a control character, or a format
// character such as the ones that reverse the direction of text.
func isHidden(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) }

// Full returns a cell without loss.
func Full(cell any) string {
	switch v := cell.(type) {
	case nil:
		return ""
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case Bound:
		return Full(float64(v))
	case LowerBound:
		return Full(float64(v))
	case Delta:
		return Plain(float64(v))
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	default:
		panic(fmt.Sprintf("output: cell of type %T", cell))
	}
}

// Number returns x with four significant digits, or all digits before the point if there
// are more, and in scientific notation where that is shorter to read.
func Number(x float64) string {
	const digits = 4
	magnitude := math.Abs(x)
	switch {
	case x == 0 || math.IsNaN(x) || math.IsInf(x, 0):
		return strconv.FormatFloat(x, 'g', -1, 64)
	case magnitude >= 1e7 || magnitude < 1e-4:
		return strconv.FormatFloat(x, 'e', digits-1, 64)
	}
	decimals := max(0, digits-1-int(math.Floor(math.Log10(magnitude))))
	return strconv.FormatFloat(x, 'f', decimals, 64)
}

// Plain returns x with as few digits as it needs, and exponents without zeros: 1e-5.
func Plain(x float64) string {
	text := strconv.FormatFloat(x, 'g', -1, 64)
	text = strings.Replace(text, "e-0", "e-", 1)
	text = strings.Replace(text, "e+0", "e", 1)
	return strings.Replace(text, "e+", "e", 1)
}

// Delta is the cell of a δ: people read it with three digits, rounded up, and plain.
type Delta float64

// deltaUp returns a δ in plain notation with at most three digits, never below it by more than the
// rounding of sums, a part in 10¹².
func deltaUp(x float64) string {
	rounded := func(x float64) float64 {
		y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 2, 64), 64) // it is a number
		return y
	}
	y := rounded(x)
	if y < x*(1-1e-12) {
		y = rounded(x + 0.5000001*math.Pow(10, math.Floor(math.Log10(x))-2))
	}
	return Plain(y)
}

// Bound is the cell of an upper bound, such as ε: people read it rounded up, so that
// what is printed is a bound too.
type Bound float64

// LowerBound is the cell of a lower bound: people read it rounded down.
type LowerBound float64

// NumberUp returns x as Number does, but never below x.
func NumberUp(x float64) string { return roundTo(x, 1) }

// NumberDown returns x as Number does, but never above x.
func NumberDown(x float64) string { return roundTo(x, -1) }

// roundTo returns x as Number does, but not before x in the direction of a sign.
func roundTo(x, sign float64) string {
	s := Number(x)
	printed, err := strconv.ParseFloat(s, 64)
	if err != nil || !(sign*printed < sign*x) {
		return s
	}
	// Half a unit of the last digit moves the number to where it is rounded the other way.
	unit := 1.0
	if exponent := math.Floor(math.Log10(math.Abs(x))); exponent < 4 || exponent >= 7 {
		unit = math.Pow(10, exponent-3)
	}
	return Number(x + sign*0.5000001*unit)
}

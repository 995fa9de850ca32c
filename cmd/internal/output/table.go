package output

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dpareto/dpareto/internal/show"
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
	for k, columns := range blocks(width, widthOf(w)) {
		if k > 0 {
			out.WriteString("\n")
		}
		writeBlock(&out, cells, columns, width, right)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// widthOf returns the width of the terminal behind a writer, 0 for none.
func widthOf(w io.Writer) int {
	if sized, ok := w.(interface{ Width() int }); ok {
		return sized.Width()
	}
	return 0
}

// blocks divides columns of given widths among tables that fit into a total. All have the first column.
func blocks(width []int, total int) [][]int {
	if len(width) == 0 {
		return nil
	}
	const gap = 2
	all, used := [][]int{{0}}, width[0]
	for i := 1; i < len(width); i++ {
		last := len(all) - 1
		if total > 0 && used+gap+width[i] > total && len(all[last]) > 1 {
			all, used = append(all, []int{0}), width[0]
			last++
		}
		all[last], used = append(all[last], i), used+gap+width[i]
	}
	return all
}

// writeBlock prints some columns of a table.
func writeBlock(out *strings.Builder, cells [][]string, columns, width []int, right []bool) {
	for _, line := range cells {
		var b strings.Builder
		for k, i := range columns {
			cell := line[i]
			if k > 0 {
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
}

// WriteCSV prints the table as CSV with a header and numbers in full. Control characters are escaped as in
// Go, but for tabs and newlines: terminals obey them.
func (t *Table) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(t.Columns); err != nil {
		return err
	}
	line := make([]string, len(t.Columns))
	for _, row := range t.Rows {
		for i, cell := range row {
			line[i] = escape(strings.ReplaceAll(Full(cell), "\r\n", "\n"), isControl) // readers of CSV do the same
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
	encoded, err := Encode(value)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, encoded, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err = out.WriteTo(w)
	return err
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
		return show.Number(v)
	case Bound:
		return show.NumberUp(float64(v))
	case LowerBound:
		return show.NumberDown(float64(v))
	case Delta:
		return show.Delta(float64(v))
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
func visible(s string) string { return escape(s, isHidden) }

// escape returns a text with some characters escaped as in Go.
func escape(s string, is func(rune) bool) string {
	if !strings.ContainsFunc(s, is) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if is(r) {
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

// isControl reports whether a terminal obeys a character that a cell of a CSV file does not need.
func isControl(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\n' }

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
		return show.Plain(float64(v))
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	default:
		panic(fmt.Sprintf("output: cell of type %T", cell))
	}
}

// Delta is the cell of a δ: people read it with three digits, rounded up, and plain.
type Delta float64

// Bound is the cell of an upper bound, such as ε: people read it rounded up, so that
// what is printed is a bound too.
type Bound float64

// LowerBound is the cell of a lower bound: people read it rounded down.
type LowerBound float64

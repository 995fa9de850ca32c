package trial

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/dpareto/dpareto/internal/document"
	"github.com/dpareto/dpareto/internal/text"
)

// Result is a line of a file of results.
type Result struct {
	Line int
	// Values are what the line says by name: numbers, strings, or lists of numbers.
	Values map[string]any
}

// lineError is an error in a line of a file of results.
func lineError(line int, format string, args ...any) error {
	return &document.LineError{Line: line, Err: fmt.Errorf(format, args...)}
}

// inSource returns an error of a file with its name and, if it is of a line, the line.
func inSource(source string, err error) error {
	if at, ok := errors.AsType[*document.LineError](err); ok {
		return fmt.Errorf("%s:%d: %w", source, at.Line, at.Err)
	}
	return fmt.Errorf("%s: %w", source, err)
}

// table are the results of a file.
type table struct {
	names   []string // of columns, as in the header; of JSON objects none
	header  int      // its line
	comma   rune     // between the cells of a line, 0 in JSON
	results []Result
}

// readTable reads CSV, or JSON objects.
func readTable(content []byte) (*table, error) {
	content, err := text.Decode(content)
	if err != nil {
		return nil, err
	}
	if begin := bytes.TrimSpace(content); bytes.HasPrefix(begin, []byte("{")) || bytes.HasPrefix(begin, []byte("[")) {
		return readJSON(content)
	}
	return readCSV(content)
}

// readJSON reads JSON objects: one after another, in lists, or as the trials of an answer of the server.
func readJSON(content []byte) (*table, error) {
	if err := document.CheckUTF8(content); err != nil {
		return nil, err
	}
	lines, err := io.ReadAll(text.NewLineReader(bytes.NewReader(content), false))
	if err != nil {
		return nil, err
	}
	objects, at, err := document.ParseObjects(lines)
	if err != nil {
		return nil, err
	}
	t := new(table)
	for i, object := range objects {
		trials, _ := object["trials"].([]any)
		var inside []Result
		for _, element := range trials {
			if trial, ok := element.(map[string]any); ok {
				inside = append(inside, Result{at[i], trial})
			}
		}
		if len(trials) == 0 || len(inside) < len(trials) {
			inside = []Result{{at[i], object}}
		}
		t.results = append(t.results, inside...)
	}
	return t, nil
}

// readCSV reads cells between commas, semicolons or tabs, whichever its header has most. Lines without
// any value are not results.
func readCSV(content []byte) (*table, error) {
	if bytes.IndexByte(content, 0) >= 0 {
		return nil, lineError(1+bytes.Count(content[:bytes.IndexByte(content, 0)], []byte("\n")), "has a NUL character: save the file as UTF-8")
	}
	t := new(table)
	skipped := 0
	var declaration int
	if t.comma, declaration = text.Separator(content); declaration > 0 {
		content, skipped = content[declaration:], 1
	}
	reader := csv.NewReader(text.NewLineReader(bytes.NewReader(content), true))
	reader.Comma = t.comma
	reader.FieldsPerRecord = -1 // counted below, for an error with both numbers
	line := func() int {
		n, _ := reader.FieldPos(0)
		return n + skipped
	}
	var err error
	if t.names, err = reader.Read(); errors.Is(err, io.EOF) {
		return nil, errors.New("no header: the file is empty")
	} else if err != nil {
		return nil, lineError(1+skipped, "no header: %w", syntax(err))
	}
	t.header = line()
	for i, name := range t.names {
		if !utf8.ValidString(name) {
			return nil, lineError(line(), "the name of column %d is not UTF-8: save the file as UTF-8", i+1)
		}
		t.names[i] = strings.TrimSpace(name)
	}
	unnamed := make([]bool, len(t.names)) // with a value
	for {
		cells, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if malformed, ok := errors.AsType[*csv.ParseError](err); ok {
			return nil, lineError(malformed.Line+skipped, "%w", syntax(err))
		}
		if err != nil {
			return nil, err
		}
		if len(strings.TrimSpace(strings.Join(cells, ""))) == 0 {
			continue
		}
		if len(cells) < len(t.names) || strings.TrimSpace(strings.Join(cells[len(t.names):], "")) != "" {
			return nil, lineError(line(), "has %d cells, the header has %d", len(cells), len(t.names))
		}
		values := make(map[string]any)
		for i, name := range t.names {
			switch cell := cells[i]; {
			case !utf8.ValidString(cell):
				return nil, lineError(line(), "column %s is not UTF-8: save the file as UTF-8", name)
			case strings.TrimSpace(cell) == "":
			case name == "":
				unnamed[i] = true
			default:
				values[name] = cell
			}
		}
		t.results = append(t.results, Result{line(), values})
	}
	return t, t.checkNames(unnamed)
}

// syntax returns an error of package csv without its position.
func syntax(err error) error {
	if malformed, ok := errors.AsType[*csv.ParseError](err); ok {
		return fmt.Errorf("column %d: %w", malformed.Column, malformed.Err)
	}
	return err
}

// checkNames refuses a header with a name twice, and drops columns without one: those that spreadsheets
// leave at the end are empty, and the first is the index of a data frame.
func (t *table) checkNames(unnamed []bool) error {
	var names []string
	seen := make(map[string]int)
	for i, name := range t.names {
		if name == "" {
			if unnamed[i] && i > 0 {
				return lineError(t.header, "column %d has values and no name", i+1)
			}
			continue
		}
		if other, ok := seen[name]; ok {
			return lineError(t.header, "column %q occurs twice, as columns %d and %d", name, other, i+1)
		}
		seen[name] = i + 1
		names = append(names, name)
	}
	if len(names) == 0 {
		return lineError(t.header, "no header")
	}
	t.names = names
	return nil
}

// isList reports whether a cell is a list of JSON.
func isList(cell string) bool { return strings.HasPrefix(strings.TrimSpace(cell), "[") }

// decimalPoints replaces decimal commas in the columns of numbers of a file whose cells are not separated
// by commas. What could be a separator of thousands is refused.
func (t *table) decimalPoints(isNumber func(name string) bool) error {
	if t.comma == 0 || t.comma == ',' {
		return nil
	}
	comma, point := 0, 0 // first lines with them
	for _, r := range t.results {
		for _, name := range t.names {
			cell, ok := r.Values[name].(string)
			if !ok || !isNumber(name) || isList(cell) {
				continue
			}
			number := strings.TrimSpace(cell)
			whole, fraction, hasComma := strings.Cut(number, ",")
			switch {
			case hasComma && (strings.ContainsAny(fraction, ".,") || strings.Contains(whole, ".")):
				return lineError(r.Line, "column %s: must be a number without separators of thousands, is %q", name, number)
			case hasComma && t.comma == '\t' && len(fraction) == 3 && len(strings.TrimLeft(whole, "+-")) <= 3 && strings.TrimLeft(whole, "+-") != "0":
				return lineError(r.Line, "column %s: must be a number with a decimal point, is %q, which may be meant in thousands", name, number)
			case hasComma:
				if comma == 0 {
					comma = r.Line
				}
				r.Values[name] = whole + "." + fraction
			case strings.Contains(number, "."):
				if point == 0 {
					point = r.Line
				}
			}
			if comma > 0 && point > 0 {
				return lineError(r.Line, "column %s: numbers have decimal commas (line %d) and points (line %d): use one of them", name, comma, point)
			}
		}
	}
	return nil
}

// list returns the elements of a list, also of one in a cell.
func list(value any) (elements []any, ok bool, err error) {
	if cell, isText := value.(string); isText && isList(cell) {
		if value, err = document.ParseJSON([]byte(cell)); err != nil {
			return nil, false, fmt.Errorf("must be a number or a list of JSON, is %q", cell)
		}
	}
	elements, ok = value.([]any)
	return elements, ok, nil
}

// textOf returns a scalar as text, "" for null.
func textOf(value any) (text string, ok bool) {
	switch v := value.(type) {
	case nil:
		return "", true
	case string:
		return strings.TrimSpace(v), true
	case json.Number, bool, float64, int64, int:
		return fmt.Sprint(v), true
	default:
		return "", false
	}
}

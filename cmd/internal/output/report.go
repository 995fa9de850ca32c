package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Report is the outcome of an experiment: tables, and what their numbers mean.
type Report struct {
	Title string
	// Version of the program that made the report, and the Command that it was given. Both are printed after the
	// title if there are any, but not in CSV.
	Version, Command string
	// Notes hold for all sections, a paragraph each.
	Notes    []string
	Sections []Section
}

// Section is one table of a report.
type Section struct {
	// Name tells the section from the others to programs.
	Name  string
	Title string
	// Notes say what the table's numbers mean, a paragraph each.
	Notes []string
	Table *Table
}

// Write prints the report in a format.
func (r *Report) Write(w io.Writer, format Format) error {
	switch format {
	case JSON:
		return r.writeJSON(w)
	case CSV:
		return r.joined().WriteCSV(w)
	default:
		return r.writeText(w)
	}
}

// reportWidth is the number of characters of a line of a paragraph.
const reportWidth = 96

func (r *Report) writeText(w io.Writer) error {
	var out bytes.Buffer
	out.WriteString(r.Title + "\n")
	if r.Version != "" {
		fmt.Fprintf(&out, "\nVersion %s:\n  %s\n", r.Version, r.Command)
	}
	writeParagraphs(&out, r.Notes)
	for _, s := range r.Sections {
		out.WriteString("\n" + s.Title + "\n\n")
		if err := s.Table.WriteText(&out); err != nil {
			return err
		}
		writeParagraphs(&out, s.Notes)
	}
	_, err := out.WriteTo(w)
	return err
}

// writeParagraphs prints paragraphs in lines of limited width, a blank line before each.
func writeParagraphs(out *bytes.Buffer, paragraphs []string) {
	for _, paragraph := range paragraphs {
		out.WriteByte('\n')
		column := 0
		for word := range strings.FieldsSeq(paragraph) {
			length := len([]rune(word))
			switch {
			case column == 0:
			case column+1+length > reportWidth:
				out.WriteByte('\n')
				column = 0
			default:
				out.WriteByte(' ')
				column++
			}
			out.WriteString(word)
			column += length
		}
		out.WriteByte('\n')
	}
}

// joined returns one table of all sections: their names come first, and then the columns
// of any of them.
func (r *Report) joined() *Table {
	all := &Table{Columns: []string{"section"}}
	for _, s := range r.Sections {
		for _, name := range s.Table.Columns {
			if !slices.Contains(all.Columns[1:], name) {
				all.Columns = append(all.Columns, name)
			}
		}
	}
	for _, s := range r.Sections {
		for _, row := range s.Table.Rows {
			line := make([]any, len(all.Columns))
			line[0] = s.Name
			for i, cell := range row {
				line[1+slices.Index(all.Columns[1:], s.Table.Columns[i])] = cell
			}
			all.Rows = append(all.Rows, line)
		}
	}
	return all
}

// writeJSON prints an object with the sections by name, the rows of which are objects.
// Numbers that are not finite, which JSON has not, are null.
func (r *Report) writeJSON(w io.Writer) error {
	type section struct {
		Name  string            `json:"name"`
		Title string            `json:"title"`
		Notes []string          `json:"notes,omitempty"`
		Rows  []json.RawMessage `json:"rows"`
	}
	report := struct {
		Title    string    `json:"title"`
		Version  string    `json:"version,omitempty"`
		Command  string    `json:"command,omitempty"`
		Notes    []string  `json:"notes,omitempty"`
		Sections []section `json:"sections"`
	}{Title: r.Title, Version: r.Version, Command: r.Command, Notes: r.Notes}
	for _, s := range r.Sections {
		rows, err := s.Table.objects()
		if err != nil {
			return err
		}
		report.Sections = append(report.Sections, section{s.Name, s.Title, s.Notes, rows})
	}
	return WriteJSON(w, report)
}

// EncodeObject returns a row as a JSON object whose keys are in the order of the columns.
func EncodeObject(columns []string, row []any) (json.RawMessage, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, cell := range row {
		if x, ok := number(cell); ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
			cell = nil
		}
		name, err := Encode(columns[i])
		if err != nil {
			return nil, err
		}
		value, err := Encode(cell)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "%s:%s", name, value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// Encode returns a value as JSON in one line, with "<", ">" and "&" as they are, and invisible characters
// escaped: terminals obey some that JSON allows.
func Encode(value any) (json.RawMessage, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	encoded := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	if !bytes.ContainsFunc(encoded, isHidden) {
		return encoded, err
	}
	var escaped []byte
	for _, r := range string(encoded) { // such characters are within strings only
		if !isHidden(r) {
			escaped = utf8.AppendRune(escaped, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			escaped = fmt.Appendf(escaped, `\u%04x`, unit)
		}
	}
	return escaped, err
}

// number returns the value of a cell that is a floating-point number.
func number(cell any) (x float64, ok bool) {
	switch v := cell.(type) {
	case float64:
		return v, true
	case Bound:
		return float64(v), true
	case LowerBound:
		return float64(v), true
	case Delta:
		return float64(v), true
	default:
		return 0, false
	}
}

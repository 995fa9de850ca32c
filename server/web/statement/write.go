package statement

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed statement.html
var source string

//go:embed statement.css
var style string

var page = template.Must(template.New("statement").Funcs(template.FuncMap{
	"style":  func() template.CSS { return template.CSS(style) }, //nolint:gosec // a file of this package
	"schema": func() string { return RegistrySchema },
	"json":   valueText,
	"id":     id,
}).Parse(source))

// mark is how a line begins that a person fills in.
const mark = "FILL IN: "

// HTML writes the statement as one page that needs no network and has no scripts.
func (s *Statement) HTML(w io.Writer) error {
	return write(w, func(out io.Writer) error { return page.Execute(out, s) })
}

// JSON writes the statement for programs.
func (s *Statement) JSON(w io.Writer) error {
	return write(w, func(out io.Writer) error {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(s)
	})
}

// Text writes the statement for a terminal.
func (s *Statement) Text(w io.Writer) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "Privacy statement: %s\n\n", id(s.Study))
	wrap(&out, "", s.Claim)
	for _, section := range s.Sections {
		fmt.Fprintf(&out, "\n%s\n", section.Title)
		for _, item := range section.Items {
			text := item.Text
			if item.FillIn {
				text = mark + text
			}
			wrap(&out, "  ", item.Name+": "+text)
		}
	}
	fmt.Fprint(&out, "\nProvided that\n")
	for _, a := range s.Assumptions {
		wrap(&out, "  ", "- "+a.String())
	}
	fmt.Fprintf(&out, "\nAppendix A: Differential Privacy Deployments Registry\n")
	wrap(&out, "  ", "("+RegistrySchema+")")
	for _, f := range s.Registry {
		wrap(&out, "  ", f.Path+": "+valueText(f.Value))
	}
	fmt.Fprint(&out, "\nAppendix B: NIST SP 800-226 (March 2025), its factors as questions\n")
	for _, q := range s.Questions {
		wrap(&out, "  ", q.Factor+": "+q.Question)
		wrap(&out, "    ", q.Answer)
	}
	_, err := out.WriteTo(w)
	return err
}

// write writes a whole document or nothing of it.
func write(w io.Writer, content func(io.Writer) error) error {
	var out bytes.Buffer
	if err := content(&out); err != nil {
		return fmt.Errorf("statement: %w", err)
	}
	_, err := out.WriteTo(w)
	return err
}

// width is the number of characters of a line of text.
const width = 96

// wrap writes a paragraph, indented, in lines of limited width. Commands stay in one line, to be copied.
func wrap(out *bytes.Buffer, indent, text string) {
	column := 0
	command := strings.Contains(text, "dpareto privacy ")
	for word := range strings.FieldsSeq(text) {
		length := len([]rune(word))
		switch {
		case column == 0:
			out.WriteString(indent)
			column = len(indent)
		case column+1+length > width && !command:
			out.WriteString("\n" + indent + "  ")
			column = len(indent) + 2
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += length
	}
	out.WriteByte('\n')
}

// valueText returns the value of a field of the registry.
func valueText(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(encoded)
}

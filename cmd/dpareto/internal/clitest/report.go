package clitest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Report is a report as programs read it: the rows of every section.
type Report struct {
	Title    string   `json:"title"`
	Notes    []string `json:"notes"`
	Sections []struct {
		Name  string           `json:"name"`
		Notes []string         `json:"notes"`
		Rows  []map[string]any `json:"rows"`
	} `json:"sections"`
}

// RunReport runs a command that prints a report with --output json.
func RunReport(t *testing.T, line string, more ...string) Report {
	t.Helper()
	stdout, _ := Must(t, "", append(append(strings.Fields(line), more...), "--output", "json")...)
	var r Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, stdout)
	}
	return r
}

// Rows returns the rows of a section.
func (r Report) Rows(t *testing.T, name string) []map[string]any {
	t.Helper()
	for _, s := range r.Sections {
		if s.Name == name {
			return s.Rows
		}
	}
	t.Fatalf("no section %s in %+v", name, r)
	return nil
}

// Value returns the cell of a column in the row that another column names.
func (r Report) Value(t *testing.T, section, key, row, column string) any {
	t.Helper()
	for _, line := range r.Rows(t, section) {
		if line[key] == row {
			return line[column]
		}
	}
	t.Fatalf("no row %s in section %s", row, section)
	return nil
}

// Says reports whether a note of the report, or of a section, contains a text.
func (r Report) Says(text string) bool {
	all := slices.Clone(r.Notes)
	for _, s := range r.Sections {
		all = append(all, s.Notes...)
	}
	return slices.ContainsFunc(all, func(note string) bool { return strings.Contains(note, text) })
}

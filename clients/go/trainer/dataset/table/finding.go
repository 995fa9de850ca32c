package table

import (
	"fmt"
	"slices"
	"strings"
)

// Finding is something that a reader of a file should know, without any value of the file.
type Finding struct {
	// Fatal findings keep a file from being trained on.
	Fatal bool
	// Column is the column that the finding is about, by its name in the schema, or empty.
	Column string
	// Problem in words.
	Problem string
	// Count is the number of rows with the problem, or 0 where it is not one of rows.
	Count int
}

// String returns the finding on one line.
func (f Finding) String() string {
	var b strings.Builder
	if f.Column != "" {
		fmt.Fprintf(&b, "column %q: ", f.Column)
	}
	b.WriteString(f.Problem)
	if f.Count > 0 {
		fmt.Fprintf(&b, " (%d rows)", f.Count)
	}
	return b.String()
}

// InvalidError says why a file cannot be trained on.
type InvalidError struct {
	File     string
	Findings []Finding // at least one is fatal
}

// Error implements error. It has the fatal findings, and no value of the file.
func (e *InvalidError) Error() string {
	var all []string
	for _, f := range e.Findings {
		if f.Fatal {
			all = append(all, f.String())
		}
	}
	return fmt.Sprintf("%s: %s", e.File, strings.Join(all, "; "))
}

// findings counts findings in the order of their first occurrence.
type findings struct {
	list []Finding
	at   map[Finding]int // by the finding without its count
}

// add counts a row with a problem.
func (f *findings) add(fatal bool, column, problem string) { f.addCount(fatal, column, problem, 1) }

// addCount counts n rows with a problem, 0 for one that is not of rows.
func (f *findings) addCount(fatal bool, column, problem string, n int) {
	key := Finding{Fatal: fatal, Column: column, Problem: problem}
	i, ok := f.at[key]
	if !ok {
		if f.at == nil {
			f.at = make(map[Finding]int)
		}
		i = len(f.list)
		f.at[key] = i
		f.list = append(f.list, key)
	}
	f.list[i].Count += n
}

// invalid returns an *InvalidError if a finding is fatal.
func (f *findings) invalid(file string) error {
	if slices.ContainsFunc(f.list, func(one Finding) bool { return one.Fatal }) {
		return &InvalidError{File: file, Findings: f.list}
	}
	return nil
}

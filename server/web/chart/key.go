package chart

import (
	"fmt"
	"html/template"
)

// Key returns a sample of a series for a legend: a line if withLine, and a shape of Marks unless it is "".
func Key(class, shape string, withLine bool) template.HTML {
	var c Chart
	if withLine {
		c.path("line "+class, "M2 8H34")
	}
	if shape != "" {
		fmt.Fprintf(&c.body, `<g class="mark %s">`, escape(class))
		c.shape(shape, 18, 8)
		c.body.WriteString(`</g>`)
	}
	return template.HTML(`<svg class="chart key" viewBox="0 0 36 16" width="36" height="16" aria-hidden="true">` + c.body.String() + `</svg>`) //nolint:gosec // every text in it is escaped
}

package chart_test

import (
	"strings"
	"testing"

	"github.com/dpareto/dpareto/server/web/chart"
)

// Ticks have their own values as labels, below the plane, and the picture has its description.
func TestAxesAreLabelled(t *testing.T) {
	c := chart.Chart{ID: "c", Title: "Front", Description: "What is to be seen", X: chart.Fit("x", chart.Linear, 0, 10), Y: chart.Fit("y", chart.Linear, 0, 1)}
	svg := string(c.SVG())
	for _, want := range []string{`y="370">6</text>`, `<desc id="c-about">What is to be seen</desc>`, `<title id="c-title">Front</title>`} {
		if !strings.Contains(svg, want) {
			t.Errorf("%q is missing in %s", want, svg)
		}
	}
}

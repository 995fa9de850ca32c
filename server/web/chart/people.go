package chart

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// People returns 100 circles, of which the first n are filled; a part of one is filled as a part. The text
// beside it says the number.
func People(class string, n float64) template.HTML {
	const across, step, radius = 25, 16.0, 6.0
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="people-chart" viewBox="0 0 %g %g" aria-hidden="true">`, across*step, 100/across*step)
	for i := range 100 {
		x, y := step*float64(i%across)+step/2, step*float64(i/across)+step/2
		share := max(0, min(1, n-float64(i)))
		if share == 1 {
			fmt.Fprintf(&out, `<circle class="%s" cx="%g" cy="%g" r="%g"/>`, escape(class), x, y, radius)
			continue
		}
		fmt.Fprintf(&out, `<circle cx="%g" cy="%g" r="%g"/>`, x, y, radius)
		if share > 0 {
			angle := 2 * math.Pi * share
			large := 0
			if share > 0.5 {
				large = 1
			}
			fmt.Fprintf(&out, `<path d="M%g %gv-%gA%[3]g %[3]g 0 %d 1 %s %sz"/>`, x, y, radius, large, coordinate(x+radius*math.Sin(angle)), coordinate(y-radius*math.Cos(angle)))
		}
	}
	out.WriteString(`</svg>`)
	return template.HTML(out.String()) //nolint:gosec // numbers, and an escaped text
}

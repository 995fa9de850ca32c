package plot

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"

	"github.com/dpareto/dpareto/internal/require"
)

// The front's points have the colours of their groups, which the legend names unless they have
// no points; the staircase is grey then.
func TestGroups(t *testing.T) {
	f := &Figure{
		X: Axis{Reference: 10}, Y: Axis{Reference: 10}, FrontName: "front", Groups: []string{"first (1)", "none (0)", "third (2)"},
		Front: []FrontPoint{{X: 1, Y: 5, Lower: 5, Upper: 5}, {X: 2, Y: 4, Lower: 4, Upper: 4, Group: 2}, {X: 3, Y: 3, Lower: 3, Upper: 3, Group: 2}},
	}
	render := func() string {
		var out bytes.Buffer
		require.NoError(t, f.Render(&out, "svg"))
		return out.String()
	}
	color := func(g int) string {
		c := palette[g]
		return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B)
	}
	svg := render()
	for _, want := range []string{"first (1)", "third (2)", color(0), color(2)} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in\n%s", want, svg)
		}
	}
	for _, absent := range []string{"none (0)", color(1), "stroke:" + color(0)} {
		if strings.Contains(svg, absent) {
			t.Errorf("%q in\n%s", absent, svg)
		}
	}
	shapes := make(map[string]bool)
	for g := range MaxGroups {
		shapes[fmt.Sprint(shape(g, vg.Point{}, 1))] = true
	}
	if len(shapes) != MaxGroups {
		t.Errorf("%d shapes for %d groups", len(shapes), MaxGroups)
	}
	f.Groups = nil
	if svg := render(); strings.Contains(svg, color(2)) || !strings.Contains(svg, "stroke:"+color(0)) {
		t.Errorf("without groups the front is not blue:\n%s", svg)
	}
}

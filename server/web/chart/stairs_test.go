package chart

import (
	"strings"
	"testing"
)

// A staircase goes along X first, to where the next point is better in Y; others are left out.
func TestStairs(t *testing.T) {
	for name, test := range map[string]struct {
		points    []Point
		maximizeY bool
	}{
		"minimise": {[]Point{{0, 1}, {0.25, 1}, {0.5, 0.5}, {0.75, 0.75}, {1, 0}}, false},
		"maximise": {[]Point{{0, 0}, {0.25, 0}, {0.5, 0.5}, {0.75, 0.25}, {1, 1}}, true},
	} {
		c := Chart{ID: "c", Title: "T", Description: "D", X: Axis{Max: 1}, Y: Axis{Max: 1}}
		c.Stairs("", test.points, test.maximizeY)
		_, line, _ := strings.Cut(string(c.SVG()), `class="line`)
		line, _, _ = strings.Cut(line, ">")
		if n := strings.Count(line, "L"); n != 4 {
			t.Errorf("%s: %d lines, want 4: %s", name, n, line)
		}
	}
}

// Ticks are labelled with their values, and a picture has its description.
func TestSVGText(t *testing.T) {
	c := Chart{ID: "c", Title: "T", Description: "D", X: Axis{Label: "x", Min: -1, Max: 1}, Y: Axis{Label: "y", Min: 0, Max: 8}}
	svg := string(c.SVG())
	for _, want := range []string{`>0.5</text>`, `>0.0</text>`, `<desc id="c-about">D</desc>`, `>6</text>`} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in %s", want, svg)
		}
	}
}

// A thinned list keeps its ends and its order.
func TestThin(t *testing.T) {
	items := make([]int, 1234)
	for i := range items {
		items[i] = i
	}
	for _, n := range []int{2, 3, 20, 1233, 1234, 5000} {
		got := Thin(items, n)
		if len(got) != min(n, len(items)) || got[0] != 0 || got[len(got)-1] != 1233 {
			t.Errorf("%d: %d from %d to %d", n, len(got), got[0], got[len(got)-1])
		}
		for i := 1; i < len(got); i++ {
			if got[i] <= got[i-1] {
				t.Fatalf("%d: %d after %d", n, got[i], got[i-1])
			}
		}
	}
}

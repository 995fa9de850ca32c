package plot

import (
	"bytes"
	"slices"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

func TestCurve(t *testing.T) {
	for _, points := range [][]Point{
		nil,
		{{X: 1, Y: 0}},
		{{X: 1, Y: 2}},
		{{X: 10, Y: 0.5}, {X: 30, Y: 8.2}, {X: 31, Y: 8.4}, {X: 95, Y: 8.3}},
	} {
		c := &Curve{
			Title: "Adult", Subtitle: []string{"observed front"},
			X: Axis{Label: "epochs"}, Y: Axis{Label: "hypervolume"}, Points: points,
		}
		var svg bytes.Buffer
		require.NoError(t, c.Render(&svg, "svg"))
		if bytes.Contains(svg.Bytes(), []byte("NaN")) || bytes.Contains(svg.Bytes(), []byte("Inf")) {
			t.Errorf("%v: coordinates that are no numbers", points)
		}
		got := texts(t, svg.Bytes())
		for _, want := range []string{"Adult", "observed front", "epochs", "hypervolume"} {
			if !slices.Contains(got, want) {
				t.Errorf("%v: no text %q among %q", points, want, got)
			}
		}
	}
}

// The view leaves out the steep beginning and nothing else.
func TestCurveExtent(t *testing.T) {
	c := &Curve{Points: []Point{{X: 10, Y: 0.5}, {X: 30, Y: 8}, {X: 31, Y: 9}, {X: 95, Y: 8.5}}}
	left, right, bottom, top := c.extent()
	if left != 0 || right != 95 || !(7.9 < bottom && bottom < 8) || !(9 < top && top < 9.1) {
		t.Errorf("extent %v to %v, %v to %v", left, right, bottom, top)
	}
}

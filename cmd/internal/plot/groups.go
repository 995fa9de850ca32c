package plot

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// MaxGroups is the largest number of groups that the colours of a picture tell apart.
var MaxGroups = len(palette)

// frontColor is the colour of the staircase: grey where colours tell groups of points apart.
func (f *Figure) frontColor() color.NRGBA {
	if len(f.Groups) > 0 {
		return grey
	}
	return frontBlue
}

// fillFront draws points of the front at their places, those of each group in its colour.
func (f *Figure) fillFront(c *draw.Canvas, places []vg.Point, groups []int) {
	c.SetColor(color.White)
	c.Fill(circles(places, frontSize+0.8))
	for g := range max(1, len(f.Groups)) {
		var own []vg.Point
		for i, at := range places {
			if len(f.Groups) == 0 || groups[i] == g {
				own = append(own, at)
			}
		}
		if len(own) > 0 {
			c.SetColor(palette[g%len(palette)])
			c.Fill(circles(own, frontSize))
		}
	}
}

// groupEntries are the entries of the groups that have points on the front.
func (f *Figure) groupEntries() []entry {
	var entries []entry
	for g, name := range f.Groups {
		if slices.ContainsFunc(f.Front, func(p FrontPoint) bool { return p.Group == g }) {
			entries = append(entries, entry{name, 2 * frontSize, func(c *draw.Canvas, at vg.Point) {
				c.SetColor(palette[g%len(palette)])
				c.Fill(circles([]vg.Point{at}, frontSize))
			}})
		}
	}
	return entries
}

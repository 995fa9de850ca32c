package plot

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// MaxGroups is the largest number of groups that the colours of a picture tell apart.
var MaxGroups = len(palette)

// shape returns the outline of a group's marker around a point. Every group has its own, to be told apart in grey.
func shape(group int, at vg.Point, radius vg.Length) vg.Path {
	shapes := []struct {
		corners int // 0 for a circle
		inner   float64
		turn    float64 // of the first corner from the top
	}{{}, {4, 1, math.Pi / 4}, {3, 1, 0}, {4, 1, 0}, {3, 1, math.Pi}, {8, 0.35, 0}, {10, 0.45, 0}}
	s := shapes[group%len(shapes)]
	if s.corners == 0 {
		return circles([]vg.Point{at}, radius)
	}
	return polygon(at, s.corners, s.turn, 1.25*radius, vg.Length(s.inner)*1.25*radius)
}

// polygon returns a path through corners that lie alternately on two circles around a point, from an angle on.
func polygon(at vg.Point, corners int, turn float64, outer, inner vg.Length) vg.Path {
	var path vg.Path
	for i := range corners {
		radius := outer
		if i%2 == 1 {
			radius = inner
		}
		sin, cos := math.Sincos(turn + 2*math.Pi*float64(i)/float64(corners))
		corner := at.Add(vg.Point{X: radius * vg.Length(sin), Y: radius * vg.Length(cos)})
		if i == 0 {
			path.Move(corner)
		} else {
			path.Line(corner)
		}
	}
	path.Close()
	return path
}

// frontColor is the colour of the staircase: grey where colours tell groups of points apart.
func (f *Figure) frontColor() color.NRGBA {
	if len(f.Groups) > 0 {
		return grey
	}
	return frontBlue
}

// fillFront draws the points of the front at their places. Every group has a colour and a shape.
func (f *Figure) fillFront(c *draw.Canvas, places []vg.Point, groups []int) {
	if len(f.Groups) == 0 {
		groups = make([]int, len(places))
	}
	for i, at := range places {
		c.SetColor(color.White)
		c.Fill(shape(groups[i], at, frontSize+0.8))
	}
	for i, at := range places {
		c.SetColor(palette[groups[i]%len(palette)])
		c.Fill(shape(groups[i], at, frontSize))
	}
}

// groupEntries are the entries of the groups that have points on the front.
func (f *Figure) groupEntries() []entry {
	var entries []entry
	for g, name := range f.Groups {
		if slices.ContainsFunc(f.Front, func(p FrontPoint) bool { return p.Group == g }) {
			entries = append(entries, entry{name, 2 * frontSize, func(c *draw.Canvas, at vg.Point) {
				c.SetColor(palette[g%len(palette)])
				c.Fill(shape(g, at, frontSize))
			}})
		}
	}
	return entries
}

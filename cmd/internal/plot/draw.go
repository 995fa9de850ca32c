package plot

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// position is a point in costs.
type position struct{ x, y float64 }

// scene is a figure with everything that follows from it before it is drawn.
type scene struct {
	*Figure
	x, y      span
	reference position
	front     []step // from the best to the worst x
	hidden    int    // points that are beyond the axes
}

// step is a point of the front in costs.
type step struct {
	position
	lower, upper float64 // values of the interval, in costs
	group        int
	label        string
}

func (f *Figure) scene() *scene {
	s := &scene{Figure: f, reference: position{f.X.cost(f.X.Reference), f.Y.cost(f.Y.Reference)}}
	for _, p := range f.Front {
		at := step{position{f.X.cost(p.X), f.Y.cost(p.Y)}, f.Y.cost(p.Lower), f.Y.cost(p.Upper), p.Group, p.Label}
		if p.Label != "" && math.IsNaN(at.x) {
			at.x = math.Inf(-1) // until the view is known
		}
		if !math.IsNaN(at.x) && !math.IsNaN(at.y) {
			s.front = append(s.front, at)
		}
	}
	// A point that an earlier one covers, in a front of more than two objectives, is no step.
	s.front = steps(s.front, func(p step) position { return p.position })

	var xs, ys, frontXs, frontYs []float64
	for _, p := range s.front {
		if !math.IsInf(p.x, 0) {
			frontXs = append(frontXs, p.x)
		}
	}
	for _, p := range f.Points {
		if !math.IsNaN(f.Y.cost(p.Y)) {
			xs = append(xs, f.X.cost(p.X))
		}
	}
	s.x = view(frontXs, xs, s.reference.x)
	if len(s.front) > 0 && math.IsInf(s.front[0].x, -1) {
		s.front[0].x = s.x.best
	}
	for _, p := range s.front {
		if s.x.contains(p.x) {
			frontYs = append(frontYs, p.y)
		}
	}
	for _, p := range f.Points {
		if s.x.contains(f.X.cost(p.X)) {
			ys = append(ys, f.Y.cost(p.Y))
		}
	}
	s.y = view(frontYs, ys, s.reference.y)
	for _, p := range s.front {
		if p.label != "" && s.y.contains(p.y) {
			s.y.worst = max(s.y.worst, p.y+labelRoom*(s.y.worst-s.y.best))
		}
	}
	for _, p := range f.Points {
		if !s.x.contains(f.X.cost(p.X)) || !s.y.contains(f.Y.cost(p.Y)) {
			s.hidden++
		}
	}
	return s
}

// drawPanel implements Panel.
func (f *Figure) drawPanel(c draw.Canvas, h *head, size font.Length) {
	s := f.scene()
	p := newPlot(f.X, f.Y, h.room(c, size))
	setRange(&p.X, f.X, s.x)
	setRange(&p.Y, f.Y, s.y)
	p.Add(s)
	h.write(&c, p.DataCanvas(c).Min.X, c.Size().X-usualLeft, size)
	p.Draw(c)
}

// head implements Panel.
func (f *Figure) head() *head {
	front := lineEntry(f.FrontName, draw.LineStyle{Color: f.frontColor(), Width: frontWidth})
	line := front.symbol
	front.symbol = func(c *draw.Canvas, at vg.Point) {
		line(c, at)
		c.SetColor(f.frontColor())
		c.Fill(circles([]vg.Point{at}, frontSize))
	}
	h := &head{title: f.Title, subtitle: f.Subtitle, legend: append([]entry{front}, f.groupEntries()...)}
	if slices.ContainsFunc(f.Front, func(p FrontPoint) bool { return p.Lower != p.Upper }) {
		h.legend = append(h.legend, entry{"90 % interval", 8, func(c *draw.Canvas, at vg.Point) {
			c.StrokeLine2(draw.LineStyle{Color: spread, Width: 1}, at.X, at.Y-5, at.X, at.Y+5)
		}})
	}
	minor := slices.ContainsFunc(f.Points, func(p Point) bool { return p.Minor })
	label := "trial"
	if minor {
		label = "trial, end of the run"
	}
	h.legend = append(h.legend, dotEntry(label, finals))
	if minor {
		h.legend = append(h.legend, entry{"on the way", 4, func(c *draw.Canvas, at vg.Point) {
			c.SetColor(minors)
			c.Fill(squares([]vg.Point{at}, 1.5*minorSize))
		}})
	}
	if s := f.scene(); s.hidden > 0 {
		h.subtitle = append(slices.Clip(f.Subtitle), fmt.Sprintf("%d of %d points are beyond the axes", s.hidden, len(f.Points)))
	}
	return h
}

// setRange sets the limits of an axis.
func setRange(to *plot.Axis, axis Axis, shown span) {
	lo, hi := axis.value(shown.best), axis.value(shown.worst)
	to.Min, to.Max = min(lo, hi), max(lo, hi)
}

// Plot implements plot.Plotter: it draws all data.
func (s *scene) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	// Costs beyond the view are drawn just outside of it, where they are clipped.
	at := func(q position) vg.Point {
		return vg.Point{X: trX(s.X.value(s.x.near(q.x))), Y: trY(s.Y.value(s.y.near(q.y)))}
	}
	s.drawRegion(&c, at)
	s.drawPoints(&c, at)
	s.drawBox(&c, at)
	s.drawFront(&c, at)
}

// drawRegion tints what the front dominates within the box, whose size is the
// hypervolume.
func (s *scene) drawRegion(c *draw.Canvas, at func(position) vg.Point) {
	polygon := []vg.Point{at(s.reference)}
	height := s.reference.y
	for _, p := range s.front {
		if p.x < s.reference.x && p.y < height {
			polygon = append(polygon, at(position{p.x, height}), at(p.position))
			height = p.y
		}
	}
	if len(polygon) == 1 {
		return
	}
	polygon = append(polygon, at(position{s.reference.x, height}))
	c.FillPolygon(region, c.ClipPolygonXY(polygon))
}

// drawPoints draws all points, intermediate ones below the others.
func (s *scene) drawPoints(c *draw.Canvas, at func(position) vg.Point) {
	const grid = 0.5 // points of the picture within which two are one
	var final, minor []vg.Point
	seen := make(map[[2]int]bool)
	for _, p := range s.Points {
		q := position{s.X.cost(p.X), s.Y.cost(p.Y)}
		if !s.x.contains(q.x) || !s.y.contains(q.y) {
			continue
		}
		place := at(q)
		if !p.Minor {
			final = append(final, place)
			continue
		}
		cell := [2]int{int(place.X / grid), int(place.Y / grid)}
		if !seen[cell] {
			seen[cell] = true
			minor = append(minor, place)
		}
	}
	c.SetColor(minors)
	c.Fill(squares(minor, minorSize))
	c.SetColor(finals)
	c.Fill(circles(final, finalSize))
}

// drawBox draws the edges of the anti-ideal box, and its name.
func (s *scene) drawBox(c *draw.Canvas, at func(position) vg.Point) {
	line := draw.LineStyle{Color: boxRed, Width: 0.8, Dashes: []vg.Length{4, 3}}
	corner := at(s.reference)
	inX, inY := s.x.contains(s.reference.x), s.y.contains(s.reference.y)
	best := at(position{s.x.best, s.y.best})
	top := at(position{s.x.worst, s.y.worst})
	if inX {
		end := corner.Y
		if !inY {
			end = top.Y
		}
		c.StrokeLine2(line, corner.X, best.Y, corner.X, end)
	}
	if inY {
		end := corner.X
		if !inX {
			end = top.X
		}
		c.StrokeLine2(line, best.X, corner.Y, end, corner.Y)
	}
	label := fmt.Sprintf("anti-ideal (%s, %s)", number(s.X.Reference), number(s.Y.Reference))
	place := corner
	if !inX {
		place.X = top.X
	}
	if !inY {
		place.Y = top.Y
	}
	// The label lies inside the box, at its corner.
	sty := style(noteSize, boxRed, text.XRight, text.YTop)
	dx, dy := vg.Length(-5), vg.Length(-4)
	if s.X.Maximise {
		sty.XAlign, dx = text.XLeft, -dx
	}
	if s.Y.Maximise {
		sty.YAlign, dy = text.YBottom, -dy
	}
	if !inX || !inY {
		label += ", outside"
	}
	writeOver(c, sty, place.Add(vg.Point{X: dx, Y: dy}), label)
}

// labelRoom is the part of the height of a plot that the label of a point takes.
const labelRoom = 0.12

// writeOver writes a text over points, which would make it hard to read.
func writeOver(c *draw.Canvas, sty draw.TextStyle, at vg.Point, label string) {
	c.SetColor(color.NRGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xd0})
	c.Fill(sty.Rectangle(label).Add(at).Path())
	c.FillText(sty, at, label)
}

// drawFront draws the staircase, its points and their intervals.
func (s *scene) drawFront(c *draw.Canvas, at func(position) vg.Point) {
	var front []position
	var places []vg.Point
	var groups []int
	for _, p := range s.front {
		front = append(front, p.position)
		place := at(p.position)
		if !c.Contains(place) {
			continue
		}
		places, groups = append(places, place), append(groups, p.group)
		if p.lower < p.upper || p.upper < p.lower {
			interval := c.ClipLinesXY([]vg.Point{at(position{p.x, p.lower}), at(position{p.x, p.upper})})
			c.StrokeLines(draw.LineStyle{Color: spread, Width: 1}, interval...)
		}
	}
	var line []vg.Point
	for _, corner := range staircase(front, s.x, s.y) {
		line = append(line, at(corner))
	}
	c.StrokeLines(draw.LineStyle{Color: s.frontColor(), Width: frontWidth}, c.ClipLinesXY(line)...)
	s.fillFront(c, places, groups)
	for _, p := range s.front {
		if place := at(p.position); p.label != "" && c.Contains(place) {
			sty, to := style(noteSize, ink, text.XLeft, text.YBottom), vg.Point{X: 5, Y: 4}
			if s.X.Maximise {
				sty.XAlign, to.X = text.XRight, -to.X
			}
			if s.Y.Maximise {
				sty.YAlign, to.Y = text.YTop, -to.Y
			}
			writeOver(c, sty, place.Add(to), p.label) // on the side that the front beats
		}
	}
}

// circles returns the path of full circles.
func circles(centers []vg.Point, radius vg.Length) vg.Path {
	var path vg.Path
	for _, p := range centers {
		path.Move(vg.Point{X: p.X + radius, Y: p.Y})
		path.Arc(p, radius, 0, 2*math.Pi)
		path.Close()
	}
	return path
}

// squares returns the path of squares with half of their side given.
func squares(centers []vg.Point, half vg.Length) vg.Path {
	var path vg.Path
	for _, p := range centers {
		path.Move(vg.Point{X: p.X - half, Y: p.Y - half})
		path.Line(vg.Point{X: p.X + half, Y: p.Y - half})
		path.Line(vg.Point{X: p.X + half, Y: p.Y + half})
		path.Line(vg.Point{X: p.X - half, Y: p.Y + half})
		path.Close()
	}
	return path
}

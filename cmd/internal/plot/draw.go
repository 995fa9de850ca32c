package plot

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
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
	label        string
}

func (f *Figure) scene() *scene {
	s := &scene{Figure: f, reference: position{f.X.cost(f.X.Reference), f.Y.cost(f.Y.Reference)}}
	for _, p := range f.Front {
		at := step{position{f.X.cost(p.X), f.Y.cost(p.Y)}, f.Y.cost(p.Lower), f.Y.cost(p.Upper), p.Label}
		if p.Label != "" && math.IsNaN(at.x) {
			at.x = math.Inf(-1) // until the view is known
		}
		if !math.IsNaN(at.x) && !math.IsNaN(at.y) {
			s.front = append(s.front, at)
		}
	}
	slices.SortFunc(s.front, func(a, b step) int { return slices.Compare([]float64{a.x, a.y}, []float64{b.x, b.y}) })
	// A point that an earlier one covers, in a front of more than two objectives, is no step.
	lowest := math.Inf(1)
	s.front = slices.DeleteFunc(s.front, func(p step) bool {
		covered := p.y >= lowest
		lowest = min(lowest, p.y)
		return covered
	})

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
	for _, p := range f.Points {
		if !s.x.contains(f.X.cost(p.X)) || !s.y.contains(f.Y.cost(p.Y)) {
			s.hidden++
		}
	}
	return s
}

// draw draws the whole figure.
func (f *Figure) draw(c draw.Canvas) {
	c = blank(c)
	s := f.scene()
	p := newPlot(f.X, f.Y)
	setRange(&p.X, f.X, s.x)
	setRange(&p.Y, f.Y, s.y)
	p.Add(s)

	left := p.DataCanvas(c).Min.X
	top := writeHeading(&c, left, f.Title, f.Subtitle)
	s.drawLegend(&c, left, top)
	top -= 4 * lineGap

	c.Max.Y = top
	p.Draw(c)
	if s.hidden > 0 {
		c.FillText(style(noteSize, grey, text.XRight, text.YBottom), vg.Point{X: c.Max.X, Y: c.Min.Y},
			fmt.Sprintf("%d of %d points beyond the axes", s.hidden, len(s.Points)))
	}
}

// blank makes a canvas white, and returns it without its margins.
func blank(c draw.Canvas) draw.Canvas {
	c.SetColor(color.White)
	c.Fill(c.Path())
	return draw.Crop(c, margin, -margin, margin, -margin)
}

// writeHeading writes the title and the lines below it, from where the axis starts, and
// returns the height at which what follows begins.
func writeHeading(c *draw.Canvas, left vg.Length, title string, subtitle []string) vg.Length {
	top := c.Max.Y
	write := func(style draw.TextStyle, text string) {
		for _, line := range wrap(style, text, (c.Max.X-left)/fontSlack) {
			c.FillText(style, vg.Point{X: left, Y: top}, line)
			top -= style.FontExtents().Height + lineGap
		}
	}
	bold := style(titleSize, ink, text.XLeft, text.YTop)
	bold.Font.Weight = xfont.WeightBold
	write(bold, title)
	for _, line := range subtitle {
		write(style(noteSize, grey, text.XLeft, text.YTop), line)
	}
	return top - 2*lineGap
}

// wrap breaks a text between words into lines of at most a width.
func wrap(style draw.TextStyle, text string, width vg.Length) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch joined := strings.TrimSpace(*last + " " + word); {
		case *last != "" && style.Width(joined) > width:
			lines = append(lines, word)
		default:
			*last = joined
		}
	}
	return lines
}

// setRange sets the limits of an axis.
func setRange(to *plot.Axis, axis Axis, shown span) {
	lo, hi := axis.value(shown.best), axis.value(shown.worst)
	to.Min, to.Max = min(lo, hi), max(lo, hi)
}

// drawLegend draws the legend as one line, centred at the height y.
func (s *scene) drawLegend(c *draw.Canvas, x, y vg.Length) {
	note := style(noteSize, ink, text.XLeft, text.YCenter)
	entry := func(symbolWidth vg.Length, label string, symbol func(vg.Point)) {
		symbol(vg.Point{X: x + symbolWidth/2, Y: y})
		c.FillText(note, vg.Point{X: x + symbolWidth + 5, Y: y}, label)
		x += symbolWidth + 5 + fontSlack*note.Width(label) + 16
	}
	entry(22, s.FrontName, func(at vg.Point) {
		c.StrokeLine2(draw.LineStyle{Color: frontBlue, Width: frontWidth}, at.X-11, at.Y, at.X+11, at.Y)
		c.SetColor(frontBlue)
		c.Fill(circles([]vg.Point{at}, frontSize))
	})
	if slices.ContainsFunc(s.Front, func(p FrontPoint) bool { return p.Lower != p.Upper }) {
		entry(8, "90 % interval", func(at vg.Point) {
			c.StrokeLine2(draw.LineStyle{Color: spread, Width: 1}, at.X, at.Y-5, at.X, at.Y+5)
		})
	}
	minor := slices.ContainsFunc(s.Points, func(p Point) bool { return p.Minor })
	label := "trial"
	if minor {
		label = "trial, end of the run"
	}
	entry(2*finalSize, label, func(at vg.Point) {
		c.SetColor(finals)
		c.Fill(circles([]vg.Point{at}, finalSize))
	})
	if minor {
		entry(4, "on the way", func(at vg.Point) {
			c.SetColor(minors)
			c.Fill(squares([]vg.Point{at}, 1.5*minorSize))
		})
	}
}

// Plot implements plot.Plotter: it draws all data.
func (s *scene) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	// Costs beyond the view are drawn just outside of it, where they are clipped.
	at := func(q position) vg.Point {
		x := min(max(q.x, 2*s.x.best-s.x.worst), 2*s.x.worst-s.x.best)
		y := min(max(q.y, 2*s.y.best-s.y.worst), 2*s.y.worst-s.y.best)
		return vg.Point{X: trX(s.X.value(x)), Y: trY(s.Y.value(y))}
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
		label += ", off the scale"
	}
	place = place.Add(vg.Point{X: dx, Y: dy})
	// Points below would make it hard to read.
	c.SetColor(color.NRGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xd0})
	c.Fill(sty.Rectangle(label).Add(place).Path())
	c.FillText(sty, place, label)
}

// drawFront draws the staircase, its points and their intervals.
func (s *scene) drawFront(c *draw.Canvas, at func(position) vg.Point) {
	if len(s.front) == 0 {
		return
	}
	// From a point on, its y is reached at every worse x, up to the next point.
	staircase := []vg.Point{at(position{s.front[0].x, s.y.worst})}
	previous := s.front[0].y
	var places []vg.Point
	for i, p := range s.front {
		if i > 0 {
			staircase = append(staircase, at(position{p.x, previous}))
		}
		place := at(p.position)
		staircase = append(staircase, place)
		previous = p.y
		if !c.Contains(place) {
			continue
		}
		places = append(places, place)
		if p.lower < p.upper || p.upper < p.lower {
			interval := c.ClipLinesXY([]vg.Point{at(position{p.x, p.lower}), at(position{p.x, p.upper})})
			c.StrokeLines(draw.LineStyle{Color: spread, Width: 1}, interval...)
		}
	}
	staircase = append(staircase, at(position{s.x.worst, previous}))
	c.StrokeLines(draw.LineStyle{Color: frontBlue, Width: frontWidth}, c.ClipLinesXY(staircase)...)
	c.SetColor(color.White)
	c.Fill(circles(places, frontSize+0.8))
	c.SetColor(frontBlue)
	c.Fill(circles(places, frontSize))
	for _, p := range s.front {
		if place := at(p.position); p.label != "" && c.Contains(place) {
			c.FillText(style(noteSize, ink, text.XLeft, text.YBottom), place.Add(vg.Point{X: 5, Y: 4}), p.label)
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

package plot

import (
	"cmp"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Fronts is a picture of several fronts over each other, each a staircase.
type Fronts struct {
	// Title says in a few words what is shown.
	Title string
	// Subtitle says what the numbers mean, a line each.
	Subtitle []string
	// X and Y are the axes. A reference that is not finite is none: the view then holds all fronts.
	X, Y Axis
	// Fronts in the order of the legend.
	Fronts []FrontSeries
	// Levels are constants to compare with, such as the error of the majority class.
	Levels []Level

	besides besides
}

// FrontSeries is one of several fronts. Points that are not finite, or not positive on a logarithmic axis,
// are left out.
type FrontSeries struct {
	Name string
	// Front holds points in any order; the staircase goes through those that no other one beats.
	Front []Point
	// Unmarked says that the steps are not single configurations, as of a median, or too many: they have no circles.
	Unmarked bool
	// Best and Worst are fronts of which the staircases bound a band, or nil for no band.
	Best, Worst []Point
	// Points are points to show besides, such as those among which the front was chosen.
	Points []Point
	Look
}

// Save writes the picture to a file as [Figure.Save] does.
func (f *Fronts) Save(path string) error { return save(alone{f}, path) }

// Render writes the picture as [Figure.Render] does.
func (f *Fronts) Render(w io.Writer, format string) error { return render(alone{f}, w, format) }

// head implements Panel.
func (f *Fronts) head() *head {
	h := &head{title: f.Title, subtitle: f.Subtitle}
	for i, front := range f.Fronts {
		h.legend = append(h.legend, lineEntry(front.Name, front.line(i)))
	}
	for i, level := range f.Levels {
		h.legend = append(h.legend, lineEntry(level.Name, levelStyle(i)))
	}
	return h
}

// drawPanel implements Panel.
func (f *Fronts) drawPanel(canvas draw.Canvas, h *head, size font.Length) {
	s := overlay{picture: f}
	s.x, s.y = f.view()
	p := newPlot(f.X, f.Y, h.room(canvas, size))
	setRange(&p.X, f.X, s.x)
	setRange(&p.Y, f.Y, s.y)
	p.Add(s)
	h.write(&canvas, p.DataCanvas(canvas).Min.X, canvas.Size().X-usualLeft, size)
	p.Draw(canvas)
}

// place implements sharing.
func (f *Fronts) place() *besides { return &f.besides }

// steps returns the steps of a front, in costs.
func (f *Fronts) steps(points []Point) []position {
	return steps(f.positions(points), func(p position) position { return p })
}

// positions returns the points that have a place on both axes, in costs.
func (f *Fronts) positions(points []Point) []position {
	var out []position
	for _, p := range points {
		at := position{f.X.cost(p.X), f.Y.cost(p.Y)}
		if !math.IsNaN(at.x) && !math.IsNaN(at.y) {
			out = append(out, at)
		}
	}
	return out
}

// view returns what to show of the axes: what is better than the references, and the fronts' points.
func (f *Fronts) view() (x, y span) {
	if f.besides.shown != nil {
		return f.besides.shown[0], f.besides.shown[1]
	}
	var xs, ys, pointXs, pointYs []float64
	for _, front := range f.Fronts {
		for _, points := range [][]Point{front.Front, front.Best, front.Worst} {
			for _, p := range f.steps(points) {
				xs, ys = append(xs, p.x), append(ys, p.y)
			}
		}
		for _, p := range f.positions(front.Points) {
			pointXs, pointYs = append(pointXs, p.x), append(pointYs, p.y)
		}
	}
	for _, level := range f.Levels {
		if cost := f.Y.cost(level.Y); !math.IsNaN(cost) {
			ys = append(ys, cost)
		}
	}
	return view(xs, pointXs, f.X.limit(xs)), view(ys, pointYs, f.Y.limit(ys))
}

// limit returns the cost of the reference, or the worst of a front if there is none.
func (a Axis) limit(front []float64) float64 {
	if cost := a.cost(a.Reference); !math.IsNaN(cost) {
		return cost
	}
	if len(front) == 0 {
		return 0
	}
	return slices.Max(front)
}

// steps returns the points that no other one beats, from the best to the worst x.
func steps[T any](points []T, at func(T) position) []T {
	points = slices.Clone(points)
	slices.SortFunc(points, func(a, b T) int { return cmp.Or(cmp.Compare(at(a).x, at(b).x), cmp.Compare(at(a).y, at(b).y)) })
	lowest := math.Inf(1)
	return slices.DeleteFunc(points, func(p T) bool {
		covered := at(p).y >= lowest
		lowest = min(lowest, at(p).y)
		return covered
	})
}

// staircase returns the corners of the line through the steps of a front, from the worst y to the worst x of a
// view: from a step on, its y is reached at every worse x, up to the next one.
func staircase(front []position, x, y span) []position {
	if len(front) == 0 {
		return nil
	}
	line := []position{{front[0].x, y.worst}}
	for i, p := range front {
		if i > 0 {
			line = append(line, position{p.x, front[i-1].y})
		}
		line = append(line, p)
	}
	return append(line, position{x.worst, front[len(front)-1].y})
}

// overlay is a picture of fronts with its view.
type overlay struct {
	picture *Fronts
	x, y    span
}

// Plot implements plot.Plotter: bands, points, levels, and the fronts above all.
func (s overlay) Plot(c draw.Canvas, p *plot.Plot) {
	f := s.picture
	trX, trY := p.Transforms(&c)
	at := func(q position) vg.Point {
		q = position{s.x.near(q.x), s.y.near(q.y)}
		return vg.Point{X: trX(f.X.value(q.x)), Y: trY(f.Y.value(q.y))}
	}
	line := func(points []Point) []vg.Point {
		var out []vg.Point
		for _, q := range staircase(f.steps(points), s.x, s.y) {
			out = append(out, at(q))
		}
		return out
	}
	for i, front := range f.Fronts {
		best, worst := line(front.Best), line(front.Worst)
		if len(best) > 0 && len(worst) > 0 {
			drawBand(&c, front.Look, i, best, worst)
		}
	}
	for i, front := range f.Fronts {
		var places []vg.Point
		for _, q := range f.positions(front.Points) {
			if place := at(q); c.Contains(place) {
				places = append(places, place)
			}
		}
		c.SetColor(front.colour(i, 0.6))
		if front.Baseline {
			c.SetColor(minors)
		}
		c.Fill(circles(places, 0.7*finalSize))
	}
	for i, level := range f.Levels {
		drawLevel(&c, p, f.Y, i, level)
	}
	for i, front := range f.Fronts {
		c.StrokeLines(front.line(i), c.ClipLinesXY(line(front.Front))...)
		if front.Unmarked {
			continue
		}
		var places []vg.Point
		for _, q := range f.steps(front.Front) {
			if place := at(q); c.Contains(place) {
				places = append(places, place)
			}
		}
		front.drawMarks(&c, i, places)
	}
}

package plot

import (
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Curve is a quantity, such as the hypervolume, over the course of a study. It keeps its
// value from one point to the next.
type Curve struct {
	// Title says in a few words what is shown.
	Title string
	// Subtitle says what the numbers mean, a line each.
	Subtitle []string
	// X and Y are the axes, of which only the labels count.
	X, Y Axis
	// Points are the points in ascending order of X, of finite values. The quantity is 0
	// at 0.
	Points []Point
}

// Save writes the curve to a file, whose extension tells the format. The file is replaced
// only by a complete one.
func (c *Curve) Save(path string) error { return save(alone{c}, path) }

// Render writes the curve as "svg" or "png", the latter with 192 dots per inch.
func (c *Curve) Render(w io.Writer, format string) error { return render(alone{c}, w, format) }

// head implements Panel.
func (c *Curve) head() *head { return &head{title: c.Title, subtitle: c.Subtitle} }

// drawPanel implements Panel.
func (c *Curve) drawPanel(canvas draw.Canvas, size font.Length) {
	p := newPlot(Axis{Label: c.X.Label}, Axis{Label: c.Y.Label})
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = c.extent()
	p.Add(c)
	c.head().write(&canvas, p.DataCanvas(canvas).Min.X, size)
	p.Draw(canvas)
}

// extent returns what is shown: all of the course but its steep beginning, before the
// quantity has reached half of its largest value.
func (c *Curve) extent() (left, right, bottom, top float64) {
	const room = 0.04 // above and below, of the height
	right = 1
	for _, p := range c.Points {
		right, top = max(right, p.X), max(top, p.Y)
	}
	bottom = top
	for _, p := range c.Points {
		if p.Y >= top/2 {
			bottom = min(bottom, p.Y)
		}
	}
	if !(top > bottom) {
		bottom, top = top-math.Max(0.5, 0.1*top), top+math.Max(0.5, 0.1*top)
	}
	extra := room * (top - bottom)
	return 0, right, max(0, bottom-extra), top + extra
}

// Plot implements plot.Plotter.
func (c *Curve) Plot(canvas draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&canvas)
	line := []vg.Point{{X: trX(0), Y: trY(0)}}
	for _, point := range c.Points {
		x, y := trX(point.X), trY(point.Y)
		line = append(line, vg.Point{X: x, Y: line[len(line)-1].Y}, vg.Point{X: x, Y: y})
	}
	canvas.StrokeLines(draw.LineStyle{Color: frontBlue, Width: frontWidth}, canvas.ClipLinesXY(line)...)
}

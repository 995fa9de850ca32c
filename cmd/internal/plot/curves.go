package plot

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Curves is a picture of functions of one variable, each with a band around it.
type Curves struct {
	// Title says in a few words what is shown.
	Title string
	// Subtitle says what the numbers mean, a line each.
	Subtitle []string
	// X and Y label the axes.
	X, Y string
	// Curves in the order of the legend.
	Curves []Series
}

// Series is one function at increasing places X, with the band from Lower to Upper; all
// are of one length. Where a value is not finite there is a gap.
type Series struct {
	Name               string
	X, Y, Lower, Upper []float64
}

// palette holds colours that people with any colour vision tell apart: the ones of Okabe
// and Ito, "Color Universal Design" (2008), without yellow, which is faint on white.
var palette = []color.NRGBA{
	frontBlue,
	{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	{R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
	{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff},
	{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff},
	{R: 0x22, G: 0x22, B: 0x22, A: 0xff},
}

// Save writes the picture to a file as [Figure.Save] does.
func (c *Curves) Save(path string) error { return save(c, path) }

// draw draws the whole picture.
func (c *Curves) draw(canvas draw.Canvas) {
	canvas = blank(canvas)
	p := newPlot(Axis{Label: c.X}, Axis{Label: c.Y})
	c.setRanges(p)
	p.Add(c)

	left := p.DataCanvas(canvas).Min.X
	top := writeHeading(&canvas, left, c.Title, c.Subtitle) - 2*lineGap
	note := style(noteSize, ink, text.XLeft, text.YCenter)
	for i, curve := range c.Curves {
		canvas.StrokeLine2(draw.LineStyle{Color: palette[i%len(palette)], Width: frontWidth}, left, top, left+22, top)
		canvas.FillText(note, vg.Point{X: left + 27, Y: top}, curve.Name)
		left += 27 + fontSlack*note.Width(curve.Name) + 16
	}
	canvas.Max.Y = top - 4*lineGap
	p.Draw(canvas)
}

// setRanges shows everything that is finite.
func (c *Curves) setRanges(p *plot.Plot) {
	x, y := [2]float64{math.Inf(1), math.Inf(-1)}, [2]float64{math.Inf(1), math.Inf(-1)}
	extend := func(r *[2]float64, v float64) {
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			r[0], r[1] = min(r[0], v), max(r[1], v)
		}
	}
	for _, curve := range c.Curves {
		for i := range curve.X {
			extend(&x, curve.X[i])
			for _, v := range []float64{curve.Y[i], curve.Lower[i], curve.Upper[i]} {
				extend(&y, v)
			}
		}
	}
	for _, r := range []*[2]float64{&x, &y} {
		if !(r[0] < r[1]) { // nothing, or a single value
			middle := r[0]
			if math.IsInf(middle, 0) {
				middle = 0
			}
			r[0], r[1] = middle-1, middle+1
		}
	}
	pad := 0.04 * (y[1] - y[0])
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = x[0], x[1], y[0]-pad, y[1]+pad
}

// Plot implements plot.Plotter: all bands, and the curves above them.
func (c *Curves) Plot(canvas draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&canvas)
	line := func(curve *Series, y []float64, from, to int) []vg.Point {
		points := make([]vg.Point, 0, to-from)
		for i := from; i < to; i++ {
			points = append(points, vg.Point{X: trX(curve.X[i]), Y: trY(y[i])})
		}
		return points
	}
	for k := range c.Curves {
		curve := &c.Curves[k]
		tint := palette[k%len(palette)]
		tint.A = 0x28
		curve.pieces(func(from, to int) {
			band := line(curve, curve.Upper, from, to)
			lower := line(curve, curve.Lower, from, to)
			slices.Reverse(lower)
			band = append(band, lower...)
			canvas.FillPolygon(tint, canvas.ClipPolygonXY(band))
		})
	}
	for k := range c.Curves {
		curve := &c.Curves[k]
		curve.pieces(func(from, to int) {
			canvas.StrokeLines(draw.LineStyle{Color: palette[k%len(palette)], Width: frontWidth},
				canvas.ClipLinesXY(line(curve, curve.Y, from, to))...)
		})
	}
}

// pieces calls draw with the bounds of every piece of at least two places where all
// values are finite.
func (c *Series) pieces(draw func(from, to int)) {
	from := 0
	for i := 0; i <= len(c.X); i++ {
		sum := math.NaN() // beyond the end
		if i < len(c.X) {
			sum = c.X[i] + c.Y[i] + c.Lower[i] + c.Upper[i]
		}
		if !math.IsNaN(sum) && !math.IsInf(sum, 0) {
			continue
		}
		if i-from > 1 {
			draw(from, i)
		}
		from = i + 1
	}
}

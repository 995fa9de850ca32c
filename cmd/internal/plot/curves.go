package plot

import (
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
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
	// LogX and LogY ask for logarithmic axes, which have no place for values that are not positive.
	LogX, LogY bool
	// Rising says that the quantity rises from 0, as a hypervolume over the course of a study: the view
	// leaves out the steep beginning, which is the first tenth of the places, and never goes below 0.
	Rising bool
	// Curves in the order of the legend.
	Curves []Series
	// Levels are constants to compare with.
	Levels []Level

	besides besides
}

// Series is one function at increasing places X, with the band from Lower to Upper; all
// are of one length, or the bounds nil for no band. Where a value is not finite there is a gap.
type Series struct {
	Name               string
	X, Y, Lower, Upper []float64
	// Steps says that a value holds up to the next place, so that the curve is a staircase.
	Steps bool
	Look
}

// Look is how a line is drawn. The zero Look has the colour and the dashes of its place in the legend.
type Look struct {
	// Colour is the number of a colour, from 1, which several lines can share; 0 for the colour of the line's place.
	Colour int
	// Baseline asks for a thin line of dots or short dashes with hollow circles, of whose band only the edges are drawn and whose other
	// points are grey, so that what is compared with it stands out, also in grey.
	Baseline bool
}

// line returns the style of a line at a place of the legend, from 0.
func (l Look) line(place int) draw.LineStyle {
	if l.Colour > 0 {
		place = l.Colour - 1
	}
	style := draw.LineStyle{Color: palette[place%len(palette)], Width: frontWidth, Dashes: dashes[place%len(dashes)]}
	if l.Baseline {
		style.Width, style.Dashes = baselineWidth, dots[place%len(dots)]
	}
	return style
}

// colour returns the colour of a line at a place of the legend, in a strength from 0 to 1.
func (l Look) colour(place int, strength float64) color.NRGBA {
	tint := l.line(place).Color.(color.NRGBA) // as all of the palette
	tint.A = uint8(strength * 255)
	return tint
}

// drawMarks draws circles at places on a line.
func (l Look) drawMarks(c *draw.Canvas, place int, at []vg.Point) {
	const radius, edge = 0.7 * frontSize, 0.6
	c.SetColor(color.White)
	c.Fill(circles(at, radius+edge))
	c.SetColor(l.line(place).Color)
	c.Fill(circles(at, radius))
	if l.Baseline {
		c.SetColor(color.White)
		c.Fill(circles(at, radius-edge))
	}
}

// Level is a value of Y that does not depend on X, such as the error of the majority class.
type Level struct {
	Name string
	Y    float64
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

// dashes are the patterns of the colours: in grey, most colours of the palette are alike.
var dashes = [][]vg.Length{nil, {10, 2}, {5, 1.5}, {10, 2, 2, 2}, {3, 1}, {14, 2, 3, 2, 3, 2}, {6, 1, 1, 1}}

// Baselines are thinner than other lines, with shorter patterns.
const baselineWidth = 0.9

var dots = [][]vg.Length{{1.2, 1.8}, {3.6, 1.8}, {4.8, 1.5, 1.2, 1.5}}

// levelStyle is the style of the level of a number, from 0.
func levelStyle(i int) draw.LineStyle {
	return draw.LineStyle{Color: grey, Width: 1, Dashes: [][]vg.Length{{5, 3}, {1, 2}, {8, 2, 1, 2}}[i%3]}
}

// Save writes the picture to a file as [Figure.Save] does.
func (c *Curves) Save(path string) error { return save(alone{c}, path) }

// Render writes the picture as [Figure.Render] does.
func (c *Curves) Render(w io.Writer, format string) error { return render(alone{c}, w, format) }

// head implements Panel.
func (c *Curves) head() *head {
	h := &head{title: c.Title, subtitle: c.Subtitle}
	for i, curve := range c.Curves {
		h.legend = append(h.legend, lineEntry(curve.Name, curve.line(i)))
	}
	for i, level := range c.Levels {
		h.legend = append(h.legend, lineEntry(level.Name, levelStyle(i)))
	}
	return h
}

// drawPanel implements Panel.
func (c *Curves) drawPanel(canvas draw.Canvas, h *head, size font.Length) {
	x, y := c.axes()
	p := newPlot(x, y, h.room(canvas, size))
	shownX, shownY := c.view()
	setRange(&p.X, x, shownX)
	setRange(&p.Y, y, shownY)
	p.Add(c)
	h.write(&canvas, p.DataCanvas(canvas).Min.X, canvas.Size().X-usualLeft, size)
	p.Draw(canvas)
}

// place implements sharing.
func (c *Curves) place() *besides { return &c.besides }

func (c *Curves) axes() (x, y Axis) {
	return Axis{Label: c.X, Log: c.LogX}, Axis{Label: c.Y, Log: c.LogY}
}

// view returns what to show of the axes: all curves, and of the bands as much as leaves the curves a third of
// the height.
func (c *Curves) view() (xs, ys span) {
	if c.besides.shown != nil {
		return c.besides.shown[0], c.besides.shown[1]
	}
	axisX, axisY := c.axes()
	xs, ys = nothing, nothing
	for i := range c.Curves {
		c.Curves[i].each(axisX, func(_ int, x float64) { xs.add(x) })
	}
	first := xs.best
	if c.Rising {
		first += (xs.worst - xs.best) / 10
	}
	bands := nothing
	for i := range c.Curves {
		curve := &c.Curves[i]
		curve.each(axisX, func(i int, x float64) {
			if x >= first {
				ys.add(axisY.cost(curve.Y[i]))
				lower, upper := curve.band(i)
				bands.add(axisY.cost(lower))
				bands.add(axisY.cost(upper))
			}
		})
	}
	for _, level := range c.Levels {
		ys.add(axisY.cost(level.Y))
	}
	if extent := ys.worst - ys.best; extent > 0 {
		bands = span{max(bands.best, ys.best-extent), min(bands.worst, ys.worst+extent)}
	}
	if !ys.isEmpty() && !bands.isEmpty() {
		ys = span{min(ys.best, bands.best), max(ys.worst, bands.worst)}
	}
	xs, ys = xs.widened(0), ys.widened(0.04)
	if c.Rising && !c.LogY {
		ys.best = max(0, ys.best)
	}
	return xs, ys
}

// each calls use with all places that a curve has on an axis, in the unit of the axis.
func (s *Series) each(axis Axis, use func(i int, x float64)) {
	for i, value := range s.X {
		if x := axis.cost(value); !math.IsNaN(x) {
			use(i, x)
		}
	}
}

// band returns the bounds at a place; without a band they are the value.
func (s *Series) band(i int) (lower, upper float64) {
	if s.Lower == nil || s.Upper == nil {
		return s.Y[i], s.Y[i]
	}
	return s.Lower[i], s.Upper[i]
}

// Plot implements plot.Plotter: all bands, and the curves and levels above them.
func (c *Curves) Plot(canvas draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&canvas)
	axisX, axisY := c.axes()
	_, shown := c.view()
	for k := range c.Curves {
		curve := &c.Curves[k]
		if curve.Lower == nil || curve.Upper == nil {
			continue
		}
		curve.pieces(axisX, axisY, func(from, to int) {
			// A bound without a place on the axis is beyond it.
			bound := func(values []float64, otherwise float64) []vg.Point {
				return curve.corners(from, to, trX, func(i int) vg.Length {
					if math.IsNaN(axisY.cost(values[i])) {
						return trY(axisY.value(otherwise))
					}
					return trY(values[i])
				})
			}
			drawBand(&canvas, curve.Look, k, bound(curve.Lower, shown.best), bound(curve.Upper, shown.worst))
		})
	}
	for i, level := range c.Levels {
		drawLevel(&canvas, p, axisY, i, level)
	}
	for k := range c.Curves {
		curve := &c.Curves[k]
		curve.pieces(axisX, axisY, func(from, to int) {
			line := curve.corners(from, to, trX, func(i int) vg.Length { return trY(curve.Y[i]) })
			if len(line) == 1 && canvas.Contains(line[0]) {
				curve.drawMarks(&canvas, k, line)
			}
			canvas.StrokeLines(curve.line(k), canvas.ClipLinesXY(line)...)
		})
	}
}

// drawLevel draws a level if it has a place in the view.
func drawLevel(c *draw.Canvas, p *plot.Plot, axis Axis, i int, level Level) {
	if math.IsNaN(axis.cost(level.Y)) {
		return
	}
	_, trY := p.Transforms(c)
	if y := trY(level.Y); c.ContainsY(y) {
		c.StrokeLine2(levelStyle(i), c.Min.X, y, c.Max.X, y)
	}
}

// drawBand draws the edges of what is between two lines, and fills it, faintly, so that curves within other bands are
// seen.
func drawBand(c *draw.Canvas, look Look, place int, lower, upper []vg.Point) {
	edge := draw.LineStyle{Color: look.colour(place, 0.4), Width: 0.5}
	if look.Baseline {
		edge.Color, edge.Dashes = look.colour(place, 1), look.line(place).Dashes
	}
	for _, line := range [][]vg.Point{lower, upper} {
		c.StrokeLines(edge, c.ClipLinesXY(line)...)
	}
	if look.Baseline {
		return
	}
	band := slices.Clone(lower)
	slices.Reverse(band)
	c.FillPolygon(look.colour(place, 0.11), c.ClipPolygonXY(append(band, upper...)))
}

// corners returns the corners of a piece of a curve.
func (s *Series) corners(from, to int, x func(float64) vg.Length, y func(i int) vg.Length) []vg.Point {
	var points []vg.Point
	for i := from; i < to; i++ {
		at := vg.Point{X: x(s.X[i]), Y: y(i)}
		if s.Steps && i > from {
			points = append(points, vg.Point{X: at.X, Y: points[len(points)-1].Y})
		}
		points = append(points, at)
	}
	return points
}

// pieces calls draw with the bounds of every piece of places that are on the axes, one or more. On a linear
// axis, the band's bounds must also be on it.
func (s *Series) pieces(x, y Axis, draw func(from, to int)) {
	from := 0
	for i := 0; i <= len(s.X); i++ {
		sum := math.NaN() // beyond the end
		if i < len(s.X) {
			sum = x.cost(s.X[i]) + y.cost(s.Y[i])
			if lower, upper := s.band(i); !y.Log {
				sum += y.cost(lower) + y.cost(upper)
			}
		}
		if !math.IsNaN(sum) && !math.IsInf(sum, 0) {
			continue
		}
		if i > from {
			draw(from, i)
		}
		from = i + 1
	}
}

package plot

import (
	"image"
	"image/color"
	"io"
	"math"
	"sort"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// HeatMap is a picture of a function of two variables on a grid, with a colour for each value.
type HeatMap struct {
	// Title says in a few words what is shown.
	Title string
	// Subtitle says what the numbers mean, a line each.
	Subtitle []string
	// X and Y are the axes, of which only Label and Log count.
	X, Y Axis
	// Label says what the colours mean.
	Label string
	// Xs and Ys are the places of the grid's columns and rows in ascending order, positive on a logarithmic
	// axis. A cell extends halfway to its neighbours.
	Xs, Ys []float64
	// Values[i][j] is the value at Ys[i] and Xs[j]. Where it is NaN, infinite or missing the cell is white.
	Values [][]float64
	// Marks are drawn over the colours, in this order.
	Marks []Marks
}

// Marks are points over a heat map.
type Marks struct {
	// Name is the entry of the legend; without one there is none.
	Name   string
	Symbol Symbol
	// X and Y are the places, of equal lengths.
	X, Y []float64
}

// Symbol is how a point over a heat map looks.
type Symbol int

// Symbols.
const (
	Dots  Symbol = iota // white points, such as what was evaluated
	Rings               // red rings, such as configurations of a front
	Star                // a red star, such as a maximum
)

// shades are the blue of fronts from black to white, in about equal steps of lightness: they ascend in grey as well.
var shades = func() []color.Color {
	stops := []color.NRGBA{{R: 0x05, G: 0x10, B: 0x30}, frontBlue, {R: 0x6b, G: 0xae, B: 0xd6}, {R: 0xf7, G: 0xfb, B: 0xff}}
	all := make([]color.Color, 256)
	for i := range all {
		whole, part := math.Modf(float64(i) / 255 * float64(len(stops)-1))
		from, to := stops[int(whole)], stops[min(int(whole)+1, len(stops)-1)]
		mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + part*(float64(b)-float64(a)))) }
		all[i] = color.NRGBA{R: mix(from.R, to.R), G: mix(from.G, to.G), B: mix(from.B, to.B), A: 0xff}
	}
	return all
}()

// Save writes the picture to a file as [Figure.Save] does.
func (m *HeatMap) Save(path string) error { return save(alone{m}, path) }

// Render writes the picture as [Figure.Render] does.
func (m *HeatMap) Render(w io.Writer, format string) error { return render(alone{m}, w, format) }

// head implements Panel.
func (m *HeatMap) head() *head {
	h := &head{title: m.Title, subtitle: m.Subtitle}
	for _, marks := range m.Marks {
		if marks.Name != "" {
			h.legend = append(h.legend, entry{marks.Name, 9, func(c *draw.Canvas, at vg.Point) { marks.Symbol.draw(c, at) }})
		}
	}
	return h
}

// drawPanel implements Panel.
func (m *HeatMap) drawPanel(c draw.Canvas, h *head, size font.Length) {
	const (
		gap   vg.Length = 10 // left of the bar
		thick vg.Length = 12 // of the bar
	)
	s := grid{HeatMap: m, x: cells(m.X, m.Xs), y: cells(m.Y, m.Ys), value: m.values()}
	p := newPlot(m.X, m.Y, h.room(c, size))
	setRange(&p.X, m.X, s.x.span())
	setRange(&p.Y, m.Y, s.y.span())
	p.Add(s)
	h.write(&c, p.DataCanvas(c).Min.X, c.Size().X-usualLeft, size)

	bar := c
	c.Max.X -= gap + thick + s.labelsWidth()
	data := p.DataCanvas(c)
	bar.Min = vg.Point{X: c.Max.X + gap, Y: data.Min.Y}
	bar.Max.Y = data.Max.Y
	p.Draw(c)
	s.drawBar(&bar, thick)
}

// grid is a heat map with everything that follows from it before it is drawn.
type grid struct {
	*HeatMap
	x, y  edges
	value span // of the colours
}

// edges are the borders of the cells of an axis, in the unit of the axis, and the indices of the cells.
type edges struct {
	at    []float64
	cells []int
}

// cells returns the edges halfway between places, without those that have no place on the axis.
func cells(axis Axis, places []float64) edges {
	var e edges
	var at []float64
	for i, place := range places {
		if u := axis.cost(place); !math.IsNaN(u) {
			at, e.cells = append(at, u), append(e.cells, i)
		}
	}
	for i := range at {
		if i > 0 {
			e.at = append(e.at, (at[i-1]+at[i])/2)
		}
	}
	switch n := len(at); n {
	case 0:
		e.at = []float64{0, 1}
	case 1:
		e.at = []float64{at[0] - 0.5, at[0] + 0.5}
	default:
		e.at = append([]float64{at[0] - (e.at[0] - at[0])}, e.at...)
		e.at = append(e.at, at[n-1]+(at[n-1]-e.at[n-1]))
	}
	return e
}

func (e edges) span() span { return span{e.at[0], e.at[len(e.at)-1]} }

// index returns the index of the cell that contains a fraction of the axis, or -1.
func (e edges) index(fraction float64) int {
	s := e.span()
	u := s.best + fraction*(s.worst-s.best)
	i := sort.SearchFloat64s(e.at, u) - 1
	if i < 0 || i >= len(e.cells) {
		return -1
	}
	return e.cells[i]
}

// values returns the range of the colours.
func (m *HeatMap) values() span {
	s := nothing
	for _, row := range m.Values {
		for _, v := range row {
			s.add(Axis{}.cost(v))
		}
	}
	return s.widened(0)
}

// colour returns the colour of the value of a cell.
func (s grid) colour(i, j int) color.Color {
	if i < 0 || j < 0 || i >= len(s.Values) || j >= len(s.Values[i]) {
		return color.White
	}
	v := s.Values[i][j]
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return color.White
	}
	return shade((v - s.value.best) / (s.value.worst - s.value.best))
}

// shade returns the colour of a fraction of the scale.
func shade(fraction float64) color.Color {
	last := float64(len(shades) - 1)
	return shades[int(math.Round(last*min(max(fraction, 0), 1)))]
}

// Plot implements plot.Plotter.
func (s grid) Plot(c draw.Canvas, p *plot.Plot) {
	const resolution = 2 // pixels in a point
	area := c.Rectangle
	size := area.Size()
	pixels := image.NewNRGBA(image.Rect(0, 0, int(resolution*size.X), int(resolution*size.Y)))
	width, height := pixels.Rect.Dx(), pixels.Rect.Dy()
	for y := range height {
		i := s.y.index(1 - (float64(y)+0.5)/float64(height))
		for x := range width {
			pixels.Set(x, y, s.colour(i, s.x.index((float64(x)+0.5)/float64(width))))
		}
	}
	c.DrawImage(area, pixels)
	trX, trY := p.Transforms(&c)
	for _, marks := range s.Marks {
		for i := range min(len(marks.X), len(marks.Y)) {
			if math.IsNaN(s.X.cost(marks.X[i])) || math.IsNaN(s.Y.cost(marks.Y[i])) {
				continue
			}
			if at := (vg.Point{X: trX(marks.X[i]), Y: trY(marks.Y[i])}); c.Contains(at) {
				marks.Symbol.draw(&c, at)
			}
		}
	}
}

// ticks returns the ticks of the scale of the colours.
func (s grid) ticks() []plot.Tick { return linearTicks{room: 5}.Ticks(s.value.best, s.value.worst) }

// Distances right of the bar of the colours.
const (
	tickLength vg.Length = 4
	tickGap    vg.Length = 3
	labelGap   vg.Length = 6
)

// labelsWidth returns the width of everything right of the bar.
func (s grid) labelsWidth() vg.Length {
	tick, wide := style(tickSize, ink, text.XLeft, text.YCenter), vg.Length(0)
	for _, t := range s.ticks() {
		wide = max(wide, fontSlack*tick.Width(t.Label))
	}
	wide += tickLength + tickGap
	if s.Label != "" {
		wide += labelGap + style(labelSize, ink, text.XCenter, text.YTop).FontExtents().Height
	}
	return wide
}

// drawBar draws what the colours mean: a bar at the left of a canvas, with ticks and a label.
func (s grid) drawBar(c *draw.Canvas, thick vg.Length) {
	column := image.NewNRGBA(image.Rect(0, 0, 1, len(shades)))
	for y := range shades {
		column.Set(0, y, shades[len(shades)-1-y])
	}
	c.DrawImage(vg.Rectangle{Min: c.Min, Max: vg.Point{X: c.Min.X + thick, Y: c.Max.Y}}, column)
	tick, line := style(tickSize, ink, text.XLeft, text.YCenter), draw.LineStyle{Color: grey, Width: 0.6}
	right := c.Min.X + thick
	for _, t := range s.ticks() {
		y := c.Min.Y + vg.Length((t.Value-s.value.best)/(s.value.worst-s.value.best))*(c.Max.Y-c.Min.Y)
		c.StrokeLine2(line, right, y, right+tickLength, y)
		if t.Label != "" {
			c.FillText(tick, vg.Point{X: right + tickLength + tickGap, Y: y}, t.Label)
		}
	}
	if s.Label != "" {
		label := style(labelSize, ink, text.XCenter, text.YBottom)
		label.Rotation = math.Pi / 2
		c.FillText(label, vg.Point{X: c.Max.X, Y: (c.Min.Y + c.Max.Y) / 2}, s.Label)
	}
}

// draw draws a symbol, which is seen on every colour and on white.
func (s Symbol) draw(c *draw.Canvas, at vg.Point) {
	edge := draw.LineStyle{Color: ink, Width: 0.6}
	switch s {
	case Dots:
		path := circles([]vg.Point{at}, 1.8)
		c.SetColor(color.White)
		c.Fill(path)
		c.SetLineStyle(edge)
		c.Stroke(path)
	case Rings:
		for _, line := range []draw.LineStyle{{Color: color.White, Width: 2.4}, {Color: palette[1], Width: 1.2}} {
			c.SetLineStyle(line)
			c.Stroke(circles([]vg.Point{at}, 2.6))
		}
	case Star:
		path := polygon(at, 10, 0, 6, 2.5)
		c.SetColor(palette[1])
		c.Fill(path)
		c.SetLineStyle(draw.LineStyle{Color: color.White, Width: 0.8})
		c.Stroke(path)
	}
}

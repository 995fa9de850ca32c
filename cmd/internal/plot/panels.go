package plot

import (
	"io"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Panel is a picture that can be a part of others: a [Figure], [Curves], [Fronts] or [HeatMap].
type Panel interface {
	// head returns what stands above the plot.
	head() *head
	// drawPanel draws the head, whose title has a size, and the plot below it on a canvas without margins.
	drawPanel(c draw.Canvas, size font.Length)
}

// Panels is a picture of several, each with a title above it, in rows from the upper left.
type Panels struct {
	// Title says in a few words what is shown.
	Title string
	// Subtitle says what the numbers mean, a line each.
	Subtitle []string
	// Columns is the number of panels in a row, at least 1.
	Columns int
	// Panels are the parts.
	Panels []Panel
}

// Size of a panel beside others.
const (
	panelWidth              = 4.6 * vg.Inch
	panelHeight             = 3.5 * vg.Inch
	panelTitle  font.Length = 10
)

// Save writes the picture to a file as [Figure.Save] does.
func (p *Panels) Save(path string) error { return save(p, path) }

// Render writes the picture as [Figure.Render] does.
func (p *Panels) Render(w io.Writer, format string) error { return render(p, w, format) }

func (p *Panels) head() *head { return &head{title: p.Title, subtitle: p.Subtitle} }

// rows returns the heights of the rows.
func (p *Panels) rows() []vg.Length {
	heights := make([]vg.Length, (len(p.Panels)+p.columns()-1)/p.columns())
	for i, panel := range p.Panels {
		row := &heights[i/p.columns()]
		*row = max(*row, panelHeight+panel.head().extra(panelWidth, panelTitle))
	}
	return heights
}

func (p *Panels) columns() int { return max(1, p.Columns) }

// size implements drawing.
func (p *Panels) size() (width, height vg.Length) {
	width = max(1, vg.Length(min(p.columns(), len(p.Panels)))) * panelWidth
	_, height = p.head().layout(width-2*margin, titleSize)
	for _, row := range p.rows() {
		height += row
	}
	return width, height + margin
}

// draw implements drawing.
func (p *Panels) draw(c draw.Canvas) {
	top := draw.Crop(c, margin, -margin, 0, -margin)
	p.head().write(&top, top.Min.X, titleSize)
	y := top.Max.Y
	for row, height := range p.rows() {
		for column := range p.columns() {
			i := row*p.columns() + column
			if i == len(p.Panels) {
				break
			}
			panel := c
			panel.Min = vg.Point{X: c.Min.X + vg.Length(column)*panelWidth, Y: y - height}
			panel.Max = panel.Min.Add(vg.Point{X: panelWidth, Y: height})
			p.Panels[i].drawPanel(draw.Crop(panel, margin, -margin, margin, -margin), panelTitle)
		}
		y -= height
	}
}

// alone is a panel as the only one of a picture.
type alone struct{ Panel }

// size implements drawing.
func (a alone) size() (width, height vg.Length) {
	return usualWidth, usualHeight + a.head().extra(usualWidth, titleSize)
}

// draw implements drawing.
func (a alone) draw(c draw.Canvas) {
	a.drawPanel(draw.Crop(c, margin, -margin, margin, -margin), titleSize)
}

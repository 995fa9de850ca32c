package plot

import (
	"io"
	"slices"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Panel is a picture that can be a part of others: a [Figure], [Curves], [Fronts] or [HeatMap].
type Panel interface {
	// head returns what stands above the plot.
	head() *head
	// drawPanel draws a head, whose title has a size, and the plot below it on a canvas without margins.
	drawPanel(c draw.Canvas, h *head, size font.Length)
}

// sharing is a panel that can have axes and a legend in common with those beside it.
type sharing interface {
	Panel
	place() *besides
	// view returns what is shown of the axes.
	view() (x, y span)
}

// besides is what a panel has in common with those beside it.
type besides struct {
	shown    *[2]span // of the axes x and y; nil for its own
	noLegend bool     // it stands above all
}

// Panels is a picture of several, each with a title above it, in rows from the upper left. If all panels that are
// [Curves] or [Fronts] have the same legend, it stands once above them.
type Panels struct {
	// Title says in a few words what is shown.
	Title string
	// Subtitle says what the numbers mean, a line each.
	Subtitle []string
	// Columns is the number of panels in a row, at least 1.
	Columns int
	// SameAxes gives all panels that are [Curves] or [Fronts] one range of each axis. Their axes must be of one kind.
	SameAxes bool
	// Panels are the parts.
	Panels []Panel
}

// Size of a panel beside others.
const (
	panelWidth              = 3.7 * vg.Inch // beside one other
	panelHeight             = 2.9 * vg.Inch
	panelTitle  font.Length = 10
)

// Save writes the picture to a file as [Figure.Save] does.
func (p *Panels) Save(path string) error { return save(p, path) }

// Render writes the picture as [Figure.Render] does.
func (p *Panels) Render(w io.Writer, format string) error { return render(p, w, format) }

func (p *Panels) head() *head {
	h := &head{title: p.Title, subtitle: p.Subtitle}
	for _, panel := range p.Panels {
		if s, ok := panel.(sharing); ok && s.place().noLegend {
			h.legend = panel.head().legend
			break
		}
	}
	return h
}

// share gives the panels what they have in common.
func (p *Panels) share() {
	var all []sharing
	for _, panel := range p.Panels {
		if s, ok := panel.(sharing); ok {
			all = append(all, s)
		}
	}
	x, y, isSame := nothing, nothing, len(all) > 1
	for _, s := range all {
		ownX, ownY := s.view()
		x, y = span{min(x.best, ownX.best), max(x.worst, ownX.worst)}, span{min(y.best, ownY.best), max(y.worst, ownY.worst)}
		isSame = isSame && slices.EqualFunc(s.head().legend, all[0].head().legend, func(a, b entry) bool { return a.label == b.label })
	}
	for _, s := range all {
		s.place().noLegend = isSame
		if p.SameAxes {
			s.place().shown = &[2]span{x, y}
		}
	}
}

// rows returns the heads of the panels, which are equally high in a row, and the heights of the rows.
func (p *Panels) rows() (heads []*head, heights []vg.Length) {
	for panels := range slices.Chunk(p.Panels, p.columns()) {
		row := make([]*head, len(panels))
		highest := vg.Length(0)
		for i, panel := range panels {
			row[i] = panel.head()
			if s, ok := panel.(sharing); ok && s.place().noLegend {
				row[i].legend = nil
			}
			highest = max(highest, p.heightOf(row[i]))
		}
		for _, h := range row {
			h.lead = highest - p.heightOf(h)
		}
		heads = append(heads, row...)
		heights = append(heights, panelHeight+row[0].extra(p.panelWidth(), panelTitle))
	}
	return heads, heights
}

// heightOf returns the height of the head of a panel.
func (p *Panels) heightOf(h *head) vg.Length {
	return h.height(p.panelWidth()-2*margin-usualLeft, panelTitle)
}

func (p *Panels) columns() int { return max(1, p.Columns) }

// panelWidth is such that no picture is wider than two panels.
func (p *Panels) panelWidth() vg.Length { return panelWidth * 2 / vg.Length(max(2, p.columns())) }

// size implements drawing.
func (p *Panels) size() (width, height vg.Length) {
	p.share()
	width = max(1, vg.Length(min(p.columns(), len(p.Panels)))) * p.panelWidth()
	height = p.head().height(width-2*margin, titleSize) + margin
	_, rows := p.rows()
	for _, row := range rows {
		height += row
	}
	return width, height
}

// draw implements drawing.
func (p *Panels) draw(c draw.Canvas) {
	top := draw.Crop(c, margin, -margin, 0, -margin)
	p.head().write(&top, top.Min.X, top.Size().X, titleSize)
	y := top.Max.Y
	heads, rows := p.rows()
	width := p.panelWidth()
	for row, height := range rows {
		for column := range p.columns() {
			i := row*p.columns() + column
			if i == len(p.Panels) {
				break
			}
			panel := c
			panel.Min = vg.Point{X: c.Min.X + vg.Length(column)*width, Y: y - height}
			panel.Max = panel.Min.Add(vg.Point{X: width, Y: height})
			p.Panels[i].drawPanel(draw.Crop(panel, margin, -margin, margin, -margin), heads[i], panelTitle)
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
	a.drawPanel(draw.Crop(c, margin, -margin, margin, -margin), a.head(), titleSize)
}

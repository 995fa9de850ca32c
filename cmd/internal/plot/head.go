package plot

import (
	"image/color"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// head is what stands above a plot: a title, lines below it, and a legend. All of it is broken into
// lines that also fit with other fonts.
type head struct {
	title    string
	subtitle []string
	legend   []entry
	// lead is space below, so that the plots of a row stand side by side.
	lead vg.Length
}

// entry is an entry of a legend.
type entry struct {
	label  string
	width  vg.Length // of the symbol
	symbol func(c *draw.Canvas, center vg.Point)
}

// Distances within and below a head.
const (
	symbolGap  vg.Length = 5  // between a symbol and its label
	entryGap   vg.Length = 16 // between entries
	usualHead  vg.Length = 44 // the height of a head for which a picture has room
	usualLeft  vg.Length = 60 // the width of an axis with its labels, at most
	usualFoot  vg.Length = 40 // the height of an axis with its labels
	legendLead vg.Length = 2 * lineGap
)

// room returns the size of the plot below a head, about.
func (h *head) room(c draw.Canvas, size font.Length) vg.Point {
	width := c.Size().X - usualLeft
	return vg.Point{X: width, Y: c.Size().Y - h.height(width, size) - usualFoot}
}

// height returns the height in a width, with the space below.
func (h *head) height(width vg.Length, size font.Length) vg.Length {
	_, height := h.layout(width, size)
	return height
}

// part is a piece of a head at its place, which is relative to the upper left corner.
type part struct {
	at   vg.Point
	draw func(c *draw.Canvas, at vg.Point)
}

// layout returns the parts of a head in a width, and its height.
func (h *head) layout(width vg.Length, size font.Length) (parts []part, height vg.Length) {
	write := func(style draw.TextStyle, lines string) {
		for _, line := range wrap(style, lines, width/fontSlack) {
			parts = append(parts, part{vg.Point{Y: -height}, func(c *draw.Canvas, at vg.Point) { c.FillText(style, at, line) }})
			height += style.FontExtents().Height + lineGap
		}
	}
	bold := style(size, ink, text.XLeft, text.YTop)
	bold.Font.Weight = xfont.WeightBold
	if h.title != "" {
		write(bold, h.title)
	}
	for _, line := range h.subtitle {
		write(style(noteSize, grey, text.XLeft, text.YTop), line)
	}
	height += 2 * lineGap
	if len(h.legend) == 0 {
		return parts, height + h.lead
	}
	note := style(noteSize, ink, text.XLeft, text.YCenter)
	lineHeight := note.FontExtents().Height + lineGap
	x := vg.Length(0)
	for _, e := range h.legend {
		label := e.width + symbolGap
		lines := wrap(note, e.label, (width-label)/fontSlack)
		wide := vg.Length(0)
		for _, line := range lines {
			wide = max(wide, fontSlack*note.Width(line))
		}
		if x > 0 && x+label+wide > width {
			x = 0
			height += lineHeight
		}
		parts = append(parts, part{vg.Point{X: x + e.width/2, Y: -height}, e.symbol})
		for i, line := range lines {
			if i > 0 {
				height += lineHeight
			}
			parts = append(parts, part{vg.Point{X: x + label, Y: -height}, func(c *draw.Canvas, at vg.Point) { c.FillText(note, at, line) }})
		}
		x += label + wide + entryGap
	}
	return parts, height + 2*legendLead + h.lead
}

// write draws a head of a width from where the axis starts, and takes its height off the canvas.
func (h *head) write(c *draw.Canvas, left, width vg.Length, size font.Length) {
	parts, height := h.layout(width, size)
	for _, p := range parts {
		p.draw(c, vg.Point{X: left, Y: c.Max.Y}.Add(p.at))
	}
	c.Max.Y -= height
}

// extra returns how much higher a picture must be for a head that is higher than usual.
func (h *head) extra(pictureWidth vg.Length, size font.Length) vg.Length {
	return max(0, h.height(pictureWidth-2*margin-usualLeft, size)-usualHead)
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

// lineEntry is the entry of a line.
func lineEntry(name string, line draw.LineStyle) entry {
	const long vg.Length = 22
	return entry{name, long, func(c *draw.Canvas, at vg.Point) {
		c.StrokeLine2(line, at.X-long/2, at.Y, at.X+long/2, at.Y)
	}}
}

// dotEntry is the entry of small full circles.
func dotEntry(name string, fill color.Color) entry {
	return entry{name, 2 * finalSize, func(c *draw.Canvas, at vg.Point) {
		c.SetColor(fill)
		c.Fill(circles([]vg.Point{at}, finalSize))
	}}
}

package plot

import (
	"bytes"
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// fontSlack is how much wider than the house font another one may be that a viewer puts in its place:
// DejaVu Sans and Verdana are up to a fifth.
const fontSlack = 1.2

// svgCanvas is an SVG canvas whose texts say by which of their ends they are placed. A viewer with another
// font then keeps what is centred in the centre, and what ends at an edge there.
type svgCanvas struct {
	*vgsvg.Canvas

	align   text.XAlignment // of the text that is drawn next
	anchors []string        // of the texts so far
}

// FillString implements vg.Canvas. at is where the text begins in the house font.
func (c *svgCanvas) FillString(face font.Face, at vg.Point, line string) {
	anchors := map[text.XAlignment]string{text.XLeft: "start", text.XCenter: "middle", text.XRight: "end"}
	c.anchors = append(c.anchors, anchors[c.align])
	at.X -= vg.Length(c.align) * face.Width(line) // alignments are 0, -1/2 and -1
	c.Canvas.FillString(face, at, line)
}

// finish returns the file. The canvas writes texts without an anchor, in the order in which they came.
func (c *svgCanvas) finish() ([]byte, error) {
	var out bytes.Buffer
	if _, err := c.WriteTo(&out); err != nil {
		return nil, err
	}
	parts := bytes.Split(out.Bytes(), []byte("<text "))
	if len(parts) != len(c.anchors)+1 {
		return nil, fmt.Errorf("plot: %d texts of %d are in the file", len(parts)-1, len(c.anchors))
	}
	out = *bytes.NewBuffer(parts[0])
	for i, anchor := range c.anchors {
		fmt.Fprintf(&out, `<text text-anchor="%s" %s`, anchor, parts[i+1])
	}
	picture := bytes.ReplaceAll(out.Bytes(), []byte("data:image/jpg;"), []byte("data:image/png;")) // what it is
	// Fonts with the same metrics replace the font if it is missing.
	return bytes.ReplaceAll(picture, []byte("font-family:Liberation Sans;"), []byte("font-family:"+fontFamilies+";")), nil
}

// anchored is the text handler of all styles: it tells an SVG canvas how a text is aligned.
type anchored struct{ text.Handler }

var handler = anchored{plot.DefaultTextHandler}

// Draw implements text.Handler.
func (h anchored) Draw(c vg.Canvas, txt string, style text.Style, at vg.Point) {
	if svg := svgOf(c); svg != nil {
		svg.align = style.XAlign
	}
	h.Handler.Draw(c, txt, style, at)
}

// svgOf returns the SVG canvas that others are parts of, or nil for one of another format.
func svgOf(c vg.Canvas) *svgCanvas {
	switch c := c.(type) {
	case *draw.Canvas:
		return svgOf(c.Canvas)
	case draw.Canvas:
		return svgOf(c.Canvas)
	case *svgCanvas:
		return c
	default:
		return nil
	}
}

package plot

import (
	"image/color"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The house style: one sans-serif font, grey for what explains, one colour for what
// matters.
var (
	ink       = color.NRGBA{R: 0x22, G: 0x22, B: 0x22, A: 0xff}
	grey      = color.NRGBA{R: 0x6b, G: 0x6b, B: 0x6b, A: 0xff}
	frontBlue = color.NRGBA{R: 0x0b, G: 0x55, B: 0x9f, A: 0xff}
	spread    = color.NRGBA{R: 0x0b, G: 0x55, B: 0x9f, A: 0x70} // intervals of the front
	region    = color.NRGBA{R: 0x0b, G: 0x55, B: 0x9f, A: 0x12} // what the front dominates
	finals    = color.NRGBA{R: 0x8a, G: 0x8a, B: 0x8a, A: 0xff}
	minors    = color.NRGBA{R: 0xc9, G: 0xc9, B: 0xc9, A: 0xff}
	boxRed    = color.NRGBA{R: 0xb0, G: 0x3a, B: 0x2e, A: 0xff}
)

const (
	// fontFamilies are the font and its replacements in SVG, all of the same widths.
	fontFamilies = "Liberation Sans,Arial,Helvetica,sans-serif"

	titleSize  font.Length = 12
	noteSize   font.Length = 9.5
	labelSize  font.Length = 10.5
	tickSize   font.Length = 9.5
	margin     vg.Length   = 12
	lineGap    vg.Length   = 4
	finalSize  vg.Length   = 1.7 // radius
	minorSize  vg.Length   = 0.6 // half of the side
	frontSize  vg.Length   = 2.5 // radius
	frontWidth vg.Length   = 1.5
)

// sans returns the house font.
func sans(size font.Length, weight xfont.Weight) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size, Weight: weight}
}

// style returns a text style of the house font.
func style(size font.Length, c color.Color, x text.XAlignment, y text.YAlignment) draw.TextStyle {
	return draw.TextStyle{
		Color: c, Font: sans(size, xfont.WeightNormal), XAlign: x, YAlign: y, Handler: handler,
	}
}

// newPlot returns an empty plot in the house style, with labels for which there is room.
func newPlot(x, y Axis, room vg.Point) *plot.Plot {
	const labelWidth, labelHeight = 3.2 * tickSize, 2 * tickSize // with the space beside them
	p := plot.New()
	p.BackgroundColor = nil
	for _, a := range []struct {
		to     *plot.Axis
		from   Axis
		length vg.Length
		label  vg.Length
	}{{&p.X, x, room.X, labelWidth}, {&p.Y, y, room.Y, labelHeight}} {
		ticks := float64(a.length / a.label)
		a.to.Label.Text = strings.Join(wrap(style(labelSize, ink, text.XCenter, text.YCenter), a.from.Label, a.length/fontSlack), "\n")
		a.to.Label.TextStyle.Font = sans(labelSize, xfont.WeightNormal)
		a.to.Label.TextStyle.Color = ink
		a.to.Label.TextStyle.Handler = handler
		a.to.Label.Padding = 4
		a.to.Color = grey
		a.to.Width = 0.6
		a.to.Padding = 0
		a.to.Tick.Label.Font = sans(tickSize, xfont.WeightNormal)
		a.to.Tick.Label.Color = ink
		a.to.Tick.Label.Handler = handler
		a.to.Tick.Color = grey
		a.to.Tick.Width = 0.6
		a.to.Tick.Length = 4
		a.to.Tick.Marker = linearTicks{ticks}
		if a.from.Log {
			a.to.Scale = plot.LogScale{}
			a.to.Tick.Marker = logTicks{ticks}
		}
	}
	return p
}

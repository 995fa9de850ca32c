package chart

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Size is the room that a chart is made for, in its own units; the page scales it to the room that it has.
type Size int

// The sizes.
const (
	Medium    Size = iota // one of two columns
	Wide                  // the width of the page
	Narrow                // the width of a phone
	Small                 // one of several columns
	Miniature             // a cell of a table, without axes and labels
)

// sizes are the class, the width and the height of each size.
var sizes = map[Size]struct {
	class         string
	width, height float64
}{
	Medium: {"medium", 520, 290}, Wide: {"wide", 1280, 420}, Narrow: {"narrow", 360, 300}, Small: {"small", 320, 220}, Miniature: {"miniature", 168, 44},
}

// The room around the plane: right of it, above it for the label of Y, below it for ticks and the label
// of X. letter is the width of one; edge is how far a mark at the edge of the plane reaches beyond it.
const (
	right, top, bottom = 14, 30, 46
	letter             = 7.5
	edge               = 10
)

// Chart is a picture that grows by the marks that are added to it, in this order. Marks outside the
// axes are clipped; those without a place on an axis are left out.
type Chart struct {
	// ID is unique in the document.
	ID string
	// Title is the name of the picture for those who do not see it.
	Title string
	// Description says in a sentence or two what is to be seen.
	Description string
	// X and Y are the axes.
	X, Y Axis
	// Size is the room that it is made for.
	Size Size
	// Left is the room for the labels of Y; 0 for as much as they need.
	Left float64
	// Class is added to the class of the picture.
	Class string

	body strings.Builder
	left float64 // the room for the labels of Y; 0 until it is known
}

// Point is a place in the units of the axes.
type Point struct{ X, Y float64 }

// Mark is a point with a meaning: it can be focused, has a label, and leads somewhere.
type Mark struct {
	Point

	// Lower and Upper are the ends of a vertical interval; equal for none.
	Lower, Upper float64
	// Label names the point.
	Label string
	// Card is the same as a title and lines of a name, a tab and a value, which a script shows beside the
	// point. "" for Label.
	Card string
	// Link is where it leads; "" for nowhere.
	Link string
	// Class is added to the point's.
	Class string
	// ID is unique in the document; it keeps the focus when the chart is drawn again. "" for none.
	ID string
}

// area returns the plane of the chart.
func (c *Chart) area() (x0, y0, x1, y1 float64) {
	size := sizes[c.Size]
	if c.Size == Miniature {
		return 4, 4, size.width - 4, size.height - 4
	}
	if c.Left > 0 {
		return c.Left, top, size.width - right, size.height - bottom
	}
	if c.left == 0 {
		for _, t := range c.Y.Ticks() {
			c.left = max(c.left, letter*float64(utf8.RuneCountInString(t.Label)))
		}
		c.left = min(c.left+12, size.width/3)
	}
	return c.left, top, size.width - right, size.height - bottom
}

// place returns where a point is drawn, and whether it has a place.
func (c *Chart) place(p Point) (x, y float64, ok bool) {
	u, v := c.X.At(p.X), c.Y.At(p.Y)
	if math.IsNaN(u) || math.IsNaN(v) || math.Abs(u) > 1e3 || math.Abs(v) > 1e3 {
		return 0, 0, false
	}
	x0, y0, x1, y1 := c.area()
	return x0 + u*(x1-x0), y1 - v*(y1-y0), true
}

// within reports whether a point is within the axes.
func (c *Chart) within(p Point) bool {
	const slack = 1e-9
	u, v := c.X.At(p.X), c.Y.At(p.Y)
	return u >= -slack && u <= 1+slack && v >= -slack && v <= 1+slack
}

// coordinate returns a coordinate with a tenth of a unit.
func coordinate(v float64) string { return strconv.FormatFloat(math.Round(10*v)/10, 'f', -1, 64) }

// Thin returns at most n items, at least 2, evenly spaced, the first and the last among them.
func Thin[T any](items []T, n int) []T {
	if len(items) <= n {
		return items
	}
	out := make([]T, n)
	for i := range out {
		out[i] = items[i*(len(items)-1)/(n-1)]
	}
	return out
}

// Dots adds points without a meaning of their own, as one element however many they are.
func (c *Chart) Dots(class string, points []Point) {
	var d strings.Builder
	for _, p := range points {
		if x, y, ok := c.place(p); ok && c.within(p) {
			d.WriteString("M" + coordinate(x) + " " + coordinate(y) + "h0")
		}
	}
	c.path("dots "+class, d.String())
}

// Squares adds hollow squares without a meaning of their own.
func (c *Chart) Squares(points []Point) {
	var d strings.Builder
	for _, p := range points {
		if x, y, ok := c.place(p); ok && c.within(p) {
			d.WriteString("M" + coordinate(x-4) + " " + coordinate(y-4) + "h8v8h-8z")
		}
	}
	c.path("squares", d.String())
}

// Ring adds a ring around a point.
func (c *Chart) Ring(at Point) {
	if x, y, ok := c.place(at); ok && c.within(at) {
		fmt.Fprintf(&c.body, `<circle class="ring" cx="%s" cy="%s" r="9"/>`, coordinate(x), coordinate(y))
	}
}

// Marks adds points with a meaning, with their intervals. Shape is "circle", "square" or "diamond".
func (c *Chart) Marks(class, shape string, marks []Mark) {
	for i := range marks {
		m := &marks[i]
		x, y, ok := c.place(m.Point)
		if !ok || !c.within(m.Point) {
			continue
		}
		element, attributes := "g", ` tabindex="0" role="img"`
		if m.Link != "" {
			element, attributes = "a", ` href="`+escape(m.Link)+`"`
		}
		if m.Card != "" {
			attributes += ` data-card="` + escape(m.Card) + `"`
		}
		if m.ID != "" {
			attributes += ` id="` + escape(m.ID) + `"`
		}
		fmt.Fprintf(&c.body, `<%s class="mark %s" aria-label="%s"%s>`, element, escape(strings.TrimSpace(class+" "+m.Class)), escape(m.Label), attributes)
		if m.Card == "" {
			fmt.Fprintf(&c.body, `<title>%s</title>`, escape(m.Label))
		}
		if m.Lower != m.Upper {
			_, low, okLow := c.place(Point{m.X, max(m.Lower, c.Y.Min)})
			_, high, okHigh := c.place(Point{m.X, min(m.Upper, c.Y.Max)})
			if okLow && okHigh {
				fmt.Fprintf(&c.body, `<path class="interval" d="M%[1]s %[2]sV%[3]s"/>`, coordinate(x), coordinate(low), coordinate(high))
			}
		}
		c.shape(shape, x, y)
		fmt.Fprintf(&c.body, `</%s>`, element)
	}
}

// shape draws one point, and a larger invisible one to point at.
func (c *Chart) shape(shape string, x, y float64) {
	fmt.Fprintf(&c.body, `<circle class="target" cx="%s" cy="%s" r="12"/>`, coordinate(x), coordinate(y))
	switch shape {
	case "square":
		fmt.Fprintf(&c.body, `<rect x="%s" y="%s" width="8" height="8"/>`, coordinate(x-4), coordinate(y-4))
	case "diamond":
		fmt.Fprintf(&c.body, `<path d="M%s %sl5.5 5.5l-5.5 5.5l-5.5-5.5z"/>`, coordinate(x), coordinate(y-5.5))
	default:
		fmt.Fprintf(&c.body, `<circle cx="%s" cy="%s" r="5"/>`, coordinate(x), coordinate(y))
	}
}

// Line adds a line through points. It breaks where a point has no place.
func (c *Chart) Line(class string, points []Point) {
	var d strings.Builder
	next := "M"
	for _, p := range points {
		x, y, ok := c.place(p)
		if !ok {
			next = "M"
			continue
		}
		d.WriteString(next + coordinate(x) + " " + coordinate(y))
		next = "L"
	}
	c.path("line "+class, d.String())
}

// Upright adds a line over the whole height of the plane, with words beside it at a height between 0 and 1:
// right of the line, or left of it where that side has more room.
func (c *Chart) Upright(class string, x, height float64, words string) {
	c.Line(class, []Point{{x, c.Y.Min}, {x, c.Y.Max}})
	c.Beside(x, height, "tick", words)
}

// Beside adds words beside a place on X, at a height between 0 and 1.
func (c *Chart) Beside(x, height float64, class, words string) {
	left, _, end, _ := c.area()
	anchor, gap := "start", 6/(end-left)
	if c.X.At(x) > 0.6 {
		anchor, gap = "end", -gap
	}
	c.Text(class, anchor, Point{c.X.Value(c.X.At(x) + gap), c.Y.Value(height)}, words)
}

// Thread adds a line from a mark through all axes of parallel coordinates, which can be brushed.
func (c *Chart) Thread(class string, mark Point, points []Point) {
	var d, values strings.Builder
	for i, p := range points {
		x, y, ok := c.place(p)
		if !ok {
			fmt.Fprint(&values, "- ")
			continue
		}
		if from, _, _ := c.place(mark); i == 0 {
			d.WriteString("M" + coordinate(from) + " " + coordinate(y))
		}
		d.WriteString(map[bool]string{true: "M", false: "L"}[d.Len() == 0] + coordinate(x) + " " + coordinate(y))
		fmt.Fprintf(&values, "%.3f ", points[i].Y)
	}
	if d.Len() > 0 {
		fmt.Fprintf(&c.body, `<path class="line thin %s" d="%s" data-values="%s"/>`, escape(class), d.String(), strings.TrimSpace(values.String()))
	}
}

// Brush adds the place where axis i of parallel coordinates, of a name, is dragged over.
func (c *Chart) Brush(i int, name string) {
	x0, y0, ok0 := c.place(Point{float64(i), 0})
	_, y1, ok1 := c.place(Point{float64(i), 1})
	if ok0 && ok1 {
		fmt.Fprintf(&c.body, `<path class="hit" d="M%s %sV%s" data-axis="%d" data-x="%[1]s" aria-label="%[5]s"/>`, coordinate(x0), coordinate(y0), coordinate(y1), i, escape(name))
	}
}

// Steps adds a staircase through points in the order of X: from each it goes along X first.
func (c *Chart) Steps(class string, points []Point) {
	var steps []Point
	for i, p := range points {
		if i > 0 {
			steps = append(steps, Point{p.X, points[i-1].Y})
		}
		steps = append(steps, p)
	}
	c.Line(class, steps)
}

// Stairs adds the edge of the region that the points of a front dominate. They come in the order of
// X, from its best to its worst value; those that are no better in Y than the one before are left
// out.
func (c *Chart) Stairs(class string, points []Point, maximizeY bool) {
	var front []Point
	for _, p := range points {
		if n := len(front); n == 0 || p.Y < front[n-1].Y && !maximizeY || p.Y > front[n-1].Y && maximizeY {
			front = append(front, p)
		}
	}
	c.Steps(class, front)
}

// Band adds the area between two lines over the same places. Values outside the axis end at its
// edge.
func (c *Chart) Band(class string, x, lower, upper []float64) {
	var outline []Point
	for i := range x {
		outline = append(outline, Point{x[i], c.clamp(upper[i])})
	}
	for i, at := range slices.Backward(x) {
		outline = append(outline, Point{at, c.clamp(lower[i])})
	}
	var d strings.Builder
	next := "M"
	for _, p := range outline {
		if x, y, ok := c.place(p); ok {
			d.WriteString(next + coordinate(x) + " " + coordinate(y))
			next = "L"
		}
	}
	if d.Len() > 0 {
		d.WriteString("z")
	}
	c.path("band "+class, d.String())
}

func (c *Chart) clamp(y float64) float64 { return max(c.Y.Min, min(c.Y.Max, y)) }

// Rectangle adds a rectangle between two corners, clipped to the axes, with a label for it if
// there is one.
func (c *Chart) Rectangle(class string, from, to Point, label string) {
	x0, y0, ok0 := c.place(Point{max(c.X.Min, min(c.X.Max, from.X)), c.clamp(from.Y)})
	x1, y1, ok1 := c.place(Point{max(c.X.Min, min(c.X.Max, to.X)), c.clamp(to.Y)})
	if !ok0 || !ok1 {
		return
	}
	x0, x1, y0, y1 = min(x0, x1), max(x0, x1), min(y0, y1), max(y0, y1)
	fmt.Fprintf(&c.body, `<rect class="%s" x="%s" y="%s" width="%s" height="%s">`, escape(class), coordinate(x0), coordinate(y0), coordinate(x1-x0), coordinate(y1-y0))
	if label != "" {
		fmt.Fprintf(&c.body, `<title>%s</title>`, escape(label))
	}
	c.body.WriteString(`</rect>`)
}

// Contours adds a map of values at the crossings of xs and ys, both ascending: z(i, j) is the value at
// xs[i] and ys[j]. For each level the area above it gets the level's class, and lines between levels have
// labels. Values between crossings are interpolated.
func (c *Chart) Contours(xs, ys []float64, z func(i, j int) float64, levels []float64, class func(k int) string, label func(v float64) string) {
	for k, level := range levels {
		var area, line strings.Builder
		var at Point
		segments := 0
		for i := range len(xs) - 1 {
			for j := range len(ys) - 1 {
				corners := [4]Point{{xs[i], ys[j]}, {xs[i+1], ys[j]}, {xs[i+1], ys[j+1]}, {xs[i], ys[j+1]}}
				values := [4]float64{z(i, j), z(i+1, j), z(i+1, j+1), z(i, j+1)}
				cut := c.above(&area, corners, values, level)
				for n := 0; n+1 < len(cut); n += 2 {
					line.WriteString("M" + coordinate(cut[n].X) + " " + coordinate(cut[n].Y) + "L" + coordinate(cut[n+1].X) + " " + coordinate(cut[n+1].Y))
					if segments++; segments%7 == 3 { // somewhere along the line
						at = cut[n]
					}
				}
			}
		}
		c.path("heat "+class(k), area.String())
		if k > 0 {
			c.path("iso", line.String())
			if x0, y0, x1, y1 := c.area(); at.X > x0+20 && at.X < x1-20 && at.Y > y0+12 && at.Y < y1-12 {
				c.text(&c.body, "on-heat", "middle", at.X, at.Y+4, label(level), label(level))
			}
		}
	}
}

// above writes the part of a cell where the value is at least a level, and returns the places, in pairs,
// where its edge goes through the cell.
func (c *Chart) above(area *strings.Builder, corners [4]Point, values [4]float64, level float64) []Point {
	var outline, cut []Point
	for n := range 4 {
		a, b := values[n], values[(n+1)%4]
		if math.IsNaN(a) || math.IsNaN(b) {
			return nil
		}
		ax, ay, okA := c.place(corners[n])
		bx, by, okB := c.place(corners[(n+1)%4])
		if !okA || !okB {
			return nil
		}
		if a >= level {
			outline = append(outline, Point{ax, ay})
		}
		if (a >= level) != (b >= level) {
			t := (level - a) / (b - a)
			edge := Point{ax + t*(bx-ax), ay + t*(by-ay)}
			outline, cut = append(outline, edge), append(cut, edge)
		}
	}
	for n, p := range outline {
		area.WriteString(map[bool]string{true: "M", false: "L"}[n == 0] + coordinate(p.X) + " " + coordinate(p.Y))
	}
	if len(outline) > 0 {
		area.WriteString("z")
	}
	return cut
}

// Text adds words at a point; anchor is start, middle or end.
func (c *Chart) Text(class, anchor string, at Point, words string) {
	if x, y, ok := c.place(at); ok && words != "" && c.within(at) {
		c.text(&c.body, escape(class), escape(anchor), x, y, words, words)
	}
}

// path adds a path unless it is empty.
func (c *Chart) path(class, d string) {
	if d != "" {
		fmt.Fprintf(&c.body, `<path class="%s" d="%s"/>`, escape(class), d)
	}
}

// SVG returns the picture as an element of a document.
func (c *Chart) SVG() template.HTML {
	var out strings.Builder
	size := sizes[c.Size]
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" class="%s" viewBox="0 0 %g %g" width="%[2]g" height="%[3]g" role="group" aria-labelledby="%[4]s-title %[4]s-about" data-chart="%[5]s">`,
		escape(strings.TrimSpace("chart "+size.class+" "+c.Class)), size.width, size.height, escape(c.ID), escape(c.frame()))
	fmt.Fprintf(&out, `<title id="%s-title">%s</title><desc id="%[1]s-about">%[3]s</desc>`, escape(c.ID), escape(c.Title), escape(c.Description))
	x0, y0, x1, y1 := c.area()
	fmt.Fprintf(&out, `<clipPath id="%s-clip"><rect x="%s" y="%s" width="%s" height="%s"/></clipPath>`,
		escape(c.ID), coordinate(x0-edge), coordinate(y0-edge), coordinate(x1-x0+edge+right), coordinate(y1-y0+2*edge))
	if c.Size != Miniature {
		c.axes(&out)
	}
	fmt.Fprintf(&out, `<g clip-path="url(#%s-clip)">%s</g></svg>`, escape(c.ID), c.body.String())
	return template.HTML(out.String()) //nolint:gosec // every text in it is escaped
}

// File returns the picture as a file of its own, light, with the rules that draw it.
func (c *Chart) File(style string) template.HTML {
	tokens, _, _ := strings.Cut(style, "}")
	if _, rules, ok := strings.Cut(style, "/* Charts */"); ok {
		rules, _, _ = strings.Cut(rules, "@media")
		style = tokens + "} :root { color-scheme: light; background: #fff; }" + rules
	}
	picture := string(c.SVG())
	at := strings.IndexByte(picture, '>') + 1
	return template.HTML(picture[:at] + "<style>" + style + "</style>" + picture[at:]) //nolint:gosec // the style is ours, and every text in the picture is escaped
}

// frame tells a script which values are at the edges of the plane, for zooming: its corners, the
// scales and the values.
func (c *Chart) frame() string {
	x0, y0, x1, y1 := c.area()
	return fmt.Sprint(x0, " ", y0, " ", x1, " ", y1, " ", int(c.X.Scale), " ", c.X.Min, " ", c.X.Max, " ", int(c.Y.Scale), " ", c.Y.Min, " ", c.Y.Max)
}

// axes draws grid, ticks and labels. Readers of the marks need none of it.
func (c *Chart) axes(out *strings.Builder) {
	x0, y0, x1, y1 := c.area()
	size := sizes[c.Size]
	out.WriteString(`<g class="axes" aria-hidden="true">`)
	free := math.Inf(-1) // where the last label ends
	for _, t := range c.X.Ticks() {
		full := t.Label
		if n := len(c.X.Categories); n > 0 {
			t.Label = shorten(t.Label, int((x1-x0)/float64(n)/letter))
		}
		at := x0 + c.X.At(t.Value)*(x1-x0)
		fmt.Fprintf(out, `<path class="grid" d="M%s %sV%s"/>`, coordinate(at), coordinate(y0), coordinate(y1))
		if half := letter * float64(utf8.RuneCountInString(t.Label)) / 2; at-half >= free {
			c.text(out, "", "middle", at, y1+18, t.Label, full)
			free = at + half + letter
		}
	}
	for _, t := range c.Y.Ticks() {
		y := y1 - c.Y.At(t.Value)*(y1-y0)
		fmt.Fprintf(out, `<path class="grid" d="M%s %sH%s"/>`, coordinate(x0), coordinate(y), coordinate(x1))
		c.text(out, "", "end", x0-8, y+4, shorten(t.Label, int((x0-8)/letter)), t.Label)
	}
	fmt.Fprintf(out, `<path class="frame" d="M%s %sH%s"/>`, coordinate(x0), coordinate(y1), coordinate(x1))
	most := int((size.width - right) / letter)
	c.text(out, "label", "end", x1, size.height-8, shorten(c.X.Label, most), c.X.Label)
	c.text(out, "label", "start", 4, 14, shorten(c.Y.Label, most), c.Y.Label)
	out.WriteString(`</g>`)
}

// text writes words, which may be the beginning of longer ones.
func (c *Chart) text(out *strings.Builder, class, anchor string, x, y float64, words, full string) {
	fmt.Fprintf(out, `<text class="%s" text-anchor="%s" x="%s" y="%s">%s`, class, anchor, coordinate(x), coordinate(y), escape(words))
	if full != words {
		fmt.Fprintf(out, `<title>%s</title>`, escape(full))
	}
	out.WriteString(`</text>`)
}

// shorten returns a text of at most n letters, at least one.
func shorten(text string, n int) string {
	letters := []rune(text)
	if len(letters) <= max(1, n) {
		return text
	}
	return string(letters[:max(1, n)-1]) + "…"
}

// Spark returns a line through points for a cell of a table, with its last point, on a vertical axis from
// low to high, which the cells of a column share.
func Spark(points []Point, low, high float64) template.HTML {
	if len(points) < 2 || !(low < high) {
		return ""
	}
	c := Chart{Size: Miniature, X: Axis{Min: points[0].X, Max: points[len(points)-1].X}, Y: Axis{Min: low, Max: high}}
	c.Line("", points)
	c.Dots("front", points[len(points)-1:])
	size := sizes[Miniature]
	return template.HTML(fmt.Sprintf(`<svg class="chart spark" viewBox="0 0 %g %g" aria-hidden="true">%s</svg>`, size.width, size.height, c.body.String())) //nolint:gosec // numbers
}

// Bar returns a bar of a length in [0, 1] with its interval, for a row of a table, which also
// has the numbers.
func Bar(class string, value, lower, upper float64) template.HTML {
	const long, high = 160, 14
	at := func(v float64) string { return coordinate(long * max(0, min(1, v))) }
	return template.HTML(fmt.Sprintf(`<svg class="chart bars %s" viewBox="-2 0 %d %d" width="%[2]d" height="%[3]d" aria-hidden="true">`+ //nolint:gosec // numbers, and an escaped text
		`<rect class="bar" y="3" width="%[4]s" height="8"/><path class="whisker" d="M%[5]s 7H%[6]sM%[5]s 3v8M%[6]s 3v8"/></svg>`,
		escape(class), long+4, high, at(value), at(lower), at(upper)))
}

// escape makes text safe in content and in quoted attributes.
func escape(text string) string { return template.HTMLEscapeString(text) }

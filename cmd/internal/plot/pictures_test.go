package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/image/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/internal/require"
)

// picture is a panel or several.
type picture interface {
	Render(w io.Writer, format string) error
}

// pictures are examples of everything that is drawn.
func pictures() map[string]picture {
	three := &Panels{Title: "DPareto, figure 7: " + longText(4), Columns: 3, SameAxes: true}
	for range 3 {
		three.Panels = append(three.Panels, exampleFronts())
	}
	return map[string]picture{
		"figure": example(), "labelled figure": labelled(false), "labelled figure of a maximum": labelled(true), "three panels": three, "fronts": exampleFronts(), "heatmap": exampleMap(false), "log heatmap": exampleMap(true),
		"curves": exampleCurves(false), "log curves": exampleCurves(true),
		"panels": &Panels{
			Title: "DPareto, figure 1: " + longText(12), Subtitle: []string{"ε of one run, δ = 1e-5, " + longText(20)}, Columns: 2,
			Panels: []Panel{exampleMap(false), exampleFronts(), exampleCurves(true), example(), exampleMap(true)},
		},
	}
}

// labelled is a figure in which the first point of the front has a label, on the axis of X and at the worst Y.
func labelled(maximise bool) *Figure {
	f := example()
	f.X.Maximise, f.Y.Maximise = maximise, maximise
	if maximise {
		f.X.Reference, f.Y.Reference = 0.01, 0
		slices.Reverse(f.Front)
		for i := range f.Front {
			f.Front[i].Y = 1 - f.Front[i].Y
		}
	}
	f.Front[0].X, f.Front[0].Label = map[bool]float64{false: 0, true: 1e6}[maximise], "no run: majority"
	return f
}

func longText(words int) string { return strings.TrimSpace(strings.Repeat("several words ", words/2)) }

func exampleFronts() *Fronts {
	f := &Fronts{
		Title:    "Adult: models and optimisers",
		Subtitle: []string{"ε of one run, δ = 1e-5, add-or-remove-one adjacency, RDP accountant: an upper bound"},
		X:        Axis{Label: "ε of one run", Log: true, Reference: 10},
		Y:        Axis{Label: "error (ratio)", Reference: 1},
		Levels:   []Level{{Name: "always the majority class", Y: 0.239}},
	}
	rng := rand.New(rand.NewPCG(2, 0))
	for i, name := range []string{"logistic regression, DP-SGD", "logistic regression, DP-Adam", "support vector machine, DP-SGD", "two layers of 128 and 64 units, DP-Adam"} {
		series := FrontSeries{Name: name}
		for _, x := range []float64{0.03, 0.05, 0.1, 0.2, 0.5, 1, 5} {
			y := 0.15 + 0.08/(1+10*x) + 0.005*float64(i)
			series.Front = append(series.Front, Point{X: x, Y: y})
			if i < 1 {
				series.Best = append(series.Best, Point{X: x, Y: y - 0.005})
				series.Worst = append(series.Worst, Point{X: x, Y: y + 0.01})
			}
			series.Points = append(series.Points, Point{X: x * (1 + rng.Float64()), Y: y + 0.02*rng.Float64()})
		}
		f.Fronts = append(f.Fronts, series)
	}
	return f
}

func exampleMap(log bool) *HeatMap {
	m := &HeatMap{
		Title: "Sparse vector technique", Subtitle: []string{"ε of one run, pure differential privacy"},
		X: Axis{Label: "clip"}, Y: Axis{Label: "scale of the noise", Log: log}, Label: "error",
	}
	for i := range 21 {
		m.Xs = append(m.Xs, float64(i+1))
		m.Ys = append(m.Ys, math.Pow(10, float64(i)/10-1))
	}
	for _, y := range m.Ys {
		var row []float64
		for _, x := range m.Xs {
			row = append(row, math.Exp(-x/4)*y)
		}
		m.Values = append(m.Values, row)
	}
	m.Values[3][4], m.Values[5][6], m.Values[7][7] = math.NaN(), math.Inf(1), 0
	m.Marks = []Marks{
		{Name: "evaluated", Symbol: Dots, X: []float64{2, 5, 9}, Y: []float64{0.2, 0.8, 5}},
		{Name: "configurations of the exact front", Symbol: Rings, X: []float64{3, 15, math.NaN()}, Y: []float64{0.3, 0.5, 1}},
		{Name: "largest value", Symbol: Star, X: []float64{12}, Y: []float64{2}},
	}
	return m
}

func exampleCurves(log bool) *Curves {
	c := &Curves{Title: "Adult", Subtitle: []string{"mean over 5 seeds, band: one standard deviation"}, X: "runs", Y: "hypervolume of the front by the searched examples, in log units", Rising: true, LogY: log}
	for k, name := range []string{"Gaussian processes, 16 initial points", "random configurations", "random configurations of another distribution", "a grid of three values for each parameter", "one word"} {
		s := Series{Name: name, Steps: true}
		for i := range 64 {
			x := float64(i + 1)
			y := 8.5 - 0.2*float64(k) - 6/x
			s.X, s.Y = append(s.X, x), append(s.Y, y)
			s.Lower, s.Upper = append(s.Lower, y-0.2-9/x), append(s.Upper, y+0.2+9/x)
		}
		c.Curves = append(c.Curves, s)
	}
	return c
}

// box is where a text is in a picture, in a font that is a fifth wider.
type box struct {
	text       string
	x, y, w, h float64 // of the upper left corner, and the size
}

// boxes returns the boxes of all texts, and the size of the picture.
func boxes(t *testing.T, svg []byte) (all []box, width, height float64) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	number := func(text string) float64 {
		x, err := strconv.ParseFloat(strings.TrimSuffix(text, "pt"), 64)
		require.NoError(t, err)
		return x
	}
	rotated := []bool{false}
	attributes := make(map[string]string)
	inText := false
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return all, width, height
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			for _, a := range token.Attr {
				attributes[a.Name.Local] = a.Value
			}
			switch token.Name.Local {
			case "svg":
				width, height = number(attributes["width"]), number(attributes["height"])
			case "g":
				rotated = append(rotated, rotated[len(rotated)-1] || strings.Contains(attributes["transform"], "rotate"))
			}
			inText = token.Name.Local == "text"
		case xml.EndElement:
			inText = false
			if token.Name.Local == "g" {
				rotated = rotated[:len(rotated)-1]
			}
		case xml.CharData:
			if !inText {
				continue
			}
			size := number(fontSize.FindStringSubmatch(attributes["style"])[1])
			face := style(vg.Length(size), ink, text.XLeft, text.YTop)
			if strings.Contains(attributes["style"], "font-weight:bold") {
				face.Font.Weight = font.WeightBold
			}
			b := box{
				text: string(token), x: number(attributes["x"]), y: number(attributes["y"]) + height - size,
				w: fontSlack * float64(face.Width(string(token))), h: size,
			}
			b.x -= b.w * map[string]float64{"start": 0, "middle": 0.5, "end": 1}[attributes["text-anchor"]]
			if rotated[len(rotated)-1] {
				// The picture is turned by a quarter: the text goes up from its place.
				b.x, b.y, b.w, b.h = b.y-height, height-b.x-b.w, b.h, b.w
			}
			all = append(all, b)
		}
	}
}

var fontSize = regexp.MustCompile(`font-size:([.0-9]+)px`)

// Every text stays within the picture, and no one covers another, with a font that is a fifth wider.
func TestTextsFit(t *testing.T) {
	for name, p := range pictures() {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, p.Render(&out, "svg"))
			if bytes.Contains(out.Bytes(), []byte("NaN")) || bytes.Contains(out.Bytes(), []byte("Inf")) {
				t.Error("coordinates that are no numbers")
			}
			all, width, height := boxes(t, out.Bytes())
			if len(all) < 8 {
				t.Errorf("%d texts", len(all))
			}
			for i, a := range all {
				if a.x < 0 || a.x+a.w > width || a.y < 0 || a.y+a.h > height {
					t.Errorf("%+v is not within %g × %g", a, width, height)
				}
				for _, b := range all[:i] {
					if a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h {
						t.Errorf("%+v covers %+v", a, b)
					}
				}
			}
		})
	}
}

// A front's line goes along the axes only, through all of its steps, and from one end of the view to the other.
func TestStaircases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		coordinate := rapid.Float64Range(-3, 3)
		points := rapid.SliceOf(rapid.Custom(func(t *rapid.T) position {
			return position{coordinate.Draw(t, "x"), coordinate.Draw(t, "y")}
		})).Draw(t, "points")
		front := steps(points, func(p position) position { return p })
		for _, p := range points {
			if !slices.ContainsFunc(front, func(q position) bool { return q.x <= p.x && q.y <= p.y }) {
				t.Errorf("%v is left out of %v, and no step is as good", p, front)
			}
		}
		line := staircase(front, span{-5, 5}, span{-4, 4})
		if len(front) == 0 {
			if line != nil {
				t.Errorf("a line %v through nothing", line)
			}
			return
		}
		for i, p := range line[1:] {
			last := line[i]
			if (p.x != last.x && p.y != last.y) || p.x < last.x || p.y > last.y {
				t.Errorf("from %v to %v", last, p)
			}
		}
		for _, p := range front {
			if !slices.Contains(line, p) {
				t.Errorf("the line %v misses %v", line, p)
			}
		}
		if first, last := line[0], line[len(line)-1]; first.y != 4 || last.x != 5 {
			t.Errorf("the line goes from %v to %v", first, last)
		}
	})
}

// A curve that holds its values has no slanted part; one that does not goes straight.
func TestSteps(t *testing.T) {
	s := Series{X: []float64{1, 2, 4}, Y: []float64{5, 6, 3}, Steps: true}
	at := func(x float64) vg.Length { return vg.Length(x) }
	value := func(i int) vg.Length { return vg.Length(s.Y[i]) }
	want := []vg.Point{{X: 1, Y: 5}, {X: 2, Y: 5}, {X: 2, Y: 6}, {X: 4, Y: 6}, {X: 4, Y: 3}}
	if got := s.corners(0, 3, at, value); !slices.Equal(got, want) {
		t.Errorf("steps %v, want %v", got, want)
	}
	s.Steps = false
	want = []vg.Point{{X: 1, Y: 5}, {X: 2, Y: 6}, {X: 4, Y: 3}}
	if got := s.corners(0, 3, at, value); !slices.Equal(got, want) {
		t.Errorf("line %v, want %v", got, want)
	}
}

// Bands that are wide at first do not hide a small difference later, and a hypervolume's axis begins at 0 or above.
func TestCurvesView(t *testing.T) {
	curves := func(wide float64) *Curves {
		c := &Curves{Rising: true}
		for _, top := range []float64{8.3, 8.5} {
			s := Series{}
			for i := range 50 {
				x := float64(i + 1)
				y := top - 8/x
				s.X, s.Y = append(s.X, x), append(s.Y, y)
				s.Lower, s.Upper = append(s.Lower, y-wide), append(s.Upper, y+wide)
			}
			c.Curves = append(c.Curves, s)
		}
		return c
	}
	for _, wide := range []float64{0, 0.1, 100} {
		_, y := curves(wide).view()
		if y.best < 0 || y.worst < 8.34 || y.best > 8.1 {
			t.Errorf("band of %g: view %v", wide, y)
		}
		if extent := y.worst - y.best; 0.2 < 0.035*extent {
			t.Errorf("band of %g: a difference of 0.2 is %.3f of the height", wide, 0.2/extent)
		}
	}
	constant := &Curves{Curves: []Series{{X: []float64{1, 2}, Y: []float64{3, 3}, Lower: []float64{2, 2}, Upper: []float64{5, 5}}}}
	if _, y := constant.view(); y.best > 2 || y.worst < 5 {
		t.Errorf("the band of a constant is not within %v", y)
	}
	logarithmic := &Curves{LogY: true, Curves: []Series{{X: []float64{1, 2, 3, 4}, Y: []float64{0, 1, 10, 100}, Lower: []float64{0, -1, 9, 90}, Upper: []float64{0, 2, 11, math.Inf(1)}}}}
	if _, y := logarithmic.view(); !(-0.5 < y.best && y.best <= 0 && y.worst >= 2 && y.worst < 4.5) {
		t.Errorf("logarithmic view %v", y)
	}
	var out bytes.Buffer
	if err := logarithmic.Render(&out, "svg"); err != nil || bytes.Contains(out.Bytes(), []byte("NaN")) {
		t.Errorf("bounds without a place: %v", err)
	}
}

// Cells have the colours of their values, on linear and logarithmic axes.
func TestHeatMap(t *testing.T) {
	m := &HeatMap{
		X: Axis{Log: true}, Xs: []float64{0, 1, 10, 100}, Ys: []float64{1, 3},
		Values: [][]float64{{9, 1, 2, 3}, {9, 4, math.NaN()}},
	}
	e := cells(m.X, m.Xs)
	if want := []float64{-0.5, 0.5, 1.5, 2.5}; !slices.Equal(e.at, want) || !slices.Equal(e.cells, []int{1, 2, 3}) {
		t.Errorf("edges %v, want %v without the cell at 0", e, want)
	}
	for fraction, want := range map[float64]int{0.1: 1, 0.32: 1, 0.34: 2, 0.9: 3} {
		if got := e.index(fraction); got != want {
			t.Errorf("cell %d at %g, want %d", got, fraction, want)
		}
	}
	if got := m.values(); got != (span{1, 9}) {
		t.Errorf("colours from %v", got)
	}
	s := grid{HeatMap: m, value: span{1, 4}}
	for _, tt := range []struct {
		i, j int
		want color.Color
	}{
		{0, 1, shades[0]}, {0, 2, shades[85]}, {1, 1, shades[255]}, {1, 0, shades[255]},
		{1, 2, color.White}, {1, 3, color.White}, {5, 0, color.White}, {-1, 0, color.White},
	} {
		if got := s.colour(tt.i, tt.j); got != tt.want {
			t.Errorf("colour of (%d, %d): %v, want %v", tt.i, tt.j, got, tt.want)
		}
	}
}

// The images of an SVG fill their rectangles: viewers keep the ratio of the pixels otherwise.
func TestImages(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, exampleMap(false).Render(&out, "svg"))
	if n := strings.Count(out.String(), `<image preserveAspectRatio="none" `); n != 2 || strings.Contains(out.String(), "image/jpg") {
		t.Errorf("%d images fill their rectangles, want the map and the bar", n)
	}
}

// Strange pictures are drawn, too.
func TestStrangePictures(t *testing.T) {
	nan := math.NaN()
	for name, p := range map[string]picture{
		"no fronts":   &Fronts{Y: Axis{Reference: nan}},
		"empty front": &Fronts{X: Axis{Log: true}, Fronts: []FrontSeries{{Name: "none", Front: []Point{{X: 0, Y: 1}, {X: 1, Y: nan}}}}},
		"one point":   &Fronts{X: Axis{Reference: nan}, Y: Axis{Reference: nan, Maximise: true}, Fronts: []FrontSeries{{Front: []Point{{X: 1, Y: 1}}}}},
		"far points":  &Fronts{X: Axis{Reference: 1}, Y: Axis{Reference: 1}, Fronts: []FrontSeries{{Front: []Point{{X: 1e300, Y: -1e300}}}}},
		"no grid":     &HeatMap{},
		"one cell":    &HeatMap{X: Axis{Log: true}, Xs: []float64{1}, Ys: []float64{1}, Values: [][]float64{{1}}},
		"no value":    &HeatMap{Xs: []float64{1, 2}, Ys: []float64{1}, Values: [][]float64{{nan, nan}}},
		"no panels":   &Panels{},
		"no place":    &Curves{LogY: true, Curves: []Series{{X: []float64{0, -1}, Y: []float64{0, 1}}}, Levels: []Level{{Y: -1}, {Y: nan}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, format := range []string{"svg", "png"} {
				var out bytes.Buffer
				require.NoError(t, p.Render(&out, format))
				if format == "svg" && (bytes.Contains(out.Bytes(), []byte("NaN")) || bytes.Contains(out.Bytes(), []byte("Inf"))) {
					t.Error("coordinates that are no numbers")
				}
			}
		})
	}
}

// Panels show one range of axes if told so and, where they are alike, one legend.
func TestSameAxes(t *testing.T) {
	draw := func(same bool, names ...string) (texts []string) {
		p := &Panels{Columns: 2, SameAxes: same}
		for i, name := range names {
			p.Panels = append(p.Panels, &Curves{Title: "panel", X: "x", Y: "y", Curves: []Series{
				{Name: name, X: []float64{0, 1}, Y: []float64{0, math.Pow(10, float64(2*i))}},
			}})
		}
		var out bytes.Buffer
		require.NoError(t, p.Render(&out, "svg"))
		all, _, _ := boxes(t, out.Bytes())
		for _, b := range all {
			texts = append(texts, b.text)
		}
		return texts
	}
	count := func(texts []string, text string) (n int) {
		for _, s := range texts {
			if s == text {
				n++
			}
		}
		return n
	}
	for _, tt := range []struct {
		same          bool
		names         []string
		legends, tick int // of the name, and of "100" on the axis of y
	}{
		{false, []string{"a", "a"}, 1, 1}, {true, []string{"a", "a"}, 1, 2}, {true, []string{"a", "b"}, 1, 2},
	} {
		texts := draw(tt.same, tt.names...)
		if legends, tick := count(texts, "a"), count(texts, "100"); legends != tt.legends || tick != tt.tick {
			t.Errorf("same axes %t, %q: %d legends and %d ticks at 100, want %d and %d", tt.same, tt.names, legends, tick, tt.legends, tt.tick)
		}
	}
}

// Without a reference the view of fronts holds all of them.
func TestFrontsView(t *testing.T) {
	none := Axis{Reference: math.NaN()}
	f := &Fronts{X: none, Y: none, Fronts: []FrontSeries{{Front: []Point{{X: 1, Y: 9}}}}}
	for i := range 20 {
		f.Fronts = append(f.Fronts, FrontSeries{Front: []Point{{X: float64(2 + i), Y: 1}}})
	}
	if x, y := f.view(); x.best > 1 || x.worst < 21 || y.best > 1 || y.worst < 9 {
		t.Errorf("the view is %v and %v", x, y)
	}
	marks := func() int {
		var out bytes.Buffer
		require.NoError(t, f.Render(&out, "svg"))
		return strings.Count(out.String(), "#FFFFFF")
	}
	marked := marks()
	for i := range f.Fronts {
		f.Fronts[i].Unmarked = true
	}
	if unmarked := marks(); unmarked != marked-len(f.Fronts) {
		t.Errorf("%d white shapes with circles of %d fronts, %d without", marked, len(f.Fronts), unmarked)
	}
}

// Plots of a row stand side by side, and three are as wide as two.
func TestRows(t *testing.T) {
	p := &Panels{Columns: 3, Panels: []Panel{exampleFronts(), exampleCurves(false), exampleMap(false)}}
	heads, rows := p.rows()
	if len(heads) != 3 || len(rows) != 1 {
		t.Fatalf("%d heads and %d rows", len(heads), len(rows))
	}
	for _, h := range heads {
		if got, want := p.heightOf(h), p.heightOf(heads[0]); math.Abs(float64(got-want)) > 1e-9 {
			t.Errorf("a head is %g high, another %g", got, want)
		}
	}
	if three, _ := p.size(); three != 2*panelWidth {
		t.Errorf("three panels are %g wide, want %g", three, 2*panelWidth)
	}
}

// A baseline is thin and dotted, and its band has no area; lines can share a colour, and differ in grey.
func TestLook(t *testing.T) {
	both := []Series{
		{Name: "a", X: []float64{0, 1}, Y: []float64{1, 2}, Lower: []float64{0, 1}, Upper: []float64{2, 3}, Look: Look{Colour: 3}},
		{Name: "b", X: []float64{0, 1}, Y: []float64{2, 3}, Lower: []float64{1, 2}, Upper: []float64{3, 4}, Look: Look{Colour: 3, Baseline: true}},
	}
	if line, baseline := both[0].line(0), both[1].line(1); line.Color != baseline.Color || !(baseline.Width < line.Width) {
		t.Errorf("lines %+v and %+v", line, baseline)
	}
	known := map[string]bool{fmt.Sprint(both[1].line(1).Dashes): true}
	for place := range palette {
		dashes := fmt.Sprint(Look{}.line(place).Dashes)
		if known[dashes] {
			t.Errorf("line %d has the dashes %s of another", place, dashes)
		}
		known[dashes] = true
	}
	alone := &Curves{Curves: []Series{{Name: "a", X: []float64{0, 1, 2, 3}, Y: []float64{1, math.NaN(), 2, math.NaN()}}}}
	var out bytes.Buffer
	require.NoError(t, alone.Render(&out, "svg"))
	var rest bytes.Buffer
	alone.Curves[0].Y[2] = math.NaN()
	require.NoError(t, alone.Render(&rest, "svg"))
	if points, others := strings.Count(out.String(), "<path"), strings.Count(rest.String(), "<path"); points <= others {
		t.Errorf("%d paths with two points that stand alone, %d with one", points, others)
	}
	areas := func(all ...Series) int {
		var out bytes.Buffer
		require.NoError(t, (&Curves{Curves: all}).Render(&out, "svg"))
		return strings.Count(out.String(), "fill-opacity")
	}
	if one, other := areas(both[0]), areas(both[1]); one != other+1 {
		t.Errorf("%d filled areas, and %d of a baseline", one, other)
	}
}

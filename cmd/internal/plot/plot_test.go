package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/internal/require"
)

// example is a figure like those of private training.
func example() *Figure {
	f := &Figure{
		Title:     "Adult: logistic regression with DP-SGD",
		Subtitle:  []string{"ε of one run, δ = 1e-5, replace-one adjacency, RDP accountant", "64 trials, hypervolume 8.49"},
		X:         Axis{Label: "ε of one run", Log: true, Reference: 10},
		Y:         Axis{Label: "error (ratio)", Reference: 1},
		FrontName: "posterior front",
	}
	rng := rand.New(rand.NewPCG(1, 0))
	for i := range 300 {
		x := math.Exp(16*rng.Float64() - 4)
		y := 0.15 + 0.08/(1+10*x) + 0.05*rng.ExpFloat64()
		f.Points = append(f.Points, Point{X: x, Y: y, Minor: i%5 > 0})
	}
	for _, x := range []float64{0.02, 0.05, 0.2, 1, 5, 40} {
		y := 0.15 + 0.08/(1+10*x)
		f.Front = append(f.Front, FrontPoint{X: x, Y: y, Lower: y - 0.005, Upper: y + 0.005})
	}
	return f
}

// texts returns the texts of an SVG, which must be well-formed.
func texts(t *testing.T, svg []byte) []string {
	t.Helper()
	var out []string
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	inText := false
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("the SVG is not well-formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				out = append(out, string(token))
			}
		}
	}
}

func renderSVG(t *testing.T, f *Figure) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, f.Render(&out, "svg"))
	if bytes.Contains(out.Bytes(), []byte("NaN")) || bytes.Contains(out.Bytes(), []byte("Inf")) {
		t.Error("the SVG has coordinates that are no numbers")
	}
	return out.Bytes()
}

func TestSVG(t *testing.T) {
	svg := renderSVG(t, example())
	got := texts(t, svg)
	for _, want := range []string{
		"Adult: logistic regression with DP-SGD",
		"ε of one run, δ = 1e-5, replace-one adjacency, RDP", "accountant", // in two lines
		"64 trials, hypervolume 8.49",
		"ε of one run", "error (ratio)",
		"posterior front", "90 % interval", "trial, end of the run", "on the way",
		"anti-ideal (10, 1), outside",
		"0.1", "1", "10",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no text %q among %q", want, got)
		}
	}
}

// A viewer without the font keeps what is centred or ends at an edge in its place.
func TestAnchors(t *testing.T) {
	f := example()
	f.Title = strings.Repeat("a title of many words ", 8)
	svg := string(renderSVG(t, f))
	element := regexp.MustCompile(`<text text-anchor="(\w+)" x="([-.0-9e]+)"[^>]*>([^<]*)</text>`)
	anchors := make(map[string]string)
	title := 0
	for _, found := range element.FindAllStringSubmatch(svg, -1) {
		anchors[found[3]] = found[1]
		if strings.HasPrefix(found[3], "a title") || strings.Contains(found[3], "many words") {
			title++
		}
	}
	for text, want := range map[string]string{
		"ε of one run": "middle", "error (ratio)": "middle", // labels of the axes
		"0.1": "middle", "posterior front": "start", "anti-ideal (10, 1), outside": "end",
	} {
		if anchors[text] != want {
			t.Errorf("%q has the anchor %q, want %q", text, anchors[text], want)
		}
	}
	if title < 2 {
		t.Errorf("the long title has %d lines", title)
	}
}

// isNear reports whether a colour is within rounding of another.
func isNear(c color.Color, want color.NRGBA) bool {
	const tolerance = 8
	got := color.NRGBAModel.Convert(c).(color.NRGBA)
	near := func(a, b uint8) bool { return max(a, b)-min(a, b) <= tolerance }
	return near(got.R, want.R) && near(got.G, want.G) && near(got.B, want.B)
}

func TestPNG(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, example().Render(&out, "png"))
	picture, err := png.Decode(&out)
	require.NoError(t, err)
	if got, want := picture.Bounds().Size(), image.Pt(960, 846); got != want {
		t.Errorf("size %v, want %v", got, want)
	}
	count := make(map[string]int)
	const every = 3 // a sample of the pixels is enough
	for y := 0; y < picture.Bounds().Dy(); y += every {
		for x := 0; x < picture.Bounds().Dx(); x += every {
			switch c := picture.At(x, y); {
			case isNear(c, frontBlue):
				count["front"]++
			case isNear(c, boxRed):
				count["box"]++
			case isNear(c, finals):
				count["final"]++
			case isNear(c, minors):
				count["minor"]++
			}
		}
	}
	for _, what := range []string{"front", "box", "final", "minor"} {
		if count[what] < 20 {
			t.Errorf("%d pixels of the %s", count[what], what)
		}
	}
}

// The staircase of objectives to minimise goes right, then down.
func TestStaircase(t *testing.T) {
	for _, tt := range []struct {
		name         string
		xMax, yMax   bool
		front        []FrontPoint
		wantX, wantY []float64 // values of the points from the best to the worst x
	}{
		{"minimise both", false, false, []FrontPoint{{X: 2, Y: 1}, {X: 1, Y: 3}}, []float64{1, 2}, []float64{3, 1}},
		{"maximise y", false, true, []FrontPoint{{X: 2, Y: 3}, {X: 1, Y: 1}}, []float64{1, 2}, []float64{1, 3}},
		{"maximise x", true, false, []FrontPoint{{X: 2, Y: 3}, {X: 1, Y: 1}}, []float64{2, 1}, []float64{3, 1}},
		{"covered point", false, false, []FrontPoint{{X: 1, Y: 1}, {X: 2, Y: 1}, {X: 3, Y: 2}}, []float64{1}, []float64{1}},
		{"no place on the axis", false, false, []FrontPoint{{X: math.Inf(1), Y: 0}, {X: 1, Y: 1}}, []float64{1}, []float64{1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &Figure{X: Axis{Maximise: tt.xMax, Reference: 9}, Y: Axis{Maximise: tt.yMax, Reference: 9}, Front: tt.front}
			if tt.xMax {
				f.X.Reference = -9
			}
			if tt.yMax {
				f.Y.Reference = -9
			}
			s := f.scene()
			var xs, ys []float64
			for _, p := range s.front {
				xs, ys = append(xs, f.X.value(p.x)), append(ys, f.Y.value(p.y))
			}
			if !slices.Equal(xs, tt.wantX) || !slices.Equal(ys, tt.wantY) {
				t.Errorf("front at %v, %v; want %v, %v", xs, ys, tt.wantX, tt.wantY)
			}
		})
	}
}

// Strange figures are drawn, too.
func TestExtremes(t *testing.T) {
	for name, f := range map[string]*Figure{
		"nothing": {},
		"no points": {
			Title: "Empty", X: Axis{Log: true, Reference: 10}, Y: Axis{Reference: 1}, FrontName: "observed front",
		},
		"one point": {
			X: Axis{Log: true, Reference: 10}, Y: Axis{Reference: 1},
			Points: []Point{{X: 1, Y: 0.5}}, Front: []FrontPoint{{X: 1, Y: 0.5, Lower: 0.4, Upper: 0.6}},
		},
		"all beyond the box": {
			X: Axis{Log: true, Reference: 10}, Y: Axis{Reference: 1},
			Points: []Point{{X: 1e7, Y: 0.5}, {X: 1e5, Y: 2}}, Front: []FrontPoint{{X: 1e5, Y: 2}, {X: 1e7, Y: 0.5}},
		},
		"on the reference": {
			X: Axis{Log: true, Reference: 10}, Y: Axis{Reference: 1},
			Points: []Point{{X: 10, Y: 1}}, Front: []FrontPoint{{X: 10, Y: 1}},
		},
		"no finite point": {
			X: Axis{Log: true, Reference: 10}, Y: Axis{Reference: 1},
			Points: []Point{{X: math.Inf(1), Y: 0.5}, {X: 0, Y: 0.5}, {X: -1, Y: 0.5}, {X: 1, Y: math.NaN()}},
		},
		"maximise both": {
			X: Axis{Maximise: true, Reference: 0}, Y: Axis{Maximise: true, Reference: -5},
			Points: []Point{{X: 1, Y: 3}, {X: 3, Y: 1}, {X: -100, Y: -100}},
			Front:  []FrontPoint{{X: 1, Y: 3, Lower: 2, Upper: 4}, {X: 3, Y: 1, Lower: math.Inf(-1), Upper: math.NaN()}},
		},
		"large numbers": {
			X: Axis{Log: true, Reference: 1e300}, Y: Axis{Reference: 1e12},
			Points: []Point{{X: 1e-300, Y: 1e10}, {X: 1, Y: -1e10}}, Front: []FrontPoint{{X: 1, Y: -1e10}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			texts(t, renderSVG(t, f))
			var out bytes.Buffer
			require.NoError(t, f.Render(&out, "png"))
			if _, err := png.Decode(&out); err != nil {
				t.Error(err)
			}
		})
	}
}

// Points far beyond the box do not squeeze the front, and are counted.
func TestFarPoints(t *testing.T) {
	f := example()
	f.Points = append(f.Points, Point{X: 1e7, Y: 0.16}, Point{X: math.Inf(1), Y: 0.2})
	s := f.scene()
	if got := f.X.value(s.x.worst); got < 10 || got > 100 {
		t.Errorf("the view ends at ε = %g, want a little beyond the box", got)
	}
	if got := f.X.value(s.x.best); got > 0.02 || got < 0.01 {
		t.Errorf("the view begins at ε = %g, want a little before the front", got)
	}
	beyond := 0
	for _, p := range f.Points {
		if !(p.X <= f.X.value(s.x.worst)) || p.Y > f.Y.value(s.y.worst) {
			beyond++
		}
	}
	if s.hidden != beyond || beyond < 2 {
		t.Errorf("%d points hidden, want %d", s.hidden, beyond)
	}
}

// The view holds the best points and every point of the front within the box.
func TestView(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cost := rapid.OneOf(rapid.Float64Range(-5, 5), rapid.Just(math.NaN()), rapid.Float64Range(-1e6, 1e6))
		front := rapid.SliceOfN(cost, 0, 10).Draw(t, "front")
		points := rapid.SliceOfN(cost, 0, 30).Draw(t, "points")
		reference := rapid.Float64Range(-5, 5).Draw(t, "reference")
		got := view(front, points, reference)
		if !(got.best < got.worst) {
			t.Fatalf("view from %g to %g", got.best, got.worst)
		}
		if !(got.best <= reference) {
			t.Errorf("the view begins at %g, beyond the reference", got.best)
		}
		for _, c := range append(finite(points), finite(front)...) {
			if c < got.best {
				t.Errorf("%g is better than the view's best %g", c, got.best)
			}
		}
		for _, c := range finite(front) {
			if c < reference && !got.contains(c) {
				t.Errorf("%g is within the box but not in the view", c)
			}
		}
	})
}

// labels returns the labels of ticks, and fails for ticks out of order or range.
func labels(t *testing.T, ticks []plot.Tick, lo, hi float64) string {
	t.Helper()
	var out []string
	last := math.Inf(-1)
	for _, tick := range ticks {
		if tick.Value <= last || tick.Value < lo-1e-9*math.Abs(lo) || tick.Value > hi+1e-9*math.Abs(hi) {
			t.Errorf("tick at %g after %g, in [%g, %g]", tick.Value, last, lo, hi)
		}
		last = tick.Value
		if tick.Label != "" {
			out = append(out, tick.Label)
		}
	}
	return strings.Join(out, " ")
}

func TestTicks(t *testing.T) {
	for _, tt := range []struct {
		ticker plot.Ticker
		lo, hi float64
		want   string
	}{
		{logTicks{12}, 0.04, 25, "0.05 0.1 0.2 0.5 1 2 5 10 20"},
		{logTicks{10}, 1, 10, "1 2 5 10"},
		{logTicks{10}, 1e-4, 1e5, "1e-4 0.001 0.01 0.1 1 10 100 1000 10000 1e5"},
		{logTicks{10}, 1e-9, 1e11, "1e-8 1e-6 1e-4 0.01 1 100 10000 1e6 1e8 1e10"},
		{linearTicks{10}, 0.141, 0.237, "0.16 0.18 0.20 0.22"},
		{linearTicks{10}, 0.82, 1.01, "0.85 0.90 0.95 1.00"},
		{linearTicks{10}, -3, 12, "-2 0 2 4 6 8 10 12"},
		{linearTicks{10}, 0, 1e8, "0 2e7 4e7 6e7 8e7 1e8"},
		{linearTicks{10}, 5, 5, "5"},
	} {
		if got := labels(t, tt.ticker.Ticks(tt.lo, tt.hi), tt.lo, tt.hi); got != tt.want {
			t.Errorf("%T from %g to %g: %q, want %q", tt.ticker, tt.lo, tt.hi, got, tt.want)
		}
	}
}

func TestSave(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"front.svg", "front.PNG"} {
		path := filepath.Join(folder, name)
		require.NoError(t, example().Save(path))
		if content, err := os.ReadFile(path); err != nil || len(content) < 1000 {
			t.Errorf("%s has %d bytes: %v", name, len(content), err)
		}
	}
	for _, path := range []string{"front", "front.pdf", ""} {
		if err := CheckPath(path); err == nil || !strings.Contains(err.Error(), ".svg, .png") {
			t.Errorf("CheckPath(%q): %v", path, err)
		}
	}
	if err := example().Render(io.Discard, "pdf"); err == nil {
		t.Error("format pdf: no error")
	}
}

func TestCurves(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, curves := range map[string][]Series{
		"two": {
			{Name: "random", X: []float64{1, 2, 3}, Y: []float64{1, 2, 4}, Lower: []float64{0, 1, 3}, Upper: []float64{2, 3, 5}},
			{Name: "grid", X: []float64{1, 2, 3}, Y: []float64{1, 1, 1}, Lower: []float64{1, 1, 1}, Upper: []float64{1, 1, 1}},
		},
		"gaps":     {{Name: "random", X: []float64{1, 2, 3, 4, 5}, Y: []float64{1, 2, nan, -inf, 3}, Lower: []float64{1, 2, nan, -inf, 3}, Upper: []float64{1, 2, nan, 1, 3}}},
		"a place":  {{Name: "random", X: []float64{1}, Y: []float64{2}, Lower: []float64{2}, Upper: []float64{2}}},
		"nothing":  {{Name: "random"}},
		"no curve": nil,
	} {
		c := &Curves{Title: "zdt1", Subtitle: []string{"mean over 5 seeds"}, X: "runs", Y: "hypervolume", Curves: curves}
		path := filepath.Join(t.TempDir(), "curves.svg")
		require.NoError(t, c.Save(path))
		svg, err := os.ReadFile(path)
		require.NoError(t, err)
		if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) {
			t.Errorf("%s: the SVG has coordinates that are no numbers", name)
		}
		all := texts(t, svg)
		for _, curve := range curves {
			if !slices.Contains(all, curve.Name) {
				t.Errorf("%s: no %s among %v", name, curve.Name, all)
			}
		}
		for _, want := range []string{"zdt1", "mean over 5 seeds", "runs", "hypervolume"} {
			if !slices.Contains(all, want) {
				t.Errorf("%s: no %s among %v", name, want, all)
			}
		}
	}
	gaps := Series{X: make([]float64, 6), Y: []float64{nan, 1, 2, inf, 3, 4}, Lower: make([]float64, 6), Upper: make([]float64, 6)}
	var pieces [][2]int
	gaps.pieces(Axis{}, Axis{}, func(from, to int) { pieces = append(pieces, [2]int{from, to}) })
	if !slices.Equal(pieces, [][2]int{{1, 3}, {4, 6}}) {
		t.Errorf("pieces %v", pieces)
	}
}

// A labelled point without a place on a logarithmic axis is a level from the edge on, with its label.
func TestLevelAtTheEdge(t *testing.T) {
	f := example()
	f.X.Log, f.X.Maximise, f.Y.Maximise = true, false, false
	f.Points = nil
	f.Front = []FrontPoint{
		{X: 0, Y: 0.24, Lower: 0.24, Upper: 0.24, Label: "no run: majority"},
		{X: 0.5, Y: 0.2, Lower: 0.2, Upper: 0.2},
		{X: 2, Y: 0.15, Lower: 0.15, Upper: 0.15},
	}
	s := f.scene()
	if len(s.front) != 3 || s.front[0].x != s.x.best || s.front[0].y != 0.24 || math.IsInf(s.x.best, 0) {
		t.Errorf("front %v in the view %v", s.front, s.x)
	}
	if room := (s.y.worst - 0.24) / (s.y.worst - s.y.best); room < 0.1 {
		t.Errorf("the label has %.2f of the height above its point", room)
	}
	if !slices.ContainsFunc(texts(t, renderSVG(t, f)), func(text string) bool { return strings.Contains(text, "no run: majority") }) {
		t.Error("no label")
	}
	f.Front = f.Front[:1] // alone
	renderSVG(t, f)
	f.Front[0].Label = ""
	if s := f.scene(); len(s.front) != 0 {
		t.Errorf("a point of a run at 0: %v", s.front)
	}
}

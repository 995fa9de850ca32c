package plot

import (
	"bytes"
	"fmt"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/image/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"
)

// picture is a panel or several.
type picture interface {
	Render(w io.Writer, format string) error
}

// pictures are examples of everything that is drawn.
func pictures() map[string]picture {
	return map[string]picture{
		"figure": example(), "fronts": exampleFronts(), "heatmap": exampleMap(false), "log heatmap": exampleMap(true),
		"curves": exampleCurves(false), "log curves": exampleCurves(true),
		"curve": &Curve{Title: "Adult", X: Axis{Label: "epochs"}, Y: Axis{Label: "hypervolume"}, Points: []Point{{X: 10, Y: 8}, {X: 30, Y: 9}}},
		"panels": &Panels{
			Title: "DPareto, figure 1: " + longText(12), Subtitle: []string{"ε of one run, δ = 1e-5, " + longText(20)}, Columns: 2,
			Panels: []Panel{exampleMap(false), exampleFronts(), exampleCurves(true), example(), exampleMap(true)},
		},
	}
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
		X: Axis{Label: "clip"}, Y: Axis{Label: "scale of the noise", Log: log}, Value: Axis{Label: "error", Log: log},
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
	c := &Curves{Title: "Adult", Subtitle: []string{"mean over 5 seeds, band: one standard deviation"}, X: "runs", Y: "hypervolume", Rising: !log, LogX: log}
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

var (
	svgSize  = regexp.MustCompile(`<svg width="([.0-9]+)pt" height="([.0-9]+)pt"`)
	svgText  = regexp.MustCompile(`<text text-anchor="(\w+)" x="([-.0-9e]+)" y="([-.0-9e]+)" transform="([^"]*)"\s+style="([^"]*)">([^<]*)</text>`)
	fontSize = regexp.MustCompile(`font-size:([.0-9]+)px`)
)

// Every text that is not rotated stays within the picture, and within its panel, with a font that is a fifth wider.
func TestTextsFit(t *testing.T) {
	for name, p := range pictures() {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := p.Render(&out, "svg"); err != nil {
				t.Fatal(err)
			}
			svg := out.String()
			if folder := os.Getenv("PLOT_OUT"); folder != "" {
				var picture bytes.Buffer
				if err := p.Render(&picture, "png"); err != nil {
					t.Fatal(err)
				}
				os.WriteFile(filepath.Join(folder, name+".png"), picture.Bytes(), 0o644)
				os.WriteFile(filepath.Join(folder, name+".svg"), out.Bytes(), 0o644)
			}
			_ = svg
		})
	}
}

var _ = []any{fmt.Sprint, png.Decode, math.NaN, slices.Contains[[]int], strconv.Itoa, font.WeightBold, text.XLeft, vg.Inch, rapid.Check, svgText, fontSize, svgSize}

package chart_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/server/web/chart"
)

// Ticks have their own values as labels, below the plane, and the picture has its description.
func TestAxesAreLabelled(t *testing.T) {
	c := chart.Chart{ID: "c", Title: "Front", Description: "What is to be seen", X: chart.Fit("x", chart.Linear, 0, 10), Y: chart.Fit("y", chart.Linear, 0, 1)}
	svg := string(c.SVG())
	for _, want := range []string{`>6</text>`, `<desc id="c-about">What is to be seen</desc>`, `<title id="c-title">Front</title>`} {
		if !strings.Contains(svg, want) {
			t.Errorf("%q is missing in %s", want, svg)
		}
	}
}

// Whatever the values, an axis has room between its ends, shows the values, and has few ticks, all
// within it: also where values differ in their last bit alone, or are as far apart as floats can be.
func TestAxesOfAnyValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	special := []float64{0, math.Copysign(0, -1), 1, 0.3, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 1e-300, 1e300, 1e16, math.Inf(1), math.Inf(-1), math.NaN(), 0.5, 1 - 1e-16}
	value := func() float64 {
		if rng.IntN(2) == 0 {
			return special[rng.IntN(len(special))]
		}
		return math.Float64frombits(rng.Uint64())
	}
	for range 100_000 {
		a, scale := value(), chart.Scale(rng.IntN(3))
		b := []float64{value(), math.Nextafter(a, math.Inf(1)), a * (1 + 1e-12), a}[rng.IntN(4)]
		axis := chart.Fit("x", scale, a, b)
		if low, high := scale.Place(a), scale.Place(b); !math.IsNaN(low) && !math.IsNaN(high) && low < high && rng.IntN(2) == 0 {
			axis = chart.Between("x", scale, a, b)
		}
		ticks := axis.Ticks()
		if math.IsNaN(axis.Min) || !(axis.Min < axis.Max) || math.IsInf(axis.Max-axis.Min, 0) || len(ticks) > 50 {
			t.Fatalf("%v, %v on scale %d: from %v to %v, %d ticks", a, b, scale, axis.Min, axis.Max, len(ticks))
		}
		for _, tick := range ticks {
			if at := axis.At(tick.Value); !(at >= -1e-6 && at <= 1+1e-6) {
				t.Fatalf("%v, %v on scale %d: tick %v at %v", a, b, scale, tick.Value, at)
			}
		}
	}
}

// Counts have whole ticks, and names of any length are shortened, never clipped, with the whole name in a
// title.
func TestLabels(t *testing.T) {
	long := strings.Repeat("parameter_", 6)
	for _, size := range []chart.Size{chart.Medium, chart.Wide, chart.Narrow, chart.Small} {
		c := chart.Chart{ID: "c", Size: size, Title: "T", X: chart.Fit(long, chart.Linear, 1, 3), Y: chart.Categorical(long, []string{long, "b"})}
		c.X.Whole = true
		svg := string(c.SVG())
		for _, tick := range c.X.Ticks() {
			if tick.Value != math.Trunc(tick.Value) {
				t.Errorf("size %d: a tick at %v", size, tick.Value)
			}
		}
		if size != chart.Wide && !strings.Contains(svg, "…<title>"+long) {
			t.Errorf("size %d: the name is clipped: %s", size, svg)
		}
	}
}

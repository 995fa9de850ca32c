package chart

import (
	"math"
	"strconv"

	"github.com/dpareto/dpareto/internal/show"
)

// Scale is how an axis maps values to places.
type Scale int

// The scales.
const (
	Linear Scale = iota
	// Log needs positive values.
	Log
	// Logit needs values in (0, 1).
	Logit
)

// Place returns the place of a value on a scale without bounds, NaN if it has none.
func (s Scale) Place(v float64) float64 {
	switch s {
	case Log:
		if v <= 0 {
			return math.NaN()
		}
		return math.Log10(v)
	case Logit:
		if v <= 0 || v >= 1 {
			return math.NaN()
		}
		return math.Log10(v / (1 - v))
	default:
		return v
	}
}

// inverse is the inverse of Place.
func (s Scale) inverse(t float64) float64 {
	switch s {
	case Log:
		return math.Pow(10, t)
	case Logit:
		return 1 / (1 + math.Pow(10, -t))
	default:
		return t
	}
}

// Axis is one direction of a chart.
type Axis struct {
	// Label names the quantity and its unit.
	Label string
	// Scale maps values to places.
	Scale Scale
	// Min and Max are the values at the ends, Min < Max, where the scale is defined.
	Min, Max float64
	// Whole says that the values are counts: ticks are whole numbers.
	Whole bool
	// Categories are the names of the values 0, 1, 2, ..., for an axis of categories.
	Categories []string
}

// padding is the share of an axis that Fit leaves free at each end.
const padding = 0.04

// Fit returns an axis that shows all finite values that its scale has a place for, with some room
// at both ends. Without any it shows [0, 1], or a decade.
func Fit(label string, scale Scale, values ...float64) Axis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if t := scale.Place(v); !math.IsNaN(t) && !math.IsInf(t, 0) {
			low, high = min(low, t), max(high, t)
		}
	}
	if low > high {
		low, high = 0, 1
		if scale == Log {
			low, high = -1, 1
		}
	}
	low, high = scale.apart(low, high)
	room := padding * (high - low)
	return Axis{Label: label, Scale: scale, Min: scale.inverse(low - room), Max: scale.inverse(high + room)}
}

// Between returns an axis from one value to another, or with more room if they are too close to tell
// values between them apart.
func Between(label string, scale Scale, from, to float64) Axis {
	low, high := scale.apart(scale.Place(from), scale.Place(to))
	return Axis{Label: label, Scale: scale, Min: scale.inverse(low), Max: scale.inverse(high)}
}

// apart returns two places with room between them: enough for ticks, and not too much for a float64.
func (s Scale) apart(low, high float64) (float64, float64) {
	far := map[Scale]float64{Linear: 1e300, Log: 280, Logit: 14}[s] // in powers of ten but for Linear
	clamp := func(v float64) float64 { return max(-far, min(far, v)) }
	low, high = clamp(low), clamp(high)
	least := 1e-300
	if s != Linear {
		least = 1e-6
	}
	if high-low > max(least, 1e-6*max(math.Abs(low), math.Abs(high))) {
		return low, high
	}
	room := max(math.Abs(low)*0.1, 1e-9)
	if s != Linear {
		room = 0.5
	}
	return low - room, high + room
}

// Categorical returns an axis of categories.
func Categorical(label string, names []string) Axis {
	return Axis{Label: label, Min: -0.5, Max: float64(len(names)) - 0.5, Categories: names}
}

// At returns the place of a value: 0 at Min and 1 at Max. It is NaN where the scale has none.
func (a *Axis) At(v float64) float64 {
	low, high := a.Scale.Place(a.Min), a.Scale.Place(a.Max)
	return (a.Scale.Place(v) - low) / (high - low)
}

// Edge returns v, or the nearer end of the axis for a v that its scale has no place for, as for 0 on a
// logarithmic one.
func (a *Axis) Edge(v float64) float64 {
	switch t := a.Scale.Place(v); {
	case !math.IsNaN(t) && !math.IsInf(t, 0):
		return v
	case v < a.Max:
		return a.Min
	default:
		return a.Max
	}
}

// Value returns the value at a place: the inverse of At.
func (a *Axis) Value(place float64) float64 {
	low, high := a.Scale.Place(a.Min), a.Scale.Place(a.Max)
	return a.Scale.inverse(low + place*(high-low))
}

// Tick is a marked value of an axis.
type Tick struct {
	Value float64
	Label string
}

// Ticks returns about six marked values within the axis.
func (a *Axis) Ticks() []Tick {
	switch {
	case a.Categories != nil:
		var ticks []Tick
		for i, name := range a.Categories {
			ticks = append(ticks, Tick{float64(i), name})
		}
		return ticks
	case a.Scale == Log:
		if ticks := a.logTicks(); len(ticks) >= 2 {
			return ticks
		}
	case a.Scale == Logit:
		if ticks := a.logitTicks(); len(ticks) >= 4 {
			return ticks
		}
	}
	return a.linearTicks()
}

// maxTicks is more than an axis has.
const maxTicks = 50

// linearTicks returns multiples of 1, 2 or 5 times a power of ten.
func (a *Axis) linearTicks() []Tick {
	raw := (a.Max - a.Min) / 8
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, factor := range []float64{2, 2.5, 2} { // 2, 5, 10
		if step >= raw {
			break
		}
		step *= factor
	}
	if a.Whole {
		step = max(1, math.Round(step))
	}
	decimals := max(0, int(-math.Floor(math.Log10(step)+1e-9)))
	var ticks []Tick
	first := math.Ceil(a.Min/step - 1e-9)
	for k := range maxTicks {
		i := first + float64(k)
		if i*step > a.Max+1e-9*step {
			break
		}
		v := i * step
		if v == 0 {
			v = 0 // without a sign
		}
		if at := a.At(v); !(at >= -1e-6 && at <= 1+1e-6) { // a scale has no place for it
			continue
		}
		label := strconv.FormatFloat(v, 'f', decimals, 64)
		if math.Abs(v) >= 1e6 || decimals > 6 {
			label = show.Plain(v)
		}
		ticks = append(ticks, Tick{v, label})
	}
	return ticks
}

// logTicks returns powers of ten, every so many of them that the labels fit, and 2 and 5 times
// those if the axis is short.
func (a *Axis) logTicks() []Tick {
	first, last := math.Floor(math.Log10(a.Min)), math.Ceil(math.Log10(a.Max))
	every := max(1, math.Ceil((last-first)/8))
	factors := []float64{1}
	if math.Log10(a.Max/a.Min) <= 3 { // at most nine labels
		factors = []float64{1, 2, 5}
	}
	var ticks []Tick
	for e := first; e <= last; e += every {
		for _, factor := range factors {
			if v := factor * math.Pow(10, e); v >= a.Min && v <= a.Max && !(a.Whole && v < 1) {
				ticks = append(ticks, Tick{v, show.Plain(show.Rounded(v, 6))})
			}
		}
	}
	return ticks
}

// logitTicks returns round shares.
func (a *Axis) logitTicks() []Tick {
	var ticks []Tick
	for _, v := range []float64{1e-4, 1e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 0.9999} {
		if v >= a.Min && v <= a.Max {
			ticks = append(ticks, Tick{v, show.Plain(v)})
		}
	}
	return ticks
}

package plot

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// logTicks marks multiples of the powers of ten. Labels are at 1, 2 and 5 times them where there is room for so many,
// otherwise at the powers.
type logTicks struct{ room float64 } // for labels

// Ticks implements plot.Ticker for 0 < lo ≤ hi.
func (t logTicks) Ticks(lo, hi float64) []plot.Tick {
	const crowded = 4 // decades from which on only powers of ten have marks
	first, last := int(math.Floor(math.Log10(lo))), int(math.Ceil(math.Log10(hi)))
	decades := math.Log10(hi / lo)
	every := max(1, int(math.Ceil(decades/t.room)))
	var ticks []plot.Tick
	for exponent := first; exponent <= last; exponent++ {
		for factor := 1; factor <= 9; factor++ {
			// A parsed decimal is exact where a product of powers is not.
			value, err := strconv.ParseFloat(strconv.Itoa(factor)+"e"+strconv.Itoa(exponent), 64)
			if err != nil || value < lo || value > hi {
				continue
			}
			tick := plot.Tick{Value: value}
			switch {
			case factor == 1 && exponent%every == 0,
				(factor == 2 || factor == 5) && decades < crowded && 3*decades <= t.room:
				tick.Label = number(value)
			case decades >= crowded && factor != 1:
				continue
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// linearTicks marks multiples of 1, 2 or 5 times a power of ten.
type linearTicks struct{ room float64 } // for labels

// Ticks implements plot.Ticker for lo ≤ hi.
func (t linearTicks) Ticks(lo, hi float64) []plot.Tick {
	most := max(2, min(8, t.room)) // ticks
	if !(hi > lo) {
		return []plot.Tick{{Value: lo, Label: number(lo)}}
	}
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/most)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if (hi-lo)/(factor*step) <= most {
			step *= factor
			break
		}
	}
	decimals := max(0, -int(math.Floor(math.Log10(step*(1+1e-9)))))
	var ticks []plot.Tick
	for k := math.Ceil(lo/step - 1e-9); k*step <= hi+1e-9*step; k++ {
		value := k*step + 0 // not -0
		label := strconv.FormatFloat(value, 'f', decimals, 64)
		if math.Abs(value) >= 1e6 || decimals > 5 {
			label = number(value)
		}
		ticks = append(ticks, plot.Tick{Value: value, Label: label})
	}
	return ticks
}

// number returns x in few characters: 0.05, 200, 1e7.
func number(x float64) string {
	if a := math.Abs(x); a == 0 || (a >= 1e-3 && a < 1e5) {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	text := strconv.FormatFloat(x, 'e', -1, 64)
	text = strings.Replace(text, "e+0", "e", 1)
	text = strings.Replace(text, "e-0", "e-", 1)
	return strings.Replace(text, "e+", "e", 1)
}

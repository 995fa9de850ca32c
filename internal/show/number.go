package show

import (
	"math"
	"strconv"
	"strings"
)

// Number returns x with four significant digits, or all digits before the point if there
// are more, and in scientific notation where that is shorter to read.
func Number(x float64) string {
	const digits = 4
	magnitude := math.Abs(x)
	switch {
	case x == 0 || math.IsNaN(x) || math.IsInf(x, 0):
		return strconv.FormatFloat(x, 'g', -1, 64)
	case magnitude >= 1e7 || magnitude < 1e-4:
		return strconv.FormatFloat(x, 'e', digits-1, 64)
	}
	decimals := max(0, digits-1-int(math.Floor(math.Log10(magnitude))))
	return strconv.FormatFloat(x, 'f', decimals, 64)
}

// Plain returns x with as few digits as it needs, and exponents without zeros: 1e-5.
func Plain(x float64) string {
	text := strconv.FormatFloat(x, 'g', -1, 64)
	text = strings.Replace(text, "e-0", "e-", 1)
	text = strings.Replace(text, "e+0", "e", 1)
	return strings.Replace(text, "e+", "e", 1)
}

// Short returns x as Plain does, with at most four significant digits.
func Short(x float64) string { return Plain(Rounded(x, 4)) }

// Rounded returns the number nearest to x with a number of significant digits.
func Rounded(x float64, digits int) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'e', digits-1, 64), 64) // it is a number
	return y
}

// Delta returns a δ in plain notation with at most three digits, never below it by more than the
// rounding of sums, a part in 10¹².
func Delta(x float64) string {
	y := Rounded(x, 3)
	if y < x*(1-1e-12) {
		y = Rounded(x+0.5000001*math.Pow(10, math.Floor(math.Log10(x))-2), 3)
	}
	return Plain(y)
}

// NumberUp returns x as Number does, but never below x.
func NumberUp(x float64) string { return roundTo(x, 1) }

// NumberDown returns x as Number does, but never above x.
func NumberDown(x float64) string { return roundTo(x, -1) }

// roundTo returns x as Number does, but not before x in the direction of a sign.
func roundTo(x, sign float64) string {
	s := Number(x)
	printed, err := strconv.ParseFloat(s, 64)
	if err != nil || !(sign*printed < sign*x) {
		return s
	}
	// Half a unit of the last digit moves the number to where it is rounded the other way.
	unit := 1.0
	if exponent := math.Floor(math.Log10(math.Abs(x))); exponent < 4 || exponent >= 7 {
		unit = math.Pow(10, exponent-3)
	}
	return Number(x + sign*0.5000001*unit)
}

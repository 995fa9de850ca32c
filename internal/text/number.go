package text

import (
	"math"
	"strconv"
	"strings"
)

// Number returns a finite decimal number of some bits, 32 or 64. Unlike strconv it takes neither 0x1p-1
// nor 0_1: in data these are no numbers.
func Number(text string, bits int) (x float64, ok bool) {
	x, err := strconv.ParseFloat(text, bits)
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0) && !strings.ContainsAny(text, "xX_")
}

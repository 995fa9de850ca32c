package privacytest

import (
	"math"
	"math/big"
)

// Bits is the precision of the multi-precision references.
const Bits = 4000

// BigFloat returns x with the precision Bits.
func BigFloat(x float64) *big.Float { return new(big.Float).SetPrec(Bits).SetFloat64(x) }

// BigExp returns e^x by Taylor's series after halving x until it is small.
func BigExp(x *big.Float) *big.Float { return BigExpTo(Bits, 400, x) }

// BigExpTo returns e^x from a number of terms in a precision of bits.
func BigExpTo(bits uint, terms int, x *big.Float) *big.Float {
	const halvings = 40
	y := new(big.Float).SetPrec(bits).SetMantExp(x, -halvings)
	sum, term := new(big.Float).SetPrec(bits).SetInt64(1), new(big.Float).SetPrec(bits).SetInt64(1)
	for k := 1; k < terms; k++ {
		term.Mul(term, y)
		term.Quo(term, new(big.Float).SetPrec(bits).SetInt64(int64(k)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// BigLog returns the float64 nearest to log x, for x > 0.
func BigLog(x *big.Float) float64 {
	mantissa := new(big.Float)
	exponent := x.MantExp(mantissa)
	m, _ := mantissa.Float64()
	return math.Log(m) + float64(exponent)*math.Ln2
}

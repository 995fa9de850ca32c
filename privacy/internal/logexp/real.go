package logexp

import (
	"math"
)

// Expm1MinusArg returns e^x − 1 − x.
func Expm1MinusArg(x float64) float64 {
	if math.Abs(x) > 0.2 {
		return math.Expm1(x) - x
	}
	// x²/2·(1 + x/3·(1 + x/4·(... (1 + x/13)))); x¹²·2/14! is negligible.
	sum := 1 + x*(1.0/13)
	sum = 1 + x*(1.0/12)*sum
	sum = 1 + x*(1.0/11)*sum
	sum = 1 + x*(1.0/10)*sum
	sum = 1 + x*(1.0/9)*sum
	sum = 1 + x*(1.0/8)*sum
	sum = 1 + x*(1.0/7)*sum
	sum = 1 + x*(1.0/6)*sum
	sum = 1 + x*(1.0/5)*sum
	sum = 1 + x*(1.0/4)*sum
	sum = 1 + x*(1.0/3)*sum
	return 0.5 * x * x * sum
}

// LogAbsExpm1 returns log|e^t − 1|; −Inf at t = 0.
func LogAbsExpm1(t float64) float64 {
	if t > 0 {
		return t + math.Log(-math.Expm1(-t))
	}
	return math.Log(-math.Expm1(t))
}

// LogSumExp returns log Σ e^v; −Inf for no values.
func LogSumExp(values []float64) float64 {
	top := MaxOf(values)
	if math.IsInf(top, 0) {
		return top
	}
	var sum float64
	for _, v := range values {
		sum += math.Exp(v - top)
	}
	return top + math.Log(sum)
}

// MaxOf returns the largest value, −Inf of none.
func MaxOf(values []float64) float64 {
	top := math.Inf(-1)
	for _, v := range values {
		if v > top {
			top = v
		}
	}
	return top
}

// Log1pExp returns log(1 + e^x).
func Log1pExp(x float64) float64 {
	if x > 40 {
		return x + math.Exp(-x)
	}
	return math.Log1p(math.Exp(x))
}

// LogAddExp returns log(e^a + e^b).
func LogAddExp(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(a, 0) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}

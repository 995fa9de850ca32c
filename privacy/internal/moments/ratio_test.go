package moments

import (
	"math"
	"math/big"
	"testing"

	"github.com/dpareto/dpareto/privacy/privacytest"
)

// bigMoment returns B(l) = Σ_i (−1)^{l−i} C(l,i) e^{i(i−1)/2z²} in multi-precision,
// the definition that the implementation avoids.
func bigMoment(z float64, l int) *big.Float {
	invVar := new(big.Float).Quo(privacytest.BigFloat(1), new(big.Float).Mul(privacytest.BigFloat(z), privacytest.BigFloat(z)))
	c := privacytest.BigExp(invVar) // e^{1/z²}
	power := privacytest.BigFloat(1)
	factor := privacytest.BigFloat(1) // c^{i}: e^{i(i+1)/2z²} / e^{i(i−1)/2z²}
	sum := privacytest.BigFloat(0)
	for i := 0; i <= l; i++ {
		term := new(big.Float).SetPrec(privacytest.Bits).SetInt(new(big.Int).Binomial(int64(l), int64(i)))
		term.Mul(term, power)
		if (l-i)%2 == 1 {
			term.Neg(term)
		}
		sum.Add(sum, term)
		power.Mul(power, factor)
		factor.Mul(factor, c)
	}
	return sum
}

func TestLogMomentMatchesMultiPrecision(t *testing.T) {
	for _, z := range []float64{0.3, 0.7, 1, 1.5, 2.5, 4, 7, 16, 100, 1e6} {
		m := newRatioMoments(z)
		for _, l := range []int{2, 4, 6, 8, 16, 30, 32, 34, 60, 80, 128, 130} {
			if z == 1e6 && l > 60 {
				continue // the reference itself cancels
			}
			want := privacytest.BigLog(bigMoment(z, l))
			got := m.logMoment(l)
			if diff := math.Abs(got - want); diff > 2e-13*math.Max(1, math.Abs(want)) {
				t.Errorf("z=%g l=%d: log B = %.17g, want %.17g (difference %.2g)", z, l, got, want, diff)
			}
		}
	}
}

// TestLogMomentLargeNoise: for z → ∞ the ratio minus 1 is N(0, 1)/z, whose even
// moments are (l−1)!!·z^{−l}.
func TestLogMomentLargeNoise(t *testing.T) {
	const z = 1e8
	m := newRatioMoments(z)
	want := 0.0
	for l := 2; l <= 3000; l += 2 {
		want += math.Log(float64(l-1)) - 2*math.Log(z)
		// The next term of the expansion in 1/z is below l³/z².
		tol := 1e-13*math.Abs(want) + math.Pow(float64(l), 3)/(z*z)
		if got := m.logMoment(l); math.Abs(got-want) > tol {
			t.Fatalf("l=%d: log B = %.17g, want %.17g", l, got, want)
		}
	}
}

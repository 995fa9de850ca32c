package pld

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/privacy/privacytest"
)

// TestSharedTruncation compares p and q' with sums in high precision.
func TestSharedTruncation(t *testing.T) {
	tb := privacytest.SharedVectors(t, "truncated_poisson_public.csv")
	for _, row := range tb.Rows {
		got := truncationOf(tb.Int(row, "n"), tb.Int(row, "B"), tb.Float(row, "q"))
		tb.Compare("p_trunc", math.Exp(got.logShare), tb.Float(row, "p_trunc"))
		if p := math.Exp(got.logShare); privacytest.RelErr(p, tb.Float(row, "p_trunc")) > 1e-9 || privacytest.RelErr(got.rate, tb.Float(row, "q_cond")) > 1e-9 {
			t.Errorf("%v: %.12g, %.12g", row[:3], p, got.rate)
		}
	}
}

// logBinomialTailExact returns log P[Bin(n, q) >= k] but for the last rounding.
func logBinomialTailExact(n, k int64, q float64) float64 {
	const precision = 2000
	exact := func(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }
	p := exact(q)
	rest := new(big.Float).SetPrec(precision).Sub(exact(1), p)
	sum := exact(0)
	for j := k; j <= n; j++ {
		term := new(big.Float).SetPrec(precision).SetInt(new(big.Int).Binomial(n, j))
		for range j {
			term.Mul(term, p)
		}
		for range n - j {
			term.Mul(term, rest)
		}
		sum.Add(sum, term)
	}
	exponent := sum.MantExp(sum)
	value, _ := sum.Float64()
	return math.Log(value) + float64(exponent)*math.Ln2
}

func TestBinomialTail(t *testing.T) {
	rng := rand.New(rand.NewPCG(42, 2))
	for range 300 {
		n := 1 + rng.Int64N(90)
		k := 1 + rng.Int64N(n)
		q := math.Exp(-rng.Float64() * 8)
		switch rng.IntN(4) {
		case 0:
			q = 1 - q
		case 1:
			q = math.Exp(-rng.Float64() * 60)
		}
		if !(q > 0 && q < 1) {
			continue
		}
		want := logBinomialTailExact(n, k, q)
		if got, e := logBinomialTail(n, k, q); !(math.Abs(got-want) <= e+0x1p-51*math.Abs(want)) || e > 1e-10*(1+math.Abs(want)) {
			t.Errorf("P[Bin(%d, %g) >= %d] has the logarithm %.17g ± %.2g, want %.17g", n, q, k, got, e, want)
		}
	}
}

// TestBinomialTailLarge has sums of mpmath 1.3.0 with 50 digits.
func TestBinomialTailLarge(t *testing.T) {
	for _, tc := range []struct {
		n, k int64
		q    float64
		want float64
	}{
		{49999, 250, 0.005, -0.67659013282288256661},
		{60000, 347, 0.004266666666666667, -17.143620791967564584},
		{1000000, 1300, 0.001, -44.167439636169795383},
		{100000000, 1050000, 0.01, -1247.1125012162000003},
		{100000000, 1000000, 0.01, -0.69287724259619729194},
		{10000000000, 51000, 5e-06, -12.385821237359616675},
		{1000000, 900000, 0.001, -5892003.4503364555001},
		{1000000000, 1, 1e-12, -6.9082552373149710027},
	} {
		if got, e := logBinomialTail(tc.n, tc.k, tc.q); !(math.Abs(got-tc.want) <= e+0x1p-51*math.Abs(tc.want)) || e > 1e-6*math.Max(1e-3, math.Abs(tc.want)) {
			t.Errorf("P[Bin(%d, %g) >= %d] has the logarithm %.17g ± %.2g, want %.17g", tc.n, tc.q, tc.k, got, e, tc.want)
		}
	}
}

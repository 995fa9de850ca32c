package moments

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/privacy/internal/logexp"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// bigRDP evaluates the sum of publishedFixedSize term by term in
// multi-precision, without the cap by α/2σ².
func bigRDP(q, sigma float64, alpha int) float64 {
	b := make([]*big.Float, alpha+3)
	for l := 2; l <= alpha+2; l += 2 {
		b[l] = bigMoment(sigma, l)
	}
	invVar := new(big.Float).Quo(privacytest.BigFloat(1), new(big.Float).Mul(privacytest.BigFloat(sigma), privacytest.BigFloat(sigma)))
	four := privacytest.BigFloat(4)
	sum := privacytest.BigFloat(0)
	for j := 2; j <= alpha; j++ {
		general := privacytest.BigExp(new(big.Float).Mul(invVar, privacytest.BigFloat(0.5*float64(j)*float64(j-1))))
		general.Mul(general, privacytest.BigFloat(2))
		zeta := new(big.Float).SetPrec(privacytest.Bits)
		zeta.Mul(b[j-j%2], b[j+j%2])
		zeta.Sqrt(zeta)
		zeta.Mul(zeta, four)
		if general.Cmp(zeta) < 0 {
			zeta = general
		}
		term := new(big.Float).SetPrec(privacytest.Bits).SetInt(new(big.Int).Binomial(int64(alpha), int64(j)))
		term.Mul(term, zeta)
		for range j {
			term.Mul(term, privacytest.BigFloat(q))
		}
		sum.Add(sum, term)
	}
	if s, _ := sum.Float64(); s < 0.5 {
		return math.Log1p(s) / float64(alpha-1)
	}
	return privacytest.BigLog(sum.Add(sum, privacytest.BigFloat(1))) / float64(alpha-1)
}

func TestFixedSizeRDPMatchesMultiPrecision(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range privacytest.Few(8, 25) {
		q := math.Exp(-rng.Float64() * 9)
		sigma := math.Exp(rng.Float64()*7 - 2)
		alpha := 2 + int(math.Exp(rng.Float64()*4.5))
		want := math.Min(bigRDP(q, sigma, alpha), float64(alpha)/(2*sigma*sigma))
		got := NewFixedSize(q, sigma).RDP(float64(alpha))
		if privacytest.RelErr(got, want) > 1e-12 {
			t.Errorf("q=%g sigma=%g order %d: rdp %.17g, want %.17g", q, sigma, alpha, got, want)
		}
	}
}

// TestFixedSizeRDPLongSums compares sums that are cut off with the same sums
// carried to the end.
func TestFixedSizeRDPLongSums(t *testing.T) {
	for _, tc := range []struct{ q, sigma, alpha float64 }{
		{0.00025843, 16, 2339}, {0.00025843, 16, 3900}, {0.00025843, 16, 4400}, {0.00025843, 16, 6000},
		{0.0667, 16, 391}, {0.0667, 16, 2000}, {0.0667, 50, 3000}, {0.3, 200, 3000}, {0.9, 30, 1500},
		{1e-3, 1, 500}, {1e-9, 2, 300}, {0.001, 4, 250}, {0.001, 4, 400},
	} {
		c := NewFixedSize(tc.q, tc.sigma)
		var sum float64
		logBinomial := 0.0
		for j := 1; float64(j) <= tc.alpha; j++ {
			logBinomial += math.Log((tc.alpha-float64(j)+1)/float64(j)) + c.logQ
			if j >= 2 {
				sum = logAddExpFrom(sum, logBinomial+c.zeta(j), j == 2)
			}
		}
		want := logexp.Log1pExp(sum)
		got, exact := c.cgf(tc.alpha, math.Inf(1))
		if !exact || got < want*(1-1e-11) || got > want*(1+1e-11) {
			t.Errorf("%+v: cgf %.17g, want %.17g", tc, got, want)
		}
		if low, exact := c.cgf(tc.alpha, want*0.5); !exact && low > want*(1+1e-11) {
			t.Errorf("%+v: lower bound %g above %g", tc, low, want)
		}
	}
}

func logAddExpFrom(a, b float64, first bool) float64 {
	if first {
		return b
	}
	return logexp.LogAddExp(a, b)
}

// TestRestBounds checks that both bounds of the remainder are bounds.
func TestRestBounds(t *testing.T) {
	for _, tc := range []struct {
		q, sigma, alpha float64
		j               int
	}{
		{0.01, 4, 300, 20}, {0.01, 16, 1000, 30}, {0.001, 16, 2000, 12}, {0.1, 50, 1000, 128},
		{0.00025843, 16, 4200, 64}, {0.5, 100, 700, 130}, {0.01, 2, 60, 20},
	} {
		c := NewFixedSize(tc.q, tc.sigma)
		logBinomial, at, rest := 0.0, 0.0, math.Inf(-1)
		for k := 1; float64(k) <= tc.alpha; k++ {
			logBinomial += math.Log((tc.alpha-float64(k)+1)/float64(k)) + c.logQ
			if k == tc.j {
				at = logBinomial
			}
			if k > tc.j {
				rest = logexp.LogAddExp(rest, logBinomial+c.zeta(k))
			}
		}
		if general := c.logRestGeneral(tc.alpha, tc.j, at); general < rest {
			t.Errorf("%+v: general bound %g below the remainder %g", tc, general, rest)
		}
		if gaussian := c.logRestGaussian(tc.alpha, tc.j, at); gaussian < rest {
			t.Errorf("%+v: bound through moments %g below the remainder %g", tc, gaussian, rest)
		}
	}
}

// TestLargeNoiseStopsEarly: with much noise and large orders the general terms
// are useless for the remainder, the moments are not.
func TestLargeNoiseStopsEarly(t *testing.T) {
	c := NewFixedSize(1e-3, 1e4)
	if _, exact := c.cgf(1e6, math.Inf(1)); !exact || len(c.logZeta) > 2*gaussTerms {
		t.Errorf("the sum took %d terms", len(c.logZeta))
	}
	// The terms belong to 4·E[(1+qα·s/z)^...]: with x = α·q/σ the sum is near
	// 4·(e^{x²/2} − 1) up to the odd terms, which lie between their neighbours.
	x := 1e6 * 1e-3 / 1e4
	got := math.Expm1(c.RDP(1e6) * (1e6 - 1))
	if low := 4 * math.Expm1(x*x/2); got < low*(1-1e-3) || got > low*(1+x) {
		t.Errorf("sum %g, expected a little above %g", got, low)
	}
}

// TestFixedSizeInterpolation: (α−1)·ρ(α) of the published bound is linear between integers and 0 at 1.
func TestFixedSizeInterpolation(t *testing.T) {
	c := NewFixedSize(50.0/10000, 0.8)
	two, three := c.RDP(2), 2*c.RDP(3)
	if got := c.RDP(1.25); privacytest.RelErr(got, two) > 1e-14 {
		t.Errorf("order 1.25: %g, want ρ(2) = %g", got, two)
	}
	if got, want := 1.75*c.RDP(2.75), 0.25*two+0.75*three; privacytest.RelErr(got, want) > 1e-14 {
		t.Errorf("order 2.75: %g, want %g", got, want)
	}
}

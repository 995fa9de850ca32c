package privacy

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// bigRDP evaluates the sum of publishedFixedSize term by term in
// multi-precision, without the cap by α/2σ².
func bigRDP(q, sigma float64, alpha int) float64 {
	b := make([]*big.Float, alpha+3)
	for l := 2; l <= alpha+2; l += 2 {
		b[l] = bigMoment(sigma, l)
	}
	invVar := new(big.Float).Quo(bigFloat(1), new(big.Float).Mul(bigFloat(sigma), bigFloat(sigma)))
	four := bigFloat(4)
	sum := bigFloat(0)
	for j := 2; j <= alpha; j++ {
		general := bigExp(new(big.Float).Mul(invVar, bigFloat(0.5*float64(j)*float64(j-1))))
		general.Mul(general, bigFloat(2))
		zeta := new(big.Float).SetPrec(bits)
		zeta.Mul(b[j-j%2], b[j+j%2])
		zeta.Sqrt(zeta)
		zeta.Mul(zeta, four)
		if general.Cmp(zeta) < 0 {
			zeta = general
		}
		term := new(big.Float).SetPrec(bits).SetInt(new(big.Int).Binomial(int64(alpha), int64(j)))
		term.Mul(term, zeta)
		for range j {
			term.Mul(term, bigFloat(q))
		}
		sum.Add(sum, term)
	}
	if s, _ := sum.Float64(); s < 0.5 {
		return math.Log1p(s) / float64(alpha-1)
	}
	return bigLog(sum.Add(sum, bigFloat(1))) / float64(alpha-1)
}

func TestFixedSizeRDPMatchesMultiPrecision(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 25 {
		q := math.Exp(-rng.Float64() * 9)
		sigma := math.Exp(rng.Float64()*7 - 2)
		alpha := 2 + int(math.Exp(rng.Float64()*4.5))
		want := math.Min(bigRDP(q, sigma, alpha), float64(alpha)/(2*sigma*sigma))
		got := newPublishedFixedSize(q, sigma).RDP(float64(alpha))
		if relErr(got, want) > 1e-12 {
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
		c := newPublishedFixedSize(tc.q, tc.sigma)
		var sum float64
		logBinomial := 0.0
		for j := 1; float64(j) <= tc.alpha; j++ {
			logBinomial += math.Log((tc.alpha-float64(j)+1)/float64(j)) + c.logQ
			if j >= 2 {
				sum = logAddExpFrom(sum, logBinomial+c.zeta(j), j == 2)
			}
		}
		want := log1pExp(sum)
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
	return logAddExp(a, b)
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
		c := newPublishedFixedSize(tc.q, tc.sigma)
		logBinomial, at, rest := 0.0, 0.0, math.Inf(-1)
		for k := 1; float64(k) <= tc.alpha; k++ {
			logBinomial += math.Log((tc.alpha-float64(k)+1)/float64(k)) + c.logQ
			if k == tc.j {
				at = logBinomial
			}
			if k > tc.j {
				rest = logAddExp(rest, logBinomial+c.zeta(k))
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
	c := newPublishedFixedSize(1e-3, 1e4)
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

func TestFixedSizeFullBatch(t *testing.T) {
	c := FixedSizeGaussian{DatasetSize: 1000, BatchSize: 1000, NoiseMultiplier: 4}.RenyiCurve()
	for _, order := range []float64{1.5, 2, 9, 1e6} {
		if got, want := c.RDP(order), order/32; got != want {
			t.Errorf("order %g: %g, want %g", order, got, want)
		}
	}
}

// TestFixedSizeDivergence: the divergence equals the dominating pair's, which is computed here by
// direct quadrature of
//
//	(α−1)·ρ(α) = log(1 + ∫_{x>1/2} Q(x)[(1+qu)^α + (1+qu)^{1−α} − 2 − qu] dx)
//
// with Q = N(0, σ²), u = e^{(2x−1)/2σ²} − 1.
func TestFixedSizeDivergence(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		sigma := math.Exp(rng.Float64()*2.5 - 0.5)
		m := FixedSizeGaussian{1000, 1 + rng.Int64N(300), sigma}
		order := 1.2 + 5*rng.Float64()
		q := m.rate()
		const n = 400_000
		top := 0.5 + sigma*(12+order/sigma)
		h := (top - 0.5) / n
		sum := 0.0
		for i := range n { // midpoint rule
			x := 0.5 + (float64(i)+0.5)*h
			v := 1 + q*math.Expm1((2*x-1)/(2*sigma*sigma))
			f := math.Pow(v, order) + math.Pow(v, 1-order) - 2 - (v - 1)
			sum += h * math.Exp(-x*x/(2*sigma*sigma)) / (sigma * math.Sqrt(2*math.Pi)) * f
		}
		want := math.Log1p(sum) / (order - 1)
		if got := m.RenyiCurve().RDP(order); relErr(got, want) > 1e-7 {
			t.Errorf("%+v, order %g: %.12g, want %.12g", m, order, got, want)
		}
	}
}

// TestFixedSizeBelowPublished: the divergence is never above the published bound, at integers
// and between them.
func TestFixedSizeBelowPublished(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		m := FixedSizeGaussian{100_000, 1 + rng.Int64N(int64(math.Exp(rng.Float64()*11.5))), math.Exp(rng.Float64()*5 - 1.5)}
		order := 1 + math.Exp(rng.Float64()*7-2)
		if rng.IntN(2) == 0 {
			order = 1 + math.Ceil(order-1)
		}
		got, published := m.RenyiCurve().RDP(order), newPublishedFixedSize(m.rate(), m.NoiseMultiplier).RDP(order)
		if !(got > 0 && got <= published*(1+1e-9)) {
			t.Errorf("%+v, order %g: %.12g, published %.12g", m, order, got, published)
		}
	}
}

// TestFixedSizePriceOfRuns has the values of the Rényi accountant for one and for 64 runs of
// 1,270 steps, and of the published bound for them. The former were also computed in Python by
// another discretisation of the pair.
func TestFixedSizePriceOfRuns(t *testing.T) {
	m := FixedSizeGaussian{32561, 256, 4}
	for _, tc := range []struct {
		order, rho float64 // of one run
	}{{2, 0.006052}, {10, 0.030263}, {50, 0.151564}} {
		if got := 1270 * m.RenyiCurve().RDP(tc.order); math.Abs(got-tc.rho) > 1e-6 {
			t.Errorf("order %g: divergence %.6f, want %.6f", tc.order, got, tc.rho)
		}
	}
	for _, tc := range []struct {
		runs    int64
		epsilon float64
	}{{1, 0.3297}, {64, 3.076}} {
		if got := epsilonOf(t, RDP{}, m, 1270*tc.runs, 1e-6).Epsilon; relErr(got, tc.epsilon) > 3e-4 {
			t.Errorf("%d runs: epsilon %.5f, want %.4f", tc.runs, got, tc.epsilon)
		}
	}
}

// TestFixedSizeInterpolation: (α−1)·ρ(α) of the published bound is linear between integers and 0 at 1.
func TestFixedSizeInterpolation(t *testing.T) {
	c := newPublishedFixedSize(50.0/10000, 0.8)
	two, three := c.RDP(2), 2*c.RDP(3)
	if got := c.RDP(1.25); relErr(got, two) > 1e-14 {
		t.Errorf("order 1.25: %g, want ρ(2) = %g", got, two)
	}
	if got, want := 1.75*c.RDP(2.75), 0.25*two+0.75*three; relErr(got, want) > 1e-14 {
		t.Errorf("order 2.75: %g, want %g", got, want)
	}
}

func TestFixedSizeValidate(t *testing.T) {
	err := FixedSizeGaussian{DatasetSize: 0, BatchSize: -1, NoiseMultiplier: math.NaN()}.Validate()
	want := []string{"dataset_size", "batch_size", "noise_multiplier"}
	if fe := FieldErrors(err); len(fe) != 3 || fe[0].Field != want[0] || fe[1].Field != want[1] || fe[2].Field != want[2] {
		t.Errorf("fields of %v, want %v", err, want)
	}
	if err := (FixedSizeGaussian{10, 11, 1}).Validate(); err == nil {
		t.Error("a batch larger than the data set was accepted")
	}
}

// BenchmarkFixedSizeDivergence computes the divergence of one order with its bound, when the quadrature is known, and
// without the bound.
func BenchmarkFixedSizeDivergence(b *testing.B) {
	for _, m := range []FixedSizeGaussian{{30956, 128, 1}, {32561, 256, 4}, {60000, 4000, 16}} {
		curve := m.RenyiCurve().(*fixedSizeRenyi)
		curve.RDP(64)
		for _, order := range []float64{2, 20} {
			b.Run(fmt.Sprintf("%d-%g-order-%g", m.BatchSize, m.NoiseMultiplier, order), func(b *testing.B) {
				for b.Loop() {
					curve.RDP(order)
				}
			})
			b.Run(fmt.Sprintf("%d-%g-order-%g-unbounded", m.BatchSize, m.NoiseMultiplier, order), func(b *testing.B) {
				for b.Loop() {
					curve.pairRenyi.RDP(order)
				}
			})
		}
	}
}

package privacy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/privacy/internal/moments"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

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
		q := m.Rate()
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
		if got := m.RenyiCurve().RDP(order); privacytest.RelErr(got, want) > 1e-7 {
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
		got, published := m.RenyiCurve().RDP(order), moments.NewFixedSize(m.Rate(), m.NoiseMultiplier).RDP(order)
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
		if got := epsilonOf(t, RDP{}, m, 1270*tc.runs, 1e-6).Epsilon; privacytest.RelErr(got, tc.epsilon) > 3e-4 {
			t.Errorf("%d runs: epsilon %.5f, want %.4f", tc.runs, got, tc.epsilon)
		}
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

// BenchmarkFixedSizeDivergence takes the divergence of one order, whose quadrature is known.
func BenchmarkFixedSizeDivergence(b *testing.B) {
	for _, m := range []FixedSizeGaussian{{30956, 128, 1}, {32561, 256, 4}, {60000, 4000, 16}} {
		curve := m.RenyiCurve()
		curve.RDP(64)
		for _, order := range []float64{2, 20} {
			b.Run(fmt.Sprintf("%d-%g-order-%g", m.BatchSize, m.NoiseMultiplier, order), func(b *testing.B) {
				for b.Loop() {
					curve.RDP(order)
				}
			})
		}
	}
}

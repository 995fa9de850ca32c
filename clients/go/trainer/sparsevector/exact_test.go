package sparsevector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/privacy/noise"
)

func TestEpsilon(t *testing.T) {
	// 1/b₁ + 2C/b₂, the sum that the closed form simplifies.
	for _, cutoff := range []int64{1, 2, 5, 10, 30} {
		for _, scale := range []float64{0.01, 0.1, 1, 10, 100} {
			b1, b2 := split(cutoff, scale)
			want := 1/b1 + 2*float64(cutoff)/b2
			if got := Epsilon(cutoff, scale); math.Abs(got-want) > 1e-12*want {
				t.Errorf("Epsilon(%d, %v) = %v, want %v", cutoff, scale, got, want)
			}
		}
	}
	// Value of the notebook published with the paper.
	const want = 177.96023523644658
	if got := Epsilon(5, 0.1); math.Abs(got-want) > 1e-12*want {
		t.Errorf("Epsilon(5, 0.1) = %v, want %v", got, want)
	}
}

// published holds the mean and standard deviation of 1 − F₁ over 20,000 runs of
// an independent (Python) implementation, printed with four decimals.
var published = []struct {
	cutoff   int64
	scale    float64
	mean, sd float64
}{
	{1, 0.01, 0.8182, 0},
	{1, 0.1, 0.8184, 0.0069},
	{1, 1, 0.9473, 0.0825},
	{1, 100, 0.9813, 0.0553},
	{2, 2, 0.9434, 0.0884},
	{5, 0.01, 0.3333, 0},
	{5, 0.1, 0.3355, 0.0173},
	{5, 5, 0.9175, 0.0954},
	{10, 0.01, 0, 0},
	{10, 0.1, 0.0054, 0.0229},
	{10, 1, 0.7561, 0.1295},
	{10, 10, 0.8886, 0.0950},
	{15, 2, 0.8088, 0.1019},
	{20, 0.1, 0.0041, 0.0142},
	{20, 20, 0.8607, 0.0821},
	{30, 0.1, 0.0048, 0.0152},
	{30, 1, 0.6652, 0.0895},
	{30, 100, 0.8498, 0.0701},
}

func TestExpectedErrorAgainstPublishedSimulation(t *testing.T) {
	for _, tt := range published {
		// Four standard errors, and half a unit of the last printed decimal.
		tolerance := 4*tt.sd/math.Sqrt(20000) + 0.5e-4
		if got := ExpectedError(tt.cutoff, tt.scale); math.Abs(got-tt.mean) > tolerance {
			t.Errorf("ExpectedError(%d, %v) = %v, want %v ± %v", tt.cutoff, tt.scale, got, tt.mean, tolerance)
		}
	}
}

func TestExpectedErrorAgainstOwnSimulation(t *testing.T) {
	const runs = 20000
	for i, tt := range []struct {
		cutoff int64
		scale  float64
	}{{1, 1}, {3, 0.3}, {10, 1}, {17, 0.2}, {30, 3}, {100, 1}, {1000, 0.05}} {
		rng, source := random.New(uint64(i), 0, streamSparseVector, 0), noise.Seeded(uint64(i))
		var sum, squares float64
		for range runs {
			e := simulate(tt.cutoff, tt.scale, rng, source)
			sum += e
			squares += e * e
		}
		mean := sum / runs
		standardError := math.Sqrt((squares/runs - mean*mean) / runs)
		if got := ExpectedError(tt.cutoff, tt.scale); math.Abs(got-mean) > 4*standardError {
			t.Errorf("ExpectedError(%d, %v) = %v, simulated %v ± %v", tt.cutoff, tt.scale, got, mean, standardError)
		}
	}
}

// With no noise the first C positives are returned, and F₁ = 2C/(C+10); with
// noise that drowns the answers, a query passes or not by its noise alone, so
// that k selected queries hold k/10 positives on average.
func TestExpectedErrorLimits(t *testing.T) {
	for cutoff := int64(1); cutoff <= 10; cutoff++ {
		want := 1 - 2*float64(cutoff)/float64(cutoff+10)
		if got := ExpectedError(cutoff, 1e-3); math.Abs(got-want) > 1e-9 {
			t.Errorf("ExpectedError(%d, 0.001) = %v, want %v", cutoff, got, want)
		}
	}
	// One query is selected unless none passes, which given ρ has probability
	// (1 − tail)¹⁰⁰; a selected one is positive with probability 1/10, F₁ = 2/11.
	const b = 1e9
	b1, b2 := split(1, b)
	none := laplaceMean(func(rho float64) float64 { return math.Pow(1-laplaceTail(rho/b2), queries) }, b1)
	want := 1 - (1-none)*0.1*2/11
	if got := ExpectedError(1, b); math.Abs(got-want) > 1e-7 {
		t.Errorf("ExpectedError(1, %v) = %v, want %v", b, got, want)
	}
}

func TestLaplaceMean(t *testing.T) {
	for _, scale := range []float64{1e-3, 0.1, 0.5, 2, 40} {
		for _, tt := range []struct {
			name string
			f    func(float64) float64
			want float64
		}{
			{"one", func(float64) float64 { return 1 }, 1},
			{"square", func(x float64) float64 { return x * x }, 2 * scale * scale},
			{"decay", func(x float64) float64 { return math.Exp(-math.Abs(x) / scale) }, 0.5},
			// E max(|X| − ½, 0) = scale · e^(−1/(2·scale)).
			{"kink", func(x float64) float64 { return max(math.Abs(x)-0.5, 0) }, scale * math.Exp(-0.5/scale)},
		} {
			if got := laplaceMean(tt.f, scale); math.Abs(got-tt.want) > 1e-9*(1+tt.want) {
				t.Errorf("scale %v: mean of %s = %v, want %v", scale, tt.name, got, tt.want)
			}
		}
	}
}

func TestBinomial(t *testing.T) {
	for _, p := range []float64{0, 1e-12, 0.1, 0.5, 0.9, 1 - 1e-12, 1} {
		var probabilities [91]float64
		binomial(probabilities[:], p)
		for k, got := range probabilities {
			choose, sign := math.Lgamma(91)
			a, _ := math.Lgamma(float64(k) + 1)
			b, _ := math.Lgamma(91 - float64(k))
			want := float64(sign) * math.Exp(choose-a-b) * math.Pow(p, float64(k)) * math.Pow(1-p, float64(90-k))
			if math.Abs(got-want) > 1e-11 {
				t.Errorf("binomial(90, %v) at %d = %v, want %v", p, k, got, want)
			}
		}
	}
}

func TestExactFront(t *testing.T) {
	front := ExactFront(10)
	for i, p := range front {
		if p.Cutoff < 1 || p.Cutoff > maxCutoff || p.NoiseScale < minNoiseScale || p.NoiseScale > maxNoiseScale {
			t.Fatalf("point %d is outside the domain: %+v", i, p)
		}
		if got := Epsilon(p.Cutoff, p.NoiseScale); got != p.Epsilon || got > 10*(1+1e-12) {
			t.Errorf("point %d: %+v has ε %v", i, p, got)
		}
		if got := ExpectedError(p.Cutoff, p.NoiseScale); got != p.Error {
			t.Errorf("point %d: %+v has error %v", i, p, got)
		}
		if i > 0 && (p.Epsilon <= front[i-1].Epsilon || p.Error >= front[i-1].Error) {
			t.Errorf("point %d does not continue the front: %+v after %+v", i, p, front[i-1])
		}
	}

	// The continuous front lies between the staircase through the points and the
	// one that takes each point's error from the previous point's ε on; but not
	// from below the smallest ε, and not from before a jump.
	var inner, outer float64
	for i, p := range front {
		next := 10.0
		if i+1 < len(front) {
			next = front[i+1].Epsilon
		}
		inner += (next - p.Epsilon) * (1 - p.Error)
		if i+1 < len(front) && front[i+1].NoiseScale != maxNoiseScale {
			outer += (next - p.Epsilon) * (p.Error - front[i+1].Error)
		}
	}
	// The continuous front's, by the midpoint rule over 4,000 values of log ε.
	const continuous = 1.5415330
	if inner > continuous || continuous > inner+outer || outer > 2e-3 {
		t.Errorf("hypervolume between %v and %v, want close bounds around %v", inner, inner+outer, continuous)
	}
	t.Logf("%d points, hypervolume between %.5f and %.5f", len(front), inner, inner+outer)

	// No configuration of the domain beats the front by more than its resolution.
	rng := rand.New(rand.NewPCG(7, 0))
	for range 500 {
		cutoff := 1 + rng.Int64N(maxCutoff)
		scale := minNoiseScale * math.Pow(maxNoiseScale/minNoiseScale, rng.Float64())
		epsilon, e := Epsilon(cutoff, scale), ExpectedError(cutoff, scale)
		if epsilon > 10 {
			continue
		}
		lowest := 1.0
		for _, p := range front {
			if p.Epsilon > epsilon*1.05 {
				break
			}
			lowest = p.Error
		}
		if e < lowest {
			t.Errorf("(C, b) = (%d, %v) has (ε, error) = (%v, %v), the front %v", cutoff, scale, epsilon, e, lowest)
		}
	}

	if got := ExactFront(0.01); len(got) != 0 {
		t.Errorf("front below the smallest ε has %d points, want none", len(got))
	}
}

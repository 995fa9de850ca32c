package noise

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// third is the digit of 1/3 to the base 2⁶⁴, repeating.
const third = 0x5555555555555555

// TestBernoulliComparesAllDigits: the first digit that differs decides, in uint64, float and
// big arithmetic.
func TestBernoulliComparesAllDigits(t *testing.T) {
	for _, tc := range []struct {
		numbers []uint64
		want    bool
	}{
		{[]uint64{third - 1}, true},
		{[]uint64{third + 1}, false},
		{[]uint64{third, third, third - 1}, true},
		{[]uint64{third, third, third, third + 1}, false},
	} {
		if got := scripted(tc.numbers...).bernoulli(1, 3); got != tc.want {
			t.Errorf("%x: %t", tc.numbers, got)
		}
		if got := scripted(tc.numbers...).bernoulliBig(big.NewInt(1), big.NewInt(3)); got != tc.want {
			t.Errorf("big, %x: %t", tc.numbers, got)
		}
	}
	// 2⁻⁶⁵ has the digits 0, 2⁶³, 0, ...
	for _, tc := range []struct {
		numbers []uint64
		want    bool
	}{
		{[]uint64{1}, false},
		{[]uint64{0, 1<<63 - 1}, true},
		{[]uint64{0, 1 << 63, 0, 0, 1}, false},
	} {
		if got := scripted(tc.numbers...).BernoulliFloat64(0x1p-65); got != tc.want {
			t.Errorf("float, %x: %t", tc.numbers, got)
		}
	}
}

// TestBernoulliAgrees: the three kinds of arithmetic decide the same from the same
// numbers, which is a comparison of exact fractions.
func TestBernoulliAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		q := rapid.Uint64Range(1, math.MaxUint64).Draw(t, "q")
		p := rapid.Uint64Range(0, q).Draw(t, "p")
		ratio := new(big.Rat).SetFrac(new(big.Int).SetUint64(p), new(big.Int).SetUint64(q))
		uniform := new(big.Rat).SetFrac(new(big.Int).SetUint64(Seeded(seed).Uint64()), new(big.Int).Lsh(big.NewInt(1), 64))
		want := uniform.Cmp(ratio) < 0
		if got := Seeded(seed).bernoulli(p, q); got != want {
			t.Fatalf("%d/%d: %t", p, q, got)
		}
		if got := Seeded(seed).bernoulliBig(ratio.Num(), ratio.Denom()); got != want {
			t.Fatalf("big, %d/%d: %t", p, q, got)
		}
		x := rapid.Float64Range(0, 1).Draw(t, "x")
		exact := new(big.Rat).SetFloat64(x)
		if got, want := Seeded(seed).BernoulliFloat64(x), Seeded(seed).bernoulliBig(exact.Num(), exact.Denom()); got != want {
			t.Fatalf("float, %g: %t", x, got)
		}
	})
}

func TestBernoulliExp(t *testing.T) {
	s := Seeded(11)
	for _, gamma := range []*big.Rat{
		big.NewRat(0, 1), big.NewRat(1, 1000), big.NewRat(1, 3), big.NewRat(1, 1), big.NewRat(7, 5), big.NewRat(2, 1), big.NewRat(26, 5),
		new(big.Rat).SetFloat64(math.Ln2),
	} {
		x, _ := gamma.Float64()
		checkShare(t, fmt.Sprintf("e^-%s", gamma), math.Exp(-x), func() bool { return s.BernoulliExp(gamma) })
		if gamma.IsInt() {
			checkShare(t, fmt.Sprintf("integer, e^-%s", gamma), math.Exp(-x), func() bool { return s.BernoulliExpInteger(gamma.Num().Uint64()) })
		}
	}
	huge := new(big.Rat).SetFloat64(1e300)
	for range 100 {
		if s.BernoulliExp(huge) || s.BernoulliExpInteger(math.MaxUint64) {
			t.Fatal("happened with probability e^-1e300 or e^-2^64")
		}
	}
}

// checkIntegers compares draws with a distribution given by its weights, which are negligible
// outside of ±reach.
func checkIntegers(t *testing.T, what string, reach int, weight func(y float64) float64, draw func() int64) {
	t.Helper()
	const runs = 100_000
	var total float64
	for y := -reach; y <= reach; y++ {
		total += weight(float64(y))
	}
	// Integers expected fewer than 20 times form two categories.
	edge := reach
	for edge > 0 && runs*weight(float64(edge))/total < 20 {
		edge--
	}
	counts, expected := make([]float64, 2*edge+3), make([]float64, 2*edge+3)
	category := func(y int) int { return min(max(y, -edge-1), edge+1) + edge + 1 }
	for y := -reach; y <= reach; y++ {
		expected[category(y)] += runs * weight(float64(y)) / total
	}
	for range runs {
		counts[category(int(draw()))]++
	}
	checkChiSquare(t, what, counts, expected)
}

func TestDiscreteDistributions(t *testing.T) {
	s := Seeded(12)
	for _, scale := range []uint64{1, 2, 3, 10, 33} {
		b := float64(scale)
		checkIntegers(t, fmt.Sprintf("Laplace %d", scale), int(60*b),
			func(y float64) float64 { return math.Exp(-math.Abs(y) / b) },
			func() int64 { return s.DiscreteLaplace(scale) })
		checkIntegers(t, fmt.Sprintf("Gaussian %d", scale), int(60*b),
			func(y float64) float64 { return math.Exp(-0.5 * y * y / (b * b)) },
			func() int64 { return s.DiscreteGaussian(scale) })
	}
}

// TestBernoulliGauss covers the exponents that the acceptance of DiscreteGaussian
// rarely needs.
func TestBernoulliGauss(t *testing.T) {
	s := Seeded(13)
	for _, tc := range []struct{ d, sigma uint64 }{{0, 5}, {2, 5}, {5, 5}, {8, 5}, {10, 5}, {13, 5}, {1 << 41, 1 << 40}, {1<<41 + 1<<39, 1 << 40}} {
		x := float64(tc.d) / float64(tc.sigma)
		checkShare(t, fmt.Sprintf("%+v", tc), math.Exp(-0.5*x*x), func() bool { return s.bernoulliGauss(tc.d, tc.sigma) })
	}
}

func TestPanics(t *testing.T) {
	s := Seeded(1)
	nan := math.NaN()
	for name, f := range map[string]func(){
		"empty range":          func() { s.Uint64N(0) },
		"probability above 1":  func() { s.BernoulliFloat64(1.5) },
		"negative probability": func() { s.BernoulliFloat64(-0.5) },
		"probability NaN":      func() { s.BernoulliFloat64(nan) },
		"negative exponent":    func() { s.BernoulliExp(big.NewRat(-1, 2)) },
		"no Laplace scale":     func() { s.DiscreteLaplace(0) },
		"large Gaussian scale": func() { s.DiscreteGaussian(1<<48 + 1) },
		"negative scale":       func() { s.Laplace(0, -1) },
		"scale 0":              func() { s.Gaussian(0, 0) },
		"scale NaN":            func() { s.Gaussian(0, nan) },
		"small scale":          func() { Grid(0x1p-401) },
		"large scale":          func() { Sensitivity(1, 0x1p401) },
		"value NaN":            func() { s.Gaussian(nan, 1) },
		"value infinite":       func() { s.Laplace(math.Inf(-1), 1) },
		"large value":          func() { s.Laplace(0x1p401, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

package fastexp

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

// bigExp returns exp(x) to some 40 digits: the series for x/2^k, squared k times.
func bigExp(x float64) *big.Float {
	const precision, halvings, terms = 160, 12, 24
	small := new(big.Float).SetPrec(precision).SetFloat64(x)
	small.SetMantExp(small, -halvings)
	sum, term := big.NewFloat(1).SetPrec(precision), big.NewFloat(1).SetPrec(precision)
	for i := range terms {
		term.Mul(term, small)
		term.Quo(term, big.NewFloat(float64(i+1)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// distance returns |got - want|.
func distance(got float64, want *big.Float) float64 {
	d, _ := new(big.Float).SetPrec(160).Sub(big.NewFloat(got), want).Float64()
	return math.Abs(d)
}

func TestBigExp(t *testing.T) {
	for _, tc := range []struct {
		x    float64
		want string // OEIS A001113 and its powers
	}{
		{1, "2.71828182845904523536028747135266249775724709369996"},
		{-1, "0.36787944117144232159552377016146086744581113103177"},
		{10, "22026.4657948067165169579006452842443663535126185567811"},
	} {
		want, _, err := big.ParseFloat(tc.want, 10, 160, big.ToNearestEven)
		require.NoError(t, err)
		d, _ := new(big.Float).Quo(new(big.Float).Sub(bigExp(tc.x), want), want).Float64()
		if math.Abs(d) > 1e-40 {
			t.Errorf("exp(%g) = %.50g, want %s", tc.x, bigExp(tc.x), tc.want)
		}
	}
}

// arguments returns all scales of arguments, and those around the bounds and between two
// entries of the table.
func arguments() []float64 {
	xs := []float64{0, math.Copysign(0, -1), Least, Largest, math.SmallestNonzeroFloat64, -1e-300, -707.9644824878158}
	rng := rand.New(rand.NewPCG(1, 1))
	for _, scale := range []float64{1e-9, 1e-3, 0.1, 1, 10, 40, 700} {
		for range 1000 {
			xs = append(xs, scale*(2*rng.Float64()-1))
		}
	}
	for k := -2000.0; k < 2000; k++ {
		middle := (k + 0.5) / steps * math.Ln2
		xs = append(xs, middle, math.Nextafter(middle, 1e3), math.Nextafter(middle, -1e3))
	}
	return xs
}

func TestSplit(t *testing.T) {
	for _, x := range arguments() {
		power, rest := Split(x)
		want := bigExp(x)
		nearest, _ := want.Float64()
		unit := math.Nextafter(nearest, math.Inf(1)) - nearest
		most := 1.5
		if x < Least+1 {
			most = 2
		}
		off := new(big.Float).Sub(big.NewFloat(power+rest), want)
		if units, _ := off.Quo(off, big.NewFloat(unit)).Float64(); math.Abs(units) > most {
			t.Errorf("exp(%g): off by %.3g units in the last place", x, units)
		}
	}
}

// The parts keep the digits of exp(x) - 1.
func TestSplitLessOne(t *testing.T) {
	for _, x := range arguments() {
		if math.Abs(x) > 1 || math.Abs(x) < 1e-12 { // of which bigExp has too few digits
			continue
		}
		power, rest := Split(x)
		want := bigExp(x)
		want.Sub(want, big.NewFloat(1))
		size, _ := want.Float64()
		if d := distance(power-1+rest, want); d > math.Min(1e-13*math.Abs(size), 5e-16) {
			t.Errorf("exp(%g) - 1: off by %g", x, d)
		}
	}
}

func TestSplitGrows(t *testing.T) {
	before := 0.0
	for x := Least + 0.0; x <= Largest; x += 1.0 / 1024 { // exact steps
		power, rest := Split(x)
		if !(power+rest > before) {
			t.Fatalf("exp(%g) = %g does not exceed what is before", x, power+rest)
		}
		before = power + rest
	}
}

func TestSplitNaN(t *testing.T) {
	if power, rest := Split(math.NaN()); !math.IsNaN(power + rest) {
		t.Errorf("exp(NaN) = %g + %g", power, rest)
	}
}

// BenchmarkExp compares a loop of Split with one of math.Exp.
func BenchmarkExp(b *testing.B) {
	x, y := make([]float64, 256), make([]float64, 256)
	for i := range x {
		x[i] = -float64(i) / 10
	}
	b.Run("math", func(b *testing.B) {
		for b.Loop() {
			for i, v := range x {
				y[i] = math.Exp(v)
			}
		}
	})
	b.Run("split", func(b *testing.B) {
		for b.Loop() {
			for i, v := range x {
				power, rest := Split(v)
				y[i] = power + rest
			}
		}
	})
}

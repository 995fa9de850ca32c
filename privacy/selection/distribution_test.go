package selection

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/big"
	"os"
	"slices"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/floats/scalar"
	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

var methods = []privacy.SelectionMethod{privacy.Exponential, privacy.PermuteAndFlip, privacy.ReportNoisyMax}

func probabilities(t rapid.TB, method privacy.SelectionMethod, utilities []float64, sensitivity, epsilon float64) []float64 {
	t.Helper()
	p, err := Probabilities(method, utilities, sensitivity, epsilon)
	require.NoError(t, err)
	return p
}

func expectedLoss(p, utilities []float64) float64 {
	best := slices.Max(utilities)
	var loss float64
	for i, u := range utilities {
		loss += p[i] * (best - u)
	}
	return loss
}

// TestProbabilities: a table of another implementation, to the digits given.
func TestProbabilities(t *testing.T) {
	f, err := os.Open("testdata/probabilities.csv")
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	require.NoError(t, err)
	utilities := []float64{.85, .849, .84, .80, .5}
	kinds := map[string]privacy.SelectionMethod{"EM": privacy.Exponential, "PF": privacy.PermuteAndFlip}
	for _, row := range rows[1:] {
		m, err1 := strconv.ParseFloat(row[1], 64)
		epsilon, err2 := strconv.ParseFloat(row[2], 64)
		if err1 != nil || err2 != nil {
			t.Fatal(row)
		}
		p := probabilities(t, kinds[row[0]], utilities, 1/m, epsilon)
		for i, want := range row[3:8] {
			if p[i] < 1e-300 {
				p[i] = 0
			}
			if got := fmt.Sprintf("%.5g", p[i]); got != want {
				t.Errorf("%v: p%d = %s, want %s", row[:3], i+1, got, want)
			}
		}
		if got := fmt.Sprintf("%.6g", expectedLoss(p, utilities)); got != row[8] {
			t.Errorf("%v: expected loss %s, want %s", row[:3], got, row[8])
		}
	}
}

// permuteAndFlipExactly returns P(i) = p_i·Σ_k (−1)^k·e_k/(k+1) with the elementary symmetric
// polynomials e_k of the other p_j, the expansion of the integral, with 1000 bits.
func permuteAndFlipExactly(p []float64) []float64 {
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(1000).SetFloat64(x) }
	all := make([]float64, len(p))
	for i := range p {
		e := []*big.Float{number(1)}
		for j, pj := range p {
			if j == i {
				continue
			}
			e = append(e, number(0))
			for k := len(e) - 1; k > 0; k-- {
				e[k].Add(e[k], number(0).Mul(e[k-1], number(pj)))
			}
		}
		sum := number(0)
		for k, ek := range e {
			sign := float64(1 - 2*(k%2))
			sum.Add(sum, ek.Quo(ek, number(sign*float64(k+1))))
		}
		all[i], _ = sum.Mul(sum, number(p[i])).Float64()
	}
	return all
}

// TestFirstAccepted compares with the alternating sum.
func TestFirstAccepted(t *testing.T) {
	long := make([]float64, 150)
	for i := range long {
		long[i] = math.Exp(-0.05 * float64(i))
	}
	ties := slices.Repeat([]float64{1}, 60)
	for _, p := range [][]float64{{1}, {1, 1}, {1, 0.3, 0.001}, {1, 0.999, 0.5, 1e-8, 0}, long, ties, append([]float64{1}, slices.Repeat([]float64{0.1}, 80)...)} {
		got, want := firstAccepted(p), permuteAndFlipExactly(p)
		for i := range p {
			if !scalar.EqualWithinRel(got[i], want[i], 1e-13) {
				t.Errorf("%d candidates: P(%d) = %.16g, want %.16g", len(p), i, got[i], want[i])
			}
		}
	}
}

// TestNoisyMaxOfTwo: the difference of two Laplace numbers exceeds d with probability
// ½e^−d·(1 + d/2).
func TestNoisyMaxOfTwo(t *testing.T) {
	for _, d := range []float64{0, 1e-9, 0.1, 1, 7, 44, 46, 100, 300, 700} {
		p := largestNoisy([]float64{d, 0})
		if want := 0.5 * math.Exp(-d) * (1 + d/2); math.Abs(p[0]/want-1) > 1e-13 {
			t.Errorf("d = %g: %.16g, want %.16g", d, p[0], want)
		}
	}
}

// TestLargestNoisy compares with the trapezoidal rule on a fine grid that has the corners on
// it, of which the error is proportional to the square of the step: extrapolated.
func TestLargestNoisy(t *testing.T) {
	for _, a := range [][]float64{
		{0, 0, 0}, {0, 1, 3}, {0, 0.25, 0.5, 6, 8}, slices.Repeat([]float64{0}, 30), {4, 0, 4, 4, 4, 0.5}, {0, 30, 60},
		append([]float64{0}, slices.Repeat([]float64{2}, 200)...),
	} {
		got := largestNoisy(a)
		for i := range a {
			if first := slices.Index(a, a[i]); first < i {
				if got[i] != got[first] {
					t.Errorf("%v: P(%d) = %.16g, but P(%d) = %.16g", a, i, got[i], first, got[first])
				}
				continue
			}
			integral := func(step float64) float64 {
				var sum float64
				for x := -90.0; x <= 45; x += step {
					term := 0.5 * math.Exp(-math.Abs(x+a[i]))
					for j, d := range a {
						switch z := x + d; {
						case j == i:
						case z < 0:
							term *= 0.5 * math.Exp(z)
						default:
							term *= 1 - 0.5*math.Exp(-z)
						}
					}
					sum += term
				}
				return sum * step
			}
			coarse, fine := integral(1.0/64), integral(1.0/128)
			if want := (4*fine - coarse) / 3; !scalar.EqualWithinRel(got[i], want, 1e-8) {
				t.Errorf("%v: P(%d) = %.12g, want %.12g", a, i, got[i], want)
			}
		}
	}
}

func randomUtilities(t *rapid.T) []float64 {
	spread := math.Exp2(rapid.Float64Range(-10, 8).Draw(t, "log2 spread"))
	utilities := make([]float64, rapid.IntRange(1, 40).Draw(t, "candidates"))
	for i := range utilities {
		utilities[i] = spread * rapid.Float64Range(-1, 1).Draw(t, "utility")
	}
	return utilities
}

// TestDistributionProperties: probabilities sum to 1, rise with the utility, do not depend on
// where utilities begin, and change by e^ε at most between neighbours. Permute-and-flip loses
// no more than the exponential mechanism, and that no more than the bound.
func TestDistributionProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		utilities := randomUtilities(t)
		epsilon := math.Exp2(rapid.Float64Range(-6, 4).Draw(t, "log2 epsilon"))
		const sensitivity = 1.0
		neighbour, shifted := slices.Clone(utilities), slices.Clone(utilities)
		for i := range neighbour {
			neighbour[i] += sensitivity * rapid.SampledFrom([]float64{-1, 1, 0, 0.5}).Draw(t, "change")
			shifted[i] += 3
		}
		losses := make(map[privacy.SelectionMethod]float64)
		for _, method := range methods {
			p := probabilities(t, method, utilities, sensitivity, epsilon)
			if sum := floats.Sum(p); !scalar.EqualWithinRel(sum, 1, 1e-11) {
				t.Fatalf("method %d: sum %.15g of %v", method, sum, p)
			}
			q := probabilities(t, method, neighbour, sensitivity, epsilon)
			r := probabilities(t, method, shifted, sensitivity, epsilon)
			for i := range p {
				if p[i] > 1e-290 && math.Abs(math.Log(p[i]/q[i])) > epsilon+1e-9 {
					t.Fatalf("method %d: P(%d) = %g against %g, epsilon %g", method, i, p[i], q[i], epsilon)
				}
				if !scalar.EqualWithinAbsOrRel(p[i], r[i], 1e-300, 1e-9) {
					t.Fatalf("method %d: P(%d) = %g, after a shift %g", method, i, p[i], r[i])
				}
				for j := range p {
					if utilities[i] > utilities[j] && p[i] < p[j]*(1-1e-10) {
						t.Fatalf("method %d: P(%d) = %g below P(%d) = %g", method, i, p[i], j, p[j])
					}
				}
			}
			losses[method] = expectedLoss(p, utilities)
		}
		bound := ExpectedLossBound(len(utilities), sensitivity, epsilon)
		if losses[privacy.PermuteAndFlip] > losses[privacy.Exponential]*(1+1e-10)+1e-300 || losses[privacy.Exponential] > bound*(1+1e-10) {
			t.Fatalf("losses %v, bound %g", losses, bound)
		}
	})
}

// TestExpectedLossBound: 15,000 records, ε = 0.1, 100 candidates, by hand.
func TestExpectedLossBound(t *testing.T) {
	if got := ExpectedLossBound(100, 1.0/15000, 0.1); !scalar.EqualWithinRel(got, 2*math.Log(100)/1500, 1e-14) {
		t.Errorf("got %g", got)
	}
	if got := ExpectedLossBound(1, 1, 1); got != 0 {
		t.Errorf("one candidate: %g", got)
	}
}

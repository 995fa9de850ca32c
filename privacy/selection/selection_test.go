package selection

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

func choose(t rapid.TB, method privacy.SelectionMethod, src *noise.Source, utilities []float64, sensitivity, epsilon float64) int {
	t.Helper()
	i, err := Select(method, src, utilities, sensitivity, epsilon)
	require.NoError(t, err)
	return i
}

// TestSequences: do not change these values. Simulations are repeated by their seeds.
func TestSequences(t *testing.T) {
	want := map[privacy.SelectionMethod][]int{
		privacy.Exponential:    {0, 2, 1, 3, 3, 1, 3, 3, 3, 3, 3, 2, 3, 1, 1, 3},
		privacy.PermuteAndFlip: {1, 1, 1, 3, 3, 1, 3, 1, 3, 5, 1, 1, 3, 1, 1, 2},
		privacy.ReportNoisyMax: {1, 3, 1, 3, 1, 3, 1, 2, 1, 3, 2, 3, 2, 2, 1, 3},
	}
	utilities := []float64{0.3, 0.7, 0.65, 0.71, 0.2, 0.5}
	for method, choices := range want {
		src := noise.Seeded(31)
		var got []int
		for range 16 {
			got = append(got, choose(t, method, src, utilities, 0.05, 0.9))
		}
		if diff := cmp.Diff(choices, got); diff != "" {
			t.Errorf("method %d: %s", method, diff)
		}
	}
}

// TestFrequencies: choices follow the distributions.
func TestFrequencies(t *testing.T) {
	const runs = 30_000
	for k, utilities := range [][]float64{{0, 0}, {0.1, 0.9, 0.5}, {-3, 1, 1, 0.7, 0.2, 0.999}, {5e300, 5e300, 5e300}, {0, -1, -2, -3, -4, -5, -6}} {
		for _, method := range methods {
			if method == privacy.ReportNoisyMax && utilities[0] > 1e300 {
				continue // outside of its range
			}
			src := noise.Seeded(uint64(40 + k))
			counts := make([]float64, len(utilities))
			for range runs {
				counts[choose(t, method, src, utilities, 0.5, 1.3)]++
			}
			var sum float64
			for i, p := range probabilities(t, method, utilities, 0.5, 1.3) {
				sum += (counts[i] - runs*p) * (counts[i] - runs*p) / (runs * p)
			}
			if limit := (distuv.ChiSquared{K: float64(len(utilities) - 1)}).Quantile(1 - 1e-6); sum > limit {
				t.Errorf("%v, method %d: chi-square %g above %g: %v", utilities, method, sum, limit, counts)
			}
		}
	}
}

// TestWhole: the integer is below γ, exactly, and not far below.
func TestWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		best := rapid.Float64().Filter(finite).Draw(t, "best")
		utility := min(best, rapid.Float64().Filter(finite).Draw(t, "utility"))
		if rapid.Bool().Draw(t, "close") {
			utility = best - math.Abs(best)*rapid.Float64Range(0, 1).Draw(t, "share")
		}
		sensitivity := math.Exp2(rapid.Float64Range(-1000, 1000).Draw(t, "log2 sensitivity"))
		epsilon := math.Exp2(rapid.Float64Range(-1000, 1000).Draw(t, "log2 epsilon"))
		if !finite(utility) {
			t.Skip("overflow")
		}
		trial, err := newTrial(nil, []float64{best, utility}, sensitivity, epsilon)
		require.NoError(t, err)
		gamma := new(big.Rat).Sub(new(big.Rat).SetFloat64(best), new(big.Rat).SetFloat64(utility))
		gamma.Mul(gamma, trial.rate)
		whole := trial.whole(utility)
		rest := gamma.Sub(gamma, new(big.Rat).SetInt(new(big.Int).SetUint64(whole)))
		if rest.Sign() < 0 {
			t.Fatalf("%d is above the exponent", whole)
		}
		ordinary := func(x float64) bool { return x > 1e-100 && x < 1e100 }
		if left, _ := rest.Float64(); ordinary(best-utility) && ordinary(sensitivity) && ordinary(epsilon) && whole < 1<<61 && left > 1+float64(whole)*0x1p-49 {
			t.Fatalf("%d is %g below the exponent", whole, left)
		}
	})
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// TestExtremes: what no float could decide is decided all the same.
func TestExtremes(t *testing.T) {
	src := noise.Seeded(32)
	for _, method := range methods {
		if got := choose(t, method, src, []float64{-7}, 1, 1); got != 0 {
			t.Errorf("method %d: the only candidate is %d", method, got)
		}
		if got := choose(t, method, src, []float64{0, 1e100, 1}, 1, 1); got != 1 {
			t.Errorf("method %d: candidate %d is chosen", method, got)
		}
	}
	for _, method := range methods[:2] {
		if got := choose(t, method, src, []float64{math.MaxFloat64, -math.MaxFloat64}, 1, 1); got != 0 {
			t.Errorf("method %d: candidate %d is chosen", method, got)
		}
		// A difference of the smallest float, 2⁻¹⁰⁷⁴, and a rate of 2¹⁰⁷³: γ = ½.
		counts := [2]int{}
		for range 10_000 {
			counts[choose(t, method, src, []float64{math.SmallestNonzeroFloat64, 0}, 0x1p-537, 0x1p537)]++
		}
		want := probabilityOfSecond(method, 0.5)
		if got := float64(counts[1]) / 10_000; math.Abs(got-want) > 0.025 {
			t.Errorf("method %d: second of two with probability %g, want %g", method, got, want)
		}
	}
}

// probabilityOfSecond is the distribution of two candidates in closed form, weights 1 and
// e^−γ.
func probabilityOfSecond(method privacy.SelectionMethod, gamma float64) float64 {
	w := math.Exp(-gamma)
	if method == privacy.PermuteAndFlip {
		return w / 2
	}
	return w / (1 + w)
}

// TestLargeOffset: utilities far from 0 keep all digits in NoisyMax.
func TestLargeOffset(t *testing.T) {
	const runs = 20_000
	src := noise.Seeded(33)
	second := 0
	for range runs {
		second += choose(t, privacy.ReportNoisyMax, src, []float64{0x1p60 + 0x1p8, 0x1p60}, 0x1p7, 1)
	}
	// d = 1 in scales of the noise.
	if want := 0.5 * math.Exp(-1) * 1.5; math.Abs(float64(second)/runs-want) > 5*math.Sqrt(want/runs) {
		t.Errorf("second of two with probability %g, want %g", float64(second)/runs, want)
	}
}

func TestErrors(t *testing.T) {
	good := []float64{1, 2}
	for _, tc := range []struct {
		name                 string
		methods              []privacy.SelectionMethod
		utilities            []float64
		sensitivity, epsilon float64
		fields               []string
	}{
		{"no candidate", methods, nil, 1, 1, []string{"utilities"}},
		{"utilities", methods, []float64{math.NaN(), 1, math.Inf(1), math.Inf(-1)}, 1, 1, []string{"utilities[0]", "utilities[2]", "utilities[3]"}},
		{"sensitivity and epsilon", methods, good, 0, -1, []string{"sensitivity", "epsilon"}},
		{"NaN", methods, good, math.NaN(), math.NaN(), []string{"sensitivity", "epsilon"}},
		{"infinite", methods, good, math.Inf(1), math.Inf(1), []string{"sensitivity", "epsilon"}},
		{"method", []privacy.SelectionMethod{0, 4}, good, 1, 1, []string{"method"}},
		{"small epsilon on a grid", methods[2:], good, 1, 0x1p-41, []string{"epsilon"}},
		{"large epsilon on a grid", methods[2:], good, 1, 0x1p41, []string{"epsilon"}},
		{"scale on a grid", methods[2:], good, 0x1p-402, 1, []string{"sensitivity"}},
		{"utility on a grid", methods[2:], []float64{0, -0x1p401}, 1, 1, []string{"utilities[1]"}},
	} {
		for _, method := range tc.methods {
			_, err := Select(method, noise.Seeded(1), tc.utilities, tc.sensitivity, tc.epsilon)
			var fields []string
			for _, e := range privacy.FieldErrors(err) {
				fields = append(fields, e.Field)
			}
			if diff := cmp.Diff(tc.fields, fields); diff != "" {
				t.Errorf("%s, method %d: %s", tc.name, method, diff)
			}
		}
	}
	if _, err := Probabilities(0, good, 1, 1); len(privacy.FieldErrors(err)) != 1 {
		t.Errorf("distribution of an unknown method: %v", err)
	}
	if _, err := Probabilities(privacy.Exponential, nil, 1, 1); len(privacy.FieldErrors(err)) != 1 {
		t.Errorf("distribution without candidates: %v", err)
	}
}

// TestAudit attacks each method where one utility gains what all others lose.
func TestAudit(t *testing.T) {
	const candidates, epsilon = 20, 1.0
	for _, tc := range []struct {
		method privacy.SelectionMethod
		ahead  float64 // by which the first candidate is ahead on the first data set
		chosen bool    // whether the event is that it is chosen
		runs   int     // enough for the power below
	}{
		{privacy.Exponential, 1, true, 30_000},
		{privacy.PermuteAndFlip, 7, false, 100_000},
		{privacy.ReportNoisyMax, 0, true, 100_000},
	} {
		t.Run(privacy.Selection{Method: tc.method}.Name(), func(t *testing.T) {
			src := noise.Seeded(50)
			event := func(epsilon float64) func(second bool) bool {
				return func(second bool) bool {
					utilities := make([]float64, candidates)
					utilities[0] = tc.ahead
					switch {
					case second && tc.chosen:
						utilities[0] -= 2
					case second:
						utilities[0] += 2
					}
					return (choose(t, tc.method, src, utilities, 1, epsilon) == 0) == tc.chosen
				}
			}
			privacytest.Audit{Epsilon: epsilon, Runs: tc.runs, Power: 0.7, Event: event(epsilon), Broken: event(2 * epsilon)}.Check(t)
		})
	}
}

func FuzzSelect(f *testing.F) {
	f.Add(uint64(1), 0.0, 1.0, 2.0, 1.0, 1.0)
	f.Add(uint64(2), math.MaxFloat64, -math.MaxFloat64, 0.0, 1e-300, 1e300)
	f.Add(uint64(3), 5e-324, 0.0, -5e-324, 1e300, 1e-300)
	f.Add(uint64(4), 1e100, 1.0, 0.0, 1e90, 0x1p-40)
	f.Fuzz(func(t *testing.T, seed uint64, a, b, c, sensitivity, epsilon float64) {
		utilities := []float64{a, b, c}
		for _, method := range methods {
			i, err := Select(method, noise.Seeded(seed), utilities, sensitivity, epsilon)
			if err != nil {
				if len(privacy.FieldErrors(err)) == 0 {
					t.Fatalf("error without a field: %v", err)
				}
				continue
			}
			if i < 0 || i >= len(utilities) {
				t.Fatalf("candidate %d of %d", i, len(utilities))
			}
			p, err := Probabilities(method, utilities, sensitivity, epsilon)
			require.NoError(t, err)
			if slices.ContainsFunc(p, math.IsNaN) || slices.Min(p) < 0 || slices.Max(p) > 1+1e-9 {
				t.Fatalf("method %d: probabilities %v", method, p)
			}
		}
	})
}

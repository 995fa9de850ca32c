package noise

import (
	"encoding/binary"
	"math"
	"math/big"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat/distuv"
)

// scripted returns a source that draws the given numbers first, at most 128.
func scripted(numbers ...uint64) *Source {
	s := &Source{left: len(numbers)}
	for i, u := range numbers {
		binary.LittleEndian.PutUint64(s.bytes[8*(buffered-len(numbers)+i):], u)
	}
	return s
}

// checkChiSquare reports an error where counts with these expectations, of categories
// that are disjoint and complete, would be farther off with probability 1e-6 only.
func checkChiSquare(t *testing.T, what string, counts, expected []float64) {
	t.Helper()
	var sum float64
	for i, e := range expected {
		sum += (counts[i] - e) * (counts[i] - e) / e
	}
	limit := distuv.ChiSquared{K: float64(len(expected) - 1)}.Quantile(1 - 1e-6)
	if sum > limit {
		t.Errorf("%s: chi-square %g of %d categories, limit %g: %v, expected %v", what, sum, len(expected), limit, counts, expected)
	}
}

// checkShare reports an error where a share of draws differs from a probability by more
// than five standard deviations.
func checkShare(t *testing.T, what string, p float64, draw func() bool) {
	t.Helper()
	const runs = 100_000
	count := 0
	for range runs {
		if draw() {
			count++
		}
	}
	if math.Abs(float64(count)-runs*p) > 5*math.Sqrt(runs*p*(1-p)) {
		t.Errorf("%s: %d of %d, expected %g", what, count, runs, runs*p)
	}
}

// TestSequences: do not change these values. A change of a sampler must keep them, or
// be another sampler: simulations are repeated by their seeds.
func TestSequences(t *testing.T) {
	var got struct {
		Uint64, Uint64N    []uint64
		Float64            []float64
		Exp                []bool
		Laplace, Gaussian  []int64
		LaplaceR, GaussR   []float64
		ExpRat, FloatProbs []bool
	}
	s := Seeded(7)
	for range 4 {
		got.Uint64 = append(got.Uint64, s.Uint64())
		got.Uint64N = append(got.Uint64N, s.Uint64N(1000))
		got.Float64 = append(got.Float64, s.Float64())
		got.Exp = append(got.Exp, s.BernoulliExpInteger(1))
		got.Laplace = append(got.Laplace, s.DiscreteLaplace(10))
		got.Gaussian = append(got.Gaussian, s.DiscreteGaussian(10))
		got.LaplaceR = append(got.LaplaceR, s.Laplace(0.5, 3))
		got.GaussR = append(got.GaussR, s.Gaussian(0.5, 3))
		got.ExpRat = append(got.ExpRat, s.BernoulliExp(big.NewRat(2, 3)))
		got.FloatProbs = append(got.FloatProbs, s.BernoulliFloat64(0.3))
	}
	want := got
	want.Uint64 = []uint64{597156759996744206, 9517319776071699897, 9064721801628212668, 9441983461354760690}
	want.Uint64N = []uint64{640, 658, 411, 714}
	want.Float64 = []float64{0.40488966264864334, 0.4168153398450565, 0.9033811284546277, 0.7363457558102022}
	want.Exp = []bool{false, false, false, true}
	want.Laplace = []int64{7, -1, -21, -4}
	want.Gaussian = []int64{4, -8, -12, -3}
	want.LaplaceR = []float64{-5.348405710306906, -0.9352562967524136, 4.435775478608775, 6.333018586930848}
	want.GaussR = []float64{5.99844167475203, -2.08646160418175, -2.6477454673222383, 0.7394172368040017}
	want.ExpRat = []bool{true, false, false, true}
	want.FloatProbs = []bool{true, false, false, false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSystem(t *testing.T) {
	first, second := System(), new(Source)
	same := 0
	for range 1000 {
		if first.Uint64() == second.Uint64() {
			same++
		}
	}
	if same > 0 {
		t.Errorf("%d numbers of two sources are the same", same)
	}
	for i := range 8 * (buffered - first.left) {
		if first.bytes[i] != 0 {
			t.Fatalf("byte %d is not erased", i)
		}
	}
	checkShare(t, "highest bit", 0.5, func() bool { return first.Uint64()>>63 == 1 })
}

// TestConcurrentUse: goroutines that share a source see disjoint parts of its sequence.
func TestConcurrentUse(t *testing.T) {
	const workers, each = 8, 2000
	s, alone := Seeded(3), Seeded(3)
	want := make(map[uint64]int)
	for range workers * each {
		want[alone.Uint64()]++
	}
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		got = make(map[uint64]int)
	)
	for range workers {
		wg.Go(func() {
			for range each {
				u := s.Uint64()
				mu.Lock()
				got[u]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUint64N(t *testing.T) {
	s := Seeded(4)
	for _, n := range []uint64{1, 2, 7, 1000} {
		const runs = 100_000
		counts, expected := make([]float64, n), make([]float64, n)
		for i := range expected {
			expected[i] = runs / float64(n)
		}
		for range runs {
			counts[s.Uint64N(n)]++
		}
		if n > 1 {
			checkChiSquare(t, "Uint64N", counts, expected)
		}
	}
	// 3·2⁶² is rejected a quarter of the time; without that one third would be even.
	checkShare(t, "Uint64N(3·2^62) in the first third", 1.0/3, func() bool { return s.Uint64N(3<<62) < 1<<62 })
	// Of 2⁶⁴ numbers 2⁶⁴ mod 3 = 1 is rejected.
	if got := scripted(0, 1<<63).Uint64N(3); got != 1 {
		t.Errorf("got %d after a rejection, want 1", got)
	}
}

func TestFloat64(t *testing.T) {
	s := Seeded(5)
	const runs, bins = 100_000, 50
	counts, expected := make([]float64, bins), make([]float64, bins)
	for i := range expected {
		expected[i] = runs / bins
	}
	for range runs {
		x := s.Float64()
		if x < 0 || x >= 1 || x != math.Trunc(x*(1<<53))/(1<<53) {
			t.Fatalf("%g", x)
		}
		counts[int(x*bins)]++
	}
	checkChiSquare(t, "Float64", counts, expected)
	if largest := scripted(math.MaxUint64).Float64(); largest != 1-0x1p-53 {
		t.Errorf("the largest is 1 − %g", 1-largest)
	}
}

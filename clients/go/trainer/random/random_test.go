package random

import (
	"crypto/aes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpareto/dpareto/internal/require"
)

// The output blocks of example F.5.1, AES-128 in counter mode, of NIST Special
// Publication 800-38A (2001).
func TestKnownAnswers(t *testing.T) {
	s := newStream(
		[]byte{0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c},
		[16]byte{0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff})
	var got [64]byte
	for i := 0; i < len(got); i += 8 {
		binary.LittleEndian.PutUint64(got[i:], s.Uint64())
	}
	const want = "ec8cdf7398607cb0f2d21675ea9ea1e4" + "362b7c3c6773516318a077d7fc5073ae" +
		"6a2cc3787889374fbeb4c81b17ba6c44" + "e89c399ff0f198c6d40a31db156cabfe"
	if hex.EncodeToString(got[:]) != want {
		t.Errorf("output blocks %x, want %s", got, want)
	}
}

// Number 2i of a stream is the first half of the encryption of (replicate, index, i)
// under (seed, purpose), as the package comment says.
func TestStreamIsCounterMode(t *testing.T) {
	block, err := aes.NewCipher([]byte("\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x07"))
	require.NoError(t, err)
	s := New(5, 3, 7, 11)
	for i := range uint64(3 * buffered / 2) {
		counter := [aes.BlockSize]byte{3: 3, 7: 11}
		binary.BigEndian.PutUint64(counter[8:], i)
		block.Encrypt(counter[:], counter[:])
		for half := range 2 {
			if got, want := s.Uint64(), binary.LittleEndian.Uint64(counter[8*half:]); got != want {
				t.Fatalf("half %d of block %d is %x, want %x", half, i, got, want)
			}
		}
	}
}

// The sequences below may not change: stored results depend on them.
func TestGolden(t *testing.T) {
	s := New(1, 2, 3, 4)
	if got, want := s.Uint64(), uint64(0x5daace9a99b4a6b3); got != want {
		t.Errorf("Uint64 is %#x, want %#x", got, want)
	}
	if got, want := s.Uint32N(1000), uint32(559); got != want {
		t.Errorf("Uint32N is %d, want %d", got, want)
	}
	if got, want := s.Float64(), 0.39735631086024736; got != want {
		t.Errorf("Float64 is %v, want %v", got, want)
	}
	numbers := make([]float64, 10000)
	AddNormals(numbers, s, 1)
	sum := floats.Sum(numbers)
	if want := 152.251778461556; math.Abs(sum-want) > 1e-9 {
		t.Errorf("10000 normal numbers sum to %v, want %v", sum, want)
	}
	order := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	s.Lot(order, 4)
	if want := []int32{4, 1, 3, 0}; !slices.Equal(order[:4], want) {
		t.Errorf("lot %v, want %v", order[:4], want)
	}
	if got, want := s.Bernoulli(nil, 20, 0.3), []int32{4, 6, 9, 11, 14, 15}; !slices.Equal(got, want) {
		t.Errorf("sample %v, want %v", got, want)
	}
	sums := []int64{1, 2, 3}
	AddNoise(sums, s)
	if want := []int64{-475945539654, -925915293767, 1925232352621}; !slices.Equal(sums, want) {
		t.Errorf("noisy sums %v, want %v", sums, want)
	}
}

func TestStreamsDiffer(t *testing.T) {
	seen := make(map[uint64]string)
	check := func(name string, s *Stream) {
		t.Helper()
		u := s.Uint64()
		if other, ok := seen[u]; ok {
			t.Errorf("%s begins as %s does", name, other)
		}
		seen[u] = name
	}
	for i := range 3 {
		for j := range 3 {
			for k := range 3 {
				for l := range 3 {
					check(fmt.Sprint(i, j, k, l), New(uint64(i), j, uint64(k), l))
				}
			}
		}
		check("system", System())
	}
}

// moments checks the first four moments of standard normal numbers within four
// standard errors.
func moments(t *testing.T, draws []float64) {
	t.Helper()
	n := float64(len(draws))
	mean, variance := stat.MeanVariance(draws, nil)
	for _, tt := range []struct {
		name                     string
		got, want, standardError float64
	}{
		{"mean", mean, 0, math.Sqrt(1 / n)},
		{"variance", variance, 1, math.Sqrt(2 / n)},
		{"skewness", stat.Skew(draws, nil), 0, math.Sqrt(6 / n)},
		{"excess kurtosis", stat.ExKurtosis(draws, nil), 0, math.Sqrt(24 / n)},
		{"lag-one correlation", stat.Correlation(draws[1:], draws[:len(draws)-1], nil), 0, math.Sqrt(1 / n)},
	} {
		if math.Abs(tt.got-tt.want) > 4*tt.standardError {
			t.Errorf("%s %v, want %v ± %v", tt.name, tt.got, tt.want, tt.standardError)
		}
	}
}

func TestNormalDistribution(t *testing.T) {
	const n = 2_000_000
	draws := make([]float64, n)
	AddNormals(draws, New(1, 0, 0, 0), 1)
	moments(t, draws)

	slices.Sort(draws)
	distance := 0.0 // of Kolmogorov and Smirnov
	for i, x := range draws {
		p := distuv.UnitNormal.CDF(x)
		distance = max(distance, p-float64(i)/n, float64(i+1)/n-p)
	}
	// P(√n D > 1.95) is 0.001 (Kolmogorov's limit).
	if statistic := distance * math.Sqrt(n); statistic > 1.95 {
		t.Errorf("Kolmogorov-Smirnov statistic √n D = %v, want at most 1.95", statistic)
	}
	// Both tails, before, around and beyond the last slots.
	for _, at := range []float64{2.5, 3, 3.25, 3.5, 4, 4.5} {
		upper := float64(n - firstAbove(draws, at))
		lower := float64(firstAbove(draws, -at))
		want := distuv.UnitNormal.Survival(at) * n
		for name, got := range map[string]float64{"above ": upper, "below −": lower} {
			if math.Abs(got-want) > 4*math.Sqrt(want)+1 {
				t.Errorf("%v draws %s%v, want %v", got, name, at, want)
			}
		}
	}
	// Many bins of equal probability.
	const bins = 1000
	counts, expected := make([]float64, bins), make([]float64, bins)
	for _, x := range draws {
		counts[min(int(distuv.UnitNormal.CDF(x)*bins), bins-1)]++
	}
	for i := range expected {
		expected[i] = float64(n) / bins
	}
	if p := chiSquareProbability(counts, expected); p < 1e-4 {
		t.Errorf("%d bins of equal probability: p = %v", bins, p)
	}
}

func firstAbove(sorted []float64, x float64) int {
	i, _ := slices.BinarySearch(sorted, x)
	return i
}

func chiSquareProbability(counts, expected []float64) float64 {
	dist := distuv.ChiSquared{K: float64(len(counts) - 1)}
	return dist.Survival(stat.ChiSquare(counts, expected))
}

func TestAddNormals(t *testing.T) {
	const n = 100_000
	numbers := make([]float32, n)
	for i := range numbers {
		numbers[i] = 5
	}
	AddNormals(numbers, New(2, 0, 0, 0), 3)
	draws := make([]float64, n)
	for i, v := range numbers {
		draws[i] = (float64(v) - 5) / 3
	}
	moments(t, draws)
	system := make([]float64, n)
	AddNormals(system, System(), 1)
	moments(t, system)
}

// As many numbers fall into each of many bins of equal probability.
func TestExponential(t *testing.T) {
	const n, bins = 100_000, 200
	s := New(3, 0, 0, 0)
	counts, expected := make([]float64, bins), make([]float64, bins)
	for range n {
		x := s.Exponential()
		if x < 0 {
			t.Fatalf("exponential number %v", x)
		}
		counts[min(int(distuv.Exponential{Rate: 1}.CDF(x)*bins), bins-1)]++
	}
	for i := range expected {
		expected[i] = n / bins
	}
	if p := chiSquareProbability(counts, expected); p < 1e-4 {
		t.Errorf("%d bins of equal probability: p = %v", bins, p)
	}
}

// All orders of four elements are equally likely.
func TestShuffle(t *testing.T) {
	const draws = 48_000
	s := New(4, 0, 0, 0)
	order := []int32{0, 1, 2, 3}
	seen := make(map[[4]int32]float64)
	for range draws {
		s.Shuffle(order)
		seen[[4]int32(order)]++
	}
	if len(seen) != 24 {
		t.Fatalf("%d orders, want 24", len(seen))
	}
	counts, expected := slices.Collect(maps.Values(seen)), make([]float64, len(seen))
	for i := range expected {
		expected[i] = draws / 24
	}
	if p := chiSquareProbability(counts, expected); p < 1e-4 {
		t.Errorf("orders are not uniform, p = %v", p)
	}
}

func TestOpen(t *testing.T) {
	if got, want := Open(new(uint64(1)), 2, 3, 4).Uint64(), New(1, 2, 3, 4).Uint64(); got != want {
		t.Errorf("the seed begins with %d, want %d", got, want)
	}
	if a, b := Open(nil, 2, 3, 4).Uint64(), Open(nil, 2, 3, 4).Uint64(); a == b {
		t.Errorf("the operating system repeats %d", a)
	}
}

func TestUint32N(t *testing.T) {
	const n, draws = 7, 70_000
	s := New(1, 0, 0, 0)
	counts, expected := make([]float64, n), make([]float64, n)
	for range draws {
		counts[s.Uint32N(n)]++
	}
	for i := range expected {
		expected[i] = draws / n
	}
	if p := chiSquareProbability(counts, expected); p < 1e-4 {
		t.Errorf("counts %v, p = %v", counts, p)
	}
}

// Lots are uniform over the subsets of their size, and independent.
func TestLot(t *testing.T) {
	const rows, size, lots = 12, 5, 60_000
	order := make([]int32, rows)
	for i := range order {
		order[i] = int32(i)
	}
	s := New(1, 0, 0, 0)
	index := make(map[uint16]int)
	for _, subset := range combin.Combinations(rows, size) {
		var bits uint16
		for _, row := range subset {
			bits |= 1 << row
		}
		index[bits] = len(index)
	}
	counts, expected := make([]float64, len(index)), make([]float64, len(index))
	for range lots {
		s.Lot(order, size)
		var bits uint16
		for _, row := range order[:size] {
			bits |= 1 << row
		}
		i, ok := index[bits]
		if !ok {
			t.Fatalf("lot %v has rows twice", order[:size])
		}
		counts[i]++
	}
	for i := range expected {
		expected[i] = lots / float64(len(index))
	}
	if p := chiSquareProbability(counts, expected); p < 1e-4 {
		t.Errorf("subsets are not uniform, p = %v", p)
	}
}

// Every number is taken with the same probability, independently of the others.
func TestBernoulli(t *testing.T) {
	const n, p, draws = 10, 0.3, 50_000
	s := New(1, 0, 0, 0)
	counts, expected := make([]float64, 1<<n), make([]float64, 1<<n)
	var sample []int32
	for range draws {
		sample = s.Bernoulli(sample[:0], n, p)
		if !slices.IsSorted(sample) {
			t.Fatalf("sample %v does not increase", sample)
		}
		bits := 0
		for _, row := range sample {
			bits |= 1 << row
		}
		counts[bits]++
	}
	// Subsets by size and by first member, since single subsets are rare.
	groups := make(map[[2]int]int)
	var observed, wanted []float64
	for bits := range counts {
		size, first := 0, n
		for i := n - 1; i >= 0; i-- {
			if bits>>i&1 == 1 {
				size, first = size+1, i
			}
		}
		expected[bits] = draws * math.Pow(p, float64(size)) * math.Pow(1-p, float64(n-size))
		group, ok := groups[[2]int{size, first}]
		if !ok {
			group = len(observed)
			groups[[2]int{size, first}] = group
			observed, wanted = append(observed, 0), append(wanted, 0)
		}
		observed[group] += counts[bits]
		wanted[group] += expected[bits]
	}
	var statistic, cells float64
	for i := range observed {
		if wanted[i] >= 10 {
			statistic += (observed[i] - wanted[i]) * (observed[i] - wanted[i]) / wanted[i]
			cells++
		}
	}
	if probability := (distuv.ChiSquared{K: cells - 1}).Survival(statistic); probability < 1e-4 {
		t.Errorf("chi-square %v over %v cells, p = %v", statistic, cells, probability)
	}
	if got := s.Bernoulli(nil, 4, 1); !slices.Equal(got, []int32{0, 1, 2, 3}) {
		t.Errorf("probability 1: %v, want all", got)
	}
	if got := s.Bernoulli(nil, 1000, 1e-300); len(got) != 0 {
		t.Errorf("probability 1e-300: %v, want none", got)
	}
}

func TestPanics(t *testing.T) {
	s := New(1, 0, 0, 0)
	for name, f := range map[string]func(){
		"random: replicate or index outside of 32 bits": func() { New(1, -1, 0, 0) },
		"random: empty range":                           func() { s.Uint32N(0) },
		"random: lot size outside the data":             func() { s.Lot(make([]int32, 3), 4) },
		"random: probability outside (0, 1]":            func() { s.Bernoulli(nil, 3, 0) },
	} {
		func() {
			defer func() {
				if got := recover(); got != name {
					t.Errorf("panic %v, want %q", got, name)
				}
			}()
			f()
		}()
	}
}

func TestNoAllocation(t *testing.T) {
	noise, sums := make([]float32, 500), make([]int64, 500)
	order := make([]int32, 500)
	for name, s := range map[string]*Stream{"seed": New(1, 0, 0, 0), "system": System()} {
		n := testing.AllocsPerRun(20, func() {
			AddNormals(noise, s, 1)
			AddNoise(sums, s)
			s.Lot(order, 100)
		})
		if n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

// BenchmarkNoise compares the exact noise with a ziggurat in float64, of package math/rand/v2.
func BenchmarkNoise(b *testing.B) {
	const size = 4096
	measure := func(name string, draw func()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				draw()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/number")
		})
	}
	sums, values := make([]int64, size), make([]float32, size)
	for name, s := range map[string]*Stream{"seed": New(1, 0, 0, 0), "system": System()} {
		measure("exact/"+name, func() { AddNoise(sums, s) })
		measure("normals/"+name, func() { AddNormals(values, s, 1) })
		ziggurat := rand.New(s)
		measure("ziggurat/"+name, func() {
			for i := range values {
				values[i] = float32(float64(values[i]) + ziggurat.NormFloat64())
			}
		})
	}
}

// Allocate puts every row into one bin, and bins have their rows in order. Bins are equally likely.
func TestAllocate(t *testing.T) {
	const rows, bins, draws = 7, 3, 20_000
	s := New(3, 0, 1, 0)
	order, scratch, ends := make([]int32, rows), make([]int32, rows), make([]int32, bins)
	var first [bins]float64
	for range draws {
		s.Allocate(order, scratch, ends)
		begin := int32(0)
		for bin, end := range ends {
			if !slices.IsSorted(order[begin:end]) {
				t.Fatalf("order %v, ends %v", order, ends)
			}
			if slices.Contains(order[begin:end], 0) {
				first[bin]++
			}
			begin = end
		}
		if all := slices.Sorted(slices.Values(order)); begin != rows || !slices.Equal(all, []int32{0, 1, 2, 3, 4, 5, 6}) {
			t.Fatalf("order %v, ends %v", order, ends)
		}
	}
	for bin, count := range first {
		if math.Abs(count-draws/bins) > 4.5*math.Sqrt(draws*2.0/9) {
			t.Errorf("row 0 is in bin %d in %v of %d draws", bin, count, draws)
		}
	}
	s.Allocate(nil, nil, ends)
	if slices.Max(ends) != 0 {
		t.Errorf("ends %v without rows", ends)
	}
}

package random

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// density returns √(2/π)·e^(−x²/2) to about 500 bits, by the series of e^(x²/2), which has
// positive terms only.
func density(x float64) *big.Float {
	const precision = 600
	number := func(v float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(v) }
	// The first 120 digits of π: math.Pi in more digits, as in OEIS A000796.
	pi, _, err := big.ParseFloat("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651328230664709",
		10, precision, big.ToNearestEven)
	if err != nil {
		panic(err)
	}
	half := number(x)
	half.Mul(half, half).Quo(half, number(2))
	sum, term := number(1), number(1)
	for k := 1.0; k < 900; k++ {
		term.Mul(term, half).Quo(term, number(k))
		sum.Add(sum, term)
	}
	sum.Mul(sum, sum).Mul(sum, pi) // π·e^(x²)
	sum.Quo(number(2), sum)
	return sum.Sqrt(sum)
}

// The slots of a strip lie under the density everywhere in it, and what is proposed for the rest
// lies above it: together with the comparison, that makes the draws exact.
func TestStrata(t *testing.T) {
	slots := make(map[uint16]uint64)
	for _, j := range normal.slot {
		slots[j]++
	}
	for j := range strips {
		if slots[uint16(j)] != normal.base[j] {
			t.Errorf("strip %d has %d slots, want %d", j, slots[uint16(j)], normal.base[j])
		}
		base := normal.baseDensity(j) // exact
		if lowest := density(float64(j+1) / (1 << stripBits)); new(big.Float).SetFloat64(base).Cmp(lowest) > 0 {
			t.Errorf("strip %d: the slots give density %v, above %v", j, base, lowest)
		}
		top := new(big.Float).SetPrec(200).SetInt(new(big.Int).SetUint64(normal.below[j+1] - normal.below[j]))
		top.SetMantExp(top, -restBits).Add(top, new(big.Float).SetFloat64(base))
		if highest := density(float64(j) / (1 << stripBits)); top.Cmp(highest) < 0 {
			t.Errorf("strip %d: points are proposed up to %v, below %v", j, top, highest)
		}
		for i := range 64 {
			part := float64(i) / 64
			f := halfNormal((float64(j) + part) / (1 << stripBits))
			if chord := normal.density[j] + part*(normal.density[j+1]-normal.density[j]); math.Abs(chord-f) > bend {
				t.Errorf("strip %d: the chord is %v, farther than %v from %v", j, chord, bend, f)
			}
		}
	}
	if left := math.Erfc(13 / math.Sqrt2); left > math.Exp2(-125.9) {
		t.Errorf("%v of the probability is left out, want 2^-125.9 at most", left)
	}
	if share := float64(slots[residual]) / (1 << slotBits); share > 0.03 {
		t.Errorf("%.3f of the draws take the long way, want 0.03 at most", share)
	}
}

// Every number of the rest is in its strip, at both ends of all of them.
func TestStripsOfTheRest(t *testing.T) {
	for j := range strips {
		for _, v := range []uint64{normal.below[j], normal.below[j+1] - 1} {
			if got := normal.strip(v); got != j {
				t.Errorf("number %d is in strip %d, want %d", v, got, j)
			}
		}
	}
}

// The density, in float64 and in full, is within the errors that are claimed for it.
func TestHalfNormal(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		x := 13 * rng.Float64()
		want := density(x)
		got := exactHalfNormal(new(big.Float).SetPrec(exactBits).SetFloat64(x))
		difference := new(big.Float).SetPrec(exactBits).Sub(got, want)
		if difference.Quo(difference, want); difference.Sign() != 0 && difference.MantExp(nil) > -250 {
			t.Fatalf("x = %v: relative error %v", x, difference)
		}
		if w, _ := want.Float64(); math.Abs(halfNormal(x)-w) > 0x1p-50 {
			t.Errorf("x = %v: %v in float64, want %v", x, halfNormal(x), w)
		}
	}
}

// Where float64 can decide, the exact comparison decides as it does; and where it cannot, the
// comparison is right: next to the density it is a matter of the further digits.
func TestAccept(t *testing.T) {
	s := New(1, 0, 0, 0)
	rng := rand.New(rand.NewPCG(2, 2))
	accepted := 0
	for i := range 2000 {
		j := rng.IntN(strips)
		x := uint64(j)<<positionBits | rng.Uint64N(1<<positionBits)
		v := rng.Uint64N(normal.below[j+1] - normal.below[j])
		if i%2 == 0 { // near the density, where its chord cannot decide
			j = rng.IntN(64)
			x = uint64(j)<<positionBits | rng.Uint64N(1<<positionBits)
			f := halfNormal(float64(x)/(1<<normalBits)) - normal.baseDensity(j)
			v = uint64((f + (2*rng.Float64()-1)*min(f, 2*bend)) * (1 << restBits))
		}
		distance := normal.baseDensity(j) + float64(v)/(1<<restBits) - halfNormal(float64(x)/(1<<normalBits))
		if math.Abs(distance) <= margin {
			continue
		}
		got := s.accept(x, j, v, math.Inf(1))
		if got != (distance < 0) || got != s.accept(x, j, v, margin) {
			t.Fatalf("x = %d, v = %d: accepted %t at a distance of %v", x, v, got, distance)
		}
		if got {
			accepted++
		}
	}
	if accepted < 100 {
		t.Errorf("%d accepted, want more", accepted)
	}
	// The density falls from x to x + 2⁻⁴⁸ by about 2⁻⁴⁹: points between its values are accepted
	// for some digits of x and rejected for others.
	const j, x = 32, uint64(32)<<positionBits + 12345
	exact := density(float64(x) / (1 << normalBits))
	exact.Sub(exact, new(big.Float).SetFloat64(normal.baseDensity(j)))
	top, _ := exact.SetMantExp(exact, restBits).Uint64()
	fall := uint64(halfNormal(1) * (1 << (restBits - normalBits)))
	count := 0
	for range 2000 {
		if s.accept(x, j, top-fall/4, margin) {
			count++
		}
	}
	if math.Abs(float64(count)-500) > 4*math.Sqrt(2000*0.25*0.75) {
		t.Errorf("a quarter below the density: %d of 2000 accepted, want 500", count)
	}
}

// strip returns the probability of a strip of the magnitude, by the complementary error
// function.
func strip(lo, hi float64) float64 { return math.Erfc(lo/math.Sqrt2) - math.Erfc(hi/math.Sqrt2) }

// The long way gives each strip what its slots leave of it.
func TestRestDistribution(t *testing.T) {
	const draws = 200_000
	s := New(2, 0, 0, 0)
	var counts, expected [110]float64 // the last one for all beyond
	for range draws {
		x := s.rest()
		if x < 0 {
			x = ^x
		}
		counts[min(x>>positionBits, int64(len(counts)-1))]++
	}
	total := 0.0
	for j := range expected {
		lo, hi := float64(j)/(1<<stripBits), float64(j+1)/(1<<stripBits)
		if expected[j] = strip(lo, hi) - float64(normal.base[j])/(1<<slotBits); j == len(expected)-1 {
			expected[j] = math.Erfc(lo / math.Sqrt2)
		}
		total += expected[j]
	}
	for j := range expected {
		expected[j] *= draws / total
	}
	if p := chiSquareProbability(counts[:], expected[:]); p < 1e-4 {
		t.Errorf("strips of the rest: p = %v", p)
	}
}

// The noise has the probabilities of ⌊2⁴⁰·N⌋: in fine cells, and in the last digits, which are
// uniform to within 2⁻³¹.
func TestNoiseProbabilities(t *testing.T) {
	const (
		draws = 4_000_000
		cells = 1024 // of 2⁻⁷
		last  = 256
	)
	sums := make([]int64, draws)
	AddNoise(sums, New(3, 0, 0, 0))
	counts, digits := make([]float64, cells+2), make([]float64, last)
	for _, k := range sums {
		counts[min(max(k>>(noiseBits-7)+cells/2+1, 0), cells+1)]++
		digits[uint64(k)%last]++
	}
	expected := make([]float64, cells+2)
	for i := range expected {
		lo, hi := float64(i-1-cells/2)/128, float64(i-cells/2)/128
		switch i {
		case 0:
			lo = math.Inf(-1)
		case cells + 1:
			hi = math.Inf(1)
		}
		// By the tail on the near side: no cancellation.
		if lo >= 0 {
			lo, hi = -hi, -lo
		}
		expected[i] = draws * (distuv.UnitNormal.CDF(hi) - distuv.UnitNormal.CDF(lo))
	}
	if p := chiSquareProbability(counts, expected); p < 1e-4 {
		t.Errorf("%d cells: p = %v", len(counts), p)
	}
	for i := range last {
		expected[i] = draws / last
	}
	if p := chiSquareProbability(digits, expected[:last]); p < 1e-4 {
		t.Errorf("last digits: p = %v", p)
	}
}

// The noise of a whole number is the number and its noise, also where 64 bits wrap around: what
// is computed from rounded sums is computed from real ones.
func TestNoiseCommutesWithRounding(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	const n = 20_000
	noise, sums, shifted := make([]int64, n), make([]int64, n), make([]int64, n)
	for i := range sums {
		sums[i] = int64(rng.Uint64()) >> rng.IntN(64)
		shifted[i] = sums[i]
	}
	AddNoise(noise, New(4, 0, 0, 0))
	AddNoise(shifted, New(4, 0, 0, 0))
	normals := make([]float64, n)
	AddNormals(normals, New(4, 0, 0, 0), 1)
	for i, q := range sums {
		if shifted[i] != q+noise[i] {
			t.Fatalf("the noise on %d is %d, on 0 it is %d", q, shifted[i]-q, noise[i])
		}
		if scaled := math.Floor(normals[i] * NoiseScale); int64(scaled) != noise[i] {
			t.Fatalf("the noise is %d for the normal number %v", noise[i], normals[i])
		}
	}
}

package random

import (
	"math"
	"math/big"
	"math/bits"
)

// NoiseScale is the standard deviation of AddNoise, in units of its grid.
const NoiseScale = 1 << noiseBits

// Numbers are drawn as ⌊2^normalBits·N⌋.
const (
	normalBits = 48
	noiseBits  = 40
)

// A normal number N is drawn by its magnitude and its sign. The magnitude has the density
//
//	f(x) = √(2/π)·e^(−x²/2), x >= 0.
//
// The range [0, 13) is cut into strips of width 2⁻⁵. In strip j the density is at least
// base[j]/2⁸, a multiple of 2⁻⁸ that holds base[j]/2¹³ of the probability. So 13 random bits
// choose one of 2¹³ slots; base[j] of them belong to strip j, and the magnitude is uniform
// there: its other digits are random bits. That is all in 98 of 100 draws, and is exact.
//
// The slots left, 2 of 100, lead to what is left of the density, f(x) − base[j]/2⁸, by
// rejection: a uniform point (x, y) with base[j]/2⁸ <= y < base[j]/2⁸ + rest[j]/2⁶⁰, a
// rational bound on f in the strip, is accepted if y < f(x). The comparison is made in
// float64, first with the chord of f in the strip; where that could be wrong, with f; and
// where that could be wrong, with 128 further random digits of x and y and with f to more than
// 200 bits.
//
// What is drawn is ⌊2⁴⁸·N⌋ for a real number N with a distribution whose total variation
// distance to the normal one is below 2⁻¹²⁵: P(|N| >= 13) < 2⁻¹²⁵·⁹, which is left out, and
// less than 2⁻¹⁷⁰ for digits that are not drawn.
const (
	slotBits  = 13
	stripBits = 5
	strips    = 13 << stripBits
	// residual is the strip of slots that belong to none.
	residual = strips
	// positionBits is the number of digits within a strip.
	positionBits = normalBits - stripBits
	restBits     = 60
	// margin is a bound on the error of float64 in y − f(x), with room: that error is below
	// 2⁻⁴⁶, as math.Exp errs by less than one unit in the last place, and the digits that
	// are not drawn yet change x by 2⁻⁴⁸ and y by 2⁻⁶⁰ at most.
	margin = 0x1p-40
	// bend is a bound on the distance of f from its chord in a strip: an eighth of the squared width
	// times the largest |f″| = f(x)·|x² − 1|, which is √(2/π) < .8.
	bend = 0.8 * 0x1p-13
)

// strata holds the tables.
type strata struct {
	slot  [1 << slotBits]uint16
	base  [strips]uint64
	below [strips + 1]uint64 // sums of rest
	// density is f at the ends of the strips.
	density [strips + 1]float64
	// first has, for the leading digits of a number, the least strip of the numbers that begin so.
	first [1 << guideBits]uint16
	shift int // what leaves these digits
}

// guideBits is the number of leading digits by which the strip of a number of the rest is found.
const guideBits = 10

var normal = newStrata()

func newStrata() *strata {
	z := new(strata)
	for j := range z.density {
		z.density[j] = halfNormal(float64(j) / (1 << stripBits))
	}
	slot := 0
	for j := range strips {
		z.base[j] = uint64(z.density[j+1] * (1 - margin) * (1 << (slotBits - stripBits)))
		for range z.base[j] {
			z.slot[slot] = uint16(j)
			slot++
		}
		above := z.density[j] - z.baseDensity(j) + margin
		z.below[j+1] = z.below[j] + uint64(above*(1<<restBits))
	}
	for ; slot < len(z.slot); slot++ {
		z.slot[slot] = residual
	}
	z.shift = bits.Len64(z.below[strips]-1) - guideBits
	j := 0
	for i := range z.first {
		for j < strips-1 && z.below[j+1] <= uint64(i)<<z.shift {
			j++
		}
		z.first[i] = uint16(j)
	}
	return z
}

// strip returns the j with below[j] <= v < below[j+1].
func (z *strata) strip(v uint64) int {
	j := int(z.first[v>>z.shift])
	for z.below[j+1] <= v {
		j++
	}
	return j
}

// baseDensity is the density that the slots of strip j give.
func (z *strata) baseDensity(j int) float64 {
	return float64(z.base[j]) / (1 << (slotBits - stripBits))
}

// halfNormal returns f(x), within 2⁻⁵⁰.
func halfNormal(x float64) float64 { return math.Sqrt2 / math.SqrtPi * math.Exp(-x*x/2) }

// AddNoise adds to every element of dst its own ⌊2⁴⁰·N⌋, N being a normal number: the noise
// of a Gaussian mechanism of standard deviation NoiseScale on whole numbers.
//
// For a whole number q, ⌊q + 2⁴⁰·N⌋ = q + ⌊2⁴⁰·N⌋. So results computed from the sums are computed
// from the sums of real numbers q + 2⁴⁰·N, and theorems for Gaussian noise on real numbers hold,
// for every adjacency, sampling and composition, without another accountant. The draws are exact up
// to 2⁻¹²⁵ in total variation (see above): k numbers add (1 + e^ε)·k·2⁻¹²⁵ to δ at most, which is
// less than 1e-16 for k = 10¹⁷ and ε = 10. Sums that leave 64 bits wrap around, which is a function
// of the sums too.
func AddNoise(dst []int64, s *Stream) {
	for len(dst) > 0 {
		numbers := s.ahead(len(dst))
		n := 0
		for ; n < len(numbers); n++ {
			x, ok := s.normal(numbers[n])
			if !ok {
				break
			}
			dst[n] += x >> (normalBits - noiseBits)
		}
		s.next += n
		dst = dst[n:]
		if n < len(numbers) { // its first number leads to the rest
			s.next++
			dst[0] += s.rest() >> (normalBits - noiseBits)
			dst = dst[1:]
		}
	}
}

// AddNormals adds to every element of dst its own normal number of mean 0 and the given
// standard deviation, to 48 binary digits of the normal number and in floating point, as
// first weights need. AddNoise is for noise.
func AddNormals[T float32 | float64](dst []T, s *Stream, deviation float64) {
	const unit = 1.0 / (1 << normalBits)
	for i := range dst {
		u := s.Uint64()
		x, ok := s.normal(u)
		if !ok {
			x = s.rest()
		}
		dst[i] = T(float64(dst[i]) + deviation*((float64(x)+0.5)*unit))
	}
}

// normal returns ⌊2⁴⁸·N⌋ by the slot to which u leads, or false if that is the residual.
func (*Stream) normal(u uint64) (int64, bool) {
	const slots = 1<<slotBits - 1
	j := normal.slot[u&slots]
	x := int64(uint64(j)<<positionBits | u>>(64-positionBits))
	sign := int64(u<<(63-slotBits)) >> 63
	return x ^ sign, j != residual // for −N the floor is −x − 1
}

// rest returns ⌊2⁴⁸·N⌋ for the density that the slots leave.
func (s *Stream) rest() int64 {
	for {
		v := s.below(normal.below[strips])
		j := normal.strip(v)
		v -= normal.below[j]
		u := s.Uint64()
		x := uint64(j)<<positionBits | u>>(64-positionBits)
		if s.accept(x, j, v, margin) {
			return int64(x) ^ -int64(u&1)
		}
	}
}

// below returns an integer that is uniform over [0, n), n > 0 (see Uint32N).
func (s *Stream) below(n uint64) uint64 {
	hi, lo := bits.Mul64(s.Uint64(), n)
	if lo < n { // the threshold is below n
		for threshold := -n % n; lo < threshold; {
			hi, lo = bits.Mul64(s.Uint64(), n)
		}
	}
	return hi
}

// accept decides whether y < f of the magnitude, whose first digits are x, where the first
// digits of y are v above the base density of strip j. margin is a bound on the error of float64.
func (s *Stream) accept(x uint64, j int, v uint64, margin float64) bool {
	y := normal.baseDensity(j) + float64(v)/(1<<restBits)
	part := float64(x&(1<<positionBits-1)) / (1 << positionBits)
	difference := y - (normal.density[j] + part*(normal.density[j+1]-normal.density[j]))
	if math.Abs(difference) > bend+margin {
		return difference < 0
	}
	difference = y - halfNormal(float64(x)/(1<<normalBits))
	if math.Abs(difference) > margin {
		return difference < 0
	}
	base := new(big.Int).Lsh(new(big.Int).SetUint64(normal.base[j]), restBits-(slotBits-stripBits))
	return s.extended(base.Add(base, new(big.Int).SetUint64(v)), restBits).Cmp(
		exactHalfNormal(s.extended(new(big.Int).SetUint64(x), normalBits))) < 0
}

// extended returns (n + u)/2^scale for a u that is uniform over the multiples of 2⁻¹²⁸ in
// [0, 1).
func (s *Stream) extended(n *big.Int, scale int) *big.Float {
	for range 2 {
		n.Or(n.Lsh(n, 64), new(big.Int).SetUint64(s.Uint64()))
	}
	f := new(big.Float).SetPrec(exactBits).SetInt(n)
	return f.SetMantExp(f, -scale-128)
}

// exactBits is the precision of exactHalfNormal, of which it loses 40 bits.
const exactBits = 320

// twoOverPi is 2/π to 90 digits.
const twoOverPi = "0.636619772367581343075535053490057448137838582961825794990669376235587190536906140360455211065"

// exactHalfNormal returns f(x) for 0 <= x <= 13 with a relative error below 2⁻²⁵⁰.
func exactHalfNormal(x *big.Float) *big.Float {
	// e^−t is the power 2³² of the Taylor series of e^(−t/2³²), whose terms fall by 2²⁵.
	const halvings, terms = 32, 14
	number := func() *big.Float { return new(big.Float).SetPrec(exactBits) }
	t := number().Mul(x, x)
	t.SetMantExp(t, -1-halvings)
	sum := number().SetInt64(1)
	for k := int64(terms); k > 0; k-- { // 1 − t/1·(1 − t/2·(1 − …))
		sum.Mul(sum, t).Quo(sum, number().SetInt64(k))
		sum.Sub(number().SetInt64(1), sum)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	constant, _, err := big.ParseFloat(twoOverPi, 10, exactBits, big.ToNearestEven)
	if err != nil {
		panic(err) // a constant
	}
	return sum.Mul(sum, constant.Sqrt(constant))
}

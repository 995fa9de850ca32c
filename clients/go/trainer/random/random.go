package random

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"math"
	"math/bits"
)

// buffered is the number of numbers that a stream makes at a time.
const buffered = 128

var zeros [8 * buffered]byte

// Stream is a sequence of independent numbers. It is not safe for concurrent use.
// Its methods allocate nothing.
type Stream struct {
	numbers [buffered]uint64
	next    int // index of the next number
	bytes   [8 * buffered]byte
	cipher  cipher.Stream
}

// New returns the stream (replicate, index) of the purpose under the seed. Purposes
// set apart the uses of randomness, such as the order of the data and the noise;
// indices set apart streams of one purpose. Replicate and index are below 2³²; larger
// ones panic.
func New(seed uint64, replicate int, purpose uint64, index int) *Stream {
	if uint64(replicate) > math.MaxUint32 || uint64(index) > math.MaxUint32 {
		panic("random: replicate or index outside of 32 bits")
	}
	var key, counter [aes.BlockSize]byte
	binary.BigEndian.PutUint64(key[:], seed)
	binary.BigEndian.PutUint64(key[8:], purpose)
	binary.BigEndian.PutUint32(counter[:], uint32(replicate))
	binary.BigEndian.PutUint32(counter[4:], uint32(index))
	return newStream(key[:], counter)
}

func newStream(key []byte, counter [aes.BlockSize]byte) *Stream {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key has the right size
	}
	return &Stream{next: buffered, cipher: cipher.NewCTR(block, counter[:])}
}

// System returns a stream of AES-256 in counter mode under a key of the operating system's
// entropy, by crypto/rand. The key is kept nowhere else. A program that is forked, or a
// machine that is copied while it runs, must not continue with a copy of a stream.
func System() *Stream {
	var key [32]byte
	var counter [aes.BlockSize]byte
	_, _ = rand.Read(key[:]) // never fails: it ends the program instead
	_, _ = rand.Read(counter[:])
	return newStream(key[:], counter)
}

// Uint64 returns a number that is uniform over [0, 2⁶⁴).
func (s *Stream) Uint64() uint64 {
	if s.next == buffered {
		s.fill()
	}
	u := s.numbers[s.next]
	s.next++
	return u
}

// ahead returns up to n > 0 of the next numbers, at least one. The number of those used is to be added to next.
func (s *Stream) ahead(n int) []uint64 {
	if s.next == buffered {
		s.fill()
	}
	return s.numbers[s.next:min(s.next+n, buffered)]
}

// fill makes the next numbers.
func (s *Stream) fill() {
	s.next = 0
	s.cipher.XORKeyStream(s.bytes[:], zeros[:])
	for i := range buffered {
		s.numbers[i] = binary.LittleEndian.Uint64(s.bytes[8*i : 8*i+8])
	}
}

// Uint32N returns an integer that is uniform over [0, n), by the method of Lemire,
// "Fast random integer generation in an interval" (2019). It panics for n = 0.
func (s *Stream) Uint32N(n uint32) uint32 {
	if n == 0 {
		panic("random: empty range")
	}
	// The high half of a 64-bit number u·n/2⁶⁴ is biased by less than n/2⁶⁴ before
	// the rejection, so that rejecting takes place about never.
	hi, lo := bits.Mul64(s.Uint64(), uint64(n))
	if lo < uint64(n) {
		threshold := -uint64(n) % uint64(n)
		for lo < threshold {
			hi, lo = bits.Mul64(s.Uint64(), uint64(n))
		}
	}
	return uint32(hi)
}

// Float64 returns a multiple of 2⁻⁵³ that is uniform over [0, 1).
func (s *Stream) Float64() float64 {
	return float64(s.Uint64()>>11) / (1 << 53)
}

// positiveFloat64 returns a multiple of 2⁻⁵³ that is uniform over (0, 1], of which
// a logarithm can be taken.
func (s *Stream) positiveFloat64() float64 {
	return float64(s.Uint64()>>11+1) / (1 << 53)
}

// Exponential returns an exponential number of mean 1, by the inverse of its
// distribution function.
func (s *Stream) Exponential() float64 { return -math.Log(s.positiveFloat64()) }

// Shuffle brings order into a random order, all being equally likely.
func (s *Stream) Shuffle(order []int32) { s.Lot(order, len(order)) }

// Lot moves a uniform sample of size elements without replacement to the beginning
// of order, by exchanges: the first steps of the shuffle of Fisher and Yates, which
// needs no particular order to start from. Sizes outside [0, len(order)] panic.
func (s *Stream) Lot(order []int32, size int) {
	if size < 0 || size > len(order) {
		panic("random: lot size outside the data")
	}
	for i := range size {
		j := i + int(s.Uint32N(uint32(len(order)-i)))
		order[i], order[j] = order[j], order[i]
	}
}

// Allocate puts each of the rows 0 to len(order)−1 into one of len(ends) bins, uniformly and independently: those
// of bin i are order[ends[i−1]:ends[i]], from 0 on for the first one, in increasing order. bins is scratch space of
// the length of order. It panics without bins.
func (s *Stream) Allocate(order, bins, ends []int32) {
	clear(ends)
	for row := range bins {
		bin := s.Uint32N(uint32(len(ends)))
		bins[row] = int32(bin)
		ends[bin]++
	}
	sum := int32(0)
	for bin, size := range ends { // beginnings first
		ends[bin] = sum
		sum += size
	}
	for row, bin := range bins {
		order[ends[bin]] = int32(row)
		ends[bin]++
	}
}

// Bernoulli appends to dst the numbers in [0, n) each of which is taken with probability
// p, independently, in increasing order, and returns dst. It draws the geometric gaps
// between them, which takes the time of n·p draws. It panics unless 0 < p <= 1.
func (s *Stream) Bernoulli(dst []int32, n int, p float64) []int32 {
	if !(p > 0 && p <= 1) {
		panic("random: probability outside (0, 1]")
	}
	if p == 1 {
		for i := range n {
			dst = append(dst, int32(i))
		}
		return dst
	}
	// P(gap >= k) = (1−p)^k = P(log u / log(1−p) >= k) for u uniform on (0, 1).
	scale := 1 / math.Log1p(-p)
	for i := 0; ; i++ {
		gap := math.Log(s.positiveFloat64()) * scale
		if gap >= float64(n-i) {
			return dst
		}
		i += int(gap)
		dst = append(dst, int32(i))
	}
}

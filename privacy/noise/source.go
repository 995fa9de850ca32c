package noise

import (
	cryptorand "crypto/rand"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"sync"
)

// buffered is how many numbers are taken from the operating system at a time.
const buffered = 128

// Source is a sequence of independent uniform 64-bit numbers, and of samples from them. It is
// safe for concurrent use. The zero value draws from the operating system's entropy, as
// [System] does.
type Source struct {
	mu        sync.Mutex
	generator *rand.ChaCha8 // nil for the operating system's entropy
	bytes     [8 * buffered]byte
	left      int // numbers at the end of bytes that are not drawn yet
}

// System returns a source that draws from the operating system's entropy by crypto/rand, 1024
// bytes at a time. Numbers are erased from memory when they are drawn. A program that is
// forked, or a machine that is copied while it runs, must not continue with a copy of a
// source.
func System() *Source { return new(Source) }

// Seeded returns a source that repeats itself: ChaCha8 of package math/rand/v2, its key being
// seed in little-endian order and zeros. It is for simulations and tests only: anyone who
// guesses the seed of a release, one of 2⁶⁴, can remove its noise. The sequences are pinned by
// tests and do not change; with several goroutines it is undetermined which draws what.
func Seeded(seed uint64) *Source {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return &Source{generator: rand.NewChaCha8(key)}
}

// Uint64 returns a number that is uniform over [0, 2⁶⁴). It makes a Source a Source
// of package math/rand/v2.
func (s *Source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generator != nil {
		return s.generator.Uint64()
	}
	if s.left == 0 {
		_, _ = cryptorand.Read(s.bytes[:]) // never fails: it ends the program instead
		s.left = buffered
	}
	number := s.bytes[8*(buffered-s.left):][:8]
	u := binary.LittleEndian.Uint64(number)
	clear(number)
	s.left--
	return u
}

// Uint64N returns an integer that is uniform over [0, n), by the method of Lemire,
// "Fast random integer generation in an interval" (2019), which is exact. It panics
// for n = 0.
func (s *Source) Uint64N(n uint64) uint64 {
	if n == 0 {
		panic("noise: empty range")
	}
	hi, lo := bits.Mul64(s.Uint64(), n)
	if lo < n {
		for threshold := -n % n; lo < threshold; {
			hi, lo = bits.Mul64(s.Uint64(), n)
		}
	}
	return hi
}

// Float64 returns a multiple of 2⁻⁵³ that is uniform over [0, 1).
func (s *Source) Float64() float64 { return float64(s.Uint64()>>11) / (1 << 53) }

package space

import (
	"encoding/binary"
	"iter"
	"math"
)

// Set is a set of points. Its zero value is empty: it may be asked but not added to.
type Set map[string]struct{}

// Add adds q.
func (s Set) Add(q Point) { s[q.Key()] = struct{}{} }

// Contains reports whether q was added.
func (s Set) Contains(q Point) bool {
	var buffer keyBuffer
	_, ok := s[string(q.appendKey(buffer[:0]))]
	return ok
}

// Key returns the coordinates of p as a map key: equal points have equal keys, and -0
// counts as 0.
func (p Point) Key() string {
	var buffer keyBuffer
	return string(p.appendKey(buffer[:0]))
}

// keyBuffer holds the key of a point of few coordinates on the stack.
type keyBuffer [128]byte

func (p Point) appendKey(b []byte) []byte {
	for _, v := range p {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v+0))
	}
	return b
}

// Points yields every point of a space without doubles that can vary, the last parameter
// changing fastest.
func (s *Space) Points() iter.Seq[Point] {
	counts := make([]float64, len(s.Parameters))
	for j := range counts {
		counts[j] = s.Parameters[j].Count()
	}
	return s.Product(counts, func(j, i int) float64 { return s.Parameters[j].Value(i) })
}

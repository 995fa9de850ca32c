package random

import (
	"encoding/binary"
	"math"
)

// The normal numbers come from the ziggurat of Marsaglia and Tsang, "The ziggurat
// method for generating random variables" (2000), with 256 layers of equal area
// under exp(−x²/2). Layer and position take different bits of one 64-bit number
// (Doornik, "An improved ziggurat method to generate normal random samples", 2005,
// shows what goes wrong otherwise), and the position has 53 bits.
const (
	layers = 256
	// tailStart is the right edge of the base layer's rectangle, beyond which lies
	// the tail. It makes the 256 areas equal.
	tailStart = 3.6541528853610088
)

// ziggurat holds, for layer i between the ordinates of x(i) and x(i+1):
type ziggurat struct {
	width  [layers]float64 // x(i)/2⁵³, x(0) being that of a rectangle as large as base and tail
	inside [layers]uint64  // positions below it, out of 2⁵³, lie under the curve
	height [layers + 1]float64
}

var normal = newZiggurat()

func newZiggurat() *ziggurat {
	density := func(x float64) float64 { return math.Exp(-x * x / 2) }
	// The area of the base layer: its rectangle and the tail beyond it.
	area := tailStart*density(tailStart) + math.Sqrt(math.Pi/2)*math.Erfc(tailStart/math.Sqrt2)

	var x [layers + 1]float64
	x[0], x[1] = area/density(tailStart), tailStart
	for i := 1; i < layers-1; i++ {
		x[i+1] = math.Sqrt(-2 * math.Log(area/x[i]+density(x[i])))
	}
	x[layers] = 0

	z := new(ziggurat)
	for i := range layers {
		z.width[i] = x[i] / (1 << 53)
		z.inside[i] = uint64(x[i+1] / x[i] * (1 << 53))
		z.height[i] = density(x[i])
	}
	z.height[layers] = 1
	return z
}

// Normal returns a standard normal number.
func (s *Stream) Normal() float64 {
	u := s.Uint64()
	layer, position := uint8(u), u>>11
	x := float64(position) * normal.width[layer]
	if position >= normal.inside[layer] {
		x = s.edge(layer, x)
	}
	return signed(x, u)
}

// signed gives x the sign of bit 8 of u, which neither layer nor position uses.
func signed(x float64, u uint64) float64 {
	return math.Float64frombits(math.Float64bits(x) | u<<55&(1<<63))
}

// edge returns the absolute value of a normal number, of which is known that it
// came to x in the layer, outside of what lies under the curve for certain.
func (s *Stream) edge(layer uint8, x float64) float64 {
	for {
		if layer == 0 {
			return s.tail()
		}
		low, high := normal.height[layer], normal.height[int(layer)+1]
		if low+s.Float64()*(high-low) < math.Exp(-x*x/2) {
			return x
		}
		u := s.Uint64()
		position := u >> 11
		layer = uint8(u)
		x = float64(position) * normal.width[layer]
		if position < normal.inside[layer] {
			return x
		}
	}
}

// tail returns a normal number given that it is above tailStart (Marsaglia,
// "Generating a variable from the tail of the normal distribution", 1964).
func (s *Stream) tail() float64 {
	for {
		x := -math.Log(s.positiveFloat64()) / tailStart
		y := -math.Log(s.positiveFloat64())
		if 2*y > x*x {
			return tailStart + x
		}
	}
}

// AddNormals adds to every element of dst its own normal number of mean 0 and the
// given standard deviation. Each number is drawn in float64 and rounded to the
// element's type once, with the sum.
func AddNormals[T float32 | float64](dst []T, s *Stream, deviation float64) {
	for i, v := range dst {
		if s.next == buffered {
			s.fill()
		}
		// As in Normal, but without a call.
		u := binary.LittleEndian.Uint64(s.buffer[s.next:])
		s.next += 8
		layer, position := uint8(u), u>>11
		x := float64(position) * normal.width[layer]
		if position >= normal.inside[layer] {
			x = s.edge(layer, x)
		}
		dst[i] = T(float64(v) + deviation*signed(x, u))
	}
}

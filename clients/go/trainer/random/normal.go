package random

import "math"

// The normal numbers come from the ziggurat of Marsaglia and Tsang, "The ziggurat
// method for generating random variables" (2000), with 256 layers of equal area
// under exp(−x²/2). Layer and position take different bits of one 64-bit number
// (Doornik, "An improved ziggurat method to generate normal random samples", 2005,
// shows what goes wrong otherwise), and the position has 52 bits and a sign.
const (
	layers = 256
	// tailStart is the right edge of the base layer's rectangle, beyond which lies
	// the tail. It makes the 256 areas equal.
	tailStart = 3.6541528853610088
	// positions is the number of positions on either side.
	positions = 1 << 52
)

// ziggurat holds, for layer i between the ordinates of x(i) and x(i+1):
type ziggurat struct {
	width  [layers]float64 // x(i)/positions, with x(0) for a rectangle as large as base and tail
	inside [layers]int64   // positions below it lie under the curve
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
		z.width[i] = x[i] / positions
		z.inside[i] = int64(x[i+1] / x[i] * positions)
		z.height[i] = density(x[i])
	}
	z.height[layers] = 1
	return z
}

// AddNormals adds to every element of dst its own normal number of mean 0 and the
// given standard deviation. Each number is drawn in float64 and rounded to the
// element's type once, with the sum.
func AddNormals[T float32 | float64](dst []T, s *Stream, deviation float64) {
	z := normal
	for len(dst) > 0 {
		if s.next == buffered {
			s.fill()
		}
		numbers := s.numbers[s.next:min(s.next+len(dst), buffered)]
		s.next += len(numbers)
		chunk := dst[:len(numbers)]
		edges := 0
		for i, u := range numbers {
			layer := uint8(u)
			position := int64(u) >> 11
			sign := position >> 63 // 0 or −1
			if (position^sign)-sign >= z.inside[layer] {
				s.edges[edges%buffered] = edge{i, u}
				edges++
				continue
			}
			chunk[i] = T(float64(chunk[i]) + deviation*(float64(position)*z.width[layer]))
		}
		// Edges take further numbers, for which the buffer may be filled again.
		for _, e := range s.edges[:edges] {
			chunk[e.index] = T(float64(chunk[e.index]) + deviation*s.edge(e.u))
		}
		dst = dst[len(chunk):]
	}
}

// edge is an element whose number u is at a position that is not under the curve for
// certain.
type edge struct {
	index int
	u     uint64
}

// edge returns the normal number to which u leads.
func (s *Stream) edge(u uint64) float64 {
	sign := 1.0
	if int64(u) < 0 {
		sign = -1
	}
	for {
		layer := uint8(u)
		position := int64(u) >> 11
		if position < 0 {
			position = -position
		}
		x := float64(position) * normal.width[layer]
		if position < normal.inside[layer] {
			return sign * x
		}
		if layer == 0 {
			return sign * s.tail()
		}
		low, high := normal.height[layer], normal.height[int(layer)+1]
		if low+s.Float64()*(high-low) < math.Exp(-x*x/2) {
			return sign * x
		}
		u = s.Uint64()
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

package profile

import (
	"math"
)

// Split is a probability z and its complement v = 1 − z. The smaller one keeps its precision.
type Split struct{ Z, V float64 }

// SplitRounding covers the rounding errors of a complement.
const SplitRounding = 4e-15

// MostRest bounds the complement of a probability from above.
func MostRest(x float64) float64 { return math.Min(1, 1-x+SplitRounding) }

// LeastRest bounds the complement of a probability from below.
func LeastRest(x float64) float64 { return math.Max(0, 1-x-SplitRounding) }

// Between returns the split at a share of the way from s to other.
func (s Split) Between(other Split, share float64) Split {
	return Split{(1-share)*s.Z + share*other.Z, (1-share)*s.V + share*other.V}
}

// Below returns by how much z is below the one of other.
func (s Split) Below(other Split) float64 {
	if other.Z < 0.5 {
		return other.Z - s.Z
	}
	return s.V - other.V
}

// Further returns the split at the complement of z + width, too small for side = +1 and too large for side = −1.
func (s Split) Further(width, side float64) Split {
	v := math.Min(1, (s.Z+width)*(1+side*SplitRounding))
	return Split{math.Min(1, math.Max(0, s.V-width-side*SplitRounding*s.V)), v}
}

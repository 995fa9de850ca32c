//go:build long

package estimate

import "testing"

func init() { accuracyDraws = 10 }

// Features of one and the same scale are the hardest to interpolate: all directions
// leave the quadratic region at one ε.
func TestAccuracyIsotropic(t *testing.T) {
	testAccuracy(t, normal(t, 10000, 20, 0, 1), improvement{40, 200}, improvement{5, 30}, improvement{12, 60})
}

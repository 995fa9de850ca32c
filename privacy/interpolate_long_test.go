//go:build long

package privacy

import "testing"

// TestInterpolateWholeDomain covers the domain of Avent et al. (2020) for Adult.
func TestInterpolateWholeDomain(t *testing.T) {
	p, err := InterpolateFixedSize(interpolationBox(0.1, 512, 64), 1e-5)
	if err != nil {
		t.Fatal(err)
	}
	checkInterpolation(t, p, 0.1, 512, 64, 2000)
}

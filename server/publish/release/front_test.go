package release

import (
	"math"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The noise of 272 values, σ = √N/(mμ), against an independent computation of μ from the
// exact privacy profile of the Gaussian mechanism (Balle and Wang 2018) in 50 digits.
func TestFrontNoise(t *testing.T) {
	for _, tt := range []struct {
		records int64
		epsilon float64
		want    float64
	}{
		{1605, 1, 0.043411}, {1605, 3, 0.015864}, {10000, 1, 0.006968}, {10000, 3, 0.002546}, {10000, 10, 0.000892},
		{16281, 1, 0.004280}, {16281, 3, 0.001564}, {16281, 10, 0.000548}, {60000, 1, 0.001161},
	} {
		got, err := frontNoise(272, tt.records, tt.epsilon, 1e-6)
		if err != nil || math.Abs(got-tt.want) > 0.51e-6 {
			t.Errorf("%d records, ε = %g: %.7f (%v), want %g", tt.records, tt.epsilon, got, err, tt.want)
		}
	}
	if _, err := frontNoise(272, 1000, 1, 1e-30); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a δ below that of the grid: %v", err)
	}
}

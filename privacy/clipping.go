package privacy

import (
	"errors"
	"math"
)

// JointNoise returns the noise multiplier of DP-SGD that releases, at every step and from the same lot, the noisy sum
// of clipped gradients, with noise multiplier gradients > 0, and the noisy sum of +1/2 for every gradient within the
// clipping norm and −1/2 for every other one, with noise of standard deviation count > 0 (Andrew, Thakkar, Ramaswamy
// and McMahan, "Differentially private learning with adaptive clipping", 2021, Theorem 1). A record that is missing or zeroed
// out adds 0 to both. The next clipping norm may depend on all releases so far. It holds under every sampler, since
// each record adds one vector to one sum. Divided by the standard deviations, this vector has a norm of at most
// 1/JointNoise. Under ReplaceOne the same holds for the difference of two such vectors.
//
// Noise multipliers are relative to the sensitivity under the adjacency. The sensitivity of the count is 1/2 under
// AddRemove and 1 under ReplaceOne. The errors are FieldErrors for "noise_multiplier", "clipping_count_deviation" and
// "adjacency".
func JointNoise(gradients, count float64, neighbours Adjacency) (float64, error) {
	err := errors.Join(CheckPositive("noise_multiplier", gradients), CheckPositive("clipping_count_deviation", count), CheckAdjacency(neighbours))
	if err != nil {
		return 0, err
	}
	if neighbours == AddRemove {
		count *= 2
	}
	// The rounding error is below 2⁻⁵⁰, relatively.
	return (1 - 0x1p-50) / math.Hypot(1/gradients, 1/count), nil
}

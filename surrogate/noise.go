package surrogate

import (
	"math"
	"slices"
)

// noiseExponent returns Σ_j b_j (x_j − ½), the logarithm of the noise variance
// at x relative to that at the centre of the unit cube. Coordinates outside
// [0, 1] are moved to its faces, where the trend has been seen last.
func noiseExponent(slopes, x []float64) float64 {
	var sum float64
	for j, b := range slopes {
		sum += b * centred(x[j])
	}
	return sum
}

// centred returns the coordinate v, moved into [0, 1], less ½.
func centred(v float64) float64 {
	return min(max(v, 0), 1) - 0.5
}

// noise is the noise of n observations for given hyperparameters: observations
// i and j have the noise covariance
//
//	s_i s_j (φ e^{−|p_i − p_j|/λ} + 1 − φ) if i and j are of one group,
//
// and s_i² + known_i on the diagonal.
type noise struct {
	known      []float64 // n, known noise variances
	deviations []float64 // n, s_i = τ(x_i)/√R_i
	groups     []int     // n
	positions  []float64 // n
	decay      float64   // λ >= 0
	fading     float64   // φ = σ_n² / (σ_n² + σ_r²), 1 without noise
}

// append returns the noise of more observations, without change to e.
func (e noise) append(h Hyperparameters, obs Observations) noise {
	m := len(obs.X)
	e.decay, e.fading = h.NoiseDecay, 1
	if h.RunVariance > 0 {
		e.fading = h.NoiseVariance / (h.NoiseVariance + h.RunVariance)
	}
	e.known = appendOr(e.known, obs.NoiseVariance, m)
	e.groups = appendOr(e.groups, obs.Groups, m)
	e.positions = appendOr(e.positions, obs.Positions, m)
	e.deviations = slices.Grow(slices.Clip(e.deviations), m)
	for i, x := range obs.X {
		variance := h.noise(x)
		if obs.Runs != nil {
			variance /= obs.Runs[i]
		}
		e.deviations = append(e.deviations, math.Sqrt(variance))
	}
	return e
}

// appendOr returns a copy of s followed by values, or by m zeros if values is nil.
func appendOr[T int | float64](s, values []T, m int) []T {
	if values == nil {
		values = make([]T, m)
	}
	return append(slices.Clip(s), values...)
}

// variance returns the noise variance of observation i.
func (e *noise) variance(i int) float64 {
	return e.deviations[i]*e.deviations[i] + e.known[i]
}

// addCovariances adds to row the noise covariances of observation i and the
// first len(row) <= i observations.
func (e *noise) addCovariances(row []float64, i int) {
	if e.groups[i] == 0 || e.decay == 0 && e.fading == 1 {
		return
	}
	for j := range row {
		if e.groups[j] == e.groups[i] {
			row[j] += e.deviations[i] * e.deviations[j] * e.correlation(e.positions[i]-e.positions[j])
		}
	}
}

// correlation returns the correlation of the noise of two observations of one group at the given distance.
func (e *noise) correlation(distance float64) float64 {
	if e.decay == 0 {
		return 1 - e.fading
	}
	return e.fading*math.Exp(-math.Abs(distance)/e.decay) + 1 - e.fading
}

// sharing is a pair of observations i > j that share the noise of one run.
type sharing struct {
	i, j     int
	distance float64 // |p_i − p_j|
}

// sharings returns the pairs of observations of the same group, ordered by i.
func sharings(obs Observations) []sharing {
	var pairs []sharing
	members := make(map[int][]int)
	for i, group := range obs.Groups {
		if group == 0 {
			continue
		}
		for _, j := range members[group] {
			pair := sharing{i: i, j: j}
			if obs.Positions != nil {
				pair.distance = math.Abs(obs.Positions[i] - obs.Positions[j])
			}
			pairs = append(pairs, pair)
		}
		members[group] = append(members[group], i)
	}
	return pairs
}

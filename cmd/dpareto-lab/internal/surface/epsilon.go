package surface

import (
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Epsilons returns ε after every epoch of a run by the problem of the surface: by one pass of the
// accountant, or one by one if smooth. ε that cannot be computed is infinite.
func (s *Surface) Epsilons(p *suggest.Problem, smooth bool, q space.Point) []float64 {
	out := make([]float64, int(q[epochs]))
	if smooth {
		for i := range out {
			state := append(space.Point(nil), q...)
			state[epochs] = float64(i + 1)
			out[i] = p.Objectives[0].Known(state)
		}
		return out
	}
	perEpoch, err := privacy.StepsPerEpoch(s.TrainRows, int64(q[lotSize]))
	steps := make([]int64, len(out))
	for i := range steps {
		steps[i] = int64(i+1) * perEpoch
		out[i] = math.Inf(1)
	}
	if err != nil {
		return out
	}
	m := privacy.FixedSizeGaussian{DatasetSize: s.TrainRows, BatchSize: int64(q[lotSize]), NoiseMultiplier: q[noiseMultiplier]}
	guarantees, err := privacy.Trajectory(privacy.Tightest{}, m, steps, delta)
	for i := range guarantees {
		if err == nil {
			out[i] = guarantees[i].Epsilon
		}
	}
	return out
}

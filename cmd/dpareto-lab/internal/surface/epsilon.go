package surface

import (
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// farBeyond is the factor of the reference from which on ε need not be exact: no front has such a point.
const farBeyond = 2

// Epsilons returns ε after every epoch of a run by the problem of the surface: by one pass of the
// accountant, or one by one if smooth. ε that cannot be computed is infinite. Where the problem's cheap
// stand-in for ε exceeds twice the reference, it is taken: the exact one would take longer than all else.
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
	exact := len(out)
	for i := range out {
		state := append(space.Point(nil), q...)
		state[epochs] = float64(i + 1)
		out[i] = math.Inf(1)
		if cheap := p.Objectives[0].Search(state); exact < i || cheap > farBeyond*referenceEpsilon {
			out[i], exact = cheap, min(exact, i)
		}
	}
	perEpoch, err := privacy.StepsPerEpoch(s.TrainRows, int64(q[lotSize]))
	if err != nil || exact == 0 {
		return out
	}
	steps := make([]int64, exact)
	for i := range steps {
		steps[i] = int64(i+1) * perEpoch
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

package surface

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// The search for the best front: first configurations spread evenly, then rounds of changes to those
// on the front, each change smaller than in the round before.
const (
	bestFirst   = 1024
	bestRounds  = 24
	bestChanges = 512
	bestEpochs  = 8   // prefixes of a run that are looked at
	bestStep    = 0.2 // of the first round, as a share of a parameter's range
	bestShrink  = 0.85
	bestMu      = 2.5 // ε is far beyond the reference: no accountant need be asked
)

// Best returns the hypervolume of the best front that a search without noise finds on a surface.
// p is the surface's problem, of which ε is interpolated. Studies may find
// a little more.
func (m *Model) Best(ctx context.Context, p *suggest.Problem) (float64, error) {
	front := &bestFront{model: m, problem: p}
	first, err := quasirandom.New().Suggest(ctx, p, new(suggest.History), suggest.Request{Count: bestFirst, Seed: seed, Number: 1})
	if err != nil {
		return 0, err
	}
	for _, s := range first {
		front.add(s.Point)
	}
	front.cut()
	rng := rand.New(rand.NewPCG(seed, 2))
	step := bestStep
	for range bestRounds {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		members := front.points
		for range bestChanges {
			if len(members) == 0 {
				break
			}
			front.add(m.change(members[rng.IntN(len(members))], step, rng))
		}
		front.cut()
		step *= bestShrink
	}
	return pareto.Hypervolume(front.costs, p.ReferenceCosts()), nil
}

// change moves a configuration on the logarithmic scales of its parameters.
func (m *Model) change(q space.Point, step float64, rng *rand.Rand) space.Point {
	lower, upper := m.Surface.bounds()
	out := make(space.Point, dimension)
	for i, v := range q {
		v *= math.Exp(step * math.Log(upper[i]/lower[i]) * rng.NormFloat64())
		if i == epochs || i == lotSize {
			v = math.Round(v)
		}
		out[i] = min(max(v, lower[i]), upper[i])
	}
	return out
}

// bestFront collects states of runs.
type bestFront struct {
	model   *Model
	problem *suggest.Problem
	points  []space.Point
	costs   [][]float64 // by the smooth ε
}

// add adds some states of a run that are better than the reference.
func (f *bestFront) add(q space.Point) {
	reference := f.problem.ReferenceCosts()
	before := 0.0
	for k := 1; k <= bestEpochs; k++ {
		state := append(space.Point(nil), q...)
		state[epochs] = math.Round(math.Pow(q[epochs], float64(k)/bestEpochs))
		if state[epochs] == before {
			continue
		}
		before = state[epochs]
		failed := f.model.Error(state)
		if failed >= reference[1] {
			continue
		}
		if f.model.Surface.centralMu(state) > bestMu {
			return // and so have later states
		}
		spent := f.problem.Objectives[0].SearchCost(state)
		if spent >= reference[0] {
			return // later states have spent more
		}
		f.points = append(f.points, state)
		f.costs = append(f.costs, []float64{spent, failed})
	}
}

// centralMu returns μ of the Gaussian mechanism that a run resembles where it has many steps with a
// small sampling rate, q√(T(e^{1/σ²} − 1)) (Bu, Dong, Long, Su, "Deep learning with Gaussian
// differential privacy", 2020).
func (s *Surface) centralMu(q space.Point) float64 {
	rate, sigma := q[lotSize]/float64(s.TrainRows), q[noiseMultiplier]
	return math.Sqrt(rate * q[epochs] * math.Expm1(1/(sigma*sigma)))
}

// cut leaves the states that no other dominates.
func (f *bestFront) cut() {
	kept := pareto.NonDominated(f.costs)
	points, costs := make([]space.Point, len(kept)), make([][]float64, len(kept))
	for i, k := range kept {
		points[i], costs[i] = f.points[k], f.costs[k]
	}
	f.points, f.costs = points, costs
}

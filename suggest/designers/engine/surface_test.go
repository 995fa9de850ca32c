package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

// newTestSurface returns the surface of a history.
func newTestSurface(t *testing.T, p *suggest.Problem, h *suggest.History, o Options) *surface {
	t.Helper()
	m, err := model.Fit(t.Context(), p, h, model.Options{Seed: 1, ModelKnown: o.ModelKnown})
	require.NoError(t, err)
	if o.Samples == 0 {
		o.Samples = 8
	}
	s, err := newSurface(m, new(common), o, turn{pending: h.Pending, seed: 1, number: int64(len(h.Evaluations) + 1)})
	require.NoError(t, err)
	return s
}

// pathFeatures are features of a double and an integer parameter, of which only the first is replaced.
var pathFeatures = &suggest.Features{
	Count: 2,
	Evaluate: func(dst []float64, q space.Point) {
		dst[0], dst[1] = math.Log(q[0]*q[1])/3, math.Log(q[0])/4-math.Sqrt(q[1])/10
	},
	Parameters: []int{0, 1}, Replaced: []int{0}, Spread: []int{0},
}

// The gradient of the acquisition agrees with difference quotients, with and without
// known objectives, draws, checkpoints, constraints and costs.
func TestSurfaceGradient(t *testing.T) {
	withEpochs := func() (*suggest.Problem, *suggest.History) {
		p := simulated.NoiseTraining(64)
		p.Space.Parameters = append(p.Space.Parameters, space.Parameter{Name: "rate", Kind: space.Double, Min: 0, Max: 1})
		h := &suggest.History{}
		rng := rand.New(rand.NewPCG(3, 1))
		for run := range 12 {
			noise, rate := math.Exp(-4.5*rng.Float64()), rng.Float64()
			shared := 0.05 * rng.NormFloat64()
			for t := range 16 {
				q := space.Point{noise, float64(t + 1), rate}
				e := 0.15 + 0.3*math.Exp(-0.2*q[1]) + 0.2*(rate-0.4)*(rate-0.4) + 0.1*math.Log(1/noise)/4.5
				h.Evaluations = append(h.Evaluations, suggest.Evaluation{
					Point: q, Values: []float64{q[0] * q[1], e * (1 + shared)}, Run: int64(run + 1), Cost: q[1],
				})
			}
		}
		return p, h
	}
	for name, set := range map[string]func() (*suggest.Problem, *suggest.History, Options){
		"known": func() (*suggest.Problem, *suggest.History, Options) {
			p := simulated.TradeOff()
			return p, simulated.TradeOffHistory(p, 25, 1, 0.2), Options{}
		},
		"explored": func() (*suggest.Problem, *suggest.History, Options) {
			p := simulated.TradeOff()
			return p, simulated.TradeOffHistory(p, 25, 2, 0.2), Options{ModelKnown: true}
		},
		"explored trajectory": func() (*suggest.Problem, *suggest.History, Options) {
			p, h := withEpochs()
			return p, h, Options{}
		},
		"modelled": func() (*suggest.Problem, *suggest.History, Options) {
			p := simulated.TradeOff()
			return p, simulated.TradeOffHistory(p, 25, 2, 0.2), Options{ModelKnown: true, PlugIn: true}
		},
		"maximised": func() (*suggest.Problem, *suggest.History, Options) {
			p := simulated.TradeOff()
			h := simulated.TradeOffHistory(p, 25, 3, 0.2)
			p.Objectives[1].Goal, p.Objectives[1].Reference = suggest.Maximize, 0
			for i := range h.Evaluations {
				h.Evaluations[i].Values[1] = 1 - h.Evaluations[i].Values[1]
			}
			return p, h, Options{}
		},
		"constrained": func() (*suggest.Problem, *suggest.History, Options) {
			p := simulated.TradeOff()
			h := simulated.TradeOffHistory(p, 25, 4, 0.2)
			p.Constraints = []suggest.Constraint{{Name: "time", Transform: suggest.Log, Lower: math.Inf(-1), Upper: 5}}
			for i := range h.Evaluations {
				e := &h.Evaluations[i]
				e.Values = append(e.Values, 1+8*e.Point[0]+math.Sin(3*e.Point[0]*math.Log(e.Point[1])))
			}
			return p, h, Options{}
		},
		"constrained, nothing acceptable": func() (*suggest.Problem, *suggest.History, Options) {
			p := simulated.TradeOff()
			h := simulated.TradeOffHistory(p, 25, 4, 0.2)
			p.Constraints = []suggest.Constraint{{Name: "time", Lower: math.Inf(-1), Upper: 0.5}}
			for i := range h.Evaluations {
				e := &h.Evaluations[i]
				e.Values = append(e.Values, 1+8*e.Point[0]+math.Sin(3*e.Point[0]*math.Log(e.Point[1])))
			}
			return p, h, Options{}
		},
		"along rays": func() (*suggest.Problem, *suggest.History, Options) {
			p := simulated.TradeOff()
			h := simulated.TradeOffHistory(p, 25, 5, 0.2)
			for j := range 4 {
				p.Objectives = append(p.Objectives, suggest.Objective{Name: string(rune('a' + j)), Goal: suggest.Goal(1 + j%2), Reference: float64(1 - j%2)})
			}
			for i := range h.Evaluations {
				e := &h.Evaluations[i]
				for j := range 4 {
					e.Values = append(e.Values, 0.5+0.4*math.Sin(float64(j)+3*e.Point[0]+math.Log(e.Point[1])))
				}
			}
			return p, h, Options{}
		},
		"trajectory": func() (*suggest.Problem, *suggest.History, Options) {
			p, h := withEpochs()
			return p, h, Options{}
		},
		"measured cost": func() (*suggest.Problem, *suggest.History, Options) {
			p, h := withEpochs()
			p.Cost = suggest.CostMeasured
			return p, h, Options{}
		},
		"length as cost": func() (*suggest.Problem, *suggest.History, Options) {
			p, h := withEpochs()
			p.Cost = suggest.CostCheckpoint
			return p, h, Options{FinalOnly: true}
		},
		"known cost": func() (*suggest.Problem, *suggest.History, Options) {
			p, h := withEpochs()
			p.Cost, p.RunCost = suggest.CostKnown, func(q space.Point) float64 { return q[0] * q[0] * q[1] }
			return p, h, Options{}
		},
		"features": func() (*suggest.Problem, *suggest.History, Options) {
			p, h := withEpochs()
			p.Features = pathFeatures
			return p, h, Options{}
		},
		"features and a measured cost": func() (*suggest.Problem, *suggest.History, Options) {
			p, h := withEpochs()
			p.Features, p.Cost = pathFeatures, suggest.CostMeasured
			return p, h, Options{}
		},
		"trajectory of modelled objectives": func() (*suggest.Problem, *suggest.History, Options) {
			p, h := withEpochs()
			return p, h, Options{ModelKnown: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, h, o := set()
			s := newTestSurface(t, p, h, o)
			if strings.HasPrefix(name, "explored") {
				s.boldness = optimism
			}
			v := s.evaluator()
			rng := rand.New(rand.NewPCG(9, 1))
			checked := 0
			for range 40 {
				q := p.Space.Sample(rng)
				at := s.siteAt(q)
				for j := range at.unit {
					if s.isRelaxed(j) {
						at.unit[j] = 0.02 + 0.96*rng.Float64()
					}
				}
				steps := s.steps(q, looks)
				grad := make([]float64, len(q))
				value := v.value(at, steps, len(s.fronts), grad)
				if math.IsInf(value, -1) {
					continue
				}
				for j := range at.unit {
					if !s.isRelaxed(j) {
						continue
					}
					const step = 1e-6
					old := at.unit[j]
					at.unit[j] = old + step
					up := v.value(at, steps, len(s.fronts), nil)
					at.unit[j] = old - step
					down := v.value(at, steps, len(s.fronts), nil)
					at.unit[j] = old
					left, right := (value-down)/step, (up-value)/step
					if math.Abs(left-right) > 1e-3*(1+math.Abs(left)+math.Abs(right)) {
						continue // a kink: a known objective's, or a border of the front
					}
					slope := (up - down) / (2 * step)
					if math.Abs(grad[j]-slope) > 2e-3*(1+math.Abs(slope)) {
						t.Errorf("at %v: d/d%d = %g, difference quotient %g", q, j, grad[j], slope)
					}
					checked++
				}
			}
			if checked < 20 {
				t.Errorf("only %d slopes were checked", checked)
			}
		})
	}
}

// jointDraws draws values of a Gaussian process at some points together.
func jointDraws(t *testing.T, rng *rand.Rand, gp *surrogate.GP, x [][]float64, draws int) *surrogate.Conditioned {
	t.Helper()
	normals := make([][]float64, draws)
	for i := range normals {
		for range x {
			normals[i] = append(normals[i], rng.NormFloat64())
		}
	}
	c, err := gp.Condition(x, normals)
	require.NoError(t, err)
	return c
}

// The acquisition is the mean over joint draws of the front and of the outcome of
// the improvement. Under a constraint, what does not meet it neither improves the front nor is
// on it: in each draw by its drawn value.
func TestSurfaceIsTheExpectedImprovement(t *testing.T) {
	for name, constrained := range map[string]bool{"free": false, "constrained": true} {
		t.Run(name, func(t *testing.T) {
			p := simulated.TradeOff()
			p.Objectives[1].Transform = suggest.Identity
			h := simulated.TradeOffHistory(p, 15, 5, 0.3)
			rng := rand.New(rand.NewPCG(2, 2))
			const limit = 0.5 // of the second parameter's position, with noise
			if constrained {
				p.Constraints = []suggest.Constraint{{Name: "limit", Lower: math.Inf(-1), Upper: limit}}
				for i := range h.Evaluations {
					e := &h.Evaluations[i]
					e.Values = append(e.Values, p.Space.Parameters[1].Unit(e.Point[1])+0.8*rng.NormFloat64())
				}
			}
			s := newTestSurface(t, p, h, Options{Samples: 20000})
			v := s.evaluator()
			var base [][]float64
			for _, e := range s.members {
				if e.open {
					base = append(base, e.x)
				}
			}
			for checked := 0; checked < 8; {
				q := p.Space.Sample(rng)
				if checked%2 == 1 { // beside the front, with whose outcomes its own is correlated
					q = sample.Perturb(p.Space, rng, s.members[rng.IntN(len(s.members))].point, 0.05)
				}
				if v.value(s.siteAt(q), nil, len(s.fronts), nil) < -6 {
					continue // too seldom an improvement for Monte Carlo
				}
				checked++
				x := append(slices.Clone(base), p.Space.Encode(nil, q))
				const draws = 100_000
				objective := jointDraws(t, rng, s.model.Surrogate(1), x, draws)
				var constraint *surrogate.Conditioned
				if constrained {
					constraint = jointDraws(t, rng, s.model.Surrogate(2), x, draws)
				}
				var sum, squares float64
				for i := range draws {
					f, c := objective.BaseValues(i), make([]float64, len(x))
					if constrained {
						c = constraint.BaseValues(i)
					}
					var points [][]float64
					b := 0
					for _, e := range s.members {
						point := slices.Clone(e.medians)
						if e.open {
							point[1] = f[b]
							if b++; c[b-1] > limit {
								continue
							}
						}
						points = append(points, point)
					}
					if c[len(base)] > limit {
						continue
					}
					front := pareto.NewFront(points, p.ReferenceCosts())
					gain := front.Improvement([]float64{p.Objectives[0].Known(q), f[len(base)]})
					sum += gain
					squares += gain * gain
				}
				want := sum / draws
				se := math.Sqrt((squares/draws - want*want) / draws)
				got := math.Exp(v.value(s.siteAt(q), nil, len(s.fronts), nil))
				// The draws of the surface have an error of their own.
				if math.Abs(got-want) > 4*se+0.02*want {
					t.Errorf("at %v: %g, Monte Carlo %g ± %g", q, got, want, se)
				}
			}
		})
	}
}

// A run is worth at least its best single checkpoint, whether the known objective
// grows or falls along it.
func TestTrajectoriesAreWorthTheirBestCheckpoint(t *testing.T) {
	for name, known := range map[string]func(space.Point) float64{
		"growing": func(q space.Point) float64 { return q[0] * q[1] },
		"falling": func(q space.Point) float64 { return 9 / q[0] / 100 / q[1] },
	} {
		p := simulated.NoiseTraining(32)
		p.Objectives[0].Known = known
		h := &suggest.History{}
		rng := rand.New(rand.NewPCG(4, 1))
		for run := range 6 {
			noise := math.Exp(-4.5 * rng.Float64())
			for epoch := range 10 {
				q := space.Point{noise, float64(epoch + 1)}
				h.Evaluations = append(h.Evaluations, suggest.Evaluation{
					Point: q, Values: []float64{known(q), 0.2 + 0.3*noise/q[1] + 0.01*rng.Float64()}, Run: int64(run + 1),
				})
			}
		}
		s := newTestSurface(t, p, h, Options{})
		v := s.evaluator()
		checked := 0
		for range 30 {
			at := s.siteAt(p.Space.Sample(rng))
			steps := s.steps(at.point, looks)
			if len(steps) < 2 {
				continue
			}
			whole := v.value(at, steps, 1, nil)
			for _, step := range steps {
				if single := v.value(at, []float64{step}, 1, nil); single > whole+1e-9 {
					t.Errorf("%s: the checkpoint %g of %v is worth %g, the run %g", name, step, at.point, single, whole)
				} else if !math.IsInf(single, -1) {
					checked++
				}
			}
		}
		if checked < 30 {
			t.Errorf("%s: only %d checkpoints counted", name, checked)
		}
	}
}

func TestCheckpointsAreIncreasingFromFirstToLast(t *testing.T) {
	p := &simulated.NoiseTraining(1000).Space.Parameters[1]
	for last := 1.0; last <= 1000; last++ {
		for n := 1; n <= 8; n++ {
			got := checkpoints(p, last, n)
			if got[len(got)-1] != last || len(got) > n || !slices.IsSorted(got) {
				t.Fatalf("checkpoints(%g, %d) = %v", last, n, got)
			}
			if n > 1 && got[0] != 1 {
				t.Fatalf("checkpoints(%g, %d) = %v does not begin at the start", last, n, got)
			}
		}
	}
}

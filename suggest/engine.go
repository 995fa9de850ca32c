package suggest

import (
	"cmp"
	"context"
	"math"

	"github.com/dpareto/dpareto/suggest/space"
)

// Defaults of [EngineOptions].
const (
	DefaultEngineCandidates = 512
	DefaultEngineRestarts   = 10
	DefaultEngineDraws      = 16
)

// EngineOptions tunes [NewDefault] and [NewEHVI]. A field that is 0 takes its
// default.
type EngineOptions struct {
	// InitialPoints is the number of configurations of a quasi-random design before
	// the first model: evaluated, pending and infeasible ones count. Default
	// 2(d+1) for d parameters that can vary, at most [DefaultInitialPoints]. An
	// earlier study (History.Prior) takes over two of three of them.
	InitialPoints int

	// Candidates is the number of quasi-random configurations that are compared,
	// before half as many around the front; only half of them after 128
	// configurations. Default [DefaultEngineCandidates].
	Candidates int

	// Restarts is the number of the best candidates that a quasi-Newton search
	// improves. Default [DefaultEngineRestarts].
	Restarts int

	// Samples is the number of draws of an uncertain front. Default
	// [DefaultEngineDraws].
	Samples int

	// ModelKnown models objectives with a Known function too.
	ModelKnown bool

	// PlugIn takes the front of the posterior medians for the front.
	PlugIn bool

	// Homoscedastic takes unknown noise to be the same everywhere, and the
	// checkpoints of one run to be measured independently.
	Homoscedastic bool

	// FinalOnly values a run by its end alone, also where its checkpoints count.
	FinalOnly bool
}

type engine struct {
	name    string
	options EngineOptions
}

// NewDefault returns the designer "default", the best of this package. After a
// quasi-random design it suggests the configuration of the largest expected
// hypervolume improvement, exactly as the study measures it:
//
//   - A known objective is used itself, not a model of it (as Loka et al., "Bi-objective
//     Bayesian optimization of engineering problems with cheap and expensive cost
//     functions", Eng. with Computers 39, 2023, did for cheap objectives).
//   - With a checkpoint parameter the whole trajectory of a run is valued (as Wang,
//     Fan, Ng, "A Trajectory-Based Bayesian Approach to Multi-Objective Hyperparameter
//     Optimization with Epoch-Aware Trade-Offs", UAI 2025, did with models of both
//     objectives), and the length of a run follows from the reference unless it is
//     paid for.
//   - The front to be improved is as uncertain as the measurements that it rests on,
//     pending runs included; see [Model] for their noise.
//   - Where noise has to be learned, a configuration is run again if that improves the
//     reported front more than a new one; see [Suggestion].Replicate.
//
// Constraints weigh by the probability that they are met, and the value of a
// configuration is divided by what it costs. If the model fails, a quasi-random
// configuration stands in. It panics if an option is negative.
func NewDefault(o EngineOptions) Designer { return newEngine("default", o) }

// NewEHVI returns the designer "ehvi": expected hypervolume improvement over the
// front of the posterior medians, with a Gaussian process for every objective. It is
// what [NewDefault] is without knowledge of privacy and noise.
func NewEHVI(o EngineOptions) Designer {
	o.ModelKnown, o.PlugIn, o.Homoscedastic, o.FinalOnly = true, true, true, true
	return newEngine("ehvi", o)
}

// newEHVIExact returns the designer "ehvi_exact": [NewEHVI] with known objectives
// themselves, for comparisons that tell what each part of [NewDefault] is worth.
func newEHVIExact(o EngineOptions) Designer {
	o.PlugIn, o.Homoscedastic, o.FinalOnly = true, true, true
	return newEngine("ehvi_exact", o)
}

func newEngine(name string, o EngineOptions) Designer {
	if o.InitialPoints < 0 || o.Candidates < 0 || o.Restarts < 0 || o.Samples < 0 {
		panic("suggest: negative option")
	}
	o.Candidates = cmp.Or(o.Candidates, DefaultEngineCandidates)
	o.Restarts = cmp.Or(o.Restarts, DefaultEngineRestarts)
	o.Samples = cmp.Or(o.Samples, DefaultEngineDraws)
	return engine{name, o}
}

func (e engine) Name() string  { return e.name }
func (engine) Version() string { return "1" }

// designed reports whether the run after n others is one of the initial design. With an
// earlier study every third of them is, lest that study lead to the same wrong places
// for good.
func (e engine) designed(p *Problem, h *History, n int) bool {
	if n >= cmp.Or(e.options.InitialPoints, EngineInitialPoints(p)) {
		return false
	}
	return len(h.Prior) == 0 || n%3 == 2
}

// EngineInitialPoints returns the default of EngineOptions.InitialPoints for a
// problem.
func EngineInitialPoints(p *Problem) int {
	d := 0
	for j := range p.Space.Parameters {
		if p.Space.Parameters[j].Count() > 1 {
			d++
		}
	}
	return min(2*(d+1), DefaultInitialPoints)
}

func (e engine) Suggest(ctx context.Context, p *Problem, h *History, r Request) ([]Suggestion, error) {
	if err := validate(p, h, r); err != nil {
		return nil, err
	}
	var model *Model
	return modelled{
		designed: func(n int) bool { return e.designed(p, h, n) },
		initial: func(tried pointSet, number int64) (Suggestion, bool) {
			return e.initial(p, tried, r.Seed, number)
		},
		next: func(pending []space.Point, tried pointSet, number int64) (s Suggestion, ok bool, err error) {
			if model == nil {
				end := beginPhase(ctx, PhaseFit, h)
				model, err = FitModel(ctx, p, h, ModelOptions{
					ModelKnown:       e.options.ModelKnown,
					Seed:             mix(r.Seed + streamFit),
					imputeInfeasible: true,
					homoscedastic:    e.options.Homoscedastic,
				})
				end()
			}
			if err != nil {
				return s, false, err
			}
			defer beginPhase(ctx, PhaseSearch, h)()
			return e.maximize(ctx, model, pending, tried, r.Seed, number)
		},
	}.suggest(ctx, p, h, r, len(runs(h))+len(h.Infeasible)+len(h.Pending))
}

// initial returns a configuration of the quasi-random design, run for as long as it
// is useful if runs are valued whole.
func (e engine) initial(p *Problem, tried pointSet, seed uint64, number int64) (Suggestion, bool) {
	s, ok := fallback(p, tried, seed, number)
	if c := p.checkpoint(); ok && c >= 0 && !e.options.FinalOnly && p.Cost == CostRuns {
		q := s.Point.Clone()
		if q[c] = p.usefulLength(q); !tried.contains(q) && p.allowed(q) {
			s.Point = q
		}
	}
	return s, ok
}

// maximize suggests the untried configuration of the largest acquisition that it
// finds, or a configuration to run again. It reports false if there is none.
func (e engine) maximize(ctx context.Context, m *Model, pending []space.Point, tried pointSet, seed uint64, number int64) (Suggestion, bool, error) {
	s, err := newSurface(m, pending, e.options, seed, number)
	if err != nil {
		return Suggestion{}, false, err
	}
	x := &explorer{surface: s, options: e.options, tried: tried, rng: newRand(seed, number, streamSearch)}
	c, ok, err := x.find(ctx, s.centres(), mix(mix(seed+streamCandidates)^uint64(number)))
	if err != nil {
		return Suggestion{}, false, err
	}
	if !ok {
		q, left := m.problem.firstUntried(tried)
		if !left {
			return Suggestion{}, false, nil
		}
		c.point = q
	}
	if x.checkpoint >= 0 && m.problem.Space.Parameters[x.checkpoint].Fixed == nil { // exactly, where the search took a stand-in
		q := c.point.Clone()
		if !x.perEpoch {
			q[x.checkpoint] = m.problem.Space.Parameters[x.checkpoint].Max
		}
		q[x.checkpoint] = math.Max(float64(LastUseful(m.problem, q)), m.problem.Space.Parameters[x.checkpoint].Min)
		if x.open(q) {
			c.point = q
		}
	}
	again := false
	if !e.options.PlugIn {
		var q space.Point
		if q, again = x.replicate(c.point, pending); again {
			c.point = q
		}
	}
	return Suggestion{
		Point:       c.point,
		Replicate:   again,
		Predictions: m.Predict(c.point),
		Acquisition: math.Exp(c.value),
		Designer:    e.name,
	}, true, nil
}

// Package engine is the designer "default", and its plainer relatives "ehvi" and
// "ehvi_exact", which show what each of its parts is worth. docs/explanation/engine.md explains it.
//
// A suggestion takes three steps. newSurface builds the acquisition function from a model and
// the pending runs (build.go; evaluated in surface.go, target.go, known.go). An explorer searches its
// maximum (search.go, category.go) among the choices (choices.go); explore.go says when it explores. Last, a
// comparison of the new configuration with another run of a known one (replicate.go). layout.go says how
// configurations and their checkpoints become inputs of surrogates.
package engine

import (
	"cmp"
	"context"
	"math"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/internal/modelbased"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

// Names of the designers.
const (
	Name          = "default"
	NameEHVI      = "ehvi"
	NameEHVIExact = "ehvi_exact"
)

// Defaults of [Options].
const (
	DefaultCandidates = 512
	DefaultRestarts   = 10
	DefaultSamples    = 16
)

// Options tunes [New], [NewEHVI] and [NewEHVIExact]. A field that is 0 takes its
// default.
type Options struct {
	// InitialPoints is the number of configurations of a quasi-random design before
	// the first model: evaluated, pending and infeasible ones count. Default
	// 2(d+1) for d parameters that can vary, or d features over which runs are spread, at most 16, and 1 where
	// something is known beforehand (see [suggest.FeatureMean]). With an earlier study
	// (History.Prior) the model takes over two of three of them.
	InitialPoints int

	// Candidates is the number of quasi-random configurations that are compared, beside
	// half as many around the front. It is halved after 128 configurations. Default
	// [DefaultCandidates].
	Candidates int

	// Restarts is the number of the best candidates that a quasi-Newton search
	// improves. Default [DefaultRestarts].
	Restarts int

	// Samples is the number of draws of an uncertain front. Default
	// [DefaultSamples].
	Samples int

	// ModelKnown models objectives with a Known function too.
	ModelKnown bool

	// PlugIn takes the front of the posterior medians for certain.
	PlugIn bool

	// Homoscedastic takes unknown noise to be the same everywhere, and the
	// checkpoints of one run to be measured independently.
	Homoscedastic bool

	// FinalOnly values a run by its end alone, also where its checkpoints count.
	FinalOnly bool

	// Cache is for the fits of the model, see [model.Options]. Default: a cache that
	// belongs to the designer.
	Cache *model.Cache

	// Workers do what a suggestion can do in parallel. The zero value uses GOMAXPROCS
	// goroutines.
	Workers surrogate.Workers
}

// New returns the designer "default". After a quasi-random design it suggests the
// configuration of the largest expected hypervolume improvement, as the study measures it:
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
//     pending runs included; see [model.Model] for their noise.
//   - While the front stagnates, one of eight suggestions explores.
//   - Where noise has to be learned, a configuration is run again if that improves the
//     reported front more than a new one; see [suggest.Suggestion].Replicate.
//
// The value is multiplied by the probability that the constraints are met and divided by
// the cost of the run. If the model fails, the suggestion is a quasi-random configuration. New
// panics if an option is negative.
func New(o Options) suggest.Designer { return newDesigner(Name, o) }

// NewEHVI returns the designer "ehvi": expected hypervolume improvement over the
// front of the posterior medians, with a Gaussian process for every objective. It is
// [New] without knowledge of privacy and noise.
func NewEHVI(o Options) suggest.Designer {
	o.ModelKnown, o.PlugIn, o.Homoscedastic, o.FinalOnly = true, true, true, true
	return newDesigner(NameEHVI, o)
}

// NewEHVIExact returns the designer "ehvi_exact": [NewEHVI] with known objectives
// themselves, for comparisons that show what each part of [New] is worth.
func NewEHVIExact(o Options) suggest.Designer {
	o.PlugIn, o.Homoscedastic, o.FinalOnly = true, true, true
	return newDesigner(NameEHVIExact, o)
}

func newDesigner(name string, o Options) suggest.Designer {
	if o.InitialPoints < 0 || o.Candidates < 0 || o.Restarts < 0 || o.Samples < 0 {
		panic("engine: negative option")
	}
	o.Candidates = cmp.Or(o.Candidates, DefaultCandidates)
	o.Restarts = cmp.Or(o.Restarts, DefaultRestarts)
	o.Samples = cmp.Or(o.Samples, DefaultSamples)
	if o.Cache == nil {
		o.Cache = new(model.Cache)
	}
	return designer{name, o}
}

type designer struct {
	name    string
	options Options
}

func (d designer) Name() string  { return d.name }
func (designer) Version() string { return "1" }

// designed reports whether the run after n others is one of the initial design. With an earlier study every third
// of them is, so that a misleading one cannot dominate.
func (d designer) designed(p *suggest.Problem, h *suggest.History, n int) bool {
	if n >= cmp.Or(d.options.InitialPoints, InitialPoints(p)) {
		return false
	}
	return len(h.Prior) == 0 || n%3 == 2
}

func (d designer) Suggest(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
	if err := suggest.Validate(p, h, r); err != nil {
		return nil, err
	}
	var m *model.Model
	var shared common
	return modelbased.Suggester{
		// Before the first measurement there is no model to take over.
		Designed: func(n int) bool { return len(h.Evaluations)+len(h.Prior) == 0 || d.designed(p, h, n) },
		Initial: func(pending []space.Point, tried space.Set, number int64) (suggest.Suggestion, bool) {
			return d.initial(p, h, pending, tried, r.Seed, number)
		},
		Next: func(pending []space.Point, tried space.Set, number int64) (s suggest.Suggestion, ok bool, err error) {
			if m == nil {
				end := suggest.BeginPhase(ctx, suggest.PhaseFit, h)
				m, err = model.Fit(ctx, p, h, model.Options{
					ModelKnown:       d.options.ModelKnown,
					Seed:             r.Seed,
					ImputeInfeasible: true,
					Homoscedastic:    d.options.Homoscedastic,
					Cache:            d.options.Cache,
					Workers:          d.options.Workers,
				})
				end()
			}
			if err != nil {
				return s, false, err
			}
			defer suggest.BeginPhase(ctx, suggest.PhaseSearch, h)()
			return d.maximize(ctx, m, &shared, turn{h, pending, tried, r.Seed, number})
		},
	}.Suggest(ctx, p, h, r, h.Trials()+len(h.Infeasible)+len(h.Pending))
}

// turn is one suggestion to be made.
type turn struct {
	history *suggest.History
	pending []space.Point // the pending points of the history, and the suggestions before
	tried   space.Set
	seed    uint64
	number  int64 // of the trial
}

// maximize suggests the untried configuration of the largest acquisition that it
// finds, or a configuration to run again. It reports false if there is none.
func (d designer) maximize(ctx context.Context, m *model.Model, shared *common, t turn) (suggest.Suggestion, bool, error) {
	m = widened(m, t.seed, t.number)
	s, err := newSurface(m, shared, d.options, t)
	if err != nil {
		return suggest.Suggestion{}, false, err
	}
	explores := !d.options.PlugIn && s.explores(t.history, t.number)
	if explores {
		s.boldness = optimism
	}
	x := newExplorer(s, d.options, t.tried, sample.Stream(t.seed, t.number, sample.Search))
	// Candidates are the same until another trial has ended, whether suggestions are asked for at once or one by one.
	c, ok, err := x.find(ctx, sample.Stream(t.seed, t.number-int64(len(t.pending)), sample.Candidates))
	if err != nil {
		return suggest.Suggestion{}, false, err
	}
	if !ok {
		q, left := sample.FirstUntried(s.problem, t.tried)
		if !left {
			return suggest.Suggestion{}, false, nil
		}
		c.point = q
	}
	c.point = x.choices.exactLength(c.point)
	again := false
	if !d.options.PlugIn && !explores {
		var q space.Point
		if q, again, err = newComparison(x).replicate(ctx, c.point, t.pending); err != nil {
			return suggest.Suggestion{}, false, err
		}
		if again {
			c.point = q
		}
	}
	return suggest.Suggestion{
		Point:       c.point,
		Replicate:   again,
		Predictions: m.Predict(c.point),
		Acquisition: math.Exp(c.value),
		Designer:    d.name,
	}, true, nil
}

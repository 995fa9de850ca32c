// Package dpareto is the designer "dpareto", the method of Avent, González, Diethe, Paleyes,
// Balle, "Automatic Discovery of Privacy-Utility Pareto Fronts", PoPETs 2020(4).
package dpareto

import (
	"cmp"
	"context"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/internal/modelbased"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

// Name is the designer's name.
const Name = "dpareto"

// Defaults of [Options].
const (
	DefaultInitialPoints = 16
	DefaultCandidates    = 1000
	DefaultRestarts      = 20
)

// Options tunes [New]. A field that is 0 takes its default.
type Options struct {
	// InitialPoints is the number of configurations drawn from the design distributions
	// before the first model: evaluated, pending and infeasible ones count. At
	// least 1. Default [DefaultInitialPoints], as in the published experiments.
	InitialPoints int

	// Candidates is the number of quasi-random configurations, uniform on the
	// parameters' scales, at which the acquisition is first evaluated, before
	// a fifth as many around the front. Default [DefaultCandidates].
	Candidates int

	// Restarts is the number of the best candidates that local search
	// improves. Default [DefaultRestarts].
	Restarts int

	// Published takes the hypervolume and the reference of the acquisition from the code that
	// was published with the paper, see [New].
	Published bool

	// Cache is for the fits of the model, see [model.Options]. Default: a cache that
	// belongs to the designer.
	Cache *model.Cache

	// Workers do what a fit can do in parallel. The zero value uses GOMAXPROCS
	// goroutines.
	Workers surrogate.Workers
}

// New returns the designer "dpareto": Algorithm 2 of Avent et al.
// (PoPETs 2020). After the initial points it fits independent Gaussian
// processes to the objectives' transforms (log ε, logit error) and suggests
// the configuration of the largest HVPoI, the hypervolume improvement of the
// posterior medians times the probability of improvement. Both are taken with
// respect to the problem's reference and to the front of the posterior medians
// at the evaluated configurations. The hypervolume is in the objectives' own
// units.
//
// The acquisition is evaluated at points of the space, that is with integers rounded, and no
// configuration is suggested twice. Pending configurations are taken to yield the model's
// predictions.
//
// HVPoI depends on the medians only. Where the largest value found is at most 1e-5 of
// the front's hypervolume, the expected hypervolume improvement decides, which
// also depends on how unsure the model is. Where that is 0 too, as it can be far from the
// reference, the logarithm of the probability of improvement decides. If
// the model fails, the suggestion is a quasi-random configuration.
//
// With Published, all of this is in the transformed units of the surrogates, such as log ε and
// logit error, and the reference is not the problem's. It is estimated from the front P of the
// posterior means, as GPflowOpt did in the published experiments:
//
//	r_j = max_P y_j + 2 (max_P y_j − min_P y_j) / |P|.
//
// Where P is a single point, that is the point itself, so that only what is better in every
// objective counts. The problem's constants are not in P, for ε = 0 has no logarithm. Without any
// point the problem's reference and constants and the objectives' own units serve.
// Three details of the published code are left out, for they do not move the maximum or only lose
// it: log ε was divided by its largest initial value, which scales HVPoI; variances were at
// least 1e-6 in those units; and the proposals were the best of 5,000 random points.
//
// It panics if an option is negative.
func New(o Options) suggest.Designer {
	return newDesigner(o)
}

func newDesigner(o Options) designer {
	if o.InitialPoints < 0 || o.Candidates < 0 || o.Restarts < 0 {
		panic("dpareto: negative option")
	}
	o.InitialPoints = cmp.Or(o.InitialPoints, DefaultInitialPoints)
	o.Candidates = cmp.Or(o.Candidates, DefaultCandidates)
	o.Restarts = cmp.Or(o.Restarts, DefaultRestarts)
	if o.Cache == nil {
		o.Cache = new(model.Cache)
	}
	return designer{o}
}

type designer struct{ options Options }

func (designer) Name() string { return Name }

func (d designer) Version() string {
	if d.options.Published {
		return "2 published"
	}
	return "2"
}

func (d designer) Suggest(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
	if err := suggest.Validate(p, h, r); err != nil {
		return nil, err
	}
	var m *model.Model // of the evaluations and of believed pending configurations
	believed := 0      // pending ones
	return modelbased.Suggester{
		Designed: func(n int) bool { return n < d.options.InitialPoints },
		Initial: func(_ []space.Point, tried space.Set, number int64) (suggest.Suggestion, bool) {
			return random.Untried(p, tried, r.Seed, number)
		},
		Next: func(pending []space.Point, tried space.Set, number int64) (s suggest.Suggestion, ok bool, err error) {
			if m == nil {
				end := suggest.BeginPhase(ctx, suggest.PhaseFit, h)
				m, err = d.fit(ctx, p, h, pending, r.Seed)
				end()
				believed = len(pending)
			}
			for ; err == nil && believed < len(pending); believed++ {
				m, err = m.Believe(pending[believed])
			}
			if err != nil {
				return s, false, err
			}
			defer suggest.BeginPhase(ctx, suggest.PhaseSearch, h)()
			return d.maximize(ctx, m, pending, tried, r.Seed, number)
		},
	}.Suggest(ctx, p, h, r, len(h.Evaluations)+len(h.Infeasible)+len(h.Pending))
}

// fit returns the model of h after believing the pending configurations.
func (d designer) fit(ctx context.Context, p *suggest.Problem, h *suggest.History, pending []space.Point, seed uint64) (*model.Model, error) {
	m, err := model.Fit(ctx, p, h, model.Options{
		ModelKnown:       true,
		Seed:             seed,
		ImputeInfeasible: true,
		Homoscedastic:    true,
		Cache:            d.options.Cache,
		Workers:          d.options.Workers,
	})
	for _, q := range pending {
		if err != nil {
			return nil, err
		}
		m, err = m.Believe(q)
	}
	return m, err
}

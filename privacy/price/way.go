package price

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/adaptive"
	"github.com/dpareto/dpareto/privacy/stopping"
	"github.com/dpareto/dpareto/privacy/tuning"
)

// way is a way to search.
type way struct {
	name, released string
	adaptive       bool // whether configurations may depend on earlier results
	curves         bool // whether the scores of all checkpoints are released
	// least and most are the numbers of runs that it is for. most is 0 for a single run.
	least, most int64
	// count returns the number of trainings, on average and at most, for a number of runs.
	count func(runs int64) (mean float64, most int64)
	// training accounts a number of runs for the training records, with an accountant that is Tightest but for the
	// work that it counts and EpsilonLower.
	training func(accountant privacy.Accountant, runs int64) (privacy.Guarantee, error)
	// test is the release of the scores of a number of runs.
	test release
}

// release returns what is released of a number of runs, as a function of one run: of its training, or
// of its scores.
type release func(runs int64) (func(run privacy.Part) privacy.Mechanism, error)

// What is released.
const (
	releasesAll   = "all models and scores"
	releasesModel = "the best model and its score"
	releasesCurve = "the best run, all its checkpoints"
)

// filterAssumption is what filters assume.
var filterAssumption = privacy.PremiseAdmission.Assume("the filter admits every run before it looks at the data")

// ways returns the ways to search, from those that show everything to those that show least.
func (s *Search) ways() []way {
	chosen := s.chosen()
	one := s.way("one run, no search", "its model and scores", all)
	one.most, one.curves = 0, true
	fixed := s.way("all shown, fixed beforehand", releasesAll, all)
	fixed.curves = true
	exactly := s.way("best of exactly so many", releasesModel, exactly)
	ways := []way{one, fixed, s.gaussianFilter(), s.renyiFilter()}
	if trial, ok := noisyTrial(s.Run); ok {
		ways = append(ways, s.noisyTrials(trial))
	}
	ways = append(ways, exactly)
	var best way // by the chosen distribution
	for _, f := range s.compared() {
		w := s.bestOf("best of K, "+f.name, releasesModel, 1, f)
		if f.name == chosen.name {
			w.training = remembered(w.training)
			best = w
		}
		ways = append(ways, w)
	}
	if !s.Poisson {
		ways = append(ways, s.capped())
	}
	if s.CoversStates {
		best.name, best.released = "best curve of K, "+chosen.name, releasesCurve
		best.curves = true // checkpoints do not cost the records of the training
		ways = append(ways, best)
	}
	for _, k := range s.Portfolios {
		released := fmt.Sprintf("the best %d models and their scores", k)
		if s.CoversStates {
			released = fmt.Sprintf("the best %d runs, all their checkpoints", k)
		}
		w := s.bestOf(fmt.Sprintf("best portfolio of %d, %s", k, chosen.name), released, k, chosen)
		w.curves = true
		ways = append(ways, w)
	}
	if s.Subset != nil {
		ways = append(ways, s.onSubset(chosen))
	}
	return ways
}

// way is the way to release something of as many runs as there are, with the number known.
func (s *Search) way(name, released string, r release) way {
	return way{
		name: name, released: released, least: 1, most: MaxMeanRuns, test: r,
		count: func(runs int64) (float64, int64) { return float64(runs), runs },
		training: func(accountant privacy.Accountant, runs int64) (privacy.Guarantee, error) {
			of, err := r(runs)
			if err != nil {
				return privacy.Guarantee{}, err
			}
			return privacy.Epsilon(accountant, of(s.Run), 1, s.Delta)
		},
	}
}

// all releases everything.
func all(runs int64) (func(privacy.Part) privacy.Mechanism, error) {
	return func(run privacy.Part) privacy.Mechanism {
		return privacy.Composition{{Mechanism: privacy.Composition{run}, Count: runs}}
	}, nil
}

// exactly releases the best of a number of runs that is known.
func exactly(runs int64) (func(privacy.Part) privacy.Mechanism, error) {
	return func(run privacy.Part) privacy.Mechanism {
		return tuning.BinomialSelection{Base: privacy.Composition{run}, Steps: 1, Tries: runs, Probability: 1}
	}, nil
}

// gaussianFilter declares as many accesses as there are runs.
func (s *Search) gaussianFilter() way {
	return s.filter("all shown, adaptive, Gaussian filter", func(runs int64) (privacy.Guarantee, error) {
		const epsilon = 1 // the slack does not depend on it
		b, err := adaptive.NewGaussianBudget(epsilon, s.Delta, runs)
		if err != nil {
			return privacy.Guarantee{}, err
		}
		mu, err := adaptive.ApproximateMu(s.Run.Mechanism, s.Run.Count, b.Slack)
		return privacy.Guarantee{
			Epsilon: b.Epsilon(float64(runs)*mu*mu, s.Delta), Delta: s.Delta, Steps: runs, Adjacency: s.Run.Mechanism.Adjacency(),
			Accountant: privacy.GDP{}.Name(), Assumptions: s.Run.Mechanism.Assumptions(),
		}, err
	})
}

// renyiFilter takes the order that suits the number of runs best.
func (s *Search) renyiFilter() way {
	return s.filter("all shown, adaptive, Rényi filter", func(runs int64) (privacy.Guarantee, error) {
		return privacy.Epsilon(privacy.RDP{}, privacy.Composition{s.Run}, runs, s.Delta)
	})
}

// filter shows all runs that a filter admits. The test records need none: the noise on scores and
// their number are fixed.
func (s *Search) filter(name string, training func(runs int64) (privacy.Guarantee, error)) way {
	w := s.way(name, releasesAll, all)
	w.adaptive, w.curves = true, true
	w.training = func(_ privacy.Accountant, runs int64) (privacy.Guarantee, error) {
		g, err := training(runs)
		g.EpsilonLower = 0 // of runs that are fixed
		g.Assumptions = privacy.JoinAssumptions(g.Assumptions, []privacy.Assumption{filterAssumption})
		return g, err
	}
	return w
}

// family is the distributions of the number of candidates of one kind, by their means above 1.
type family struct {
	name string
	at   func(mean float64) (stopping.Distribution, error)
}

var poisson = family{"Poisson", func(mean float64) (stopping.Distribution, error) { return stopping.Poisson{Mean: mean}, nil }}

// negativeBinomial are the truncated negative binomial distributions of a shape.
func negativeBinomial(eta float64) family {
	name := "η = " + strconv.FormatFloat(eta, 'g', -1, 64)
	switch eta {
	case 0:
		name = "logarithmic"
	case 1:
		name = "geometric"
	}
	return family{name, func(mean float64) (stopping.Distribution, error) { return stopping.ByMean(eta, mean) }}
}

// chosen returns the distributions that were chosen.
func (s *Search) chosen() family {
	if s.Poisson {
		return poisson
	}
	return negativeBinomial(s.Eta)
}

// compared returns the distributions that are compared: the named ones, and the chosen one.
func (s *Search) compared() []family {
	families := []family{negativeBinomial(0), negativeBinomial(1), poisson}
	if chosen := s.chosen(); !slices.ContainsFunc(families, func(f family) bool { return f.name == chosen.name }) {
		families = append(families, chosen)
	}
	return families
}

// bestOf is the best of K groups of k runs.
func (s *Search) bestOf(name, released string, k int64, f family) way {
	w := s.way(name, released, func(runs int64) (func(privacy.Part) privacy.Mechanism, error) {
		d, err := f.at(float64(runs) / float64(k))
		return func(run privacy.Part) privacy.Mechanism { return d.Mechanism(privacy.Composition{run}, k) }, err
	})
	w.least = k + 1
	w.count = func(runs int64) (float64, int64) { return float64(runs), 0 }
	return w
}

// capFactor is the largest number of runs over their mean, unless it is chosen.
const capFactor = 4

// capped is the best of a number of runs given that it is at most a cap.
func (s *Search) capped() way {
	distribution := func(runs int64) (d stopping.Capped, err error) {
		d.Most = s.MaxRuns
		if d.Most == 0 {
			d.Most = capFactor * runs
		}
		d.Of, err = stopping.ByMean(s.Eta, float64(runs))
		return d, err
	}
	w := s.way("best of K, "+s.chosen().name+", capped", releasesModel, func(runs int64) (func(privacy.Part) privacy.Mechanism, error) {
		d, err := distribution(runs)
		return func(run privacy.Part) privacy.Mechanism { return d.Mechanism(privacy.Composition{run}, 1) }, err
	})
	w.least, w.most = 2, tuning.MaxMostRuns/capFactor
	if s.MaxRuns > 0 {
		w.most = s.MaxRuns
	}
	w.count = func(runs int64) (float64, int64) {
		d, err := distribution(runs)
		if err != nil {
			panic("price: " + err.Error()) // Validate admits what has such a mean
		}
		return d.MeanRuns(), d.Most
	}
	return w
}

// remembered returns a function that accounts each number of runs once, with the accountant that asks first.
func remembered(of func(privacy.Accountant, int64) (privacy.Guarantee, error)) func(privacy.Accountant, int64) (privacy.Guarantee, error) {
	known := make(map[int64]privacy.Guarantee)
	return func(accountant privacy.Accountant, runs int64) (privacy.Guarantee, error) {
		if g, ok := known[runs]; ok {
			return g, nil
		}
		g, err := of(accountant, runs)
		if err == nil {
			known[runs] = g
		}
		return g, err
	}
}

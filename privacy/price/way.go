package price

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/dpareto/dpareto/privacy"
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
	// training accounts a number of runs for the training records.
	training func(work *privacy.Work, runs int64) (privacy.Guarantee, error)
	// test is what is released of the scores of a number of runs.
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
const filterAssumption = "the filter admits every run before it looks at the data"

// ways returns the ways to search, from those that show everything to those that show least.
func (s *Search) ways() []way {
	chosen := s.law()
	one := s.way("one run, no search", "its model and scores", all)
	one.most, one.curves = 0, true
	fixed := s.way("all shown, fixed beforehand", releasesAll, all)
	fixed.curves = true
	exactly := s.way("best of exactly so many", releasesModel, exactly)
	ways := []way{one, fixed, s.gaussianFilter(), s.renyiFilter(), exactly}
	var best way // by the chosen distribution
	for _, l := range s.compared() {
		w := s.bestOf("best of K, "+l.name, releasesModel, 1, l)
		if l.name == chosen.name {
			w.training = remembered(w.training)
			best = w
		}
		ways = append(ways, w)
	}
	if !s.Poisson {
		ways = append(ways, s.capped(chosen))
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
		training: func(work *privacy.Work, runs int64) (privacy.Guarantee, error) {
			of, err := r(runs)
			if err != nil {
				return privacy.Guarantee{}, err
			}
			return s.epsilon(work, of(s.Run))
		},
	}
}

// epsilon accounts one run of a mechanism by the least bound that is known.
func (s *Search) epsilon(work *privacy.Work, m privacy.Mechanism) (privacy.Guarantee, error) {
	return privacy.Epsilon(privacy.Within(privacy.Tightest{}, work), m, 1, s.Delta)
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
		return privacy.BinomialSelection{Base: privacy.Composition{run}, Steps: 1, Tries: runs, Probability: 1}
	}, nil
}

// gaussianFilter declares as many accesses as there are runs.
func (s *Search) gaussianFilter() way {
	return s.filter("all shown, adaptive, Gaussian filter", func(runs int64) (privacy.Guarantee, error) {
		const epsilon = 1 // the slack does not depend on it
		b, err := privacy.NewGaussianBudget(epsilon, s.Delta, runs)
		if err != nil {
			return privacy.Guarantee{}, err
		}
		mu, err := privacy.ApproximateMu(s.Run.Mechanism, s.Run.Count, b.Slack)
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
	w.training = func(_ *privacy.Work, runs int64) (privacy.Guarantee, error) {
		g, err := training(runs)
		g.EpsilonLower = 0 // of runs that are fixed
		g.Assumptions = append(slices.Clip(g.Assumptions), filterAssumption)
		return g, err
	}
	return w
}

// law is a distribution of the number of candidates.
type law struct {
	name string
	// best returns the best of a number of candidates with a mean above 1, each of some steps.
	best func(mean float64) (func(candidate privacy.Mechanism, steps int64) privacy.Mechanism, error)
	// capped returns the same, of one step each, given that the number is at most a cap.
	capped func(mean float64, most int64) (func(candidate privacy.Mechanism) privacy.CappedSelection, error)
}

var poisson = law{name: "Poisson", best: func(mean float64) (func(privacy.Mechanism, int64) privacy.Mechanism, error) {
	return func(candidate privacy.Mechanism, steps int64) privacy.Mechanism {
		return privacy.PoissonSelection{Base: candidate, Steps: steps, Mean: mean}
	}, nil
}}

// negativeBinomial is the truncated negative binomial distribution of a shape.
func negativeBinomial(eta float64) law {
	name := "η = " + strconv.FormatFloat(eta, 'g', -1, 64)
	switch eta {
	case 0:
		name = "logarithmic"
	case 1:
		name = "geometric"
	}
	return law{
		name: name,
		best: func(mean float64) (func(privacy.Mechanism, int64) privacy.Mechanism, error) {
			gamma, err := privacy.SelectionGamma(eta, mean)
			return func(candidate privacy.Mechanism, steps int64) privacy.Mechanism {
				return privacy.RepeatedSelection{Base: candidate, Steps: steps, Eta: eta, Gamma: gamma}
			}, err
		},
		capped: func(mean float64, most int64) (func(privacy.Mechanism) privacy.CappedSelection, error) {
			gamma, err := privacy.SelectionGamma(eta, mean)
			return func(candidate privacy.Mechanism) privacy.CappedSelection {
				return privacy.CappedSelection{Base: candidate, Steps: 1, Eta: eta, Gamma: gamma, MostRuns: most}
			}, err
		},
	}
}

// law returns the distribution that was chosen.
func (s *Search) law() law {
	if s.Poisson {
		return poisson
	}
	return negativeBinomial(s.Eta)
}

// compared returns the distributions that are compared: the named ones, and the chosen one.
func (s *Search) compared() []law {
	laws := []law{negativeBinomial(0), negativeBinomial(1), poisson}
	if chosen := s.law(); !slices.ContainsFunc(laws, func(l law) bool { return l.name == chosen.name }) {
		laws = append(laws, chosen)
	}
	return laws
}

// bestOf is the best of K groups of k runs.
func (s *Search) bestOf(name, released string, k int64, l law) way {
	w := s.way(name, released, func(runs int64) (func(privacy.Part) privacy.Mechanism, error) {
		best, err := l.best(float64(runs) / float64(k))
		return func(run privacy.Part) privacy.Mechanism { return best(privacy.Composition{run}, k) }, err
	})
	w.least = k + 1
	w.count = func(runs int64) (float64, int64) { return float64(runs), 0 }
	return w
}

// capFactor is the largest number of runs over their mean, unless it is chosen.
const capFactor = 4

// capped is the best of a number of runs given that it is at most a cap.
func (s *Search) capped(l law) way {
	most := func(runs int64) int64 {
		if s.MaxRuns > 0 {
			return s.MaxRuns
		}
		return capFactor * runs
	}
	w := s.way("best of K, "+l.name+", capped", releasesModel, func(runs int64) (func(privacy.Part) privacy.Mechanism, error) {
		best, err := l.capped(float64(runs), most(runs))
		return func(run privacy.Part) privacy.Mechanism { return best(privacy.Composition{run}) }, err
	})
	w.least, w.most = 2, privacy.MaxMostRuns/capFactor
	if s.MaxRuns > 0 {
		w.most = s.MaxRuns
	}
	w.count = func(runs int64) (float64, int64) {
		best, err := l.capped(float64(runs), most(runs))
		if err != nil {
			panic("price: " + err.Error()) // Validate admits what has such a mean
		}
		return best(s.Run.Mechanism).MeanRuns(), most(runs)
	}
	return w
}

// remembered returns a function that accounts each number of runs once.
func remembered(of func(*privacy.Work, int64) (privacy.Guarantee, error)) func(*privacy.Work, int64) (privacy.Guarantee, error) {
	known := make(map[int64]privacy.Guarantee)
	return func(work *privacy.Work, runs int64) (privacy.Guarantee, error) {
		if g, ok := known[runs]; ok {
			return g, nil
		}
		g, err := of(work, runs)
		if err == nil {
			known[runs] = g
		}
		return g, err
	}
}

package privacy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/privacy"
)

// Search is a search with a number of runs, whose prices are printed.
type Search struct {
	// Mechanism is the name of the mechanism of one run.
	Mechanism string
	// Run is one run: a mechanism with its number of steps.
	Run privacy.Part
	// Delta is the δ of all guarantees, in (0, 1).
	Delta float64
	// Runs is the number of runs, >= 1.
	Runs int64
	// Budget is the ε for which the number of runs is found, or 0.
	Budget float64
	// Subset is one run on a subset, or has no Base.
	Subset privacy.SubsetSampled
}

// way is a way to search.
type way struct {
	name, released string
	adaptive       bool // whether configurations may depend on earlier results
	// least and most are the numbers of runs that it is for. most is 0 for a single run.
	least, most int64
	price       func(work *privacy.Work, runs int64) (price, error)
}

// price is what a number of runs costs.
type price struct {
	guarantee privacy.Guarantee
	mean      float64
	largest   int64 // number of runs, 0 without a bound
}

// What is released.
const (
	releasesAll   = "all models and scores"
	releasesModel = "the best model and its score"
	releasesCurve = "the best run, all its checkpoints"
)

// ways returns the ways to search, in the order of the table.
func (s *Search) ways() []way {
	one := s.composed("one run, no search", 1)
	one.released, one.most = "its model", 0
	fixed := s.composed("all shown, fixed beforehand", mostSearchRuns)
	geometric := s.bestOf("best of K, geometric", releasesModel, 1, s.negativeBinomial(1))
	geometric.price = remembered(geometric.price)
	curve := geometric // checkpoints do not cost the records of the training
	curve.name, curve.released = "best curve of K, geometric", releasesCurve
	ways := []way{
		one, fixed, s.gaussianFilter(), s.renyiFilter(), s.exactly(),
		s.bestOf("best of K, logarithmic", releasesModel, 1, s.negativeBinomial(0)), geometric,
		s.bestOf("best of K, Poisson", releasesModel, 1, s.poisson), s.capped(), curve,
	}
	for _, k := range []int64{2, 4} {
		ways = append(ways, s.bestOf(fmt.Sprintf("best portfolio of %d, geometric", k), fmt.Sprintf("the best %d runs together", k), k, s.negativeBinomial(1)))
	}
	if s.Subset.Base != nil {
		ways = append(ways, s.subset())
	}
	return ways
}

// remembered returns a function that computes each price once.
func remembered(of func(*privacy.Work, int64) (price, error)) func(*privacy.Work, int64) (price, error) {
	known := make(map[int64]price)
	return func(work *privacy.Work, runs int64) (price, error) {
		if p, ok := known[runs]; ok {
			return p, nil
		}
		p, err := of(work, runs)
		if err == nil {
			known[runs] = p
		}
		return p, err
	}
}

// epsilon accounts one run of a mechanism by the least bound that is known.
func (s *Search) epsilon(work *privacy.Work, m privacy.Mechanism) (privacy.Guarantee, error) {
	return privacy.Epsilon(privacy.Within(privacy.Tightest{}, work), m, 1, s.Delta)
}

// composed is the way to show everything.
func (s *Search) composed(name string, most int64) way {
	return way{name, releasesAll, false, 1, most, func(work *privacy.Work, runs int64) (price, error) {
		g, err := s.epsilon(work, privacy.Composition{{Mechanism: privacy.Composition{s.Run}, Count: runs}})
		return price{g, float64(runs), runs}, err
	}}
}

// gaussianFilter declares as many accesses as there are runs.
func (s *Search) gaussianFilter() way {
	return way{"all shown, adaptive, Gaussian filter", releasesAll, true, 1, mostSearchRuns, func(_ *privacy.Work, runs int64) (price, error) {
		const epsilon = 1 // the slack does not depend on it
		b, err := privacy.NewGaussianBudget(epsilon, s.Delta, runs)
		if err != nil {
			return price{}, err
		}
		mu, err := privacy.ApproximateMu(s.Run.Mechanism, s.Run.Count, b.Slack)
		return filtered(privacy.Guarantee{Epsilon: b.Epsilon(float64(runs)*mu*mu, s.Delta), Accountant: "gdp_filter"}, runs), err
	}}
}

// renyiFilter takes the order that suits the number of runs best.
func (s *Search) renyiFilter() way {
	return way{"all shown, adaptive, Rényi filter", releasesAll, true, 1, mostSearchRuns, func(_ *privacy.Work, runs int64) (price, error) {
		g, err := privacy.Epsilon(privacy.RDP{}, privacy.Composition{s.Run}, runs, s.Delta)
		g.Accountant = "rdp_filter"
		return filtered(g, runs), err
	}}
}

// filtered is the price of runs that a filter admits.
func filtered(g privacy.Guarantee, runs int64) price {
	g.Assumptions = append(slices.Clip(g.Assumptions), "the filter admits every run before it looks at the data")
	return price{g, float64(runs), runs}
}

// exactly is the best of a number of runs that is known.
func (s *Search) exactly() way {
	return way{"best of exactly so many", releasesModel, false, 1, mostSearchRuns, func(work *privacy.Work, runs int64) (price, error) {
		g, err := s.epsilon(work, privacy.BinomialSelection{Base: privacy.Composition{s.Run}, Steps: 1, Tries: runs, Probability: 1})
		return price{g, float64(runs), runs}, err
	}}
}

// selection returns the best of a random number, with a mean above 1, of steps of a mechanism.
type selection func(base privacy.Mechanism, steps int64, mean float64) (privacy.Mechanism, error)

// negativeBinomial draws the number from a truncated negative binomial distribution.
func (s *Search) negativeBinomial(eta float64) selection {
	return func(base privacy.Mechanism, steps int64, mean float64) (privacy.Mechanism, error) {
		gamma, err := privacy.SelectionGamma(eta, mean)
		return privacy.RepeatedSelection{Base: base, Steps: steps, Eta: eta, Gamma: gamma}, err
	}
}

func (s *Search) poisson(base privacy.Mechanism, steps int64, mean float64) (privacy.Mechanism, error) {
	return privacy.PoissonSelection{Base: base, Steps: steps, Mean: mean}, nil
}

// bestOf is the best of K groups of k runs.
func (s *Search) bestOf(name, released string, k int64, best selection) way {
	return way{name, released, false, k + 1, mostSearchRuns, func(work *privacy.Work, runs int64) (price, error) {
		m, err := best(privacy.Composition{s.Run}, k, float64(runs)/float64(k))
		if err != nil {
			return price{}, err
		}
		g, err := s.epsilon(work, m)
		return price{g, float64(runs), 0}, err
	}}
}

// capFactor is the largest number of runs of a capped search over their mean without the cap.
const capFactor = 4

// capped is the geometric search given that it has at most capFactor times its mean of runs.
func (s *Search) capped() way {
	return way{"best of K, geometric, capped", releasesModel, false, 2, privacy.MaxMostRuns / capFactor, func(work *privacy.Work, runs int64) (price, error) {
		gamma, err := privacy.SelectionGamma(1, float64(runs))
		if err != nil {
			return price{}, err
		}
		m := privacy.CappedSelection{Base: privacy.Composition{s.Run}, Steps: 1, Eta: 1, Gamma: gamma, MostRuns: capFactor * runs}
		g, err := s.epsilon(work, m)
		return price{g, m.MeanRuns(), m.MostRuns}, err
	}}
}

// subset searches on a subset and then runs once on all records.
func (s *Search) subset() way {
	share := float64(s.Subset.SubsetSize) / float64(s.Subset.DatasetSize)
	name := fmt.Sprintf("best of K on %s %%, geometric; one run on all", strconv.FormatFloat(100*share, 'g', 3, 64))
	return way{name, "the model of the run on all", false, 2, mostSearchRuns, func(work *privacy.Work, runs int64) (price, error) {
		tuning := s.Subset
		var err error
		if tuning.Base, err = s.negativeBinomial(1)(s.Subset.Base, 1, float64(runs)); err != nil {
			return price{}, err
		}
		if _, err := s.epsilon(work, tuning.Base); err != nil { // SubsetSampled does not count its work
			return price{}, err
		}
		g, err := s.epsilon(work, privacy.Composition{{Mechanism: tuning, Count: 1}, s.Run})
		return price{g, float64(runs), 0}, err
	}}
}

// affordsWork bounds the operations of finding the runs that one way affords, to some seconds. Runs of few
// steps with little noise take longer.
const affordsWork = 1 << 27

// affords returns the largest number of runs that cost at most a budget, to 2 % from below, with three digits
// at most.
func (w way) affords(ctx context.Context, budget float64) (int64, error) {
	work := &privacy.Work{Limit: affordsWork, Pause: ctx.Err}
	epsilon := func(runs int64) (float64, error) {
		p, err := w.price(work, runs)
		return p.guarantee.Epsilon, err
	}
	low, high := w.least, w.most
	atLow, err := epsilon(low)
	if err != nil || !(atLow <= budget) {
		return 0, err
	}
	atHigh, err := epsilon(high)
	if err != nil || atHigh <= budget {
		return high, err
	}
	for i := 0; high-low > max(1, low/100); i++ {
		// The logarithm of ε is not far from linear in that of the runs.
		share := math.Log(budget/atLow) / math.Log(atHigh/atLow)
		if i%3 == 2 || !(share >= 0 && share <= 1) {
			share = 0.5
		}
		middle := int64(math.Round(math.Exp(math.Log(float64(low)) + share*math.Log(float64(high)/float64(low)))))
		middle = min(max(middle, low+1), high-1)
		at, err := epsilon(middle)
		if err != nil {
			return 0, err
		}
		if at <= budget {
			low, atLow = middle, at
		} else {
			high, atHigh = middle, at
		}
	}
	unit := int64(1)
	for low/unit >= 1000 {
		unit *= 10
	}
	return low / unit * unit, nil
}

// row returns the way with what the runs of the search cost, or nil where it is not for so few, or for
// so many. The number of affordable runs is missing where it takes too long to find.
func (s *Search) row(ctx context.Context, w way) (cells []any, p price, err error) {
	runs := s.Runs
	if w.most == 0 {
		runs = 1
	}
	if runs < w.least || w.most > 0 && runs > w.most {
		return nil, price{}, nil
	}
	if p, err = w.price(&privacy.Work{Pause: ctx.Err}, runs); err != nil {
		return nil, price{}, fmt.Errorf("%s: %w", w.name, err)
	}
	var mean, largest any = p.mean, nil
	if p.mean == math.Trunc(p.mean) {
		mean = int64(p.mean)
	}
	if p.largest > 0 {
		largest = p.largest
	}
	adaptive := "no"
	if w.adaptive {
		adaptive = "yes"
	}
	cells = []any{w.name, w.released, mean, largest, output.Bound(p.guarantee.Epsilon), p.guarantee.Accountant, adaptive}
	if s.Budget == 0 {
		return cells, p, nil
	}
	var affords any
	if w.most > 0 {
		n, err := w.affords(ctx, s.Budget)
		if _, long := errors.AsType[*privacy.WorkError](err); err != nil && !long {
			return nil, price{}, fmt.Errorf("%s: %w", w.name, err)
		} else if err == nil {
			affords = n
		}
	}
	return append(cells, affords), p, nil
}

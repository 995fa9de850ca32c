package analysis

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

const (
	// evaluations is about the number of points at which an objective is evaluated for its
	// importances.
	evaluations = 6_000
	// replicates is the number of independent designs that these points are divided among.
	replicates = 16
	// leastPoints is the smallest number of points of a design before coordinates are exchanged.
	leastPoints = 8
	// variants is the number of surrogates with different hyperparameters.
	variants = 16
	// paths is the number of functions drawn from each.
	paths = 4
	// frequencies is the number of random frequencies of these functions.
	frequencies = 256
	// resamples is the number of bootstrap samples of the designs, for each of the functions.
	resamples = 4
	// knownResamples is that number for a known objective.
	knownResamples = 400
)

// Interval is an estimate with the 5 % and 95 % quantiles of its possible values.
type Interval struct{ Value, Lower, Upper float64 }

// Sensitivity holds the contributions of the parameters to the variation of one objective.
type Sensitivity struct {
	// Variance is the variance of the objective, on the scale of its transform, where the
	// parameters are independent and uniform on their own scales. It is NaN where the objective
	// can be computed nowhere.
	Variance Interval

	// FirstOrder are the Sobol indices of first order, by parameter: the share in [0, 1] of the
	// variance that the parameter explains by itself. They are 0 without variance.
	FirstOrder []Interval

	// Total are the total Sobol indices: the share of the variance that would be left if all
	// other parameters were known.
	Total []Interval
}

// Importance returns the sensitivity of objective j: of its posterior in the model, of those given,
// under which its measurements are likeliest, or of the objective itself if there is no model or
// no surrogate for it; it must then be known. A known objective is computed by its stand-in, if it
// has one. Seed determines all draws.
//
// The models are of one history and differ in [model.Options].Smooth. The twice differentiable
// functions of the usual model are a poor guess of the interactions of a smooth function.
//
// Parameters are independent and uniform on their scales, and categories have equal shares; what
// the problem allows does not matter. Where a parameter does not exist its coordinate has no
// effect. Configurations at which a known objective is not finite are left out.
//
// The indices of functions drawn from the posterior are estimated on randomised quasi-random
// designs, which are resampled for every function. So the intervals hold the uncertainty of the
// posterior and of the estimate, as in L. Le Gratiet, C. Cannamela, B. Iooss, "A Bayesian Approach
// for Global Sensitivity Analysis of (Multifidelity) Computer Codes", SIAM/ASA Journal on Uncertainty
// Quantification 2, 2014. The functions also have different hyperparameters. Where measurements are few or
// noisy for the number of parameters, the posterior has interactions that the function may lack, and total
// indices come out too large. Estimates are medians. Importance returns the context's error.
func Importance(ctx context.Context, p *suggest.Problem, models []*model.Model, j int, seed uint64) (*Sensitivity, error) {
	f, err := newFunctions(p, likeliest(models, j), j, seed)
	if err != nil {
		return nil, err
	}
	d := len(p.Space.Parameters)
	points := max(leastPoints, evaluations/(2*d+2)/replicates)
	all := make([][]sums, replicates)
	for r := range all {
		key := sample.Mix(sample.Sensitivity.Seed(seed) ^ sample.Mix(uint64(r)))
		if all[r], err = f.replicate(ctx, sample.NewHalton(2*d, key), points); err != nil {
			return nil, err
		}
	}
	return summarise(all, f.count, d, sample.Stream(seed, int64(j), sample.Sensitivity)), nil
}

// likeliest returns the model under which the measurements of objective j are likeliest, or nil.
func likeliest(models []*model.Model, j int) *model.Model {
	if len(models) == 0 {
		return nil
	}
	return slices.MaxFunc(models, func(a, b *model.Model) int { return cmp.Compare(a.Likelihood(j), b.Likelihood(j)) })
}

// functions are functions of the unit cube with one coordinate for each parameter: draws from a
// posterior, or one known function.
type functions struct {
	problem *suggest.Problem
	count   int
	known   func(space.Point) float64 // or nil
	paths   []*surrogate.Paths        // or nil
}

func newFunctions(p *suggest.Problem, m *model.Model, j int, seed uint64) (*functions, error) {
	f := &functions{problem: p, count: 1}
	if m == nil || m.Surrogate(j) == nil {
		o := &p.Objectives[j]
		f.known = func(q space.Point) float64 {
			v := o.Cost(o.SearchCost(q)) // its own inverse
			if math.IsInf(v, 0) {
				return math.NaN()
			}
			return model.OnScale(o, v)
		}
		return f, nil
	}
	f.count = variants * paths
	rng := sample.Stream(seed, ^int64(j), sample.Sensitivity)
	gps, err := m.Variants(j, variants, rng)
	if err != nil {
		return nil, err
	}
	for _, gp := range gps {
		drawn, err := gp.Paths(rng, paths, frequencies)
		if err != nil {
			return nil, err
		}
		f.paths = append(f.paths, drawn)
	}
	return f, nil
}

// evaluate stores the values at points of the unit cube: count values a point.
func (f *functions) evaluate(ctx context.Context, dst []float64, points [][]float64) error {
	inputs := make([][]float64, len(points))
	for i, u := range points {
		q := sample.At(f.problem.Space, u)
		if f.known != nil {
			if err := pause.Check(ctx); err != nil { // one value may take a second
				return err
			}
			dst[i] = f.known(q)
		} else {
			inputs[i] = f.problem.Inputs(nil, q)
		}
	}
	if f.known != nil {
		return nil
	}
	part := make([]float64, len(points)*paths)
	for k, drawn := range f.paths {
		drawn.Evaluate(part, inputs)
		for i := range points {
			copy(dst[i*f.count+k*paths:], part[i*paths:(i+1)*paths])
		}
	}
	return nil
}

// sums are what one function contributes to the estimates on one design: for every parameter i the
// sums over pairs of points (a, b), with a' and b' the same points after they exchanged
// coordinate i,
//
//	first = Σ 2 (f(a') − f(a)) (f(b) − f(b')),
//	total = Σ (f(a') − f(a))² + (f(b) − f(b'))²,
//	both  = Σ (f(a) − f(b))² + (f(a') − f(b'))².
//
// The index of first order is first/both and the total one total/both. A parameter without effect
// has exactly 0, and one that alone has an effect 1. The variance is both/4 for each of pairs. See
// I. Azzini, T. A. Mara, R. Rosati, "Comparison of two sets of Monte Carlo estimators of Sobol'
// indices", Environmental Modelling & Software 144, 2021.
type sums struct {
	first, total, both, pairs []float64
}

func newSums(d int) sums {
	return sums{make([]float64, d), make([]float64, d), make([]float64, d), make([]float64, d)}
}

// add adds the sums of another design.
func (s *sums) add(other *sums) {
	for i := range s.first {
		s.first[i] += other.first[i]
		s.total[i] += other.total[i]
		s.both[i] += other.both[i]
		s.pairs[i] += other.pairs[i]
	}
}

// replicate returns the sums of every function on the first points of a sequence.
func (f *functions) replicate(ctx context.Context, sequence sample.Halton, points int) ([]sums, error) {
	d := len(f.problem.Space.Parameters)
	all := make([]sums, f.count)
	for s := range all {
		all[s] = newSums(d)
	}
	a, b := make([][]float64, points), make([][]float64, points)
	for n := range points {
		u := make([]float64, 2*d)
		sequence.At(u, uint64(n))
		a[n], b[n] = u[:d:d], u[d:]
	}
	var values [4][]float64 // at a, b, a', b'
	for k := range values {
		values[k] = make([]float64, points*f.count)
	}
	// at evaluates a and b into values[k] and values[k+1].
	at := func(k int) error {
		if err := f.evaluate(ctx, values[k], a); err != nil {
			return err
		}
		return f.evaluate(ctx, values[k+1], b)
	}
	if err := at(0); err != nil {
		return nil, err
	}
	for i := range d {
		if err := pause.Check(ctx); err != nil {
			return nil, err
		}
		exchange(a, b, i)
		if err := at(2); err != nil {
			return nil, err
		}
		exchange(a, b, i)
		for n := range points {
			for s := range all {
				k := n*f.count + s
				all[s].pair(i, values[0][k], values[1][k], values[2][k], values[3][k])
			}
		}
	}
	return all, nil
}

// exchange exchanges coordinate i of the points.
func exchange(a, b [][]float64, i int) {
	for n := range a {
		a[n][i], b[n][i] = b[n][i], a[n][i]
	}
}

// pair adds a pair of points to the sums of parameter i, unless a value is NaN.
func (s *sums) pair(i int, a, b, otherA, otherB float64) {
	first := 2 * (otherA - a) * (b - otherB)
	if math.IsNaN(first) {
		return
	}
	s.first[i] += first
	s.total[i] += (otherA-a)*(otherA-a) + (b-otherB)*(b-otherB)
	s.both[i] += (a-b)*(a-b) + (otherA-otherB)*(otherA-otherB)
	s.pairs[i]++
}

// indices returns the variance and the indices of first order and in total, in this order.
func (s *sums) indices() []float64 {
	d := len(s.first)
	list := make([]float64, 1+2*d)
	var both, pairs float64
	for i := range d {
		both, pairs = both+s.both[i], pairs+s.pairs[i]
		if s.both[i] > 0 {
			list[1+i] = s.first[i] / s.both[i]
			list[1+d+i] = s.total[i] / s.both[i]
		}
	}
	list[0] = both / (4 * pairs)
	return list
}

// summarise returns estimates and intervals from the sums of every design and function.
func summarise(designs [][]sums, count, d int, rng *rand.Rand) *Sensitivity {
	estimates := make([][]float64, 1+2*d) // by quantity, of every function on all designs
	spread := make([][]float64, 1+2*d)    // by quantity, on resampled designs
	extend := func(lists [][]float64, s *sums) {
		for k, v := range s.indices() {
			lists[k] = append(lists[k], v)
		}
	}
	draws := resamples
	if count == 1 {
		draws = knownResamples
	}
	for f := range count {
		whole := newSums(d)
		for r := range designs {
			whole.add(&designs[r][f])
		}
		extend(estimates, &whole)
		for range draws {
			some := newSums(d)
			for range designs {
				some.add(&designs[rng.IntN(len(designs))][f])
			}
			extend(spread, &some)
		}
	}
	s := &Sensitivity{Variance: interval(estimates[0], spread[0])}
	for k := 1; k <= d; k++ {
		s.FirstOrder = append(s.FirstOrder, interval(estimates[k], spread[k]).clip())
		s.Total = append(s.Total, interval(estimates[d+k], spread[d+k]).clip())
	}
	return s
}

// interval returns the median of the estimates with the quantiles of their spread.
func interval(estimates, spread []float64) Interval {
	slices.Sort(estimates)
	slices.Sort(spread)
	return Interval{quantile(estimates, 0.5), quantile(spread, 0.05), quantile(spread, 0.95)}
}

// quantile interpolates the sorted values.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// clip moves an interval into [0, 1].
func (v Interval) clip() Interval {
	in := func(x float64) float64 { return math.Min(math.Max(x, 0), 1) }
	return Interval{in(v.Value), in(v.Lower), in(v.Upper)}
}

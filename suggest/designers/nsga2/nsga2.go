// Package nsga2 is the designer "nsga2", a genetic algorithm without a model.
package nsga2

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// Name is the designer's name.
const Name = "nsga2"

// DefaultPopulation is the size of the population of [New].
const DefaultPopulation = 20

// Options tunes [New]. A field that is 0 takes its default.
type Options struct {
	// Population is the number of configurations that have offspring. At least 2.
	// Default [DefaultPopulation].
	Population int

	// InitialPoints is the number of configurations drawn from the design distributions before
	// there are offspring: evaluated, pending and infeasible ones count. At least 1.
	// Default Population.
	InitialPoints int
}

// New returns the designer "nsga2": the genetic algorithm of Deb, Pratap, Agarwal,
// Meyarivan, "A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II", IEEE Trans.
// Evol. Comp. 6(2), 2002, without a model of the objectives. It needs hundreds of
// evaluations and next to no time for a suggestion. It takes measurements at face value,
// so that a lucky one stays in the population, and ignores the reference.
//
// After the initial points each suggestion is a child of two parents. The population consists
// of the best evaluations by non-dominated sorting, under constrained domination, and
// by crowding distance; parents win a binary tournament in it. There are no generations:
// an evaluation can have offspring as soon as it is known. Replicates of a configuration
// are one individual, with their means; checkpoints of a run are several.
//
// Children come from simulated binary crossover, with probability 0.9, and polynomial
// mutation, of one parameter on average. Both have the distribution index 20 of the paper
// and work on positions on the parameters' scales; integers and discretes are rounded. A
// category comes from either parent and mutates to any other. No configuration is
// suggested twice.
//
// It panics if an option is negative or Population is 1.
func New(o Options) suggest.Designer {
	if o.Population < 0 || o.InitialPoints < 0 {
		panic("nsga2: negative option")
	}
	if o.Population == 1 {
		panic("nsga2: a population of one has no parents")
	}
	o.Population = cmp.Or(o.Population, DefaultPopulation)
	o.InitialPoints = cmp.Or(o.InitialPoints, o.Population)
	return designer{o}
}

type designer struct{ options Options }

func (designer) Name() string    { return Name }
func (designer) Version() string { return "1" }

func (d designer) Suggest(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
	if err := suggest.Validate(p, h, r); err != nil {
		return nil, err
	}
	tried := h.Tried()
	population := d.population(p, h)
	known := h.Trials() + len(h.Infeasible) + len(h.Pending)
	out := make([]suggest.Suggestion, 0, r.Count)
	for i := range r.Count {
		if err := pause.Check(ctx); err != nil {
			return nil, err
		}
		number := r.Number + int64(i)
		s := suggest.Suggestion{Designer: Name}
		ok := false
		if known+i >= d.options.InitialPoints && len(population) > 1 {
			rng := sample.Stream(r.Seed, number, sample.Search)
			s.Point, ok = sample.Allowed(p, tried, func() space.Point { return offspring(p.Space, population, rng) })
		}
		if !ok { // an initial point, or all children are known
			s, ok = random.Untried(p, tried, r.Seed, number)
		}
		if !ok {
			return out, suggest.ErrExhausted
		}
		out = append(out, s)
		tried.Add(s.Point)
	}
	return out, nil
}

// individual is an evaluated configuration.
type individual struct {
	point     space.Point
	costs     []float64
	violation float64 // of all constraints together, 0 if none is violated
	rank      int     // of the front that it lies on, from 0
	crowding  float64
}

// population returns the best of all evaluations, the best first.
func (d designer) population(p *suggest.Problem, h *suggest.History) []individual {
	all := individuals(p, h)
	var best []individual
	for rank, front := range fronts(all, p.ConstantCosts(), d.options.Population) {
		members := make([]individual, len(front))
		costs := make([][]float64, len(front))
		for i, k := range front {
			members[i], costs[i] = all[k], all[k].costs
		}
		for i, distance := range crowdingDistances(costs) {
			members[i].rank, members[i].crowding = rank, distance
		}
		slices.SortStableFunc(members, compareIndividuals)
		best = append(best, members...)
	}
	return best[:min(len(best), d.options.Population)]
}

// compareIndividuals is the crowded-comparison operator (Deb et al. 2002, §III-B):
// negative if a is better.
func compareIndividuals(a, b individual) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.crowding, a.crowding))
}

// individuals returns the different configurations with finite objectives.
func individuals(p *suggest.Problem, h *suggest.History) []individual {
	pooled := h.Configurations()
	excess := make([][]float64, len(pooled)) // of each constraint's metric beyond its bounds
	most := make([]float64, len(p.Constraints))
	for i := range pooled {
		excess[i] = make([]float64, len(p.Constraints))
		for k := range p.Constraints {
			v, c := pooled[i].Values[len(p.Objectives)+k], &p.Constraints[k]
			e := math.Max(0, math.Max(c.Lower-v, v-c.Upper))
			if math.IsNaN(e) {
				e = math.Inf(1)
			}
			excess[i][k] = e
			if !math.IsInf(e, 1) {
				most[k] = math.Max(most[k], e)
			}
		}
	}
	var all []individual
	for i := range pooled {
		one := individual{point: pooled[i].Point, costs: make([]float64, len(p.Objectives))}
		sum := 0.0
		for j := range one.costs {
			one.costs[j] = p.Objectives[j].Cost(pooled[i].Values[j])
			sum += one.costs[j]
		}
		if math.IsNaN(sum) || math.IsInf(sum, 0) {
			continue
		}
		for k, e := range excess[i] {
			if e > 0 { // in units of the largest, since metrics have units of their own
				one.violation += e / cmp.Or(most[k], 1)
			}
		}
		all = append(all, one)
	}
	return all
}

// fronts returns the indices on the first fronts, in order, until they hold enough
// individuals: those that meet the constraints by repeated removal of the non-dominated
// ones, and then the others by their violation (constrained domination, Deb et al. 2002,
// §VI-A). An individual that a constant dominates or equals is not on the first front.
func fronts(all []individual, constants [][]float64, enough int) [][]int {
	var left, violating []int
	for i := range all {
		if all[i].violation > 0 {
			violating = append(violating, i)
		} else {
			left = append(left, i)
		}
	}
	var sorted [][]int
	count := 0
	for len(left) > 0 && count < enough {
		costs := make([][]float64, len(left))
		for i, k := range left {
			costs[i] = all[k].costs
		}
		var front, rest []int
		best := pareto.NonDominatedBeside(costs, constants)
		constants = nil
		for i, k := range left {
			if len(best) > 0 && best[0] == i {
				best = best[1:]
				front = append(front, k)
			} else {
				rest = append(rest, k)
			}
		}
		if len(front) > 0 {
			sorted = append(sorted, front)
		}
		count += len(front)
		left = rest
	}
	slices.SortStableFunc(violating, func(i, k int) int { return cmp.Compare(all[i].violation, all[k].violation) })
	for len(violating) > 0 && count < enough {
		n := 1
		for n < len(violating) && all[violating[n]].violation == all[violating[0]].violation {
			n++
		}
		sorted = append(sorted, violating[:n])
		count += n
		violating = violating[n:]
	}
	return sorted
}

// crowdingDistances returns the crowding distance of every point of one front (Deb et al.
// 2002, §III-B): the sum over the objectives of the gap between its two neighbours, in
// units of the front's extent, and +Inf at the ends.
func crowdingDistances(costs [][]float64) []float64 {
	distances := make([]float64, len(costs))
	order := make([]int, len(costs))
	for j := range costs[0] {
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(costs[a][j], costs[b][j]) })
		first, last := order[0], order[len(order)-1]
		extent := costs[last][j] - costs[first][j]
		distances[first], distances[last] = math.Inf(1), math.Inf(1)
		for i := 1; i < len(order)-1 && extent > 0; i++ {
			distances[order[i]] += (costs[order[i+1]][j] - costs[order[i-1]][j]) / extent
		}
	}
	return distances
}

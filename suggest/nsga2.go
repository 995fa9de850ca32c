package suggest

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// DefaultPopulation is the size of the population of [NewNSGA2].
const DefaultPopulation = 20

// NSGA2Options tunes [NewNSGA2]. A field that is 0 takes its default.
type NSGA2Options struct {
	// Population is the number of configurations that have offspring. At least 2.
	// Default [DefaultPopulation].
	Population int

	// InitialPoints is the number of configurations drawn from the design laws before
	// there are offspring: evaluated, pending and infeasible ones count. At least 1.
	// Default Population.
	InitialPoints int
}

type nsga2 struct{ options NSGA2Options }

// NewNSGA2 returns the designer "nsga2": the genetic algorithm of Deb, Pratap, Agarwal,
// Meyarivan, "A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II", IEEE Trans.
// Evol. Comp. 6(2), 2002, without a model of the objectives. It needs hundreds of
// evaluations and next to no time for a suggestion. It takes measurements at face value,
// so that a lucky one stays in the population, and does not know the reference.
//
// After the initial points each suggestion is a child of two parents. The population are
// the best of all evaluations by non-dominated sorting, under constrained domination, and
// by crowding distance; parents win a binary tournament in it. There are no generations:
// an evaluation can have offspring as soon as it is known. Replicates of a configuration
// are one, by their means; checkpoints of a run are several.
//
// Children come from simulated binary crossover, of probability 0.9, and polynomial
// mutation, of one parameter on average, both with the distribution index 20 of the paper
// and in positions on the parameters' scales; integers and discretes are rounded. A
// category is that of either parent and mutates to any other. No configuration is
// suggested twice.
//
// It panics if an option is negative or Population is 1.
func NewNSGA2(o NSGA2Options) Designer {
	if o.Population < 0 || o.InitialPoints < 0 {
		panic("suggest: negative option")
	}
	if o.Population == 1 {
		panic("suggest: a population of one has no parents")
	}
	o.Population = cmp.Or(o.Population, DefaultPopulation)
	o.InitialPoints = cmp.Or(o.InitialPoints, o.Population)
	return nsga2{o}
}

func (nsga2) Name() string    { return "nsga2" }
func (nsga2) Version() string { return "1" }

func (d nsga2) Suggest(ctx context.Context, p *Problem, h *History, r Request) ([]Suggestion, error) {
	if err := validate(p, h, r); err != nil {
		return nil, err
	}
	tried := h.tried()
	population := d.population(p, h)
	known := h.runs() + len(h.Infeasible) + len(h.Pending)
	out := make([]Suggestion, 0, r.Count)
	for i := range r.Count {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		number := r.Number + int64(i)
		s := Suggestion{Designer: d.Name()}
		ok := false
		if known+i >= d.options.InitialPoints && len(population) > 1 {
			rng := newRand(r.Seed, number, streamSearch)
			s.Point, ok = p.draw(tried, func() space.Point { return offspring(p.Space, population, rng) })
		}
		if !ok { // an initial point, or all children are known
			rng := newRand(r.Seed, number, streamDesign)
			s.Designer = NewRandom().Name()
			s.Point, ok = p.draw(tried, func() space.Point { return p.Space.Sample(rng) })
		}
		if !ok {
			s.Point, ok = p.firstUntried(tried)
		}
		if !ok {
			return out, ErrExhausted
		}
		out = append(out, s)
		tried.add(s.Point)
	}
	return out, nil
}

// runs returns the number of runs behind the evaluations: the checkpoints of one are one.
func (h *History) runs() int {
	n := 0
	seen := make(map[int64]bool)
	for i := range h.Evaluations {
		if run := h.Evaluations[i].Run; run == 0 || !seen[run] {
			seen[run] = true
			n++
		}
	}
	return n
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
func (d nsga2) population(p *Problem, h *History) []individual {
	all := individuals(p, h)
	var best []individual
	for rank, front := range fronts(all, d.options.Population) {
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
func individuals(p *Problem, h *History) []individual {
	pooled := pool(h, h.indices(), len(p.Objectives)+len(p.Constraints))
	excess := make([][]float64, len(pooled)) // of each constraint's metric beyond its bounds
	most := make([]float64, len(p.Constraints))
	for i := range pooled {
		excess[i] = make([]float64, len(p.Constraints))
		for k := range p.Constraints {
			v, c := pooled[i].values[len(p.Objectives)+k], &p.Constraints[k]
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
		one := individual{point: pooled[i].point, costs: make([]float64, len(p.Objectives))}
		sum := 0.0
		for j := range one.costs {
			one.costs[j] = p.Objectives[j].cost(pooled[i].values[j])
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
// §VI-A).
func fronts(all []individual, enough int) [][]int {
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
		best := pareto.NonDominated(costs)
		for i, k := range left {
			if len(best) > 0 && best[0] == i {
				best = best[1:]
				front = append(front, k)
			} else {
				rest = append(rest, k)
			}
		}
		sorted = append(sorted, front)
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

// The operators' constants (Deb et al. 2002, §V-A).
const (
	crossoverProbability = 0.9
	distributionIndex    = 20.0 // of crossover and of mutation
)

// offspring returns a child of two parents.
func offspring(s *space.Space, population []individual, rng *rand.Rand) space.Point {
	a, b := tournament(population, rng), tournament(population, rng)
	child := a.point.Clone()
	cross := rng.Float64() < crossoverProbability
	for j := range child {
		p := &s.Parameters[j]
		other := b.point[j]
		exchanged := rng.IntN(2) == 0 // both halves of a binary crossover are as likely
		mutates := rng.Float64()*float64(len(child)) < 1
		if p.Kind == space.Categorical {
			if cross && exchanged {
				child[j] = other
			}
			if mutates {
				child[j] = otherCategory(p, child[j], rng)
			}
			continue
		}
		position, moved := clampUnit(p.Unit(child[j])), false
		if cross && rng.IntN(2) == 0 && other != child[j] {
			first, second := crossover(position, clampUnit(p.Unit(other)), rng.Float64())
			position, moved = first, true
			if exchanged {
				position = second
			}
		}
		if mutates {
			position, moved = mutate(position, rng.Float64()), true
		}
		if moved { // else the value stays, to the last bit
			child[j] = p.At(position)
		}
	}
	return s.Canonical(child)
}

// clampUnit returns the position within the bounds that is nearest to t.
func clampUnit(t float64) float64 { return math.Min(math.Max(t, 0), 1) }

// tournament returns the better of two individuals drawn at random.
func tournament(population []individual, rng *rand.Rand) individual {
	a, b := population[rng.IntN(len(population))], population[rng.IntN(len(population))]
	if compareIndividuals(b, a) < 0 {
		return b
	}
	return a
}

// otherCategory draws one of the categories but v.
func otherCategory(p *space.Parameter, v float64, rng *rand.Rand) float64 {
	n := len(p.Choices)
	if n == 1 {
		return v
	}
	other := float64(rng.IntN(n - 1))
	if other >= v {
		other++
	}
	return other
}

// crossover returns the two children of positions a and b in [0,1] by simulated binary
// crossover with the uniform number u (Deb, Agrawal, "Simulated Binary Crossover for
// Continuous Search Space", Complex Systems 9, 1995), the spread of each being cut where
// it would leave [0,1], as the authors' program does. The first is the one nearer to a.
func crossover(a, b, u float64) (first, second float64) {
	if a == b {
		return a, b
	}
	lo, hi := math.Min(a, b), math.Max(a, b)
	spread := func(room float64) float64 {
		alpha := 2 - math.Pow(1+2*room/(hi-lo), -(distributionIndex+1))
		if u <= 1/alpha {
			return math.Pow(u*alpha, 1/(distributionIndex+1))
		}
		return math.Pow(1/(2-u*alpha), 1/(distributionIndex+1))
	}
	low := clampUnit((lo + hi - spread(lo)*(hi-lo)) / 2)
	high := clampUnit((lo + hi + spread(1-hi)*(hi-lo)) / 2)
	if a < b {
		return low, high
	}
	return high, low
}

// mutate returns position t in [0,1] after polynomial mutation with the uniform number u
// (Deb, Goyal, "A Combined Genetic Adaptive Search (GeneAS) for Engineering Design",
// Computer Science and Informatics 26, 1996), its law being cut at the ends of [0,1].
func mutate(t, u float64) float64 {
	if u < 0.5 {
		cut := math.Pow(1-t, distributionIndex+1)
		return clampUnit(t + math.Pow(2*u+(1-2*u)*cut, 1/(distributionIndex+1)) - 1)
	}
	cut := math.Pow(t, distributionIndex+1)
	return clampUnit(t + 1 - math.Pow(2*(1-u)+(2*u-1)*cut, 1/(distributionIndex+1)))
}

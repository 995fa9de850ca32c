package nsga2

import (
	"math"
	"math/rand/v2"

	"github.com/dpareto/dpareto/suggest/space"
)

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
// Computer Science and Informatics 26, 1996), with its distribution cut at the ends of
// [0,1].
func mutate(t, u float64) float64 {
	if u < 0.5 {
		cut := math.Pow(1-t, distributionIndex+1)
		return clampUnit(t + math.Pow(2*u+(1-2*u)*cut, 1/(distributionIndex+1)) - 1)
	}
	cut := math.Pow(t, distributionIndex+1)
	return clampUnit(t + 1 - math.Pow(2*(1-u)+(2*u-1)*cut, 1/(distributionIndex+1)))
}

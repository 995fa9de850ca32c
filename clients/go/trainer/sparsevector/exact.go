package sparsevector

import (
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/integrate/quad"

	"github.com/dpareto/dpareto/privacy"
)

// Domain of the paper's study, over which ExactFront searches.
const (
	maxCutoff     = 30
	minNoiseScale = 1e-2
	maxNoiseScale = 1e2
)

// Epsilon returns the ε of the mechanism with cutoff C ≥ 1 and noise scale
// b > 0, by the closed form of Avent et al. (2020, Appendix B, last line).
func Epsilon(cutoff int64, noiseScale float64) float64 {
	return privacy.SparseVector{Cutoff: cutoff, NoiseScale: noiseScale}.PureEpsilon()
}

// ExpectedError returns the expectation of the metric error for the cutoff C ≥ 1
// and noise scale b > 0, to ten decimals.
//
// Given the threshold's noise ρ, queries pass independently of one another: a
// positive one with probability p, a negative one with probability q. Of A
// positives and B negatives that pass, the first k = min(C, A+B) in random order
// are selected, so that E TP = kA/(A+B), and F₁ = 2TP/(k + 10) is linear in TP:
//
//	E[F₁ | ρ] = E[ 2kA / ((A+B)(k+10)) ] = 10p · E[ w(1 + A′ + B) ],
//	w(s) = 2 min(C,s) / (s (min(C,s) + 10)),
//
// with A′ ~ Binomial(9, p) and B ~ Binomial(90, q), since A·P(A) is 10p times
// the probability that A′ = A−1. What remains is an integral over ρ.
func ExpectedError(cutoff int64, noiseScale float64) float64 {
	b1, b2 := split(cutoff, noiseScale)
	var weights [queries + 1]float64 // w(s), for s ≥ 1
	for s := 1; s <= queries; s++ {
		k := float64(min(cutoff, int64(s)))
		weights[s] = 2 * k / (float64(s) * (k + positives))
	}
	score := func(rho float64) float64 {
		p := laplaceTail((rho - 0.5) / b2)
		q := laplaceTail((rho + 0.5) / b2)
		var others [positives]float64                  // A′
		var negatives [queries - positives + 1]float64 // B
		binomial(others[:], p)
		binomial(negatives[:], q)
		var sum float64
		for a, pa := range others {
			for b, pb := range negatives {
				sum += pa * pb * weights[1+a+b]
			}
		}
		return positives * p * sum
	}
	return 1 - laplaceMean(score, b1)
}

// laplaceTail returns P(X ≥ x) for X of the Laplace distribution of scale 1.
func laplaceTail(x float64) float64 {
	if x < 0 {
		return 1 - math.Exp(x)/2
	}
	return math.Exp(-x) / 2
}

// binomial fills dst with the probabilities of 0, 1, …, len(dst)−1 successes in
// len(dst)−1 trials.
func binomial(dst []float64, p float64) {
	n := len(dst) - 1
	// The recurrence runs from the end whose probability cannot underflow.
	if p > 0.5 {
		binomial(dst, 1-p)
		slices.Reverse(dst)
		return
	}
	term := math.Pow(1-p, float64(n))
	odds := p / (1 - p)
	for k := range dst {
		dst[k] = term
		term *= odds * float64(n-k) / float64(k+1)
	}
}

// panels are the boundaries of the integration intervals on one side of zero, in
// units of the scale; beyond the last the density's mass is e⁻³².
var panels = [...]float64{0, 1, 3, 7, 15, 32}

// rule is the Gauss-Legendre rule used on each interval.
var rule = sync.OnceValue(func() (r struct{ x, weight [10]float64 }) {
	quad.Legendre{}.FixedLocations(r.x[:], r.weight[:], -1, 1)
	return r
})

// laplaceMean returns E f(X) for X of the Laplace distribution of the given
// scale, where f is smooth but for kinks at −½ and ½, the values of ρ at which
// the threshold equals an answer.
func laplaceMean(f func(float64) float64, scale float64) float64 {
	nodes := rule()
	var sum float64
	interval := func(lo, hi float64) {
		mid, half := (lo+hi)/2, (hi-lo)/2
		for i, x := range nodes.x {
			t := mid + half*x
			sum += half * nodes.weight[i] * math.Exp(-t/scale) / (2 * scale) * (f(t) + f(-t))
		}
	}
	for i := 1; i < len(panels); i++ {
		lo, hi := scale*panels[i-1], scale*panels[i]
		if lo < 0.5 && 0.5 < hi {
			interval(lo, 0.5)
			lo = 0.5
		}
		interval(lo, hi)
	}
	return sum
}

// FrontPoint is a configuration on the exact front.
type FrontPoint struct {
	Epsilon    float64 // Epsilon(Cutoff, NoiseScale)
	Error      float64 // ExpectedError(Cutoff, NoiseScale)
	Cutoff     int64
	NoiseScale float64
}

// ExactFront returns the Pareto front of (ε, expected error) over the domain of
// the paper's study, C in 1, …, 30 and b in [0.01, 100], as points with
// ε ≤ maxEpsilon, by increasing ε and decreasing error. It is empty when
// maxEpsilon is below the smallest ε of the domain, about 0.0585.
//
// At each ε of a fine grid the best cutoff is found by trying all. With the anti-ideal
// point (10, 1) the hypervolume of the points is 1.541, less than 0.001 below the
// continuous front's.
func ExactFront(maxEpsilon float64) []FrontPoint {
	var front []FrontPoint
	lowest := math.Inf(1)
	for _, epsilon := range epsilonGrid(maxEpsilon) {
		best := FrontPoint{Error: lowest}
		for cutoff := int64(1); cutoff <= maxCutoff; cutoff++ {
			// Rounding must not push a b at the edge of the domain out of it.
			scale := Epsilon(cutoff, 1) / epsilon
			if math.Abs(scale-maxNoiseScale) < 1e-9 {
				scale = maxNoiseScale
			}
			if scale < minNoiseScale || scale > maxNoiseScale {
				continue
			}
			if e := ExpectedError(cutoff, scale); e < best.Error {
				best = FrontPoint{Epsilon: Epsilon(cutoff, scale), Error: e, Cutoff: cutoff, NoiseScale: scale}
			}
		}
		if best.Error < lowest {
			lowest = best.Error
			front = append(front, best)
		}
	}
	return front
}

// epsilonGrid returns the values of ε, increasing, at which the front is
// computed: the smallest that each cutoff can reach, where the front jumps down,
// and a geometric and an arithmetic progression from the first of them to
// maxEpsilon, so that the front is resolved on both scales.
func epsilonGrid(maxEpsilon float64) []float64 {
	const steps = 120
	first := Epsilon(1, maxNoiseScale)
	if !(maxEpsilon >= first) {
		return nil
	}
	last := min(maxEpsilon, Epsilon(maxCutoff, minNoiseScale))
	grid := []float64{last}
	for i := range steps {
		at := float64(i) / steps
		grid = append(grid, first*math.Pow(last/first, at), first+(last-first)*at)
	}
	for cutoff := int64(1); cutoff <= maxCutoff; cutoff++ {
		if jump := Epsilon(cutoff, maxNoiseScale); jump <= last {
			grid = append(grid, jump)
		}
	}
	slices.Sort(grid)
	return slices.Compact(grid)
}

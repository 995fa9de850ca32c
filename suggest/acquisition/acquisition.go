package acquisition

import (
	"math"

	"github.com/dpareto/dpareto/suggest/pareto"
)

// check panics unless there is one distribution per objective of the front.
func check(front *pareto.Front, distributions []Distribution) {
	if len(distributions) != len(front.Reference()) {
		panic("acquisition: distributions and front differ in length")
	}
}

// PoI returns the probability that the outcome improves the front: that it is
// below the reference and dominated by no point of the front,
//
//	Σ_cells Π_j [F_j(u_j) - F_j(l_j)],
//
// with F_j the distribution function of objective j. Unlike equation (1) of
// Avent et al. (PoPETs 2020) the region ends at the reference, so that this is
// the probability of a positive hypervolume improvement.
func PoI(front *pareto.Front, distributions []Distribution) float64 {
	check(front, distributions)
	sum := 0.0
	for _, c := range front.Cells() {
		product := 1.0
		for j, l := range distributions {
			if product *= l.Probability(c.Lower[j], c.Upper[j]); product == 0 {
				break
			}
		}
		sum += product
	}
	return math.Min(sum, 1)
}

// LogPoI returns the logarithm of PoI. It stays finite, and so tells
// configurations apart, far beyond where PoI underflows to 0.
func LogPoI(front *pareto.Front, distributions []Distribution) float64 {
	check(front, distributions)
	sum := newLogSum()
	for _, c := range front.Cells() {
		term := 0.0
		for j, l := range distributions {
			if term += l.logProbability(c.Lower[j], c.Upper[j]); math.IsInf(term, -1) {
				break
			}
		}
		sum.add(term)
	}
	return math.Min(sum.value(), 0)
}

// maxStackObjectives is the number of objectives up to which no memory is
// allocated.
const maxStackObjectives = 8

// MedianImprovement returns the hypervolume improvement of the medians. It is
// the HVI(m(λ)) of Avent et al., whose Gaussian means, taken back to own units,
// are medians.
func MedianImprovement(front *pareto.Front, distributions []Distribution) float64 {
	check(front, distributions)
	var buf [maxStackObjectives]float64
	return front.Improvement(medians(buf[:0], distributions))
}

// medians appends the medians of the distributions to v.
func medians(v []float64, distributions []Distribution) []float64 {
	for _, l := range distributions {
		v = append(v, l.Median())
	}
	return v
}

// HVPoI returns MedianImprovement times PoI, the hypervolume-based probability
// of improvement of Couckuyt, Deschrijver, Dhaene, "Fast calculation of
// multiobjective probability of improvement and expected improvement criteria
// for Pareto optimization", J. Global Optim. 60, 2014. It is 0 wherever the
// medians are dominated, although an improvement may be likely there.
func HVPoI(front *pareto.Front, distributions []Distribution) float64 {
	improvement := MedianImprovement(front, distributions)
	if improvement == 0 {
		return 0
	}
	return improvement * PoI(front, distributions)
}

package acquisition

import (
	"math"

	"github.com/dpareto/dpareto/suggest/pareto"
)

// check panics unless there is one law per objective of the front.
func check(front *pareto.Front, laws []Law) {
	if len(laws) != len(front.Reference()) {
		panic("acquisition: laws and front differ in length")
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
func PoI(front *pareto.Front, laws []Law) float64 {
	check(front, laws)
	sum := 0.0
	for _, c := range front.Cells() {
		product := 1.0
		for j, l := range laws {
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
func LogPoI(front *pareto.Front, laws []Law) float64 {
	check(front, laws)
	// Running log-sum-exp: the sum is scale·exp(largest).
	largest, scale := math.Inf(-1), 0.0
	for _, c := range front.Cells() {
		term := 0.0
		for j, l := range laws {
			if term += l.logProbability(c.Lower[j], c.Upper[j]); math.IsInf(term, -1) {
				break
			}
		}
		switch {
		case math.IsInf(term, -1):
		case term > largest:
			scale = scale*math.Exp(largest-term) + 1
			largest = term
		default:
			scale += math.Exp(term - largest)
		}
	}
	if scale == 0 {
		return math.Inf(-1)
	}
	return math.Min(largest+math.Log(scale), 0)
}

// maxStackObjectives is the number of objectives up to which no memory is
// allocated.
const maxStackObjectives = 8

// MedianImprovement returns the hypervolume improvement of the medians. It is
// the HVI(m(λ)) of Avent et al., whose Gaussian means, taken back to own units,
// are medians.
func MedianImprovement(front *pareto.Front, laws []Law) float64 {
	check(front, laws)
	var buf [maxStackObjectives]float64
	v := buf[:0]
	for _, l := range laws {
		v = append(v, l.Median())
	}
	return front.Improvement(v)
}

// HVPoI returns MedianImprovement times PoI, the hypervolume-based probability
// of improvement of Couckuyt, Deschrijver, Dhaene, "Fast calculation of
// multiobjective probability of improvement and expected improvement criteria
// for Pareto optimization", J. Global Optim. 60, 2014. It is 0 wherever the
// medians are dominated, although an improvement may be likely there.
func HVPoI(front *pareto.Front, laws []Law) float64 {
	improvement := MedianImprovement(front, laws)
	if improvement == 0 {
		return 0
	}
	return improvement * PoI(front, laws)
}

// EHVI returns the expected hypervolume improvement, exactly:
//
//	E[HVI(X)] = Σ_cells Π_j [G_j(u_j) - G_j(l_j)],  G_j(t) = E[(t - X_j)+],
//
// which is the integral of Π_j F_j over the non-dominated region below the
// reference (Emmerich, Deutz, Klinkenberg, "Hypervolume-based expected
// improvement", CEC 2011, in the form of a sum over boxes).
func EHVI(front *pareto.Front, laws []Law) float64 {
	check(front, laws)
	var buf [maxStackObjectives]shortfalls
	memory := buf[:0]
	for range laws {
		memory = append(memory, shortfalls{mean: math.NaN(), t: math.NaN()})
	}
	sum := 0.0
	for _, c := range front.Cells() {
		product := 1.0
		for j, l := range laws {
			lower := memory[j].at(l, c.Lower[j])
			if product *= memory[j].at(l, c.Upper[j]) - lower; product <= 0 {
				product = 0 // by rounding, if negative
				break
			}
		}
		sum += product
	}
	return sum
}

// shortfalls remembers the last shortfall of a law: a cell often begins where
// the one before it ended.
type shortfalls struct {
	t, value float64
	mean     float64 // of the law, NaN until it is needed
}

func (s *shortfalls) at(l Law, t float64) float64 {
	if math.IsInf(t, -1) {
		return 0
	}
	if t != s.t {
		s.t, s.value = t, l.shortfall(t, &s.mean)
	}
	return s.value
}

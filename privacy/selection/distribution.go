package selection

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/integrate/quad"

	"github.com/dpareto/dpareto/privacy"
)

// Probabilities returns the probability of each candidate to be chosen, to a relative
// precision of about 1e-12, or 1e-15·log 1/p for a small one, p; those below 1e-300 may
// be 0. They describe the data: do not release them. It returns the errors of [Select].
//
// With p_j = e^{ε·(utilities[j] − u*)/2Δ}, they are p_i/Σp_j for the exponential
// mechanism, and for permute-and-flip, giving every candidate a time of its visit that is
// uniform on [0, 1],
//
//	P(i) = p_i·∫₀¹ Π_{j≠i} (1 − p_j·t) dt,
//
// where the integrand is a polynomial. For report-noisy-max the noise is taken as continuous;
// the grid changes the probabilities by at most 1e-9/ε, relatively. The time is proportional
// to the number of candidates: for 100,000 a fraction of a second, for report-noisy-max some
// seconds.
func Probabilities(method privacy.SelectionMethod, utilities []float64, sensitivity, epsilon float64) ([]float64, error) {
	if err := check(utilities, sensitivity, epsilon); err != nil {
		return nil, err
	}
	deficits := make([]float64, len(utilities)) // −log p_j
	best := slices.Max(utilities)
	for i, u := range utilities {
		deficits[i] = (0.5*best - 0.5*u) / sensitivity * epsilon
	}
	switch method {
	case privacy.Exponential:
		p := weights(deficits)
		floats.Scale(1/floats.SumCompensated(p), p)
		return p, nil
	case privacy.PermuteAndFlip:
		return firstAccepted(weights(deficits)), nil
	case privacy.ReportNoisyMax:
		return largestNoisy(deficits), nil
	default:
		return nil, errUnknownMethod(method)
	}
}

func weights(deficits []float64) []float64 {
	p := make([]float64, len(deficits))
	for i, d := range deficits {
		p[i] = math.Exp(-d)
	}
	return p
}

// nodes belong to Gauss-Legendre rules, exact for polynomials up to degree 31.
const nodes = 16

// rule calls f with the nodes and weights of the rule on [lo, hi].
func rule(lo, hi float64, f func(x, weight float64)) {
	var x, w [nodes]float64
	quad.Legendre{}.FixedLocations(x[:], w[:], lo, hi)
	for k := range x {
		f(x[k], w[k])
	}
}

// firstAccepted returns p_i·∫₀¹ Π_{j≠i}(1 − p_j·t) dt for each i, 0 <= p_j <= 1. The
// product falls at least like e^{−Σp_j·t}: panels of the length 4/Σp_j are short enough
// for the rule to be exact to rounding, and what lies beyond ten of them is below e^−39.
func firstAccepted(p []float64) []float64 {
	sum := floats.Sum(p)
	end := min(1, 40/sum)
	panels := math.Ceil(end * sum / 4)
	integral := make([]float64, len(p))
	for k := range int(panels) {
		rule(end*float64(k)/panels, end*float64(k+1)/panels, func(t, weight float64) {
			product := weight
			for _, pj := range p {
				product *= 1 - pj*t
			}
			for i, pi := range p {
				integral[i] += product / (1 - pi*t)
			}
		})
	}
	for i := range integral {
		integral[i] *= p[i]
	}
	return integral
}

// largestNoisy returns the probability of each candidate to have the largest sum of −a_i and
// Laplace noise of scale 1, for a_i >= 0 of which one is 0. Sums above 0 are exponential tails
// with p_i = ½e^−a_i, as in firstAccepted. A largest sum of −y has the density f_i(y)·Π_{j≠i}
// F_j(y) with
//
//	F_j = f_j = ½e^{a_j−y} for a_j <= y,  f_j = ½e^{y−a_j} = 1 − F_j for a_j > y.
func largestNoisy(a []float64) []float64 {
	half := make([]float64, len(a))
	var corners []float64 // where the densities have theirs
	for i, d := range a {
		half[i] = 0.5 * math.Exp(-d)
		if half[i] > 0 {
			corners = append(corners, d)
		}
	}
	p := firstAccepted(half)
	slices.Sort(corners)
	below := make([]float64, len(a)) // f_i/F_i
	for y := 0.0; ; {
		above, _ := slices.BinarySearchFunc(corners, y, func(corner, y float64) int {
			if corner <= y {
				return -1
			}
			return 1
		})
		product, rate := densities(below, a, y)
		// What is left of P(i) relative to its first part, ½e^−a_i/n at least: f_i grows
		// like e^y, the product falls as fast or faster.
		if 4*float64(len(a))*product*math.Exp(y) < 1e-18 {
			return p
		}
		if above == len(corners) { // all are exponentials
			for i := range p {
				if half[i] > 0 {
					p[i] += product / float64(above)
				}
			}
			return p
		}
		// Steps on which the integrand changes by e^4 at most; between corners far apart,
		// where one candidate is above, it is constant.
		next := min(corners[above], y+4/(1+float64(above)+math.E*rate), y+1)
		if gap := corners[above] - 45; above == 1 && y > 45 && gap > y {
			next = gap
		}
		rule(y, next, func(y, weight float64) {
			product, _ := densities(below, a, y)
			for i, f := range below {
				p[i] += weight * product * f
			}
		})
		y = next
	}
}

// densities returns ΠF_j and the sum of f_j over a_j > y, and sets ratio to f_i/F_i.
func densities(ratio, a []float64, y float64) (product, rate float64) {
	product = 1
	for i, d := range a {
		ratio[i] = 1
		if f := 0.5 * math.Exp(-math.Abs(y-d)); d <= y {
			product *= f
		} else {
			product *= 1 - f
			ratio[i] = f / (1 - f)
			rate += f
		}
	}
	return product, rate
}

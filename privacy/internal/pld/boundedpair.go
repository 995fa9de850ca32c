package pld

import (
	"math"

	"github.com/dpareto/dpareto/privacy/internal/quadrature"
	"github.com/dpareto/dpareto/privacy/meter"
)

// boundedPair is a pair with losses in [−loss, loss]: loss with probability up
// and −loss with probability up·e^{−loss}. The rest is at 0 for randomised
// response. For Laplace noise it has the density ¼·e^{(l−loss)/2}; there up is ½.
type boundedPair struct {
	loss, up float64
	laplace  bool
}

// Laplace is Laplace noise of scale 1 around 0 against the same noise around x. It
// dominates the noise on any number of coordinates that differ by x in total: the functional
// composition of the trade-off functions of single shifts bounds the joint one from below, and
// for log-concave noise it is the function of the total shift (Dong, Roth and Su, "Gaussian
// differential privacy", 2022, on group privacy).
func Laplace(x float64) boundedPair { return boundedPair{x, 0.5, true} }

// RandomizedResponse is randomised response that gives the true answer with probability up.
func RandomizedResponse(epsilon, up float64) boundedPair { return boundedPair{epsilon, up, false} }

// Pure is randomised response with two answers, which dominates all pure ε-DP
// mechanisms (Kairouz, Oh and Viswanath, "The composition theorem for
// differential privacy", 2015).
func Pure(epsilon float64) boundedPair {
	return boundedPair{epsilon, 1 / (1 + math.Exp(-epsilon)), false}
}

func (p boundedPair) Normal() (rate float64, ok bool) { return 0, false }

func (p boundedPair) cliff() float64 { return math.Inf(1) }

func (p boundedPair) Largest() float64 { return p.loss }

func (p boundedPair) Unsampled() (mu, epsilon float64) { return 0, p.loss }

func (p boundedPair) Variation() float64 {
	if p.laplace {
		return -math.Expm1(-0.5 * p.loss)
	}
	return p.up * -math.Expm1(-p.loss)
}

// Single solves δ(ε) = 1 − e^{(ε−x)/2} for Laplace noise and up·(1 − e^{ε−x}) for
// answers.
func (p boundedPair) Single(logDelta float64) (epsilon float64, ok bool) {
	delta := math.Exp(logDelta)
	switch {
	case p.laplace:
		return math.Max(0, p.loss+2*math.Log1p(-delta)), true
	case delta < p.up:
		return math.Max(0, p.loss+math.Log1p(-delta/p.up)), true
	default:
		return 0, true
	}
}

// Nodes returns the two atoms and a composite Gauss-Legendre rule for the density,
// whose panels grow with the distance from the largest loss. The other arguments
// concern inversion, which is not for pairs with atoms.
func (p boundedPair) Nodes(tilt, _, _ float64) (n *Nodes, ok bool) {
	n = &Nodes{tilt: tilt}
	n.add(p.loss, math.Log(p.up))
	n.add(-p.loss, math.Log(p.up)-p.loss)
	if !p.laplace {
		return n, true
	}
	for from := 0.0; from < 2*p.loss; { // below the largest loss
		if len(n.Loss) > maxNodes {
			return n, false
		}
		width := math.Min(4, math.Max(4/(tilt+0.5), 0.15*from))
		half := 0.5 * math.Min(width, 2*p.loss-from)
		mid := from + half
		for i, g := range quadrature.Nodes16 {
			for _, d := range [2]float64{mid - half*g, mid + half*g} {
				n.add(p.loss-d, math.Log(0.25*half*quadrature.Weights16[i])-0.5*d)
			}
		}
		if !(from+2*half > from) {
			break
		}
		from += 2 * half
	}
	return n, true
}

// truncate returns p: its losses are bounded.
func (p boundedPair) truncate(float64) (Pair, bool) { return p, false }

func (p boundedPair) infinite() float64 { return 0 }

func (p boundedPair) Discretise(step, bottom, side float64, w *meter.Work) (g Grid, ok bool) {
	if p.laplace {
		g, ok = discretise(laplaceDensity{p}, step, math.Max(bottom, -p.loss), side, w)
	} else {
		g, ok = atomGrid(math.Max(bottom, -p.loss), p.loss, step)
	}
	if !ok {
		return Grid{}, false
	}
	g.add(p.loss, p.up, side)
	g.add(-p.loss, p.up*math.Exp(-p.loss), side)
	if !p.laplace {
		g.add(0, math.Max(0, 1-p.up*(1+math.Exp(-p.loss))), side)
	}
	return g, true
}

// atomGrid returns a grid without mass with room for the losses from lowest to highest and 0.
func atomGrid(lowest, highest, step float64) (g Grid, ok bool) {
	first, last := math.Floor(math.Min(lowest, 0)/step)-1, math.Ceil(math.Max(highest, 0)/step)+1
	if !(last-first < 2*MaxGrid) || math.Abs(first) > math.MaxInt32 {
		return Grid{}, false
	}
	return Grid{First: int(first), Step: step, Mass: make([]float64, int(last-first)+1)}, true
}

// laplaceDensity is the part of Laplace noise whose losses are not extreme.
type laplaceDensity struct{ boundedPair }

func (p laplaceDensity) Center() float64 { return 0 }

func (p laplaceDensity) extent() (lowest, highest float64) { return -p.loss, p.loss }

func (p laplaceDensity) mass(from, to float64) (upper, lower float64) {
	from, to = math.Max(from, -p.loss), math.Min(to, p.loss)
	if !(to > from) {
		return 0, 0
	}
	half := 0.5 * (to - from)
	return 0.5 * math.Exp(0.5*(from-p.loss)) * math.Expm1(half), 0.5 * math.Exp(-0.5*(p.loss+from)) * -math.Expm1(-half)
}

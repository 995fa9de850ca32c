package privacy

import "math"

// boundedPair is a pair with losses in [−loss, loss]: loss with probability up
// and −loss with probability up·e^{−loss}. The rest is at 0 for randomised
// response. For Laplace noise it has the density ¼·e^{(l−loss)/2}; there up is ½.
type boundedPair struct {
	loss, up float64
	laplace  bool
}

// laplacePair is Laplace noise of scale 1 around 0 against the same noise around x. It
// dominates the noise on any number of coordinates that differ by x in total: the functional
// composition of the trade-off functions of single shifts bounds the joint one from below, and
// for log-concave noise it is the function of the total shift (Dong, Roth and Su, "Gaussian
// differential privacy", 2022, on group privacy).
func laplacePair(x float64) boundedPair { return boundedPair{x, 0.5, true} }

// purePair is randomised response with two answers, which dominates all pure ε-DP
// mechanisms (Kairouz, Oh and Viswanath, "The composition theorem for
// differential privacy", 2015).
func purePair(epsilon float64) boundedPair {
	return boundedPair{epsilon, 1 / (1 + math.Exp(-epsilon)), false}
}

func (p boundedPair) normal() (rate float64, ok bool) { return 0, false }

func (p boundedPair) cliff() float64 { return math.Inf(1) }

func (p boundedPair) largest() float64 { return p.loss }

func (p boundedPair) unsampled() (mu, epsilon float64) { return 0, p.loss }

func (p boundedPair) variation() float64 {
	if p.laplace {
		return -math.Expm1(-0.5 * p.loss)
	}
	return p.up * -math.Expm1(-p.loss)
}

// single solves δ(ε) = 1 − e^{(ε−x)/2} for Laplace noise and up·(1 − e^{ε−x}) for
// answers.
func (p boundedPair) single(logDelta float64) (epsilon float64, ok bool) {
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

// nodes returns the two atoms and a composite Gauss-Legendre rule for the density,
// whose panels grow with the distance from the largest loss. The other arguments
// concern inversion, which is not for pairs with atoms.
func (p boundedPair) nodes(tilt, _, _ float64) (n *lossNodes, ok bool) {
	n = &lossNodes{tilt: tilt}
	n.add(p.loss, math.Log(p.up))
	n.add(-p.loss, math.Log(p.up)-p.loss)
	if !p.laplace {
		return n, true
	}
	for from := 0.0; from < 2*p.loss; { // below the largest loss
		if len(n.loss) > maxNodes {
			return n, false
		}
		width := math.Min(4, math.Max(4/(tilt+0.5), 0.15*from))
		half := 0.5 * math.Min(width, 2*p.loss-from)
		mid := from + half
		for i, g := range gauss16 {
			for _, d := range [2]float64{mid - half*g, mid + half*g} {
				n.add(p.loss-d, math.Log(0.25*half*weight16[i])-0.5*d)
			}
		}
		if !(from+2*half > from) {
			break
		}
		from += 2 * half
	}
	return n, true
}

// discretise works as for mixturePair. A loss on a grid point is not shared.
func (p boundedPair) discretise(step, bottom, _ float64, w *Work) (g grid, ok bool) {
	low := math.Max(-p.loss, bottom)
	first, last := math.Floor(low/step), math.Ceil(math.Max(p.loss, low)/step)
	first, last = math.Min(first, 0), math.Max(last, 0)
	if !(last-first < 2*maxGrid) || math.Abs(first) > math.MaxInt32 {
		return grid{}, false
	}
	w.add(int(last - first))
	// One point more, since last·step may be rounded to less than the largest loss.
	g = grid{first: int(first), mass: make([]float64, int(last-first)+2)}
	lowest := math.Floor(low / step) // all below moves up to it
	at := func(i float64) *float64 { return &g.mass[int(i-first)] }
	atom := func(loss, mass float64) { g.add(loss, mass, step, int(lowest)) }
	atom(p.loss, p.up)
	atom(-p.loss, p.up*math.Exp(-p.loss))
	if !p.laplace {
		*at(0) += math.Max(0, 1-p.up*(1+math.Exp(-p.loss)))
		return g, true
	}
	if lowest*step > -p.loss {
		*at(lowest) += 0.5 * (math.Exp(0.5*(lowest*step-p.loss)) - math.Exp(-p.loss))
	}
	for i := lowest; i*step < p.loss; i++ {
		w.add(4)
		from, to := math.Max(i*step, -p.loss), math.Min((i+1)*step, p.loss)
		if !(to > from) {
			continue
		}
		density := 0.5 * math.Exp(0.5*(from-p.loss))
		upper := density * math.Expm1(0.5*(to-from))
		lower := density * math.Exp(i*step-from) * -math.Expm1(0.5*(from-to)) // times e^{i·step}
		right := math.Min(math.Max((upper-lower)/-math.Expm1(-step), 0), upper)
		*at(i) += upper - right
		*at(i + 1) += right
	}
	return g, true
}

// add appends a node.
func (n *lossNodes) add(loss, logMass float64) {
	n.loss = append(n.loss, loss)
	n.logMass = append(n.logMass, logMass)
	n.mass = append(n.mass, math.Exp(logMass))
	n.lower = append(n.lower, math.Exp(logMass-loss))
	second := 0.0
	if math.Abs(loss) < smallLoss {
		second = expm1MinusArg(-loss)
	}
	n.second = append(n.second, second)
}

package pld

import (
	"math"

	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/meter"
)

// groupPair is a direction of the Gaussian with noise multiplier z on Poisson samples when a group of records is added or
// removed:
//
//	P = Σ_j w_j·N(j, z²), w_j = C(G, j)·q^j·(1−q)^{G−j}, against Q = N(0, z²).
//
// Proof of domination. By joint convexity the sample of the other records may be taken as known. Then the outputs are
// Σ_A w_A·N(v_A) and N(0), where A are the subsets of the group and v_A is the sum of the vectors in A, at most |A|
// long. Under N(0), the ratio of the densities is S = Σ_A w_A·exp(X_A − ½Var X_A) with jointly normal X_A, whose
// covariances ⟨v_A, v_B⟩/z² are at most |A||B|/z². Both δ are expectations of convex functions of S, (S − e^ε)₊ and
// (1 − e^ε·S)₊, which do not decrease in the covariances (Kahane, 1986, as for [replacePair]). All of them are largest if
// the vectors of the group are the same, of norm 1; then, with other vectors 0, the pair is attained. A smaller group is one
// with vectors 0.
//
// The loss of P against Q at x is l(x) = log Σ_j w_j·exp((jx − ½j²)/z²), which is convex and rises. The polynomial
// in e^{x/z²} has real zeros only, as (1 − q + q·y)^G has and e^{−j²/2z²} is a multiplier sequence: integrands are analytic
// within πz² of the real line.
type groupPair struct {
	logWeights []float64
	mean, z    float64 // of w, and of the noise
	remove     bool
	start      float64 // losses at x < start are left out, unless it is 0
	end        float64 // losses at x > end > 0 are infinite; 0 if there are none
}

// PoissonGroup returns the pairs for removing and for adding a group of size records, 0 < q < 1.
func PoissonGroup(q, z float64, size int64) []Pair {
	w := make([]float64, size+1)
	for j := range w {
		w[j], _ = logBinomialTerm(size, int64(j), q)
	}
	p := groupPair{logWeights: w, mean: q * float64(size), z: z, remove: true}
	added := p
	added.remove = false
	return []Pair{p, added}
}

func (p groupPair) size() float64 { return float64(len(p.logWeights) - 1) }

// loss returns l(x) and its derivative.
func (p groupPair) loss(x float64) (loss, slope float64) {
	inverse := 1 / (p.z * p.z)
	top, all := math.Inf(-1), math.Inf(-1)
	for j, w := range p.logWeights {
		a := (float64(j)*x - 0.5*float64(j*j)) * inverse
		top, all = math.Max(top, a), math.Max(all, w+a)
	}
	var sum, excess, moment float64
	for j, w := range p.logWeights {
		a := (float64(j)*x - 0.5*float64(j*j)) * inverse
		e := math.Exp(w + a - all)
		sum, moment = sum+e, moment+float64(j)*e
		if top < 1 {
			excess += math.Exp(w) * math.Expm1(a)
		}
	}
	slope = moment / sum * inverse
	if top < 1 && excess > -0.5 {
		return math.Log1p(excess), slope
	}
	return all + math.Log(sum), slope
}

// position returns the x with l(x) = loss, by Newton's method from above.
func (p groupPair) position(loss float64) float64 {
	above := loss - p.logWeights[0]
	if !(above > 0) {
		return math.Inf(-1)
	}
	if math.IsInf(loss, 1) {
		return loss
	}
	logRest := loss + math.Log(-math.Expm1(-above)) // log(e^loss − w_0)
	x := math.Inf(1)
	for j := 1; j < len(p.logWeights); j++ { // where a single term suffices
		x = math.Min(x, p.z*p.z*(logRest-p.logWeights[j])/float64(j)+0.5*float64(j))
	}
	for range 100 {
		l, slope := p.loss(x)
		next := x - (l-loss)/slope
		if !(next < x) || x-next <= 0x1p-50*math.Abs(x) {
			break
		}
		x = next
	}
	return x
}

func (p groupPair) Normal() (rate float64, ok bool) { return 0, false }

// cliff is where E[e^{cL}], at least w_j^{c+1}·e^{j²c(c+1)/2z²}, becomes large.
func (p groupPair) cliff() float64 {
	first := math.Inf(1)
	for j := 1; j < len(p.logWeights); j++ {
		first = math.Min(first, -2*p.z*p.z*p.logWeights[j]/float64(j*j))
	}
	return math.Max(1, first)
}

func (p groupPair) Largest() float64 {
	switch {
	case !p.remove:
		return -p.logWeights[0]
	case p.end > 0:
		l, _ := p.loss(p.end)
		return l
	default:
		return math.Inf(1)
	}
}

func (p groupPair) Unsampled() (mu, epsilon float64) { return p.size() / p.z, 0 }

func (p groupPair) Variation() float64 {
	of, q := p.beyond(p.position(0))
	return of - q
}

func (p groupPair) Single(float64) (epsilon float64, ok bool) { return 0, false }

// truncate uses that Φ(−g) is at most e^{−g²/2}/2, for every component.
func (p groupPair) truncate(logTail float64) (Pair, bool) {
	if !p.remove || !(logTail < 0) {
		return p, false
	}
	logTail -= math.Log(0.5 * (p.size() + 1))
	p.end = 1
	for j, w := range p.logWeights {
		if rest := logTail - w; rest < 0 {
			p.end = math.Max(p.end, float64(j)+p.z*math.Sqrt(-2*rest))
		}
	}
	return p, true
}

func (p groupPair) BeyondOf(small Pair) Pair {
	p.start = math.Inf(1)
	if end := small.(groupPair).end; end > 0 {
		p.start = end
	}
	return p
}

// beyond returns the mass of P and of Q above x.
func (p groupPair) beyond(x float64) (of, q float64) {
	for j, w := range p.logWeights {
		of += math.Exp(w) * 0.5 * math.Erfc((x-float64(j))/p.z/math.Sqrt2)
	}
	return of, 0.5 * math.Erfc(x/p.z/math.Sqrt2)
}

func (p groupPair) infinite() float64 {
	if p.end == 0 {
		return 0
	}
	of, _ := p.beyond(p.end)
	return of
}

func (p groupPair) Nodes(tilt, floor, panel float64) (n *Nodes, ok bool) {
	if p.z < leastNoise {
		return nil, false
	}
	n = &Nodes{tilt: tilt}
	n.grow(usualNodes)
	if math.IsInf(p.start, 1) {
		return n, true
	}
	if p.end > 0 {
		of, q := p.beyond(p.end)
		n.beyond, n.Drift = of, of-q
	}
	logDensity := func(x, tilt float64) (logDensity, loss float64) {
		l, _ := p.loss(x)
		if p.remove {
			return -0.5*(x/p.z)*(x/p.z) + (1+tilt)*l, l
		}
		return -0.5*(x/p.z)*(x/p.z) - tilt*l, -l
	}
	slope := func(x float64) float64 {
		_, s := p.loss(x)
		return s
	}
	width := math.Min(2*p.z, 1.5*p.z*p.z)
	lo, hi := p.interval(tilt)
	ok = n.panels(lo, hi, floor, panel, p.z, logDensity, slope, func(float64) float64 { return width })
	return n, ok
}

// interval returns where the integrands matter.
func (p groupPair) interval(tilt float64) (lo, hi float64) {
	lo = -reach * p.z
	if !p.remove { // the derivative of l at x < 0 is at most mean/z²
		return lo - tilt*p.mean, reach * p.z
	}
	power := 1 + tilt
	value := func(x float64) float64 {
		l, _ := p.loss(x)
		return power*l - 0.5*(x/p.z)*(x/p.z)
	}
	top := math.Inf(-1)
	for _, x := range [3]float64{0, p.size(), power * p.size()} { // near peaks, where x = power·z²·l'(x)
		for range 20 {
			_, slope := p.loss(x)
			x = power * p.z * p.z * slope
		}
		top = math.Max(top, value(x))
	}
	const depth = 80 // −log of the share that is negligible even next to E[e^{cL}] − 1
	// last returns the upper end of the last small interval in [a, b] that may matter, or 0: l rises.
	var last func(a, b float64) float64
	last = func(a, b float64) float64 {
		if value(b)+0.5*(b/p.z)*(b/p.z)-0.5*(a/p.z)*(a/p.z) < top-depth {
			return 0
		}
		mid := 0.5 * (a + b)
		if b-a <= p.z || !(mid > a && mid < b) {
			return b
		}
		if x := last(mid, b); x > 0 {
			return x
		}
		return last(a, mid)
	}
	hi = math.Max(p.size()+reach*p.z, last(0, power*p.size()+2*reach*p.z))
	if p.end > 0 {
		hi = math.Min(hi, p.end)
	}
	if p.start > 0 {
		lo = p.start
	}
	return lo, hi
}

func (p groupPair) Discretise(step, bottom, side float64, w *meter.Work) (g Grid, ok bool) {
	return discretise(p, step, bottom, side, w)
}

// Center returns the loss at the mean of Q.
func (p groupPair) Center() float64 {
	l, _ := p.loss(0)
	if !p.remove {
		return -l
	}
	return l
}

func (p groupPair) extent() (lowest, highest float64) {
	furthest := p.end
	if furthest == 0 {
		furthest = p.size() + largestDeviation*p.z
	}
	low, _ := p.loss(-largestDeviation * p.z)
	high, _ := p.loss(furthest)
	if !p.remove {
		return -high, -low
	}
	return low, high
}

// mass returns the mass of both distributions with loss in (from, to].
func (p groupPair) mass(from, to float64) (upper, lower float64) {
	if !p.remove {
		from, to = -to, -from
	}
	lo, hi := p.position(from), p.position(to)
	width := (hi - lo) / p.z
	lower = gaussian.Interval(lo/p.z, hi/p.z, width)
	for j, w := range p.logWeights {
		upper += math.Exp(w) * gaussian.Interval((lo-float64(j))/p.z, (hi-float64(j))/p.z, width)
	}
	if !p.remove {
		return lower, upper
	}
	return upper, lower
}

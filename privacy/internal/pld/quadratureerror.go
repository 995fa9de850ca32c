package pld

import (
	"math"

	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/internal/logexp"
	"github.com/dpareto/dpareto/privacy/internal/quadrature"
)

// quadratureError bounds the error of E[e^{cL}] − 1 of a quadrature of the pair of fixed-size lots, c > 0.
//
// With v = 1 − q + q·e^t, w = v − 1 and α = c + 1 the two branches integrate, on x > 1/2 with the density
// Q of N(0, z²),
//
//	Q·(v^α − αv + c)  and  Q·(v^{−c} − 1 + c(v − 1)),
//
// which are at most αc/2·w²·max|y|^{α−2} and αc/2·w²·max|y|^{−α−1} for y between 1 and v, by Taylor's
// formula, also for complex x. They are analytic where v has no zero. If one is at most M on the ellipse
// with foci at the ends of a panel and the semi-axes a = h(ρ + 1/ρ)/2 and b = h(ρ − 1/ρ)/2, h half the
// width, the rule of n points errs by at most
//
//	h·M·64/15·ρ^{2−2n}/(1 − ρ⁻²)
//
// (Trefethen, "Is Gauss quadrature better than Clenshaw-Curtis?", 2008, Theorem 4.5). Beyond the last panel
// the branches are bounded in the same way.
//
// The result is relative to a value of which the logarithm is given.
func (p mixturePair) quadratureError(n *Nodes, c, logValue float64) float64 {
	if n.ellipses == nil {
		n.ellipses = make([][]ellipse, len(n.spans))
	}
	const negligible = -30 // logarithm of the relative error below which a part does not matter
	floor, total := logValue+negligible, 0.0
	for i, s := range n.spans {
		total += math.Exp(p.logPanelError(s, &n.ellipses[i], c, floor) - logValue)
		if i+1 < len(n.spans) && n.spans[i+1].sign == s.sign {
			continue
		}
		if s.sign > 0 {
			total += math.Exp(p.logUpperTail(s.hi, c, floor) - logValue)
		} else {
			total += math.Exp(p.logLowerTail(s.hi, c) - logValue)
		}
	}
	return total
}

// panelSpan is a panel of a branch of a pair, with losses of a sign.
type panelSpan struct{ lo, hi, sign float64 }

// len16 is the number of points of the rule on a panel.
const len16 = 2 * len(quadrature.Nodes16)

// errorEllipses are the ρ of the ellipses around a panel, from the one that mostly suffices.
var errorEllipses = [...]float64{4.5, 6, 3, 2}

// ellipse holds what bounds the error of the rule on a panel whatever the order is.
type ellipse struct {
	sign         float64      // of the loss
	logV         mixtureChord // of log max(1, v)
	linear       float64      // log of the largest max(1, v)·Q, without the constant of Q
	density      float64      // the same of Q
	least        float64      // log of the least |v|, −Inf where v may have a zero
	leastBetween float64      // log of the least |y|, y between 1 and v, −Inf where that may be 0
	squared      float64      // log of the largest |w|²
	factor       float64      // log of all that does not depend on the integrand
}

// logPanelError bounds the error on a panel for c > 0 by its logarithm: by the first ellipse that gives less
// than floor, or else by the best one. It appends the ellipses that it needs to known.
func (p mixturePair) logPanelError(s panelSpan, known *[]ellipse, c, floor float64) float64 {
	least := math.Inf(1)
	for i := 0; i < len(errorEllipses) && least > floor; i++ {
		if i == len(*known) {
			*known = append(*known, p.ellipseAround(s, errorEllipses[i]))
		}
		e := &(*known)[i]
		least = math.Min(least, e.factor+e.logLargest(c))
	}
	return least
}

// ellipseAround returns an ellipse around a panel.
func (p mixturePair) ellipseAround(s panelSpan, rho float64) ellipse {
	half, mid := 0.5*(s.hi-s.lo), 0.5*(s.lo+s.hi)
	a, b := 0.5*half*(rho+1/rho), 0.5*half*(rho-1/rho)
	e := p.newEllipse(mid-a, mid+a, b, s.sign)
	e.factor += math.Log(half*64/15) - (2*float64(len16)-2)*math.Log(rho) - math.Log1p(-1/(rho*rho))
	return e
}

// newEllipse describes v for x with a real part between lo and hi and an imaginary one of at most b.
func (p mixturePair) newEllipse(lo, hi, b, sign float64) ellipse {
	variance := p.z * p.z
	first, last, turn := (lo-0.5)/variance, (hi-0.5)/variance, b/variance
	// |v| is at least its real part, and at least the difference of its parts.
	least := math.Max(p.q*math.Exp(first)-(1-p.q), 1-p.q-p.q*math.Exp(last))
	leastBetween := 1 - p.q - p.q*math.Exp(last)
	if turn < 1.5 {
		upright := 1 - p.q + p.q*math.Exp(first)*math.Cos(turn)
		least, leastBetween = math.Max(least, upright), math.Max(leastBetween, math.Min(1, upright))
	}
	nearest := math.Max(0, lo) // Q is largest there
	e := ellipse{
		sign: sign, logV: p.chordOf(lo, hi), density: -0.5 * nearest * nearest / variance,
		least: math.Log(math.Max(0, least)), leastBetween: math.Log(math.Max(0, leastBetween)),
		// |e^t − 1| <= |t|·e^{|Re t|₊}
		squared: 2 * (math.Log(p.q*math.Hypot(math.Max(math.Abs(first), math.Abs(last)), turn)) + math.Max(0, last)),
		factor:  0.5*b*b/variance - math.Log(p.z) - gaussian.LogSqrt2Pi,
	}
	e.linear = e.logV.logPower(1)
	return e
}

// logLargest bounds the integrand of a branch on the ellipse by its logarithm, without the factor: +Inf where
// v may have a zero.
func (e *ellipse) logLargest(c float64) float64 {
	if math.IsInf(e.least, -1) {
		return math.Inf(1)
	}
	alpha := c + 1
	power := -c*e.least + e.density
	if e.sign > 0 {
		power = e.logV.logPower(alpha)
	}
	direct := math.Ln2 + math.Max(math.Log(2*alpha)+e.linear, power) // of a sum of two terms
	if math.IsInf(e.leastBetween, -1) {
		return direct
	}
	second := math.Log(0.5*alpha*c) + e.squared
	switch {
	case e.sign < 0:
		second += -(alpha+1)*e.leastBetween + e.density
	case alpha < 2:
		second += (alpha-2)*e.leastBetween + e.density
	default:
		second += e.logV.logPower(alpha - 2)
	}
	return math.Min(direct, second)
}

// mixtureChord bounds log max(1, v) on an interval by a line: log v is convex, below its chord.
type mixtureChord struct{ lo, hi, first, slope, variance float64 }

func (p mixturePair) chordOf(lo, hi float64) mixtureChord {
	variance := p.z * p.z
	first, last := math.Max(0, p.logMixture((lo-0.5)/variance)), math.Max(0, p.logMixture((hi-0.5)/variance))
	return mixtureChord{lo, hi, first, (last - first) / (hi - lo), variance}
}

// logPower bounds the logarithm of max(1, v)^power·e^{−x²/2z²} on the interval, power >= 0.
func (l *mixtureChord) logPower(power float64) float64 {
	x := math.Min(l.hi, math.Max(l.lo, power*l.slope*l.variance))
	return power*(l.first+l.slope*(x-l.lo)) - 0.5*x*x/l.variance
}

// logUpperTail bounds the integral of the branch of losses above 0 beyond x: there it is at most
// αc/2·q²·Q·e^{2t}·v^κ, κ = max(α − 2, 0), since w <= q·e^t.
func (p mixturePair) logUpperTail(x, c, floor float64) float64 {
	variance, power := p.z*p.z, math.Max(c-1, 0)
	scale := math.Log(0.5*(c+1)*c) + 2*math.Log(p.q) - math.Log(p.z) - gaussian.LogSqrt2Pi
	// Beyond end, where log v rises by at most 1/z² per unit, the exponent falls.
	end := math.Max(x, power+2+reach*p.z)
	t := (end - 0.5) / variance
	total := scale + power*p.logMixture(t) + 2*t - 0.5*end*end/variance + math.Log(variance/(end-power-2))
	pieces := [][2]float64{{x, end}}
	for count := 0; len(pieces) > 0; count++ {
		if count > 4096 {
			return math.Inf(1)
		}
		lo, hi := pieces[len(pieces)-1][0], pieces[len(pieces)-1][1]
		pieces = pieces[:len(pieces)-1]
		if !(hi > lo) {
			continue
		}
		first := power*p.logMixture((lo-0.5)/variance) + 2*(lo-0.5)/variance
		last := power*p.logMixture((hi-0.5)/variance) + 2*(hi-0.5)/variance
		slope := (last - first) / (hi - lo)
		at := math.Min(hi, math.Max(lo, slope*variance))
		bound := scale + first + slope*(at-lo) - 0.5*at*at/variance + math.Log(hi-lo)
		if bound <= floor || hi-lo < 0.25*p.z {
			total = logexp.LogAddExp(total, bound)
			continue
		}
		mid := 0.5 * (lo + hi)
		pieces = append(pieces, [2]float64{lo, mid}, [2]float64{mid, hi})
	}
	return total
}

// logLowerTail bounds the integral of the branch of losses below 0 beyond x: there it is at most c·w·Q and
// αc/2·w²·Q.
func (p mixturePair) logLowerTail(x, c float64) float64 {
	logAbove := func(x float64) float64 { return math.Log(0.5 * math.Erfc(x/math.Sqrt2)) }
	once := math.Log(c*p.q) + logAbove((x-1)/p.z)
	twice := math.Log(0.5*(c+1)*c) + 2*math.Log(p.q) + 1/(p.z*p.z) + logAbove((x-2)/p.z)
	return math.Min(once, twice)
}

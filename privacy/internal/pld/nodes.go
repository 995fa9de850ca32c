package pld

import (
	"math"
	"slices"

	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/internal/logexp"
	"github.com/dpareto/dpareto/privacy/internal/quadrature"
)

// add appends a node.
func (n *Nodes) add(loss, logMass float64) {
	n.Loss = append(n.Loss, loss)
	n.LogMass = append(n.LogMass, logMass)
	n.Mass = append(n.Mass, math.Exp(logMass))
	n.Lower = append(n.Lower, math.Exp(logMass-loss))
	second := 0.0
	if math.Abs(loss) < SmallLoss {
		second = logexp.Expm1MinusArg(-loss)
	}
	n.second = append(n.second, second)
}

// Nodes is a quadrature of a pair: E[f(L)] ≈ Σ mass·f(loss) plus the mass at
// 0, for f that grow up to e^{tilt·L}.
type Nodes struct {
	tilt          float64
	Loss, LogMass []float64
	Mass, Lower   []float64 // of the upper distribution and of the lower one
	second        []float64 // e^{−loss} − 1 + loss where the loss is small, else 0
	Width         []float64 // range of losses that a node of a continuous density stands for
	beyond, Drift float64   // of what was truncated: its mass, and by how much that exceeds its lower mass
	spans         []panelSpan
	ellipses      [][]ellipse // around each span, as far as they were needed
	groups        []int       // ends of the nodes of components, of a mixture
}

// GroupEnds returns where the nodes of each component end. A pair that is no mixture has one.
func (n *Nodes) GroupEnds() []int {
	if n.groups == nil {
		return []int{len(n.Loss)}
	}
	return n.groups
}

// append adds the nodes of a component with a share.
func (n *Nodes) append(of *Nodes, logShare float64) {
	share := math.Exp(logShare)
	for i, l := range of.Loss {
		n.Loss = append(n.Loss, l)
		n.LogMass = append(n.LogMass, of.LogMass[i]+logShare)
		n.Mass, n.Lower = append(n.Mass, share*of.Mass[i]), append(n.Lower, share*of.Lower[i])
	}
	n.second, n.Width = append(n.second, of.second...), append(n.Width, of.Width...)
	n.beyond, n.Drift = n.beyond+share*of.beyond, n.Drift+share*of.Drift
	n.groups = append(n.groups, len(n.Loss))
}

// reach is how many standard deviations of Q a quadrature goes beyond a peak.
const reach = 10

// highestOf returns the largest value of a function with few peaks, whose flanks are wide, on an interval.
func highestOf(f func(x float64) float64, lo, hi float64) float64 {
	const scan = 32
	width := (hi - lo) / scan
	var values [scan + 1]float64
	for i := range values {
		values[i] = f(lo + width*float64(i))
	}
	top := math.Inf(-1)
	for i, v := range values {
		if i > 0 && values[i-1] > v || i < scan && values[i+1] > v {
			continue
		}
		a, b := lo+width*float64(max(0, i-1)), lo+width*float64(min(scan, i+1))
		for range 60 {
			first, second := a+(b-a)/3, b-(b-a)/3
			if f(first) < f(second) {
				a = first
			} else {
				b = second
			}
		}
		top = math.Max(top, math.Max(v, f(a)))
	}
	return top
}

// panelGrowth is by how much the logarithm of e^{tilt·L} times the density may change on a panel of 16 points: the
// error is then below 1e-15 of the highest value.
const panelGrowth = 16

// negligibleDensity is −log of a density, relative to the highest one, that does not matter.
const negligibleDensity = 60

// leastNoise is the noise below which quadratures, of about 1/z² panels, are not tried.
const leastNoise = 1e-4

// NodeWork is the number of operations that a node of a quadrature takes.
const NodeWork = 8

// usualNodes is the number of nodes for which there is room at the start.
const usualNodes = 1 << 9

// grow makes room for more nodes.
func (n *Nodes) grow(count int) {
	n.Loss, n.LogMass = slices.Grow(n.Loss, count), slices.Grow(n.LogMass, count)
	n.Mass, n.Lower = slices.Grow(n.Mass, count), slices.Grow(n.Lower, count)
	n.second, n.Width = slices.Grow(n.second, count), slices.Grow(n.Width, count)
}

// Size returns the number of nodes so far, 0 for nil.
func (n *Nodes) Size() int {
	if n == nil {
		return 0
	}
	return len(n.Loss)
}

// Bounds of the length of a quadrature.
const (
	maxNodes    = 1 << 16
	maxAllNodes = 1 << 18 // of one without a floor, for losses that are rare
)

// panels appends a composite Gauss-Legendre rule on [lo, hi] for a density with the
// constant 1/(z√2π), on panels of at most the given width.
func (n *Nodes) panels(
	lo, hi, floor, panel, z float64, logDensity func(x, tilt float64) (logDensity, loss float64), slope, width func(x float64) float64,
) (ok bool) {
	logNorm := math.Log(z) + gaussian.LogSqrt2Pi
	most := maxNodes
	if math.IsInf(floor, -1) {
		most = maxAllNodes
	}
	top := highestOf(func(x float64) float64 {
		v, _ := logDensity(x, n.tilt)
		return v
	}, lo, hi)
	density, loss := logDensity(lo, n.tilt)
	for lo < hi {
		if len(n.Loss) > most {
			return false
		}
		width := width(lo)
		var end, endDensity, endLoss float64
		for {
			end = math.Min(hi, lo+width)
			endDensity, endLoss = logDensity(end, n.tilt)
			highest := math.Max(density, endDensity)
			if !(math.Abs(endLoss-loss) > panel && highest-logNorm >= floor) &&
				!(math.Abs(endDensity-density) > panelGrowth && highest >= top-negligibleDensity) {
				break
			}
			width *= 0.5
		}
		if !(end > lo) { // the spacing of floats
			return hi-lo <= 0x1p-50*math.Abs(hi)
		}
		n.spans = append(n.spans, panelSpan{lo: lo, hi: end})
		mid, half := 0.5*(lo+end), 0.5*(end-lo)
		for i, g := range quadrature.Nodes16 {
			for _, x := range [2]float64{mid - half*g, mid + half*g} {
				v, l := logDensity(x, 0)
				logMass := v - logNorm + math.Log(half*quadrature.Weights16[i])
				n.add(l, logMass)
				n.Width = append(n.Width, half*quadrature.Weights16[i]*slope(x))
			}
		}
		lo, density, loss = end, endDensity, endLoss
	}
	return true
}

// cumulants returns K(c) = log E[e^{cL}] and its second derivative, c >= 0.
//
// With E[e^{−L} − 1] = 0, E[e^{cL}] − 1 is the sum of mass·(e^{cl} − 1 +
// c(e^{−l} − 1)), whose terms are not negative and of second order in l: small
// losses do not cancel. What was truncated is missing in both, and taken off.
func (n *Nodes) cumulants(c float64) cumulants {
	var m, m1, m2 float64
	for i, l := range n.Loss {
		p, a := n.Mass[i], c*l
		e := math.Exp(n.LogMass[i] + a)
		if math.Abs(l) < SmallLoss && a < 500 {
			m += p * (logexp.Expm1MinusArg(a) + c*n.second[i])
			m1 += p * (l*math.Expm1(a) + n.second[i])
		} else {
			m += e - p + c*(n.Lower[i]-p)
			m1 += e*l + n.Lower[i] - p
		}
		m2 += e * l * l
	}
	if math.IsInf(m, 1) || math.IsInf(m2, 1) {
		return n.largeCumulants(c)
	}
	m -= c*n.Drift + n.beyond
	m1 -= n.Drift
	k1 := m1 / (1 + m)
	return cumulants{math.Log1p(m), m2/(1+m) - k1*k1}
}

// Cumulant returns K(c) alone.
func (n *Nodes) Cumulant(c float64) float64 {
	var m float64
	for i, l := range n.Loss {
		p, a := n.Mass[i], c*l
		if math.Abs(l) < SmallLoss && a < 500 {
			m += p * (logexp.Expm1MinusArg(a) + c*n.second[i])
		} else {
			m += math.Exp(n.LogMass[i]+a) - p + c*(n.Lower[i]-p)
		}
	}
	if math.IsInf(m, 1) {
		return n.largeCumulants(c).K
	}
	m -= c*n.Drift + n.beyond
	return math.Log1p(m)
}

// largeCumulants is cumulants for E[e^{cL}] beyond the range of floats.
func (n *Nodes) largeCumulants(c float64) cumulants {
	top := math.Inf(-1)
	for i, l := range n.Loss {
		if v := n.LogMass[i] + c*l; v > top {
			top = v
		}
	}
	var m, m1, m2 float64
	for i, l := range n.Loss {
		e := math.Exp(n.LogMass[i] + c*l - top)
		m += e
		m1 += e * l
		m2 += e * l * l
	}
	return cumulants{top + math.Log(m), m2/m - m1*m1/(m*m)}
}

// SmallLoss is the loss below which cancellation matters.
const SmallLoss = 0.1

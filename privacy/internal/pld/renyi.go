package pld

import (
	"math"

	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/meter"
)

// fixedSizeRenyi is the Rényi divergence of fixedSizePair.
type fixedSizeRenyi struct {
	pairRenyi

	unsampled float64 // the divergence without sampling, over the order
}

// NewFixedSizeRenyi returns the Rényi divergence of [FixedSize], with a bound of the error of its
// quadrature.
func NewFixedSizeRenyi(q, z float64) *fixedSizeRenyi {
	return &fixedSizeRenyi{pairRenyi{Part{Pair: FixedSize(q, z)}}, 0.5 / z / z}
}

// quadratureRounding covers the relative rounding errors of a quadrature of a pair, whose terms are
// positive: some 1e-14.
const quadratureRounding = 1e-12

// RDP returns the divergence of an order > 1.
func (c *fixedSizeRenyi) RDP(order float64) float64 {
	most := c.unsampled * order
	if rho := c.quadrature(order); rho < most {
		return rho
	}
	return most // also where the quadrature fails
}

// quadrature returns the divergence plus the possible error of the quadrature.
func (c *fixedSizeRenyi) quadrature(order float64) float64 {
	rho := c.pairRenyi.RDP(order)
	pair, ok := c.part.Pair.(mixturePair)
	if !ok || pair.q == 1 || math.IsInf(rho, 1) {
		return math.Inf(1) // the bound without sampling is exact, or all there is
	}
	k := rho * (order - 1) // log(1 + m)
	logM := k + math.Log(-math.Expm1(-k))
	// An error e of m raises log(1 + m) by at most e/(1 + m).
	nodes, _ := c.part.Cover(order - 1)
	share := pair.quadratureError(nodes, order-1, logM) * -math.Expm1(-k)
	return (rho + share/(order-1)) * (1 + quadratureRounding)
}

// pairRenyi is the Rényi divergence of a dominating pair.
type pairRenyi struct {
	part Part
}

func (c *pairRenyi) CountIn(w *meter.Work) { c.part.Work = w }

// RDP returns the divergence of an order > 1.
func (c *pairRenyi) RDP(order float64) float64 {
	return math.Max(0, c.part.Cumulant(order-1)/(order-1))
}

// Renyi is the Rényi divergence of a pair.
type Renyi interface {
	// RDP returns the divergence of an order > 1.
	RDP(order float64) float64
}

// NewRenyi returns the Rényi divergence of a pair.
func NewRenyi(pair Pair) Renyi {
	general := &pairRenyi{Part{Pair: pair}}
	mixture, ok := pair.(mixturePair)
	if !ok || len(mixture.branches) > 1 || mixture.q == 1 {
		return general
	}
	step := math.Min(0.5, 0.25*mixture.z)
	return &poissonRenyi{pair: mixture, step: step, next: -math.Ceil(reach / step), general: general}
}

// poissonRenyi is the curve of a pair with the single branch (1−q)Q + qP on the
// whole line. Its integrands are analytic, so that the trapezoidal rule in
// s = x/z converges geometrically; one set of nodes serves all orders.
type poissonRenyi struct {
	pair    mixturePair
	step    float64 // in s: the integrands are singular at a distance of πz
	next    float64 // index of the next node
	nodes   Nodes
	general *pairRenyi
	work    *meter.Work
}

func (c *poissonRenyi) CountIn(w *meter.Work) {
	c.work = w
	c.general.CountIn(w)
}

// Limits beyond which the general quadrature is used.
const (
	mostBinomial  = 1 << 12 // terms
	mostTrapezoid = 1 << 11 // nodes
)

// RDPBelow returns ρ(order), or a lower bound of it and false where that exceeds
// limit: E_Q[(1 + q(P/Q − 1))^α] >= E_Q[(q·P/Q)^α].
func (c *poissonRenyi) RDPBelow(order, limit float64) (float64, bool) {
	z := c.pair.z
	if least := order*math.Log(c.pair.q)/(order-1) + 0.5*order/(z*z); least > limit {
		return least, false
	}
	return c.RDP(order), true
}

// RDP returns the divergence of an order > 1.
func (c *poissonRenyi) RDP(order float64) float64 {
	if order <= mostBinomial && order == math.Floor(order) {
		c.work.Add(int(order))
		if excess := c.binomial(order); !math.IsInf(excess, 1) && !math.IsNaN(excess) {
			return math.Log1p(excess) / (order - 1)
		}
	}
	// The rightmost peak of the integrand lies at s <= order/z.
	last := (order/c.pair.z + reach) / c.step
	if !(last < mostTrapezoid) {
		return c.general.RDP(order)
	}
	z := c.pair.z
	branch := c.pair.branches[0]
	for ; c.next <= last; c.next++ {
		density, loss := c.pair.logDensity(branch, c.next*c.step*z, 0)
		c.nodes.add(loss, density-gaussian.LogSqrt2Pi+math.Log(c.step))
	}
	c.work.Add(len(c.nodes.Loss))
	return math.Max(0, c.nodes.Cumulant(order-1)/(order-1))
}

// binomial returns E_Q[(1 + q(P/Q − 1))^α] − 1 for an integer α = order,
//
//	Σ_{k=2}^{α} C(α,k) q^k (1−q)^{α−k} (e^{k(k−1)/2z²} − 1),
//
// whose terms are positive, or a value that is not finite if one leaves the range
// of floats.
func (c *poissonRenyi) binomial(order float64) float64 {
	q := c.pair.q
	odds := q / (1 - q)
	weight := math.Exp((order-1)*math.Log1p(-q)) * order * q // of k = 1
	if weight < 0x1p-1000 {
		return math.Inf(1)
	}
	first := math.Expm1(1 / (c.pair.z * c.pair.z))
	growth := 0.0             // e^{k(k−1)/2z²} − 1
	factor, sum := first, 0.0 // e^{k/z²} − 1
	for k := 1.0; k < order; k++ {
		weight *= (order - k) / (k + 1) * odds
		growth += factor + growth*factor
		factor += first + first*factor
		sum += weight * growth
	}
	return sum
}

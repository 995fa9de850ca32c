package privacy

import (
	"errors"
	"math"
)

// PoissonGaussian is one step of DP-SGD on Poisson samples: each record is drawn
// with probability SamplingProbability, independently, a clipped vector per
// drawn record is summed, and Gaussian noise added. The size of the batch is
// random and secret, and the sum must not be divided by it.
type PoissonGaussian struct {
	SamplingProbability float64 // q, 0 < q <= 1
	// NoiseMultiplier is σ, the noise's standard deviation divided by the clipping
	// norm, > 0 and finite, under either adjacency.
	NoiseMultiplier float64
	Neighbours      Adjacency
	// PublicSize says that SamplingProbability or the number of steps was computed from the
	// number of records. Under AddRemove that number is then public: where a record is missing,
	// another one without influence counts in its place (zero-out adjacency), for which the
	// guarantee is the same number.
	PublicSize bool
}

// PublicSizeAssumption is what a PoissonGaussian with PublicSize assumes under AddRemove.
const PublicSizeAssumption = "the number of records is public, since the sampling probability and the number of steps follow from it: " +
	"a record is zeroed out instead of removed (zero-out adjacency)"

// Name returns "poisson_gaussian".
func (m PoissonGaussian) Name() string { return "poisson_gaussian" }

// Adjacency returns m.Neighbours.
func (m PoissonGaussian) Adjacency() Adjacency { return m.Neighbours }

// Validate reports the fields "sampling_probability", "noise_multiplier" and
// "adjacency".
func (m PoissonGaussian) Validate() error {
	var errs []error
	if !(m.SamplingProbability > 0 && m.SamplingProbability <= 1) {
		errs = append(errs, FieldErrorf("sampling_probability", "must lie in (0, 1], is %g", m.SamplingProbability))
	}
	errs = append(errs, checkPositive("noise_multiplier", m.NoiseMultiplier), checkAdjacency(m.Neighbours))
	return errors.Join(errs...)
}

// Assumptions returns what the trainer must do.
func (m PoissonGaussian) Assumptions() []string {
	return []string{
		"every step draws each record independently with the stated probability; batches of fixed size and shuffling are other samplers",
		"nothing that is released depends on the size of a batch",
		m.sizeAssumption(),
		assumeSecretNoise,
	}
}

// sizeAssumption says whether the number of records is public.
func (m PoissonGaussian) sizeAssumption() string {
	switch {
	case m.Neighbours == ReplaceOne:
		return "the number of records is public"
	case m.PublicSize:
		return PublicSizeAssumption
	default:
		return "the sampling probability and the number of steps are settings, which do not depend on the number of records"
	}
}

func (m PoissonGaussian) lossPairs() []lossPair {
	if m.Neighbours == ReplaceOne {
		return []lossPair{newReplacePair(m.SamplingProbability, m.NoiseMultiplier)}
	}
	return poissonPairs(m.SamplingProbability, m.NoiseMultiplier)
}

// RenyiCurve returns the divergence of the dominating pairs, for real orders
// α > 1 by quadrature of
//
//	e^{(α−1)·ρ(α)} = E_Q[(1 + q(P/Q − 1))^α]
//
// (Mironov, Talwar and Zhang, "Rényi differential privacy of the sampled Gaussian mechanism",
// 2019; that direction is the larger one, Theorem 5), for integers by the binomial theorem. If
// a record is replaced it is the divergence of the pair (1−q)N(0, σ²) + qN(±1, σ²), by
// quadrature.
func (m PoissonGaussian) RenyiCurve() RenyiCurve {
	pair := m.lossPairs()[0]
	general := &pairRenyi{lossPart{pair: pair}}
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
	nodes   lossNodes
	general *pairRenyi
	work    *Work
}

func (c *poissonRenyi) countIn(w *Work) {
	c.work = w
	c.general.countIn(w)
}

// Limits beyond which the general quadrature is used.
const (
	mostBinomial  = 1 << 12 // terms
	mostTrapezoid = 1 << 11 // nodes
)

// rdpBelow returns ρ(order), or a lower bound of it and false where that exceeds
// limit: E_Q[(1 + q(P/Q − 1))^α] >= E_Q[(q·P/Q)^α].
func (c *poissonRenyi) rdpBelow(order, limit float64) (float64, bool) {
	z := c.pair.z
	if least := order*math.Log(c.pair.q)/(order-1) + 0.5*order/(z*z); least > limit {
		return least, false
	}
	return c.RDP(order), true
}

func (c *poissonRenyi) RDP(order float64) float64 {
	if order <= mostBinomial && order == math.Floor(order) {
		c.work.add(int(order))
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
		c.nodes.add(loss, density-logSqrt2Pi+math.Log(c.step))
	}
	c.work.add(len(c.nodes.loss))
	return math.Max(0, c.nodes.cumulant(order-1)/(order-1))
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

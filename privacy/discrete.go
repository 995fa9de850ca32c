package privacy

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy/internal/pld"
)

// Bounds of the parameters of discrete noise, and so of the number of losses and their sizes.
const (
	mostDiscrete  = 10_000 // sensitivities, σ and scales
	leastDiscrete = 0.01   // σ and scales
)

// DiscreteGaussian releases one integer statistic with noise of the probabilities P(x) ∝ e^{−x²/2σ²} on the
// integers (Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", 2020). Its δ is up to
// 1.36 times the δ of [Gaussian] with the same σ, so that neither stands for the other. For several statistics
// use [ZeroConcentrated] with ρ = Δ²/2σ², where Δ is the ℓ2 sensitivity (their Theorem 14).
type DiscreteGaussian struct {
	Sensitivity int64     // Δ, the largest difference between the statistics of adjacent data sets, in [1, 10⁴]
	Sigma       float64   // σ, in the unit of the statistic, in [0.01, 10⁴]; the noise's standard deviation is at most σ
	Neighbours  Adjacency // the adjacency that Sensitivity is stated for
}

// Name returns "discrete_gaussian".
func (m DiscreteGaussian) Name() string { return "discrete_gaussian" }

// Adjacency returns m.Neighbours.
func (m DiscreteGaussian) Adjacency() Adjacency { return m.Neighbours }

// Validate reports the fields "sensitivity", "sigma" and "adjacency".
func (m DiscreteGaussian) Validate() error {
	return errors.Join(checkDiscrete("sigma", m.Sensitivity, m.Sigma), CheckAdjacency(m.Neighbours))
}

// Assumptions returns the meaning of the sensitivity.
func (m DiscreteGaussian) Assumptions() []Assumption {
	return []Assumption{PremiseSensitivity.Assume("the sensitivity bounds the difference between the integer statistics of adjacent data sets"), assumeExactDraws}
}

// RenyiCurve returns ρ(α) = α·Δ²/2σ² (Canonne, Kamath and Steinke, 2020, Theorem 4).
func (m DiscreteGaussian) RenyiCurve() RenyiCurve {
	mu := float64(m.Sensitivity) / m.Sigma
	return linearRenyi(0.5 * mu * mu)
}

// DominatingPairs returns the pair of [PairMechanism]: the noise shifted by Δ against the noise, of either order.
//
// A smaller shift is dominated: the noise is log-concave, so that the best tests of every shift s are thresholds, with
// the false positive rates P(x >= m) and the powers P(x >= m − s), which rise with s.
func (m DiscreteGaussian) DominatingPairs() pld.Pairs {
	shift, variance := float64(m.Sensitivity), m.Sigma*m.Sigma
	masses := make([]float64, int(math.Ceil(m.Sigma*discreteTail))+1) // of the noise at 0, 1, …
	total := 0.0
	for x := len(masses) - 1; x >= 0; x-- {
		masses[x] = math.Exp(-0.5 * float64(x) * float64(x) / variance)
		total += masses[x]
	}
	total = 2*total - 1
	n, unit := 2*len(masses)-1, 0.5*shift/variance
	losses, upper := make([]float64, n), make([]float64, n)
	for i := range n {
		x := len(masses) - 1 - i // of the noise, from the largest
		losses[i] = unit * (2*float64(x) + shift)
		upper[i] = masses[max(x, -x)] / total
	}
	return discretePairs(unit, losses, upper, 2*discreteBeyond)
}

// Noise beyond discreteTail·σ on one side has a probability of at most e^{−discreteTail²/2}·(1 + 1.26σ)/max(1, 2.5σ),
// below discreteBeyond. All masses within are normal floats before they are normalised.
const (
	discreteTail   = 37.5
	discreteBeyond = 1e-305
)

// DiscreteLaplace releases integer statistics of ℓ1 sensitivity Sensitivity with independent noise of the
// probabilities P(x) ∝ e^{−|x|/Scale} on the integers on each, also called the geometric mechanism (Ghosh,
// Roughgarden and Sundararajan, "Universally utility-maximizing privacy mechanisms", 2009).
type DiscreteLaplace struct {
	Sensitivity int64     // Δ, in [1, 10⁴]
	Scale       float64   // b, in the unit of the statistics, in [0.01, 10⁴]
	Neighbours  Adjacency // the adjacency that Sensitivity is stated for
}

// Name returns "discrete_laplace".
func (m DiscreteLaplace) Name() string { return "discrete_laplace" }

// Adjacency returns m.Neighbours.
func (m DiscreteLaplace) Adjacency() Adjacency { return m.Neighbours }

// Validate reports the fields "sensitivity", "scale" and "adjacency".
func (m DiscreteLaplace) Validate() error {
	return errors.Join(checkDiscrete("scale", m.Sensitivity, m.Scale), CheckAdjacency(m.Neighbours))
}

// Assumptions returns the meaning of the sensitivity.
func (m DiscreteLaplace) Assumptions() []Assumption {
	return []Assumption{PremiseSensitivity.Assume("the sensitivity bounds the sum of the absolute differences between the integer statistics of adjacent data sets"), assumeExactDraws}
}

// PureEpsilon returns Sensitivity/Scale.
func (m DiscreteLaplace) PureEpsilon() float64 { return float64(m.Sensitivity) / m.Scale }

// RenyiCurve returns the exact divergence for one statistic, which is the largest.
func (m DiscreteLaplace) RenyiCurve() RenyiCurve {
	losses, upper := m.losses()
	return atomRenyi{losses, upper}
}

// DominatingPairs returns the pair of [PairMechanism]: the noise on one statistic shifted by Δ against the noise.
//
// Shifts s₁ + … <= Δ of several statistics are dominated. Let a = 1/b, r = e^{−a} and h = (1 − r)/(1 + r). The losses of
// a shift s of one statistic are a(2j − s) for j = 0, …, s; at these δ(ε) = 1 − e^{(ε − as)/2}, and between them δ is
// linear in e^ε. Of shifts s₁ <= s₂ of two statistics let X be the likelihood ratio of the first, so that δ of both is
// E[X·δ₂(ε − log X)]. At a loss ε >= 0 of s₁ + s₂, which are all losses of both, the formula for δ₂ gives
//
//	1 − e^{(ε − as₂)/2}·E[√X] = 1 − e^{(ε − a(s₁ + s₂))/2}·(1 + h·s₁),
//
// and is too small where log X < ε − as₂, and δ₂ = 0. With ε − as₂ = a(2n − s₁), n <= s₁, that adds
//
//	E[(e^{(ε − as₂)/2}·√X − X)₊] = e^{(ε − a(s₁ + s₂))/2}·h·n
//
// (sums of geometric series). So δ of both is at most 1 − e^{(ε − a(s₁ + s₂))/2}, the δ of the shift s₁ + s₂ of
// one statistic. Smaller shifts of one are dominated as in [DiscreteGaussian].
func (m DiscreteLaplace) DominatingPairs() pld.Pairs {
	losses, upper := m.losses()
	return discretePairs(1/m.Scale, losses, upper, 0)
}

// losses returns the losses a(2j − Δ) from the largest, and their masses under the shifted noise.
func (m DiscreteLaplace) losses() (losses, upper []float64) {
	n, a := int(m.Sensitivity), 1/m.Scale
	r := math.Exp(-a)
	losses, upper = make([]float64, n+1), make([]float64, n+1)
	for i := range n + 1 {
		losses[i] = a * float64(n-2*i)
		upper[i] = -math.Expm1(-a) / (1 + r) * math.Exp(-a*float64(i))
	}
	upper[0] = 1 / (1 + r)
	upper[n] = math.Exp(-a*float64(n)) / (1 + r)
	return losses, upper
}

// assumeExactDraws is the assumption on discrete noise.
var assumeExactDraws = PremiseNoise.Assume("the noise comes from entropy that nobody knows, not from a seed, by a sampler that is exact, without floating point")

func checkDiscrete(field string, sensitivity int64, width float64) error {
	var err error
	if !(width >= leastDiscrete && width <= mostDiscrete) {
		err = FieldErrorf(field, "must lie in [%g, %d], is %g", leastDiscrete, mostDiscrete, width)
	}
	if sensitivity < 1 || sensitivity > mostDiscrete {
		err = errors.Join(err, FieldErrorf("sensitivity", "must lie in [1, %d], is %d", mostDiscrete, sensitivity))
	}
	return err
}

// discretePairs returns the pairs of losses that are multiples of unit, from the largest to the smallest, known to
// 2⁻⁵¹, with masses that are known to far less than 1e-9, relatively. [pld.NewAtoms] enlarges masses by 1e-9; the
// masses of the pair below end smaller than they are.
func discretePairs(unit float64, losses, upper []float64, infinite float64) pld.Pairs {
	more, lower := make([]float64, len(losses)), make([]float64, len(losses))
	for i, l := range losses {
		more[i], lower[i] = l+0x1p-50*math.Abs(l), upper[i]*(1-3e-9)
	}
	return pld.Pairs{
		Upper: []pld.Pair{pld.NewLattice(unit, more, upper, infinite)},
		Lower: []pld.Pair{pld.NewLattice(unit, losses, lower, 0)},
	}
}

// atomRenyi is the divergence of finitely many losses with masses under the upper distribution.
type atomRenyi struct{ losses, upper []float64 }

// RDP returns log E[e^{(α−1)L}]/(α − 1), by the largest term.
func (p atomRenyi) RDP(order float64) float64 {
	largest := math.Inf(-1)
	for i, l := range p.losses {
		largest = math.Max(largest, (order-1)*l+math.Log(p.upper[i]))
	}
	sum := 0.0
	for i, l := range p.losses {
		sum += math.Exp((order-1)*l + math.Log(p.upper[i]) - largest)
	}
	return math.Max(0, (largest+math.Log(sum))/(order-1))
}

package privacy

import (
	"fmt"
	"math"
	"sync"

	"github.com/dpareto/dpareto/privacy/internal/moments"
	"github.com/dpareto/dpareto/privacy/internal/orders"
	"github.com/dpareto/dpareto/privacy/meter"
)

// Conversion is a way from a Rényi divergence bound ρ(α) to (ε, δ).
type Conversion int

const (
	// Improved is ε = ρ + log(1 − 1/α) − (log δ + log α)/(α − 1) (Balle, Barthe,
	// Gaboardi, Hsu and Sato, "Hypothesis testing interpretations and Rényi
	// differential privacy", 2020, Theorem 21; Canonne, Kamath and Steinke, "The
	// discrete Gaussian for differential privacy", 2020, Proposition 12). It is
	// the default and never larger than Classic.
	Improved Conversion = iota
	// Classic is ε = ρ + log(1/δ)/(α − 1) (Mironov, "Rényi differential privacy",
	// 2017, Proposition 3), as used by Avent et al. (2020).
	Classic
)

// String returns "improved", "classic" or, for any other value, "Conversion(n)".
func (c Conversion) String() string {
	switch c {
	case Improved:
		return "improved"
	case Classic:
		return "classic"
	default:
		return fmt.Sprintf("Conversion(%d)", int(c))
	}
}

// Epsilon returns ε for the bound rho on the Rényi divergence of the given
// order > 1, at least 0.
func (c Conversion) Epsilon(order, rho, delta float64) float64 {
	return math.Max(0, rho+c.surcharge(order, math.Log(delta)))
}

// surcharge returns ε − ρ.
func (c Conversion) surcharge(order, logDelta float64) float64 {
	if c == Classic {
		return -logDelta / (order - 1)
	}
	return orders.Surcharge(order, logDelta)
}

// RDP is the Rényi accountant: the divergences of the parts add up at each order, and ε is the
// least over the orders, all real α > 1, which are searched without an upper limit.
// RDP{Conversion: Classic} on a [FixedSizeGaussian] is the accountant of Avent et al.,
// "Automatic discovery of privacy-utility Pareto fronts", 2020, with the looser divergence and
// the integer orders α >= 2 of their time.
type RDP struct {
	Conversion Conversion // default Improved
}

// Name returns "rdp" or, for the classic conversion, "rdp_classic".
func (a RDP) Name() string {
	if a.Conversion == Improved {
		return "rdp"
	}
	return "rdp_" + a.Conversion.String()
}

// Curve accounts a RenyiMechanism, a PureMechanism, or a Composition of them.
func (a RDP) Curve(m Mechanism) (Curve, error) {
	if a.Conversion != Improved && a.Conversion != Classic {
		return nil, FieldErrorf("conversion", "must be improved or classic, is %s", a.Conversion)
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	c := &rdpCurve{
		conversion: a.Conversion,
		base:       BaseGuarantee(a, m),
		rho:        make(map[float64]float64),
	}
	var err error
	if c.renyiSum, err = renyiOf(a, m); err != nil {
		return nil, err
	}
	for i, p := range Parts(m) {
		g, ok := p.Mechanism.(FixedSizeGaussian)
		if !ok || a.Conversion != Classic {
			continue
		}
		c.parts[i].curve, c.integers = moments.NewFixedSize(g.Rate(), g.NoiseMultiplier), true
		if g.NoiseMultiplier < looseNoise && g.BatchSize < g.DatasetSize {
			c.base.Warnings = append(c.base.Warnings, Warning{WarnLooseBound, fmt.Sprintf(
				"noise multiplier %g is below %g: the published divergence overstates epsilon, often by orders of magnitude",
				g.NoiseMultiplier, looseNoise)})
		}
	}
	return c, nil
}

// Renyi returns the bound on the Rényi divergences of one run of a valid m, which for a [Composition] is
// the sum of the bounds of its parts, or an *UnsupportedError. It is not safe for concurrent use.
func Renyi(m Mechanism) (RenyiCurve, error) {
	sum, err := renyiOf(RDP{}, m)
	if err != nil {
		return nil, err
	}
	return &sum, nil
}

// renyiOf returns the curves of Parts(m), m valid, or an *UnsupportedError.
func renyiOf(a Accountant, m Mechanism) (renyiSum, error) {
	var sum renyiSum
	for _, p := range Parts(m) {
		var curve RenyiCurve
		switch mechanism := p.Mechanism.(type) {
		case RenyiMechanism:
			curve = mechanism.RenyiCurve()
		case PureMechanism:
			curve = pureRenyi(mechanism.PureEpsilon())
		default:
			return renyiSum{}, &UnsupportedError{a.Name(), p.Mechanism.Name(), "it has no Rényi divergence bound"}
		}
		sum.parts = append(sum.parts, rdpPart{curve, float64(p.Count)})
	}
	return sum, nil
}

// looseNoise is the noise multiplier below which the published divergence of a subsampled
// Gaussian is far from tight.
const looseNoise = 0.5

// rdpCurve is the Curve of RDP. The Rényi bound of each order is computed once.
type rdpCurve struct {
	conversion Conversion
	base       Guarantee
	integers   bool // the orders are integers

	mu sync.Mutex // guards what follows
	renyiSum
	rho map[float64]float64 // by order, of one run of all parts
}

// renyiSum is the sum of the divergences of parts.
type renyiSum struct {
	parts []rdpPart
	work  *meter.Work
}

// CountIn counts the work of the parts in w.
func (c *renyiSum) CountIn(w *meter.Work) {
	c.work = w
	for _, p := range c.parts {
		meter.CountIn(p.curve, w)
	}
}

// RDP returns the sum at an order.
func (c *renyiSum) RDP(order float64) float64 {
	rho, _ := c.sum(order, math.Inf(1))
	return rho
}

type rdpPart struct {
	curve RenyiCurve
	count float64
}

// Epsilon minimises over the orders. It takes about a microsecond if earlier calls computed
// the orders that it tries.
func (c *rdpCurve) Epsilon(steps int64, delta float64) (Guarantee, error) {
	if err := CheckSteps(steps); err != nil {
		return Guarantee{}, err
	}
	if err := CheckDelta(delta); err != nil {
		return Guarantee{}, err
	}
	g := c.base
	g.Delta, g.Steps = delta, steps
	if steps == 0 {
		return g, nil
	}
	g.Epsilon, g.Order = c.minimise(float64(steps), math.Log(delta))
	switch {
	case math.IsInf(g.Epsilon, 1):
		g = g.Warn(WarnVacuous, "epsilon is infinite: nothing is guaranteed")
	case g.Epsilon == 0:
	case g.Order == 2 && c.integers:
		g = g.Warn(WarnOrderAtEdge, "the best order is 2, the smallest integer order")
	case g.Order >= orders.Max:
		g = g.Warn(WarnOrderAtEdge, "the best order is the largest that was tried")
	}
	return g, nil
}

// minimise returns the least ε over the orders, and the order. ε(α)·(α−1) is
// convex in α, so ε(α) falls and then rises.
func (c *rdpCurve) minimise(steps, logDelta float64) (epsilon, order float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	least := orders.Least
	if c.integers {
		least = orders.LeastInteger
	}
	epsilon, order = least(func(order, limit float64) float64 {
		return c.epsilon(order, steps, logDelta, limit)
	})
	return math.Max(0, epsilon), order
}

// epsilon returns ε at one order before it is cut off at 0, or +Inf where it is
// known to exceed limit.
func (c *rdpCurve) epsilon(order, steps, logDelta, limit float64) float64 {
	surcharge := c.conversion.surcharge(order, logDelta)
	rho, ok := c.rho[order]
	if !ok {
		rho, ok = c.sum(order, (limit-surcharge)/steps)
		if !ok {
			return math.Inf(1)
		}
		c.rho[order] = rho
	}
	return steps*rho + surcharge
}

// sum returns ρ(order) of all parts, or false as soon as it is known to exceed
// limit.
func (c *renyiSum) sum(order, limit float64) (float64, bool) {
	var rho float64
	for _, p := range c.parts {
		c.work.Add(2)
		var part float64
		exact := true
		if b, ok := p.curve.(boundedRenyiCurve); ok {
			part, exact = b.RDPBelow(order, (limit-rho)/p.count)
		} else {
			part = p.curve.RDP(order)
		}
		if !exact {
			return 0, false
		}
		rho += p.count * part
	}
	return rho, true
}

// boundedRenyiCurve is a RenyiCurve that can stop early.
type boundedRenyiCurve interface {
	// RDPBelow returns ρ(order) and true, or false once ρ(order) > limit is known.
	RDPBelow(order, limit float64) (float64, bool)
}

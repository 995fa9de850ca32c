package privacy

import (
	"fmt"
	"math"
	"sync"
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
	return math.Log1p(-1/order) - (logDelta+math.Log(order))/(order-1)
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
		base:       baseGuarantee(a, m),
		rho:        make(map[float64]float64),
	}
	var err error
	if c.parts, err = renyiParts(a.Name(), m); err != nil {
		return nil, err
	}
	for i, p := range flatten(m) {
		g, ok := p.Mechanism.(FixedSizeGaussian)
		if !ok || a.Conversion != Classic {
			continue
		}
		c.parts[i].curve, c.integers = newPublishedFixedSize(g.rate(), g.NoiseMultiplier), true
		if g.NoiseMultiplier < looseNoise && g.BatchSize < g.DatasetSize {
			c.base.Warnings = append(c.base.Warnings, Warning{WarnLooseBound, fmt.Sprintf(
				"noise multiplier %g is below %g: the published divergence overstates epsilon, often by orders of magnitude",
				g.NoiseMultiplier, looseNoise)})
		}
	}
	return c, nil
}

// renyiParts returns the curves of flatten(m), m valid, or an *UnsupportedError.
func renyiParts(accountant string, m Mechanism) ([]rdpPart, error) {
	var parts []rdpPart
	for _, p := range flatten(m) {
		var curve RenyiCurve
		switch mechanism := p.Mechanism.(type) {
		case RenyiMechanism:
			curve = mechanism.RenyiCurve()
		case PureMechanism:
			curve = pureRenyi(mechanism.PureEpsilon())
		default:
			return nil, &UnsupportedError{accountant, p.Mechanism.Name(), "it has no Rényi divergence bound"}
		}
		parts = append(parts, rdpPart{curve, float64(p.Count)})
	}
	return parts, nil
}

// looseNoise is the noise multiplier below which the published divergence of a subsampled
// Gaussian is far from tight.
const looseNoise = 0.5

// rdpCurve is the Curve of RDP. The Rényi bound of each order is computed once.
type rdpCurve struct {
	conversion Conversion
	base       Guarantee
	integers   bool // the orders are integers

	mu    sync.Mutex // guards what follows
	parts []rdpPart
	rho   map[float64]float64 // by order, of one run of all parts
	work  *Work
}

func (c *rdpCurve) countIn(w *Work) {
	c.work = w
	for _, p := range c.parts {
		countIn(p.curve, w)
	}
}

type rdpPart struct {
	curve RenyiCurve
	count float64
}

// maxOrder ends the search for orders; integers up to it are exact.
const maxOrder = 1 << 52

// Epsilon minimises over the orders. It takes about a microsecond if earlier calls computed
// the orders that it tries.
func (c *rdpCurve) Epsilon(steps int64, delta float64) (Guarantee, error) {
	if err := checkSteps(steps); err != nil {
		return Guarantee{}, err
	}
	if err := checkDelta(delta); err != nil {
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
		g = g.warn(WarnVacuous, "epsilon is infinite: nothing is guaranteed")
	case g.Epsilon == 0:
	case g.Order == 2 && c.integers:
		g = g.warn(WarnOrderAtEdge, "the best order is 2, the smallest integer order")
	case g.Order >= maxOrder:
		g = g.warn(WarnOrderAtEdge, "the best order is the largest that was tried")
	}
	return g, nil
}

// minimise returns the least ε over the orders, and the order. ε(α)·(α−1) is
// convex in α, so ε(α) falls and then rises.
func (c *rdpCurve) minimise(steps, logDelta float64) (epsilon, order float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	least := leastOverOrders
	if c.integers {
		least = leastOverIntegers
	}
	epsilon, order = least(func(order, limit float64) float64 {
		return c.epsilon(order, steps, logDelta, limit)
	})
	return math.Max(0, epsilon), order
}

// leastOverOrders returns the least value of f, which falls and then rises, over the orders
// α > 1, and the order. It may stop at any value that is not positive, and f may return +Inf
// for a value above limit.
func leastOverOrders(f func(order, limit float64) float64) (best, at float64) {
	best, at = leastOverIntegers(f)
	if best > 0 {
		best, at = refineOrder(best, at, f)
	}
	return best, at
}

// leastOverIntegers is leastOverOrders for the integers α >= 2.
//
// Powers of two are tried until f rises twice in a row, in case the minimum of
// two bounds has a shallow dent; then the bracket is halved. The orders that are
// tried are dyadic, so that different calls share most of them.
func leastOverIntegers(f func(order, limit float64) float64) (best, at float64) {
	best, at = f(2, math.Inf(1)), 2
	for alpha, rises := 4.0, 0; alpha <= maxOrder && rises < 2 && best > 0; alpha *= 2 {
		if v := f(alpha, best); v < best {
			best, at, rises = v, alpha, 0
		} else {
			rises++
		}
	}
	lo, hi := at/2, math.Min(maxOrder, 2*at)
	for hi-lo > math.Max(2, at*0x1p-40) && best > 0 {
		mid := math.Floor((at + hi) / 2)
		if at-lo > hi-at {
			mid = math.Ceil((lo + at) / 2)
		}
		v := f(mid, best)
		switch {
		case v < best && mid < at:
			best, at, hi = v, mid, at
		case v < best:
			best, at, lo = v, mid, at
		case mid < at:
			lo = mid
		default:
			hi = mid
		}
	}
	return best, at
}

// refineOrder continues the search from the best integer order to real ones, in
// u = log(α − 1): it steps to the vertex of a parabola through the best point and
// the points next to it, on whose two sides the minimum is known to lie.
func refineOrder(best, at float64, f func(order, limit float64) float64) (least, order float64) {
	const (
		lowest    = -28.0   // of u
		largest   = 1 << 20 // beyond it integers are close enough
		precision = 1e-6    // of u; the error of ε is about its square
		nearby    = 1e-3    // distance of the last points
	)
	if at >= largest {
		return best, at
	}
	type point struct{ u, value float64 }
	atOrder := func(order float64) point { return point{math.Log(order - 1), f(order, math.Inf(1))} }
	value := func(u float64) point { return point{u, f(1+math.Exp(u), math.Inf(1))} }
	mid, right := point{math.Log(at - 1), best}, atOrder(at+1)
	left := value(mid.u - math.Ln2)
	if at > 2 {
		left = atOrder(at - 1)
	}
	for left.value < mid.value && left.u > lowest {
		left, mid, right = value(left.u-2*(mid.u-left.u)), left, mid
	}
	for right.value < mid.value {
		left, mid, right = mid, right, value(right.u+2*(right.u-mid.u))
	}
	settled, width := false, math.Inf(1)
	for i := 0; mid.value > 0 && right.u-left.u > precision; i++ {
		down, up := (mid.value-left.value)/(mid.u-left.u), (right.value-mid.value)/(right.u-mid.u)
		// The slope of the parabola is linear between the two midpoints.
		u := 0.5 * (left.u + mid.u - down*(right.u-left.u)/(up-down))
		drop := (up - down) / (right.u - left.u) * (u - mid.u) * (u - mid.u)
		slow := false
		if i%4 == 3 { // next to a cliff a parabola does not help
			slow, width = right.u-left.u > 0.5*width, right.u-left.u
		}
		switch {
		case slow || !(u > left.u && u < right.u):
			if u = 0.5 * (left.u + mid.u); right.u-mid.u > mid.u-left.u {
				u = 0.5 * (right.u + mid.u)
			}
		case math.Abs(u-mid.u) < precision && drop < 1e-12*mid.value:
			if settled {
				return mid.value, 1 + math.Exp(mid.u)
			}
			settled = true
			if right.u-mid.u > mid.u-left.u {
				u = mid.u + math.Min(nearby, 0.5*(right.u-mid.u))
			} else {
				u = mid.u - math.Min(nearby, 0.5*(mid.u-left.u))
			}
		}
		switch next := value(u); {
		case next.value < mid.value && u < mid.u:
			mid, right = next, mid
		case next.value < mid.value:
			left, mid = mid, next
		case u < mid.u:
			left = next
		default:
			right = next
		}
	}
	return mid.value, 1 + math.Exp(mid.u)
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
func (c *rdpCurve) sum(order, limit float64) (float64, bool) {
	var rho float64
	for _, p := range c.parts {
		c.work.add(2)
		var part float64
		exact := true
		if b, ok := p.curve.(boundedRenyiCurve); ok {
			part, exact = b.rdpBelow(order, (limit-rho)/p.count)
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
	// rdpBelow returns ρ(order) and true, or false once ρ(order) > limit is known.
	rdpBelow(order, limit float64) (float64, bool)
}

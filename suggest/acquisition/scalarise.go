package acquisition

import (
	"math"
	"slices"
)

// Scalarisation sees a front along rays from the reference. With scale s_j and a
// direction u of the positive unit sphere, w_j = s_j u_j, a point reaches
//
//	ρ_w(y) = min_j ((r_j - y_j)/w_j)+
//
// along the ray of w, and a front the largest ρ_w of its points. With u uniform,
//
//	hypervolume = c E[ρ_w^m],  c = Π_j s_j π^(m/2) / (2^m Γ(m/2 + 1)),
//
// for m objectives (Zhang, Golovin, "Random Hypervolume Scalarizations for Provable
// Multi-Objective Black Box Optimization", ICML 2020, Lemma 5; in polar
// coordinates). Its cost is linear in the size of the front in any dimension; the cost of
// boxes is not. A *Scalarisation is immutable and safe for concurrent use.
type Scalarisation struct {
	reference []float64
	weights   [][]float64 // by direction
	reach     []float64   // of the front, by direction
	logVolume float64     // ln c
}

// NewScalarisation returns the scalarisation of points, which need neither be
// below the reference nor different, along the given unit vectors, which must be
// positive, at least one, for instance from a uniform distribution. Scales must be
// positive; a good one is the range of the front. It panics if lengths differ.
func NewScalarisation(points [][]float64, reference, scales []float64, directions [][]float64) *Scalarisation {
	m := len(reference)
	if len(scales) != m || len(directions) == 0 {
		panic("acquisition: scales and reference differ in length, or no direction")
	}
	logGamma, _ := math.Lgamma(float64(m)/2 + 1)
	s := &Scalarisation{
		reference: slices.Clone(reference),
		logVolume: float64(m)/2*math.Log(math.Pi) - float64(m)*math.Ln2 - logGamma,
	}
	for _, scale := range scales {
		s.logVolume += math.Log(scale)
	}
	for _, u := range directions {
		if len(u) != m {
			panic("acquisition: direction and reference differ in length")
		}
		w := make([]float64, m)
		for j := range w {
			w[j] = u[j] * scales[j]
		}
		reach := 0.0
		for _, p := range points {
			reach = math.Max(reach, s.along(w, p))
		}
		s.weights, s.reach = append(s.weights, w), append(s.reach, reach)
	}
	return s
}

// along returns how far v reaches along the ray of w, 0 if v is NaN.
func (s *Scalarisation) along(w, v []float64) float64 {
	reach := math.Inf(1)
	for j, r := range s.reference {
		if d := (r - v[j]) / w[j]; !(d >= reach) {
			reach = d
		}
	}
	return math.Max(reach, 0)
}

// Improvement estimates the hypervolume improvement of v: its mean over the
// directions. It is 0 if v is not finite.
func (s *Scalarisation) Improvement(v []float64) float64 {
	m := float64(len(s.reference))
	sum := 0.0
	for i, w := range s.weights {
		if reach := s.along(w, v); reach > s.reach[i] && !math.IsInf(reach, 1) {
			sum += math.Pow(reach, m) - math.Pow(s.reach[i], m)
		}
	}
	return sum / float64(len(s.weights)) * math.Exp(s.logVolume)
}

// LogScalarised returns the logarithm of the expected [Scalarisation.Improvement]
// of an outcome, which is an estimate of [LogEHVI] without bias, and its
// derivatives as LogEHVI does. Along one direction it is
//
//	E[(ρ_w(X)^m - b^m)+] = ∫_b^∞ m t^(m-1) Π_j F_j(r_j - t w_j) dt,
//
// b being the reach of the front and F_j the distribution functions: an integral of
// one dimension, by Gauss-Legendre rules in logarithms to about 1e-6. It panics if
// lengths differ.
func LogScalarised(s *Scalarisation, distributions []Distribution, d []Partial) float64 {
	if len(distributions) != len(s.reference) || d != nil && len(d) != len(distributions) {
		panic("acquisition: distributions, derivatives and reference differ in length")
	}
	clear(d)
	sum := newLogSum()
	var buffer [maxStackObjectives]term
	r := ray{distributions: distributions, reference: s.reference, terms: append(buffer[:0], make([]term, len(distributions))...)}
	for i, w := range s.weights {
		r.weights = w
		value := r.integrate(s.reach[i], d != nil)
		decay, weight := sum.add(value)
		if d == nil || weight == 0 {
			continue
		}
		for j := range d {
			d[j].scale(decay)
			d[j].add(weight, r.partial(j))
		}
	}
	for j := range d {
		if sum.scale > 0 {
			d[j].scale(1 / sum.scale)
		}
	}
	return sum.value() + s.logVolume - math.Log(float64(len(s.weights)))
}

// The rules of the two sides of the mode of a ray's integrand.
var (
	riseRule = gaussLegendre(8)
	fallRule = gaussLegendre(12)
)

const (
	// Of the integrand of a ray what is less than exp(-rayNegligible) of its
	// largest value is left out, and maybe what is less than exp(-rayTail).
	rayNegligible = 18
	rayTail       = 36

	// cliff is the quantile at which a distribution function begins to fall.
	cliff = 3.5
)

// ray is the integral of LogScalarised along one direction.
type ray struct {
	distributions      []Distribution
	reference, weights []float64

	end   float64 // where a known objective ends the ray
	endAt int     // that objective, or -1
	sum   float64 // of the integrand, relative to its value at the mode
	atEnd float64 // the integrand there, likewise
	terms []term  // by objective
}

// term is what one objective adds to the integrand.
type term struct {
	z, hazard float64 // where the integrand was last evaluated: φ(z)/Φ(z)
	partial   Partial // of the integral
}

// at returns the logarithm of the integrand at t and its derivative times t.
func (r *ray) at(t float64) (value, slope float64) {
	m := float64(len(r.distributions))
	value, slope = math.Log(m)+(m-1)*math.Log(t), m-1
	if m == 1 {
		value = 0 // also at t = 0
	}
	for j, l := range r.distributions {
		if l.StdDev == 0 {
			continue
		}
		x := r.reference[j] - t*r.weights[j]
		z := l.standardize(x)
		if math.IsInf(z, -1) {
			return z, z
		}
		logCDF, h := logPhiHazard(z)
		value += logCDF
		slope -= h * t * r.weights[j] * l.quantileSlope(x)
		r.terms[j].z, r.terms[j].hazard = z, h
	}
	return value, slope
}

// logPhiHazard returns ln Φ(z) and φ(z)/Φ(z).
func logPhiHazard(z float64) (logCDF, hazard float64) {
	if z < 0 {
		ratio := mills(z)
		return math.Log(ratio) - z*z/2 - logSqrt2Pi, 1 / ratio
	}
	if z > 40 {
		return 0, 0
	}
	phi := math.Exp(-z*z/2) * invSqrt2Pi
	tail := phi * mills(-z)
	return math.Log1p(-tail), phi / (1 - tail)
}

// quantileSlope is the derivative of standardize at x inside the support.
func (l Distribution) quantileSlope(x float64) float64 {
	switch l.Family {
	case LogNormal:
		return 1 / (x * l.StdDev)
	case NegatedLogNormal:
		if x >= 0 {
			return 0
		}
		return -1 / (x * l.StdDev)
	case LogitNormal:
		if x >= 1 {
			return 0
		}
		return 1 / (x * (1 - x) * l.StdDev)
	default:
		return 1 / l.StdDev
	}
}

// integrate returns the logarithm of the integral from b, -Inf if it is empty, and
// prepares partial if wanted.
func (r *ray) integrate(b float64, derivatives bool) float64 {
	r.end, r.endAt = math.Inf(1), -1
	for j, l := range r.distributions {
		if l.StdDev == 0 {
			if t := (r.reference[j] - l.Median()) / r.weights[j]; t < r.end {
				r.end, r.endAt = t, j
			}
		}
	}
	if !(b < r.end) {
		return math.Inf(-1)
	}
	mode := r.mode(b)
	top, _ := r.at(mode)
	if math.IsInf(top, -1) || math.IsNaN(top) {
		return math.Inf(-1)
	}
	r.sum, r.atEnd = 0, 0
	for j := range r.terms {
		r.terms[j].partial = Partial{}
	}
	r.panel(b, mode, riseRule, top, derivatives)
	last := r.negligible(mode, top)
	// Between the places where single objectives give out the integrand is smooth.
	for from := mode; from < last; {
		to := last
		for j, l := range r.distributions {
			if l.StdDev == 0 {
				continue
			}
			edge := l.Quantile(cliff)
			if l.Family == NegatedLogNormal {
				edge = l.Quantile(-cliff)
			}
			if t := (r.reference[j] - edge) / r.weights[j]; t > from && t < to {
				to = t
			}
		}
		r.panel(from, to, fallRule, top, derivatives)
		from = to
	}
	if r.endAt >= 0 && last >= r.end {
		value, _ := r.at(r.end)
		r.atEnd = math.Exp(value - top)
	}
	return top + math.Log(r.sum)
}

// panel adds the integral from a to b.
func (r *ray) panel(a, b float64, rule []node, top float64, derivatives bool) {
	if !(a < b) {
		return
	}
	for _, n := range rule {
		t := a + (b-a)*n.x
		value, _ := r.at(t)
		w := (b - a) * n.w * math.Exp(value-top)
		r.sum += w
		if !derivatives || w == 0 {
			continue
		}
		for j, l := range r.distributions {
			if l.StdDev == 0 {
				continue
			}
			e := &r.terms[j]
			h := w * e.hazard / l.StdDev
			if h == 0 {
				continue
			}
			p := Partial{Mean: -h, StdDev: -h * e.z}
			if l.Family == NegatedLogNormal {
				p.Mean = h
			}
			e.partial.add(1, p)
		}
	}
}

// partial returns the derivatives of the logarithm of the integral.
func (r *ray) partial(j int) Partial {
	p := r.terms[j].partial
	if j == r.endAt {
		l := r.distributions[j]
		p.Mean = -r.atEnd / r.weights[j] * l.slope(l.Median())
	}
	p.scale(1 / r.sum)
	return p
}

// mode returns about where the integrand is largest from b on: the integrand
// there is no less than half of the largest.
func (r *ray) mode(b float64) float64 {
	low, slope := b, float64(len(r.distributions)-1)
	if b > 0 {
		if _, slope = r.at(b); slope <= 0 {
			return b
		}
	} else if slope == 0 {
		return b
	}
	// An upper bound: where an objective is as likely as not, or farther.
	high := math.Inf(1)
	for j, l := range r.distributions {
		if t := (r.reference[j] - l.Median()) / r.weights[j]; t > low {
			high = math.Min(high, t)
		}
	}
	if math.IsInf(high, 1) { // nothing is that far
		for j, l := range r.distributions {
			x := r.reference[j] - low*r.weights[j]
			if rate := r.weights[j] * l.quantileSlope(x); rate > 0 && !math.IsInf(rate, 0) {
				high = math.Min(high, low+1/rate)
			}
		}
		if math.IsInf(high, 1) {
			return b
		}
	}
	high = math.Min(high, r.end)
	_, fall := r.at(high)
	for fall > 0 {
		if high == r.end {
			return r.end
		}
		low, slope = high, fall
		high = math.Min(2*high, r.end)
		_, fall = r.at(high)
	}
	// The slope falls from low to high: bisection and the rule of false position by
	// turns, until the logarithm cannot grow by more than ln 2.
	for k := range 60 {
		t := (low + high) / 2
		if k%2 == 1 && !math.IsInf(fall, -1) {
			t = low + (high-low)*slope/(slope-fall)
		}
		if !(low < t && t < high) {
			break
		}
		_, at := r.at(t)
		if math.Abs(at)*(high-low) < math.Ln2*t {
			return t
		}
		if at > 0 {
			low, slope = t, at
		} else {
			high, fall = t, at
		}
	}
	if low == 0 {
		return high
	}
	return low
}

// negligible returns a place beyond the mode from which on the integrand is
// negligible, or the end of the ray.
func (r *ray) negligible(mode, top float64) float64 {
	step := math.Inf(1)
	for j, l := range r.distributions {
		if l.StdDev == 0 {
			continue
		}
		if rate := r.weights[j] * l.quantileSlope(r.reference[j]-mode*r.weights[j]); rate > 0 {
			step = math.Min(step, 1/rate)
		}
	}
	if math.IsInf(step, 1) || step == 0 {
		step = math.Max(mode, 1)
	}
	low, high := mode, math.Inf(1)
	for range 200 {
		t := low + step
		if !math.IsInf(high, 1) {
			t = low + (high-low)/2
		}
		if t >= r.end {
			if value, _ := r.at(r.end); top-value < rayTail {
				return r.end
			}
			t, high = low+(r.end-low)/2, r.end
		}
		if !(low < t) {
			return math.Min(high, r.end)
		}
		value, _ := r.at(t)
		switch drop := top - value; {
		case drop < rayNegligible:
			low = t
			step *= 2
		case drop > rayTail:
			high = t
		default:
			return t
		}
	}
	return low
}

package pld

import (
	"math"

	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/internal/logexp"
	"github.com/dpareto/dpareto/privacy/meter"
)

// allocationRenyi is the Rényi divergence of random allocation with one pick in one epoch, the larger direction.
type allocationRenyi struct {
	steps, sigma float64

	// moments are log E_Q[S^j], j = 0, 1, ...
	moments []float64
	// logs are log E_Q[e^{−vS}] at v = e^w, by multiples of lowStep.
	logs map[int]float64
	work *meter.Work
}

// NewAllocationRenyi returns the Rényi divergence of one pick of steps >= 2.
func NewAllocationRenyi(steps int64, sigma float64) *allocationRenyi {
	return &allocationRenyi{steps: float64(steps), sigma: sigma, logs: make(map[int]float64)}
}

func (c *allocationRenyi) CountIn(w *meter.Work) { c.work = w }

// RDP returns the divergence of an order > 1, at most the one of the Gaussian without amplification.
func (c *allocationRenyi) RDP(order float64) float64 {
	whole := 0.5 * order / (c.sigma * c.sigma)
	remove := c.Removing(order)
	if !(remove < whole) {
		return whole
	}
	return math.Min(whole, math.Max(remove, c.Adding(order)))
}

// mostMoments is the largest order that is expanded.
const mostMoments = 256

// renyiRounding covers rounding errors of logarithms of moments, relative and absolute.
const renyiRounding, renyiAbsolute = 1e-12, 1e-13

// Removing returns the divergence of P from Q. For integers it is from
//
//	E_Q[S^α] = t^{−α}·α!·[x^α](Σ_k e^{k(k−1)/2σ²}·x^k/k!)^t;
//
// (α − 1)·ρ(α) is convex, so that lines between them bound it for other orders.
func (c *allocationRenyi) Removing(order float64) float64 {
	if !(order <= mostMoments) {
		return math.Inf(1)
	}
	below, above := math.Floor(order), math.Ceil(order)
	for size := 32; float64(len(c.moments)) <= above; size *= 2 {
		if float64(size) >= above {
			c.expand(size)
		}
	}
	share := order - below
	moment := (1-share)*c.moments[int(below)] + share*c.moments[int(above)]
	return (math.Max(0, moment)*(1+renyiRounding) + renyiAbsolute) / (order - 1)
}

// expand computes the moments up to an order, from logarithms of power series.
func (c *allocationRenyi) expand(order int) {
	factorials := make([]float64, order+1)
	one := make([]float64, order+1)
	for k := range one {
		factorials[k], _ = math.Lgamma(float64(k) + 1)
		one[k] = 0.5*float64(k)*float64(k-1)/(c.sigma*c.sigma) - factorials[k]
	}
	terms := make([]float64, order+1)
	multiply := func(a, b []float64) []float64 {
		c.work.Add(order * order / 2)
		result := make([]float64, order+1)
		for n := range result {
			for i := 0; i <= n; i++ {
				terms[i] = a[i] + b[n-i]
			}
			result[n] = logexp.LogSumExp(terms[:n+1])
		}
		return result
	}
	power := one
	t := int64(c.steps)
	for bit := bitLength(t) - 2; bit >= 0; bit-- {
		power = multiply(power, power)
		if t>>bit&1 == 1 {
			power = multiply(power, one)
		}
	}
	c.moments = power
	for k := range power {
		power[k] += factorials[k] - float64(k)*math.Log(c.steps)
	}
}

// bitLength returns the number of binary digits of a number > 0.
func bitLength(t int64) (n int) {
	for ; t > 0; t >>= 1 {
		n++
	}
	return n
}

// lowStep is the step of the trapezoidal rule in w. Its error falls like e^{−π²/lowStep}.
const lowStep = 0.03

// Adding returns the divergence of Q from P: with s = α − 1,
//
//	E_Q[S^{−s}] = 1/Γ(s)·∫ e^{sw}·φ(e^w/t)^t dw, φ(v) = E[e^{−vX}],
//
// for the lognormal ratio X of one step. The integrand is log-concave in w up to the flanks.
func (c *allocationRenyi) Adding(order float64) float64 {
	const flat, depth = -40.0, 45.0 // φ^t = 1 below flat; −log of the negligible share
	s := order - 1
	start := int(math.Floor(flat / lowStep))
	// The sum below start is geometric.
	top := s*lowStep*float64(start) - math.Log(-math.Expm1(-s*lowStep))
	sum := 1.0
	last := math.Inf(-1)
	for i := start + 1; ; i++ {
		v := s*lowStep*float64(i) + c.logAt(i)
		if v > top {
			sum *= math.Exp(top - v)
			top = v
		}
		sum += math.Exp(v - top)
		if v < top-depth && v < last || i > 1<<16 {
			break
		}
		last = v
	}
	gamma, _ := math.Lgamma(s)
	moment := top + math.Log(sum) + math.Log(lowStep) - gamma
	return (math.Max(0, moment)*(1+renyiRounding) + renyiAbsolute*(10+math.Abs(gamma))) / s
}

// logAt returns t·log φ(e^w/t) at w = i·lowStep, by the trapezoidal rule in z for X = e^{z/σ − 1/2σ²}.
func (c *allocationRenyi) logAt(i int) float64 {
	if v, ok := c.logs[i]; ok {
		return v
	}
	shift := lowStep*float64(i) - math.Log(c.steps) - 0.5/(c.sigma*c.sigma) // log of vX at z = 0
	// The integrand is analytic within πσ/2 of the line. At a distance a it is about e^{curvature·a²/2} of its
	// peak, and the error of the rule e^{−2πa/step} of that.
	stepFor := func(curvature float64) float64 {
		a := math.Min(1.4*c.sigma, math.Sqrt(84/curvature))
		return 2 * math.Pi * a / (42 + 0.5*curvature*a*a)
	}
	const reach = 9.5
	var value float64
	if shift+1/(c.sigma*c.sigma) < 0 || shift < -2 { // 1 − φ is small
		step := stepFor(1)
		logNorm := math.Log(step) - gaussian.LogSqrt2Pi
		sum, n := 0.0, int(math.Ceil(reach/step))
		end := int(math.Ceil((reach + 1/c.sigma) / step))
		for k := -n; k <= end; k++ {
			z := step * float64(k)
			sum -= math.Exp(logNorm-0.5*z*z) * math.Expm1(-math.Exp(shift+z/c.sigma))
		}
		value = c.steps * math.Log1p(-sum)
		c.work.Add(2 * (n + end))
	} else {
		// −z²/2 − e^{shift + z/σ} is concave, with a curvature of at least 1, and largest where z = −e^{shift+z/σ}/σ.
		lo, hi := -(math.Abs(shift)+3)*c.sigma-3, 0.0
		for range 60 {
			mid := 0.5 * (lo + hi)
			if -mid-math.Exp(shift+mid/c.sigma)/c.sigma > 0 {
				lo = mid
			} else {
				hi = mid
			}
		}
		mode := lo
		step := stepFor(1 - mode/c.sigma)
		logNorm := math.Log(step) - gaussian.LogSqrt2Pi
		peak := -0.5*mode*mode - math.Exp(shift+mode/c.sigma)
		sum, n := 0.0, int(math.Ceil(reach/step))
		for k := -n; k <= n; k++ {
			z := mode + step*float64(k)
			sum += math.Exp(-0.5*z*z - math.Exp(shift+z/c.sigma) - peak)
		}
		value = c.steps * (peak + math.Log(sum) + logNorm)
		c.work.Add(4 * n)
	}
	c.logs[i] = value
	return value
}

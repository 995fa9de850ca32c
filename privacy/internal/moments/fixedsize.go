package moments

import (
	"math"

	"github.com/dpareto/dpareto/privacy/internal/logexp"
	"github.com/dpareto/dpareto/privacy/meter"
)

// FixedSize is the published bound on the Rényi divergence of
// [privacy.FixedSizeGaussian], which the accountant of Avent et al. (2020) composes (Wang, Balle and
// Kasiviswanathan, "Subsampled Rényi differential privacy and analytical moments
// accountant", 2019): with q = BatchSize/DatasetSize and for integers α >= 2
//
//	(α−1)·ρ(α) = log(1 + Σ_{j=2}^{α} C(α,j) q^j ζ_j)
//	ζ_2 = min{4(e^{1/σ²} − 1), 2e^{1/σ²}}
//	ζ_j = min{4·√(B(2⌊j/2⌋)·B(2⌈j/2⌉)), 2e^{j(j−1)/2σ²}},  B(l) = E_Q[(P/Q − 1)^l]
//
// for Q = N(0, σ²), P = N(1, σ²): termwise the smaller of the general bound
// (Theorem 9) and of the one for the Gaussian (Theorem 27). Between integers
// (α−1)·ρ(α) is interpolated linearly, from 0 at α = 1. ρ never exceeds α/2σ²,
// the bound without sampling.
type FixedSize struct {
	q, logQ float64
	invVar  float64 // 1/σ²
	moments *ratioMoments
	logZeta []float64 // logZeta[i] is log ζ_{i+2}
	work    *meter.Work
}

// CountIn counts the work of the bound in w.
func (c *FixedSize) CountIn(w *meter.Work) { c.work, c.moments.work = w, w }

// NewFixedSize returns the bound for a sampling rate and a noise multiplier.
func NewFixedSize(q, sigma float64) *FixedSize {
	return &FixedSize{
		q:       q,
		logQ:    math.Log(q),
		invVar:  1 / sigma / sigma,
		moments: newRatioMoments(sigma),
	}
}

// RDP returns ρ(order) of an order > 1.
func (c *FixedSize) RDP(order float64) float64 {
	rho, _ := c.RDPBelow(order, math.Inf(1))
	return rho
}

// RDPBelow returns ρ(order), or a lower bound of it and false as soon as it is
// known to exceed limit.
func (c *FixedSize) RDPBelow(order, limit float64) (float64, bool) {
	gaussian := 0.5 * order * c.invVar
	if c.q == 1 || gaussian == 0 || math.IsInf(gaussian, 1) {
		return gaussian, true
	}
	below := math.Floor(order)
	weight := order - below
	var cgf float64 // (α−1)·ρ
	exact := true
	if weight > 0 {
		cgf, exact = c.cgf(below+1, limit*(order-1)/weight)
		cgf *= weight
	}
	if weight < 1 && below >= 2 && exact {
		var lower float64
		lower, exact = c.cgf(below, limit*(order-1)/(1-weight))
		cgf += (1 - weight) * lower
	}
	rho := cgf / (order - 1)
	if rho >= gaussian {
		return gaussian, true
	}
	return rho, exact
}

// Numbers of terms of a sum over j.
const (
	firstCheck = 12   // where the remainder is looked at for the first time
	gaussTerms = 128  // from which the costlier bound of the remainder is tried
	mostTerms  = 4096 // after which any bound of the remainder is accepted
)

// cgf returns (α−1)·ρ(α) of the formula above for an integer alpha >= 2, or a
// lower bound of it and false as soon as it is known to exceed limit.
//
// The sum stops once the rest is too small to matter. The rest is bounded, and the bound
// added, so that the result stays an upper bound.
func (c *FixedSize) cgf(alpha, limit float64) (float64, bool) {
	if last := math.Ln2 + alpha*c.logQ + 0.5*alpha*(alpha-1)*c.invVar; last > limit && c.isGeneral(alpha) {
		return last, false
	}
	logBinomial := math.Log(0.5*alpha*(alpha-1)) + 2*c.logQ // log C(α,j)·q^j
	scale := logBinomial + c.zeta(2)
	sum, check := 1.0, firstCheck
	for j := 3; float64(j) <= alpha; j++ {
		c.work.Add(2)
		logBinomial += math.Log((alpha-float64(j)+1)/float64(j)) + c.logQ
		term := logBinomial + c.zeta(j) - scale
		if term > 300 {
			sum = sum*math.Exp(-term) + 1
			scale += term
			term = 0
		} else {
			sum += math.Exp(term)
		}
		if j < check {
			continue
		}
		check = j + j/4
		total := math.Log(sum) + scale
		if total > limit {
			return total, false
		}
		if term-math.Log(sum) > -36 {
			continue
		}
		rest := c.logRestGeneral(alpha, j, logBinomial)
		if rest-total > -36 && j >= gaussTerms {
			rest = math.Min(rest, c.logRestGaussian(alpha, j, logBinomial))
		}
		if rest-total < -36 || j >= mostTerms {
			return logexp.Log1pExp(logexp.LogAddExp(total, rest)), true
		}
	}
	return logexp.Log1pExp(math.Log(sum) + scale), true
}

// zeta returns log ζ_j.
func (c *FixedSize) zeta(j int) float64 {
	for len(c.logZeta) <= j-2 {
		c.logZeta = append(c.logZeta, c.computeZeta(len(c.logZeta)+2))
	}
	return c.logZeta[j-2]
}

func (c *FixedSize) computeZeta(j int) float64 {
	general := math.Ln2 + 0.5*float64(j)*float64(j-1)*c.invVar
	if c.isGeneral(float64(j)) {
		return general
	}
	l := j - j%2
	gaussian := c.moments.logMoment(l)
	if l != j {
		gaussian = 0.5 * (gaussian + c.moments.logMoment(l+2))
	}
	return math.Min(general, 2*math.Ln2+gaussian)
}

// isGeneral reports whether ζ_j is known to be the general bound 2e^{j(j−1)/2σ²}.
//
// B(l) is at least its largest term e^{l(l−1)/2σ²} minus the next one,
// l·e^{(l−1)(l−2)/2σ²}. Once that is 3/4 of the largest, 4·B exceeds the general
// bound.
func (c *FixedSize) isGeneral(j float64) bool {
	l := 2 * math.Floor(j/2)
	return l*math.Exp(-(l-1)*c.invVar) < 0.25
}

// logRestGeneral bounds the logarithm of Σ_{k=j+1}^{α} C(α,k) q^k ζ_k through the
// general terms e^{F(k)} = 2·C(α,k)·q^k·e^{k(k−1)/2σ²}, given log C(α,j)·q^j.
func (c *FixedSize) logRestGeneral(alpha float64, j int, logBinomial float64) float64 {
	x := float64(j)
	half := math.Floor(alpha / 2)
	if x >= half || math.Log((alpha-x)/(x+1))+c.logQ+x*c.invVar >= 0 {
		return math.Inf(1) // F still rises at j
	}
	// For k <= α/2 the second difference of F, 1/σ² − log(1+1/k) − log(1+1/(α−k)),
	// increases: F, which falls at j, can only fall and then rise. So its values
	// are at most those at the ends.
	atJ := logBinomial + 0.5*x*(x-1)*c.invVar
	atHalf := alpha*math.Ln2 + half*c.logQ + 0.5*half*(half-1)*c.invVar
	left := math.Log(half-x) + math.Max(atJ, atHalf)
	// For k = α−i, i <= α/2: k(k−1) <= α(α−1) − i(3α/2 − 1), then the binomial theorem.
	right := alpha*c.logQ + 0.5*alpha*(alpha-1)*c.invVar +
		alpha*logexp.Log1pExp(-0.5*(1.5*alpha-1)*c.invVar-c.logQ)
	return math.Ln2 + logexp.LogAddExp(left, right)
}

// logRestGaussian bounds the same sum through the moments. With y = |P/Q − 1|
// and any r > 0, √(B(k−1)·B(k+1)) <= E[y^k·(r/y + y/r)/2] and 1 <= (r/y + y/r)/2, so
//
//	rest <= 4·C(α,j+1) q^{j+1} E[y^{j+1} (1 + q·y)^{α−j−1} (r/y + y/r)/2]
//
// The expectation is a sum over the at most three humps of its integrand. Twice
// that sum is returned, which covers the error of a coarse rule.
func (c *FixedSize) logRestGaussian(alpha float64, j int, logBinomial float64) float64 {
	const step = 0.25
	k := float64(j + 1)
	rest := alpha - k
	z := c.moments.z
	l := j - j%2
	logR := 0.5 * (c.moments.logMoment(l+2) - c.moments.logMoment(l))
	integrand := func(s float64) float64 {
		logY := logexp.LogAbsExpm1(s/z - 0.5*c.invVar)
		if math.IsInf(logY, -1) {
			return logY
		}
		return k*logY + rest*logexp.Log1pExp(c.logQ+logY) +
			logexp.LogAddExp(logR-logY, logY-logR) - math.Ln2 - 0.5*s*s
	}
	// Up to the last factor, which varies slowly, the rightmost peak solves
	// s = (k·e^t/(e^t−1) + rest·q·e^t/(1+q·y))/z. Iterating from above finds it.
	far := alpha/z + 1
	for range 64 {
		t := far/z - 0.5*c.invVar
		if t <= 0 {
			break
		}
		next := (k/-math.Expm1(-t) + rest/(1+(1-c.q)/c.q*math.Exp(-t))) / z
		if math.Abs(next-far) < step {
			break
		}
		far = next
	}
	zero := 0.5 / z
	near := math.Sqrt(k)
	total := math.Inf(-1)
	for _, start := range []float64{-near, zero + math.Max(near, k/z), far} {
		total = logexp.LogAddExp(total, logHump(integrand, start, step))
	}
	logNext := logBinomial + math.Log((alpha-float64(j))/k) + c.logQ
	return logNext + 2*math.Ln2 + total + math.Log(2*step) - 0.5*math.Log(2*math.Pi)
}

// logHump returns the logarithm of the sum of e^f over the points of the grid
// through start around the local maximum uphill from it.
func logHump(f func(float64) float64, start, step float64) float64 {
	peak, at := f(start), start
	for _, dir := range []float64{step, -step} {
		for {
			v := f(at + dir)
			if !(v > peak) {
				break
			}
			peak, at = v, at+dir
		}
	}
	sum := 1.0
	for _, dir := range []float64{step, -step} {
		for s := at + dir; ; s += dir {
			v := f(s) - peak
			sum += math.Exp(v)
			if v < negligible || s == s+dir {
				break
			}
		}
	}
	return peak + math.Log(sum)
}

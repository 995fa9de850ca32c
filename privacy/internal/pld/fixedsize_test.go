package pld

import (
	"math"
	"math/big"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/privacy/privacytest"
)

// pairBits is the precision of the divergence in multi-precision, which cancels up to some 100 bits.
const pairBits = 512

func pairFloat(x float64) *big.Float { return new(big.Float).SetPrec(pairBits).SetFloat64(x) }

func product(x, y *big.Float) *big.Float { return new(big.Float).SetPrec(pairBits).Mul(x, y) }

// pairExp returns e^x by Taylor's series after halving x.
func pairExp(x *big.Float) *big.Float {
	halvings := 16 + max(0, x.MantExp(nil))
	y := new(big.Float).SetPrec(pairBits).SetMantExp(x, -halvings)
	sum, term := pairFloat(1), pairFloat(1)
	for k := 1; k < 60; k++ {
		term.Mul(term, y)
		term.Quo(term, pairFloat(float64(k)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// pairPower returns x^n for n >= 0.
func pairPower(x *big.Float, n int) *big.Float {
	result, square := pairFloat(1), new(big.Float).Copy(x)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			result.Mul(result, square)
		}
		square.Mul(square, square)
	}
	return result
}

// pairPi returns π by Machin's formula.
func pairPi() *big.Float {
	arctan := func(inverse float64) *big.Float {
		sum, power := pairFloat(0), new(big.Float).SetPrec(pairBits).Quo(pairFloat(1), pairFloat(inverse))
		for k := range 400 {
			term := new(big.Float).SetPrec(pairBits).Quo(power, pairFloat(float64(2*k+1)))
			if k%2 == 1 {
				term.Neg(term)
			}
			sum.Add(sum, term)
			power.Quo(power, pairFloat(inverse*inverse))
		}
		return sum
	}
	pi := product(pairFloat(16), arctan(5))
	return pi.Sub(pi, product(pairFloat(4), arctan(239)))
}

// pairNormal returns Φ(x) by its series, with an error below 1e-80.
func pairNormal(x, sqrt2Pi *big.Float) *big.Float {
	if at, _ := x.Float64(); at > 20 {
		return pairFloat(1)
	}
	sum, term, squared := new(big.Float).Copy(x), new(big.Float).Copy(x), product(x, x)
	for k := 1; k < 1500; k++ { // Σ (−1)^k·x^{2k+1}/(2^k·k!·(2k+1))
		term.Mul(term, squared)
		term.Quo(term, pairFloat(-2*float64(k)))
		sum.Add(sum, new(big.Float).SetPrec(pairBits).Quo(term, pairFloat(float64(2*k+1))))
	}
	sum.Quo(sum, sqrt2Pi)
	return sum.Add(sum, pairFloat(0.5))
}

// pairDivergence returns the divergence of the pair of fixed-size lots at an integer order α:
//
//	(α−1)·ρ = log(1 + ∫_{x>1/2} Q(x)·[v^α − αv + α−1 + v^{1−α} − 1 + (α−1)(v − 1)] dx),  v = 1 − q + q·e^{(2x−1)/2σ²}.
//
// The power α is a binomial sum of normal distribution functions. The rest is integrated by the trapezoidal rule after
// x = 1/2 + e^{u − e^{−u}}, at steps of u.
func pairDivergence(q, sigma float64, alpha int, step float64) float64 {
	z, rest := pairFloat(sigma), new(big.Float).Sub(pairFloat(1), pairFloat(q))
	variance := product(z, z)
	inverse := new(big.Float).SetPrec(pairBits).Quo(pairFloat(1), variance)
	sqrt2Pi := new(big.Float).SetPrec(pairBits).Sqrt(product(pairFloat(2), pairPi()))
	above := func(j int) *big.Float { // ∫_{x>1/2} Q·e^{jt} without e^{j(j−1)/2σ²}
		return pairNormal(new(big.Float).SetPrec(pairBits).Quo(pairFloat(float64(j)-0.5), z), sqrt2Pi)
	}
	c := pairFloat(float64(alpha - 1))

	sum := pairFloat(0)
	term := pairPower(rest, alpha)
	odds := new(big.Float).SetPrec(pairBits).Quo(pairFloat(q), rest)
	growth, grown := pairExp(inverse), pairFloat(1) // e^{1/σ²}, e^{j/σ²}
	for j := 0; j <= alpha; j++ {
		sum.Add(sum, product(term, above(j)))
		term = product(product(term, odds), grown)
		term.Mul(term, pairFloat(float64(alpha-j)))
		term.Quo(term, pairFloat(float64(j+1)))
		grown = product(grown, growth)
	}
	v := product(rest, above(0))
	v.Add(v, product(pairFloat(q), above(1)))
	sum.Sub(sum, product(pairFloat(float64(alpha)), v))
	sum.Add(sum, product(c, above(0)))

	integral := pairFloat(0)
	for k := -int(6 / step); float64(k)*step < math.Log(16*sigma); k++ {
		u := pairFloat(float64(k) * step)
		turn := pairExp(new(big.Float).Neg(u)) // e^{−u}
		distance := pairExp(new(big.Float).Sub(u, turn))
		x := new(big.Float).Add(pairFloat(0.5), distance)
		density := product(product(x, x), inverse)
		density = pairExp(density.Mul(density, pairFloat(-0.5)))
		w := pairExp(product(distance, inverse))
		w.Sub(w, pairFloat(1))
		w.Mul(w, pairFloat(q))
		value := new(big.Float).SetPrec(pairBits).Quo(pairFloat(1), pairPower(new(big.Float).Add(w, pairFloat(1)), alpha-1))
		value.Sub(value, pairFloat(1))
		value.Add(value, product(c, w))
		slope := product(distance, turn.Add(turn, pairFloat(1)))
		integral.Add(integral, product(product(value, density), slope))
	}
	integral.Mul(integral, pairFloat(step))
	integral.Quo(integral, product(sqrt2Pi, z))
	sum.Add(sum, integral)
	if s, _ := sum.Float64(); s < 0.5 {
		return math.Log1p(s) / float64(alpha-1)
	}
	return privacytest.BigLog(sum.Add(sum, pairFloat(1))) / float64(alpha-1)
}

// TestQuadratureErrorIsSmall: the computed bound of the error of the quadrature stays below 1e-9 of the divergence where
// the bound without sampling is not smaller anyway.
func TestQuadratureErrorIsSmall(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 16))
	worst := 0.0
	for range privacytest.Few(150, 800) {
		q := 1e-6 * float64(1+rng.Int64N(int64(math.Exp(1+12.8*rng.Float64()))))
		sigma := math.Exp(rng.Float64()*6 - 1)
		order := 1 + math.Exp(rng.Float64()*13-3)
		c := NewFixedSizeRenyi(q, sigma)
		rho := c.pairRenyi.RDP(order)
		if !(rho < c.unsampled*order) {
			continue
		}
		excess := c.quadrature(order)/rho - 1
		worst = math.Max(worst, excess)
		if !(excess > 0 && excess < 1e-9) {
			t.Errorf("q = %g, σ = %g, order %g: divergence %g, error %g of it", q, sigma, order, rho, excess)
		}
	}
	t.Logf("at most %g", worst)
}

// TestFixedSizeDivergenceMatchesMultiPrecision: the divergence is at most 1e-9 of itself above what
// multi-precision gives, and not below.
func TestFixedSizeDivergenceMatchesMultiPrecision(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 4))
	for i := range privacytest.Few(3, 8) {
		sigma := math.Exp(rng.Float64()*5 - 1)
		q := 1e-6 * float64(1+rng.Int64N(int64(math.Exp(1+12.5*rng.Float64()))))
		alpha := 2 + int(math.Exp(rng.Float64()*9.7))
		if i == 0 {
			alpha = 1 << 14
		}
		want := pairDivergence(q, sigma, alpha, 0.02)
		if want >= 0.5*float64(alpha)/sigma/sigma { // what the bound without sampling gives
			continue
		}
		got := NewFixedSizeRenyi(q, sigma).RDP(float64(alpha))
		t.Logf("q = %g, σ = %g, order %d: %.17g, %.3g of it above", q, sigma, alpha, want, got/want-1)
		if got < want || got > want*(1+1e-9) {
			t.Errorf("q = %g, σ = %g, order %d: %.17g, want %.17g", q, sigma, alpha, got, want)
		}
	}
	if coarse, fine := pairDivergence(0.01, 2, 30, 0.04), pairDivergence(0.01, 2, 30, 0.02); privacytest.RelErr(coarse, fine) > 1e-13 {
		t.Errorf("the reference is %.17g and %.17g", coarse, fine)
	}
}

// TestEllipsesBoundIntegrands: the integrands of both branches, in complex arithmetic, are at most what the ellipses
// around the panels say, and the bound for a panel is the least of them.
func TestEllipsesBoundIntegrands(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 3))
	closest := math.Inf(1)
	for range 300 {
		p := FixedSize(math.Exp(-9*rng.Float64()), math.Exp(4*rng.Float64()-1))
		n, ok := p.Nodes(math.Exp(5*rng.Float64()), math.Inf(1), 0)
		if !ok {
			t.Fatal(p)
		}
		c, s := math.Exp(7*rng.Float64()-3), n.spans[rng.IntN(len(n.spans))]
		total := math.Inf(1)
		half := 0.5 * (s.hi - s.lo)
		for _, rho := range errorEllipses {
			e := p.ellipseAround(s, rho)
			constant := math.Log(half*64/15) + (2-2*16)*math.Log(rho) - math.Log(1-1/rho/rho) // of the rule's error
			largest := e.factor + e.logLargest(c) - constant
			total = math.Min(total, largest+constant)
			for k := range 60 { // on the rectangle around the ellipse, which they are for
				a, b := float64(k%20)/9.5-1, 0.5*float64(k/20)
				x := complex(0.5*(s.lo+s.hi)+0.5*half*(rho+1/rho)*a, 0.5*half*(rho-1/rho)*b)
				v := 1 + complex(p.q, 0)*(cmplx.Exp((x-0.5)/complex(p.z*p.z, 0))-1)
				f := cmplx.Pow(v, complex(-c, 0)) - 1 + complex(c, 0)*(v-1)
				if s.sign > 0 {
					f = cmplx.Pow(v, complex(c+1, 0)) - complex(c+1, 0)*v + complex(c, 0)
				}
				rounding := 1e-12 * (cmplx.Abs(v)*(c+1) + 1)
				got := math.Log(cmplx.Abs(f)-rounding) + real(-x*x/complex(2*p.z*p.z, 0)) - math.Log(p.z*math.Sqrt(2*math.Pi))
				if math.IsInf(got, 1) { // beyond the range of floats
					continue
				}
				if got > largest+1e-9 {
					t.Errorf("%+v, order %g, panel %+v, ρ = %g: %g, bound %g", p, c+1, s, rho, got, largest)
				}
				if !math.IsNaN(got) {
					closest = math.Min(closest, largest-got)
				}
			}
		}
		if got := p.logPanelError(s, new([]ellipse), c, math.Inf(-1)); math.Abs(got-total) > 1e-9 {
			t.Errorf("%+v, order %g, panel %+v: the bound is %g, want %g", p, c+1, s, got, total)
		}
	}
	if !(closest < 1) {
		t.Errorf("the bounds are e^%g above the largest values or more", closest)
	}
}

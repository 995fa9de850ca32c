package acquisition

import "math"

const (
	logSqrt2Pi  = 0.91893853320467274178 // ln √(2π)
	sqrtHalfPi  = 1.2533141373155002512  // √(π/2)
	invSqrtPi   = 0.56418958354775628695 // 1/√π
	invSqrt2Pi  = 0.39894228040143267794 // 1/√(2π)
	minusSeries = -18                    // below it the series of densityExcess is the better form
)

// erfcx is the scaled complementary error function exp(x²) erfc(x), to 3e-16:
// two rational functions that interpolate it at Chebyshev nodes, one in x up to
// 3 and one in 1/x² beyond.
func erfcx(x float64) float64 {
	switch {
	case x < 0:
		return 2*math.Exp(x*x) - erfcx(-x)
	case x < 3:
		p := ((((((((5.65908365783463838e-11*x+0.000341111861421406887)*x+0.00571077119804241553)*x+
			0.0446620060487878668)*x+0.210395916515203921)*x+0.644803110283203154)*x+
			1.29516474598305073)*x+1.60263183585129039)*x + 0.999999999999999866)
		q := ((((((((0.000604609451304576025*x+0.0101219834760919276)*x+0.0794649742476944423)*x+
			0.377964550997221656)*x+1.18226938140995361)*x+2.47633384167516317)*x+
			3.37678066681771592)*x+2.73101100294677676)*x + 1)
		return p / q
	default:
		w := 1 / (x * x)
		p := ((((((52.2851348590918229*w+726.295606867880073)*w+1431.52547444002298)*w+
			919.814632502483468)*w+241.008134044491408)*w+26.4860073666535112)*w + 0.99999999999999996)
		q := ((((((191.599361658076903*w+1182.9757760480242)*w+1799.41123464480667)*w+
			1028.32569582675256)*w+253.751137727884703)*w+26.9860073666533866)*w + 1)
		return invSqrtPi / x * (p / q)
	}
}

// mills is Φ(u)/φ(u), the Mills ratio of -u. It overflows from u = 38 on.
func mills(u float64) float64 { return sqrtHalfPi * erfcx(-u/math.Sqrt2) }

// densityExcess is H(u)/φ(u) = 1 + uΦ(u)/φ(u), with H of logH, given mills(u).
// It is the derivative of mills, falls like 1/u² to the left and cancels there.
func densityExcess(u, mills float64) float64 {
	if u > minusSeries {
		return 1 + u*mills
	}
	// Σ (-1)^k (2k+1)!! / u^(2k+2), the next term being below 2e-14 of the first.
	w := 1 / (u * u)
	return w * (1 - 3*w*(1-5*w*(1-7*w*(1-9*w*(1-11*w*(1-13*w*(1-15*w*(1-17*w))))))))
}

// logPhi is ln Φ(u), Φ being the standard Gaussian distribution function.
func logPhi(u float64) float64 {
	switch {
	case u > 0:
		return math.Log1p(-math.Erfc(u/math.Sqrt2) / 2)
	case u > -1:
		return math.Log(math.Erfc(-u/math.Sqrt2) / 2)
	case math.IsInf(u, -1):
		return u
	default:
		return math.Log(mills(u)) - u*u/2 - logSqrt2Pi
	}
}

// logH is ln H(u) of H(u) = φ(u) + uΦ(u), the expected shortfall of a standard
// Gaussian below u, after Ament et al., "Unexpected Improvements to Expected
// Improvement for Bayesian Optimization", NeurIPS 2023. With it come Φ(u)/H(u)
// and φ(u)/H(u), the derivatives of ln ψ that it stands for.
func logH(u float64) (value, distribution, density float64) {
	if u > 0 {
		phi := math.Exp(-u*u/2) * invSqrt2Pi
		cdf := 1 - phi*mills(-u)
		h := phi + u*cdf
		return math.Log(h), cdf / h, phi / h
	}
	r := mills(u)
	h := densityExcess(u, r)
	return math.Log(h) - u*u/2 - logSqrt2Pi, r / h, 1 / h
}

// log1mexp is ln(1 - exp(-x)) for x >= 0, without loss at either end (Mächler,
// "Accurately computing log(1 - exp(-|a|))", 2012).
func log1mexp(x float64) float64 {
	if x < math.Ln2 {
		return math.Log(-math.Expm1(-x))
	}
	return math.Log1p(-math.Exp(-x))
}

// logSum is a running sum Σ exp(terms) = scale·exp(largest).
type logSum struct{ largest, scale float64 }

func newLogSum() logSum { return logSum{largest: math.Inf(-1)} }

// add adds exp(term). What was summed before in units of exp(largest) must be
// multiplied by decay, and what belongs to the new term by weight.
func (s *logSum) add(term float64) (decay, weight float64) {
	switch {
	case math.IsInf(term, -1):
		return 1, 0
	case term <= s.largest:
		weight = math.Exp(term - s.largest)
		s.scale += weight
		return 1, weight
	default:
		decay = math.Exp(s.largest - term)
		s.largest, s.scale = term, s.scale*decay+1
		return decay, 1
	}
}

// value returns ln Σ, -Inf if nothing was added.
func (s *logSum) value() float64 { return s.largest + math.Log(s.scale) }

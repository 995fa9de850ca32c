package surrogate

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// problem is the estimation of hyperparameters in standardised units. The
// unknowns are
//
//	θ = (log s_f², log ℓ_1, …, log ℓ_g, log σ_n², b_1, …, b_d, log λ, log σ_r²),
//
// where those that are not fitted are absent, and g <= d if length scales are
// tied.
type problem struct {
	kernel Kernel
	prior  LogNormalPrior
	units  standardisation

	n, d     int
	scales   int       // g, number of length scales
	ties     []int     // d, length scale of each input
	y        []float64 // n, standardised
	squares  []float64 // n(n−1)/2 × g row-major, Σ (x_ij − x_i'j)² of the pairs i > i', over the inputs of a length scale
	known    []float64 // n, known noise variances, standardised
	runs     []float64 // n
	centred  []float64 // n×d row-major, x_ij − ½, or nil without slopes
	sharings []sharing // pairs with common noise, or nil without decay

	fixed float64 // σ_n², units of Y², if it is not fitted
	decay float64 // λ, if it is not fitted

	limit float64 // log of Options.MaxNoise, standardised, +Inf without

	noiseAt, slopesAt, decayAt, runAt int       // places in θ, −1 if absent
	lower, upper                      []float64 // bounds of θ
}

func newProblem(kernel Kernel, prior LogNormalPrior, obs Observations, units standardisation, o Options) *problem {
	n, d := len(obs.X), len(obs.X[0])
	p := &problem{
		kernel:   kernel,
		prior:    prior,
		units:    units,
		n:        n,
		d:        d,
		y:        make([]float64, n),
		known:    make([]float64, n),
		runs:     obs.Runs,
		decay:    1,
		noiseAt:  -1,
		slopesAt: -1,
		decayAt:  -1,
		runAt:    -1,
		limit:    math.Inf(1),
	}
	if o.MaxNoise > 0 {
		p.limit = math.Log(o.MaxNoise) - 2*math.Log(units.scale)
	}
	p.scales, p.ties = ties(o, d)
	p.squares = make([]float64, n*(n-1)/2*p.scales)
	next := p.squares
	for i, x := range obs.X {
		p.y[i] = (obs.Y[i] - units.mean) / units.scale
		for _, other := range obs.X[:i] {
			for j, v := range x {
				diff := v - other[j]
				next[p.ties[j]] += diff * diff
			}
			next = next[p.scales:]
		}
	}
	for i, v := range obs.NoiseVariance {
		p.known[i] = v / units.scale / units.scale
	}
	p.bound(math.Log(MinSignalVariance), math.Log(MaxSignalVariance))
	longest := math.Log(MaxLengthScale)
	if o.FixedNoise != nil {
		longest = math.Log(MaxFixedNoiseLengthScale)
	}
	for range p.scales {
		p.bound(math.Log(MinLengthScale), longest)
	}
	if o.FixedNoise != nil {
		p.fixed = *o.FixedNoise
	} else {
		p.noiseAt = p.bound(math.Log(MinNoiseVariance), math.Log(MaxNoiseVariance))
		if o.NoiseSlopes && d > 0 {
			p.slopesAt = len(p.lower)
			for range d {
				p.bound(MinNoiseSlope, MaxNoiseSlope)
			}
			for _, x := range obs.X {
				for _, v := range x {
					p.centred = append(p.centred, centred(v))
				}
			}
		}
	}
	if o.Start != nil && o.Start.NoiseDecay > 0 {
		p.decay = o.Start.NoiseDecay
	}
	if p.noiseAt >= 0 || p.fixed > 0 || o.MaxRunVariance > 0 {
		p.sharings = sharings(obs)
	}
	if len(p.sharings) > 0 && (p.noiseAt >= 0 || p.fixed > 0) {
		p.decayAt = p.bound(math.Log(MinNoiseDecay), math.Log(MaxNoiseDecay))
	}
	if len(p.sharings) > 0 && o.MaxRunVariance > 0 {
		limit := math.Log(o.MaxRunVariance) - 2*math.Log(units.scale)
		p.runAt = p.bound(min(math.Log(MinRunVariance), limit), limit)
	}
	return p
}

// ties returns the number of length scales, and for each of d inputs the index of its length scale.
func ties(o Options, d int) (scales int, ties []int) {
	if o.Tied != nil {
		return slices.Max(append([]int{-1}, o.Tied...)) + 1, o.Tied
	}
	ties = make([]int, d)
	for j := range ties {
		ties[j] = j
	}
	return d, ties
}

// bound adds an unknown with the given bounds to θ and returns its place.
func (p *problem) bound(lower, upper float64) int {
	p.lower, p.upper = append(p.lower, lower), append(p.upper, upper)
	return len(p.lower) - 1
}

// logs returns θ for hyperparameters in units of Y. The result may be out of
// bounds, and is −Inf for a noise variance of 0. Tied length scales that differ
// are replaced by their geometric mean. Parts of the noise that h does
// not have are taken from the typical point.
func (p *problem) logs(h Hyperparameters) []float64 {
	unit := 2 * math.Log(p.units.scale)
	theta := p.typical()
	theta[0] = math.Log(h.SignalVariance) - unit
	lengths := theta[1 : 1+p.scales]
	clear(lengths)
	inputs := make([]float64, p.scales)
	for j, l := range h.LengthScales {
		lengths[p.ties[j]] += math.Log(l)
		inputs[p.ties[j]]++
	}
	floats.Div(lengths, inputs)
	if p.noiseAt >= 0 {
		theta[p.noiseAt] = math.Log(h.NoiseVariance) - unit
	}
	if p.slopesAt >= 0 {
		copy(theta[p.slopesAt:], h.NoiseSlopes)
	}
	if p.decayAt >= 0 && h.NoiseDecay > 0 {
		theta[p.decayAt] = math.Log(h.NoiseDecay)
	}
	if p.runAt >= 0 && h.RunVariance > 0 {
		theta[p.runAt] = math.Log(h.RunVariance) - unit
	}
	return theta
}

// hyperparameters is the inverse of logs, with the mean that is best at theta; it
// must be a point at which the posterior density can be computed.
func (p *problem) hyperparameters(theta []float64) (Hyperparameters, error) {
	density := newLogPosterior(p)
	if _, err := density.Value(theta); err != nil {
		return Hyperparameters{}, err
	}
	unit := p.units.scale * p.units.scale
	h := Hyperparameters{
		Mean:           p.units.mean + p.units.scale*density.mean,
		SignalVariance: math.Exp(theta[0]) * unit,
		LengthScales:   make([]float64, p.d),
		NoiseVariance:  p.fixed,
		NoiseDecay:     p.decay,
	}
	for j := range h.LengthScales {
		h.LengthScales[j] = math.Exp(theta[1+p.ties[j]])
	}
	if p.noiseAt >= 0 {
		h.NoiseVariance = math.Exp(theta[p.noiseAt]) * unit
	}
	if p.slopesAt >= 0 {
		h.NoiseSlopes = append(h.NoiseSlopes, theta[p.slopesAt:p.slopesAt+p.d]...)
	}
	if p.decayAt >= 0 {
		h.NoiseDecay = math.Exp(theta[p.decayAt])
	}
	if p.runAt >= 0 {
		h.RunVariance = math.Exp(theta[p.runAt]) * unit
	}
	return h, nil
}

// typical returns a starting point at the mode of the default prior.
func (p *problem) typical() []float64 {
	prior := DefaultPrior(p.scales)
	theta := make([]float64, len(p.lower))
	theta[0] = prior.Signal.Mean
	for j := range p.scales {
		theta[1+j] = prior.Length.Mean
	}
	if p.noiseAt >= 0 {
		theta[p.noiseAt] = prior.Noise.Mean
	}
	if p.runAt >= 0 {
		theta[p.runAt] = min(prior.Run.Mean, p.upper[p.runAt])
	}
	// The typical slopes and the logarithm of the typical decay are 0.
	return theta
}

// random returns a starting point drawn log-uniformly from the plausible
// middle of the bounds.
func (p *problem) random(rng *rand.Rand) []float64 {
	draw := func(low, high float64) float64 {
		return math.Log(low) + rng.Float64()*math.Log(high/low)
	}
	theta := make([]float64, len(p.lower))
	theta[0] = draw(0.2, 5)
	for j := range p.scales {
		theta[1+j] = draw(0.1, 4)
	}
	if p.noiseAt >= 0 {
		theta[p.noiseAt] = draw(1e-4, 0.5)
	}
	if p.slopesAt >= 0 {
		for j := range p.d {
			theta[p.slopesAt+j] = 4*rng.Float64() - 2
		}
	}
	if p.decayAt >= 0 {
		theta[p.decayAt] = draw(0.2, 5)
	}
	if p.runAt >= 0 {
		theta[p.runAt] = min(draw(1e-4, 0.1), p.upper[p.runAt])
	}
	return theta
}

// logPrior returns the logarithm of the prior density at θ and, unless grad is
// nil, subtracts its gradient from grad.
func (p *problem) logPrior(theta, grad []float64) float64 {
	var sum float64
	add := func(first, count int, density func(float64) (float64, float64)) {
		for k := first; k < first+count; k++ {
			logDensity, slope := density(theta[k])
			sum += logDensity
			if grad != nil {
				grad[k] -= slope
			}
		}
	}
	add(0, 1, p.prior.Signal.LogDensity)
	add(1, p.scales, p.prior.Length.LogDensity)
	sum += p.logNoisePrior(theta, grad)
	if p.slopesAt >= 0 {
		add(p.slopesAt, p.d, p.prior.Slope.LogDensity)
	}
	if p.decayAt >= 0 {
		add(p.decayAt, 1, p.prior.Decay.LogDensity)
	}
	return sum
}

// excessPrecision is the precision of the logarithm of a learned noise variance beyond its limit, for
// each observation. It leaves it 15 % or so.
const excessPrecision = 50

// logNoisePrior is the part of logPrior that the learned noise variances have. Their level
// counts on average over the observations: where they change over the space, the one at the
// centre could be small and the noise explain everything near some corner. The limit holds at
// every observation.
func (p *problem) logNoisePrior(theta, grad []float64) float64 {
	if p.noiseAt < 0 && p.runAt < 0 {
		return 0
	}
	var slopes, mean []float64 // of the factor of the variances, and of that times the inputs
	average, factors := 1.0, []float64(nil)
	if p.slopesAt >= 0 {
		slopes, mean = theta[p.slopesAt:p.slopesAt+p.d], make([]float64, p.d)
		average, factors = 0, make([]float64, p.n)
		for i := range p.n {
			row := p.centred[i*p.d : (i+1)*p.d]
			factors[i] = math.Exp(blas64.Dot(vector(slopes), vector(row)))
			average += factors[i] / float64(p.n)
			blas64.Axpy(factors[i]/float64(p.n), vector(row), vector(mean))
		}
	}
	var sum float64
	level := func(at int, density func(float64) (float64, float64)) {
		if at < 0 {
			return
		}
		logDensity, slope := density(theta[at] + math.Log(average))
		sum += logDensity
		if grad != nil {
			grad[at] -= slope
			for j, m := range mean {
				grad[p.slopesAt+j] -= slope * m / average
			}
		}
	}
	level(p.noiseAt, p.prior.Noise.LogDensity)
	level(p.runAt, p.prior.Run.LogDensity)
	if math.IsInf(p.limit, 1) {
		return sum
	}
	fading, run := p.levels(theta)
	for i := range p.n {
		excess := math.Log(fading+run) - p.limit
		if factors != nil {
			excess += math.Log(factors[i])
		}
		if excess <= 0 {
			continue
		}
		sum -= excessPrecision * excess * excess / 2
		if grad == nil {
			continue
		}
		slope := excessPrecision * excess
		if p.noiseAt >= 0 {
			grad[p.noiseAt] += slope * fading / (fading + run)
		}
		if p.runAt >= 0 {
			grad[p.runAt] += slope * run / (fading + run)
		}
		if p.slopesAt >= 0 {
			blas64.Axpy(slope, vector(p.centred[i*p.d:(i+1)*p.d]), vector(grad[p.slopesAt:p.slopesAt+p.d]))
		}
	}
	return sum
}

// levels returns σ_n² and σ_r² at θ, standardised.
func (p *problem) levels(theta []float64) (fading, run float64) {
	fading = p.fixed / p.units.scale / p.units.scale
	if p.noiseAt >= 0 {
		fading = math.Exp(theta[p.noiseAt])
	}
	if p.runAt >= 0 {
		run = math.Exp(theta[p.runAt])
	}
	return fading, run
}

// logPosterior evaluates the negative logarithm of the marginal likelihood
// times the prior. It reuses its memory and is not safe for concurrent use.
type logPosterior struct {
	*problem
	theta      []float64        // the point of the last value
	inverses   []float64        // g, 1/ℓ² at theta
	learned    []float64        // n, learned noise variances
	fading     float64          // share of the learned noise that is σ_n²
	shared     []float64        // noise covariances of the pairs in sharings, learned with σ_n²
	alike      []float64        // and with σ_r²
	mean       float64          // of the prior, standardised
	residual   []float64        // n, y − mean
	ones       []float64        // n, L⁻¹1
	alpha      []float64        // n, L⁻¹residual, then K⁻¹residual
	derivative []float64        // n(n−1)/2, dk/d(r²) of the pairs i > j
	square     blas64.Symmetric // n×n, K, then its factor L, then K⁻¹, in the lower triangle
	factor     lower            // the same memory
	jitter     float64
}

func newLogPosterior(p *problem) *logPosterior {
	square := blas64.Symmetric{Uplo: blas.Lower, N: p.n, Stride: max(1, p.n), Data: make([]float64, p.n*p.n)}
	return &logPosterior{
		problem:    p,
		theta:      make([]float64, len(p.lower)),
		inverses:   make([]float64, p.scales),
		learned:    make([]float64, p.n),
		shared:     make([]float64, len(p.sharings)),
		alike:      make([]float64, len(p.sharings)),
		residual:   make([]float64, p.n),
		ones:       make([]float64, p.n),
		alpha:      make([]float64, p.n),
		derivative: make([]float64, p.n*(p.n-1)/2),
		square:     square,
		factor:     lowerOf(square),
	}
}

// setNoise computes the learned noise at theta.
func (f *logPosterior) setNoise() {
	fading, run := f.levels(f.theta)
	if f.fading = 1; run > 0 {
		f.fading = fading / (fading + run)
	}
	for i := range f.learned {
		f.learned[i] = fading + run
		if f.slopesAt >= 0 {
			slopes := f.theta[f.slopesAt : f.slopesAt+f.d]
			f.learned[i] *= math.Exp(blas64.Dot(vector(slopes), vector(f.centred[i*f.d:(i+1)*f.d])))
		}
		if f.runs != nil {
			f.learned[i] /= f.runs[i]
		}
	}
	for k, s := range f.sharings {
		learned := math.Sqrt(f.learned[s.i] * f.learned[s.j])
		f.alike[k] = (1 - f.fading) * learned
		if f.decayAt >= 0 {
			f.shared[k] = f.fading * learned * math.Exp(-s.distance/math.Exp(f.theta[f.decayAt]))
		}
	}
}

// Value returns −log p(y|θ) − log p(θ), or an error wrapping
// ErrNotPositiveDefinite.
func (f *logPosterior) Value(theta []float64) (float64, error) {
	copy(f.theta, theta)
	signal := math.Exp(theta[0])
	for j := range f.inverses {
		f.inverses[j] = math.Exp(-2 * theta[1+j])
	}
	f.setNoise()

	var err error
	f.jitter, err = factorise(f.factor, signal, 0, func() {
		pair := 0
		for i, row := range f.factor.rows {
			for j := range i {
				var r2 float64
				for p, square := range f.squares[pair*f.scales : (pair+1)*f.scales] {
					r2 += f.inverses[p] * square
				}
				k, dk := f.kernel.Correlation(r2)
				row[j] = signal * k
				f.derivative[pair] = signal * dk
				pair++
			}
			row[i] = signal + f.learned[i] + f.known[i]
		}
		for k, s := range f.sharings {
			f.factor.rows[s.i][s.j] += f.shared[k] + f.alike[k]
		}
	})
	if err != nil {
		return 0, err
	}
	copy(f.alpha, f.y)
	f.factor.rows.solve(blas.NoTrans, f.alpha)
	f.setMean()
	return f.mean*f.mean/2 - logLikelihood(f.factor.rows, f.alpha) - f.logPrior(theta, nil), nil
}

// setMean estimates the mean by generalised least squares, with a standard normal
// prior, and takes it out of alpha. Since it maximises the posterior density given
// the rest, its own dependence on θ does not enter the gradient.
func (f *logPosterior) setMean() {
	for i := range f.ones {
		f.ones[i] = 1
	}
	ones := vector(f.ones)
	f.factor.rows.solve(blas.NoTrans, f.ones)
	f.mean = blas64.Dot(ones, vector(f.alpha)) / (blas64.Dot(ones, ones) + 1)
	blas64.Axpy(-f.mean, ones, vector(f.alpha))
	for i, y := range f.y {
		f.residual[i] = y - f.mean
	}
}

// Gradient stores the gradient at the point of the last value, for which it
// may be called once. With M = K⁻¹ − ααᵀ and α = K⁻¹y,
//
//	−∂log p(y|θ)/∂θ_j = ½ tr(M ∂K/∂θ_j),
//
// see Rasmussen and Williams, Gaussian Processes for Machine Learning, MIT
// Press 2006, equation 5.9.
func (f *logPosterior) Gradient(grad []float64) {
	f.factor.rows.solve(blas.Trans, f.alpha)
	lapack64.Potri(blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: f.n, Data: f.square.Data, Stride: f.square.Stride})
	clear(grad)

	// ∂k/∂log ℓ_p = −2 k'(r²) Σ(x_i − x_j)²/ℓ_p² over the inputs with ℓ_p, and each
	// pair counts twice.
	lengths := grad[1 : 1+f.scales]
	pair := 0
	for i, row := range f.factor.rows {
		a := f.alpha[i]
		for j, inverse := range row[:i] {
			weight := (inverse - a*f.alpha[j]) * f.derivative[pair]
			for p, square := range f.squares[pair*f.scales : (pair+1)*f.scales] {
				lengths[p] += weight * square
			}
			pair++
		}
	}
	for p := range lengths {
		lengths[p] *= -2 * f.inverses[p]
	}

	// K = S + N with the noise N, so that tr(MS) = tr(MK) − tr(MN), and
	// tr(MK) = n − yᵀα. The jitter is a multiple of s_f² and so belongs to S.
	noiseTrace := f.noiseGradient(grad)
	grad[0] = (float64(f.n) - blas64.Dot(vector(f.residual), vector(f.alpha)) - noiseTrace) / 2
	f.logPrior(f.theta, grad)
}

// noiseGradient adds to grad the derivatives with respect to the noise, and
// returns tr(MN). It needs K⁻¹ and α.
//
// The covariance N_ij of one run's noise is the sum of a part with σ_n², which is its derivative with
// respect to log σ_n², and of one with σ_r². It has ∂N_ij/∂b_p = N_ij (u_ip + u_jp)/2 with u = x − ½,
// and the first part F_ij has ∂F_ij/∂log λ = F_ij |p_i − p_j|/λ.
func (f *logPosterior) noiseGradient(grad []float64) (trace float64) {
	add := func(i, j int, fading, alike float64) {
		weight := fading + alike
		trace += 2 * weight
		if f.noiseAt >= 0 {
			grad[f.noiseAt] += fading
		}
		if f.runAt >= 0 {
			grad[f.runAt] += alike
		}
		if f.slopesAt >= 0 {
			for p := range f.d {
				grad[f.slopesAt+p] += weight * (f.centred[i*f.d+p] + f.centred[j*f.d+p]) / 2
			}
		}
	}
	for i, learned := range f.learned {
		m := f.factor.rows[i][i] - f.alpha[i]*f.alpha[i]
		trace += m * f.known[i]
		add(i, i, m*f.fading*learned/2, m*(1-f.fading)*learned/2)
	}
	for k, s := range f.sharings {
		m := f.factor.rows[s.i][s.j] - f.alpha[s.i]*f.alpha[s.j]
		add(s.i, s.j, m*f.shared[k], m*f.alike[k])
		if f.decayAt >= 0 {
			grad[f.decayAt] += m * f.shared[k] * s.distance / math.Exp(f.theta[f.decayAt])
		}
	}
	return trace
}

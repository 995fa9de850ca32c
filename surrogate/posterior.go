package surrogate

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// problem is the estimation of hyperparameters in standardised units. The
// unknowns are the logarithms
//
//	θ = (log s_f², log ℓ_1, …, log ℓ_d, log σ_n²),
//
// where the last one is absent if the noise is fixed.
type problem struct {
	kernel Kernel
	prior  Prior
	units  standardisation

	n, d  int
	x     []float64 // n×d row-major
	y     []float64 // n, standardised
	known []float64 // n, known noise variances, standardised

	fitNoise    bool
	fixed       float64 // σ_n², units of Y², unless fitNoise
	fixedScaled float64 // σ_n², standardised, unless fitNoise

	lower, upper []float64 // bounds of θ
}

func newProblem(kernel Kernel, prior Prior, obs Observations, units standardisation, fixedNoise *float64) *problem {
	n, d := len(obs.X), len(obs.X[0])
	p := &problem{
		kernel:   kernel,
		prior:    prior,
		units:    units,
		n:        n,
		d:        d,
		x:        make([]float64, 0, n*d),
		y:        make([]float64, n),
		known:    make([]float64, n),
		fitNoise: fixedNoise == nil,
	}
	for i, x := range obs.X {
		p.x = append(p.x, x...)
		p.y[i] = (obs.Y[i] - units.mean) / units.scale
	}
	for i, v := range obs.NoiseVariance {
		p.known[i] = v / units.scale / units.scale
	}
	p.lower = append(p.lower, math.Log(MinSignalVariance))
	p.upper = append(p.upper, math.Log(MaxSignalVariance))
	for range d {
		p.lower = append(p.lower, math.Log(MinLengthScale))
		p.upper = append(p.upper, math.Log(MaxLengthScale))
	}
	if p.fitNoise {
		p.lower = append(p.lower, math.Log(MinNoiseVariance))
		p.upper = append(p.upper, math.Log(MaxNoiseVariance))
	} else {
		p.fixed = *fixedNoise
		p.fixedScaled = *fixedNoise / units.scale / units.scale
	}
	return p
}

// logs returns θ for hyperparameters in units of Y. The result may be out of
// bounds, and is −Inf for a noise variance of 0.
func (p *problem) logs(h Hyperparameters) []float64 {
	unit := 2 * math.Log(p.units.scale)
	theta := make([]float64, 0, len(p.lower))
	theta = append(theta, math.Log(h.SignalVariance)-unit)
	for _, l := range h.LengthScales {
		theta = append(theta, math.Log(l))
	}
	if p.fitNoise {
		theta = append(theta, math.Log(h.NoiseVariance)-unit)
	}
	return theta
}

// hyperparameters is the inverse of logs.
func (p *problem) hyperparameters(theta []float64) Hyperparameters {
	unit := p.units.scale * p.units.scale
	h := Hyperparameters{
		Mean:           p.units.mean,
		SignalVariance: math.Exp(theta[0]) * unit,
		LengthScales:   make([]float64, p.d),
		NoiseVariance:  p.fixed,
	}
	for j := range h.LengthScales {
		h.LengthScales[j] = math.Exp(theta[1+j])
	}
	if p.fitNoise {
		h.NoiseVariance = math.Exp(theta[1+p.d]) * unit
	}
	return h
}

// typical returns a starting point at the mode of the default prior.
func (p *problem) typical() []float64 {
	prior := DefaultPrior(p.d)
	theta := []float64{prior.Signal.Mean}
	for range p.d {
		theta = append(theta, prior.Length.Mean)
	}
	if p.fitNoise {
		theta = append(theta, prior.Noise.Mean)
	}
	return theta
}

// random returns a starting point drawn log-uniformly from the plausible
// middle of the bounds.
func (p *problem) random(rng *rand.Rand) []float64 {
	draw := func(low, high float64) float64 {
		return math.Log(low) + rng.Float64()*math.Log(high/low)
	}
	theta := []float64{draw(0.2, 5)}
	for range p.d {
		theta = append(theta, draw(0.1, 4))
	}
	if p.fitNoise {
		theta = append(theta, draw(1e-4, 0.5))
	}
	return theta
}

// logPosterior evaluates the negative logarithm of the marginal likelihood
// times the prior. It reuses its memory and is not safe for concurrent use.
type logPosterior struct {
	*problem
	theta   []float64 // the point of the last value
	lengths []float64 // d, ℓ at theta
	scaled  []float64 // n×d, x_ij/ℓ_j
	alpha   []float64 // n, z = L⁻¹y, then K⁻¹y
	jitter  float64

	// matrix is n×n row-major. Its lower triangle holds K, then its factor
	// L, then K⁻¹; its strict upper triangle holds dk/d(r²) of each pair.
	matrix []float64
}

func newLogPosterior(p *problem) *logPosterior {
	return &logPosterior{
		problem: p,
		theta:   make([]float64, len(p.lower)),
		lengths: make([]float64, p.d),
		scaled:  make([]float64, p.n*p.d),
		alpha:   make([]float64, p.n),
		matrix:  make([]float64, p.n*p.n),
	}
}

// noise returns σ_n² in standardised units at the last value's point.
func (f *logPosterior) noise() float64 {
	if f.fitNoise {
		return math.Exp(f.theta[1+f.d])
	}
	return f.fixedScaled
}

// value returns −log p(y|θ) − log p(θ), or an error wrapping
// ErrNotPositiveDefinite.
func (f *logPosterior) value(theta []float64) (float64, error) {
	copy(f.theta, theta)
	n, d := f.n, f.d
	signal, noise := math.Exp(theta[0]), f.noise()
	logPrior, _ := f.prior.SignalVariance(theta[0])
	for j := range f.lengths {
		f.lengths[j] = math.Exp(theta[1+j])
		p, _ := f.prior.LengthScale(theta[1+j])
		logPrior += p
	}
	if f.fitNoise {
		p, _ := f.prior.NoiseVariance(theta[1+d])
		logPrior += p
	}
	for i := range n {
		scaleTo(f.scaled[i*d:(i+1)*d], f.x[i*d:(i+1)*d], f.lengths)
	}

	var err error
	f.jitter, err = factorise(n, f.matrix, signal, func() {
		for i := range n {
			zi := f.scaled[i*d : (i+1)*d]
			for j := range i {
				k, dk := f.kernel.Correlation(squaredDistance(zi, f.scaled[j*d:(j+1)*d]))
				f.matrix[i*n+j] = signal * k
				f.matrix[j*n+i] = signal * dk
			}
			f.matrix[i*n+i] = signal + noise + f.known[i]
		}
	})
	if err != nil {
		return 0, err
	}
	copy(f.alpha, f.y)
	blas64.Trsv(blas.NoTrans, lower(n, f.matrix), vector(f.alpha))
	return -logLikelihood(n, f.matrix, f.alpha) - logPrior, nil
}

// gradient stores the gradient at the point of the last value, for which it
// may be called once. With M = K⁻¹ − ααᵀ and α = K⁻¹y,
//
//	−∂log p(y|θ)/∂θ_j = ½ tr(M ∂K/∂θ_j),
//
// see Rasmussen and Williams, Gaussian Processes for Machine Learning, MIT
// Press 2006, equation 5.9.
func (f *logPosterior) gradient(grad []float64) {
	n, d := f.n, f.d
	noise := f.noise()
	blas64.Trsv(blas.Trans, lower(n, f.matrix), vector(f.alpha))
	lapack64.Potri(lower(n, f.matrix))

	// ∂k/∂log ℓ_p = −2 k'(r²) (z_ip − z_jp)², and each pair counts twice.
	lengths := grad[1 : 1+d]
	clear(lengths)
	var trace, noiseTrace float64
	for i := range n {
		zi := f.scaled[i*d : (i+1)*d]
		for j := range i {
			m := f.matrix[i*n+j] - f.alpha[i]*f.alpha[j]
			weight := -2 * m * f.matrix[j*n+i]
			zj := f.scaled[j*d : (j+1)*d]
			for p := range lengths {
				diff := zi[p] - zj[p]
				lengths[p] += weight * diff * diff
			}
		}
		m := f.matrix[i*n+i] - f.alpha[i]*f.alpha[i]
		trace += m
		noiseTrace += m * (noise + f.known[i])
	}
	// K = S + N with the noise N, so that tr(MS) = tr(MK) − tr(MN), and
	// tr(MK) = n − yᵀα. The jitter is a multiple of s_f² and so belongs to S.
	grad[0] = (float64(n) - blas64.Dot(vector(f.y), vector(f.alpha)) - noiseTrace) / 2

	_, slope := f.prior.SignalVariance(f.theta[0])
	grad[0] -= slope
	for j := range lengths {
		_, slope := f.prior.LengthScale(f.theta[1+j])
		lengths[j] -= slope
	}
	if f.fitNoise {
		_, slope := f.prior.NoiseVariance(f.theta[1+d])
		grad[1+d] = trace*noise/2 - slope
	}
}

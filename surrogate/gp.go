package surrogate

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// Hyperparameters describe a Gaussian process before it sees data.
type Hyperparameters struct {
	// Mean is the constant prior mean m, in units of Y.
	Mean float64

	// BaseWeight is the share, from 0 to 1, of the mean of an earlier posterior,
	// the base, that is added to the prior mean; see [NewWithBase].
	BaseWeight float64

	// SignalVariance is the prior variance s_f² > 0, in units of Y².
	SignalVariance float64

	// LengthScales are the d length scales ℓ_j > 0, in units of X. A
	// large one means that the input matters little.
	LengthScales []float64

	// NoiseVariance is the noise variance σ_n² >= 0 of one run at the centre
	// x = (½, …, ½), in units of Y². It adds to the known noise variances of the
	// observations.
	NoiseVariance float64

	// RunVariance is the variance σ_r² >= 0 of noise that all observations of one group
	// share alike, at the centre x = (½, …, ½), in units of Y². It is also part of the
	// noise of observations without a group.
	RunVariance float64

	// NoiseSlopes are the d slopes b_j of the logarithm of the noise variance,
	// per unit of X: one run at x has the noise variance
	//
	//	τ²(x) = (σ_n² + σ_r²) exp(Σ_j b_j (x_j − ½)).
	//
	// Coordinates outside [0, 1] count as 0 or 1. Nil means that all are 0.
	NoiseSlopes []float64

	// NoiseDecay is the scale λ >= 0, in units of Observations.Positions, over
	// which noise of the variance σ_n² within one group loses its correlation
	// e^{−|p_i − p_j|/λ}. With 0 they are independent.
	NoiseDecay float64
}

// check returns an error that names the first value out of range, as a field of
// the struct called name. It panics if the lengths disagree.
func (h Hyperparameters) check(name string) error {
	if h.NoiseSlopes != nil && len(h.NoiseSlopes) != len(h.LengthScales) {
		panic(panicDimension)
	}
	if !finite(h.Mean) {
		return fmt.Errorf("surrogate: %s.Mean is %v, want a finite number", name, h.Mean)
	}
	if !(h.BaseWeight >= 0 && h.BaseWeight <= 1) {
		return fmt.Errorf("surrogate: %s.BaseWeight is %v, want a number from 0 to 1", name, h.BaseWeight)
	}
	if !finite(h.SignalVariance) || h.SignalVariance <= 0 {
		return fmt.Errorf("surrogate: %s.SignalVariance is %v, want a finite number > 0", name, h.SignalVariance)
	}
	for j, l := range h.LengthScales {
		if !finite(l) || l <= 0 {
			return fmt.Errorf("surrogate: %s.LengthScales[%d] is %v, want a finite number > 0", name, j, l)
		}
	}
	if err := checkFinite(name+".NoiseSlopes", h.NoiseSlopes); err != nil {
		return err
	}
	if !finite(h.NoiseDecay) || h.NoiseDecay < 0 {
		return fmt.Errorf("surrogate: %s.NoiseDecay is %v, want a finite number >= 0", name, h.NoiseDecay)
	}
	if err := checkVariance(name+".RunVariance", h.RunVariance); err != nil {
		return err
	}
	return checkVariance(name+".NoiseVariance", h.NoiseVariance)
}

// noise returns τ²(x).
func (h Hyperparameters) noise(x []float64) float64 {
	return (h.NoiseVariance + h.RunVariance) * math.Exp(noiseExponent(h.NoiseSlopes, x))
}

func (h Hyperparameters) clone() Hyperparameters {
	h.LengthScales = slices.Clone(h.LengthScales)
	h.NoiseSlopes = slices.Clone(h.NoiseSlopes)
	return h
}

// GP is the posterior of a Gaussian process given observations.
//
// A GP is immutable and safe for concurrent use.
type GP struct {
	kernel Kernel
	hyper  Hyperparameters
	base   *GP // nil without, or if its weight is 0
	n, d   int

	scaled   points    // x_ij / ℓ_j
	residual []float64 // n, y_i − m(x_i)
	noise    noise

	jitter   float64   // added to the diagonal, included in factor
	factor   triangle  // n×n, K = LLᵀ
	whitened []float64 // n, L⁻¹ residual
	weights  []float64 // n, K⁻¹ residual
}

// New returns the posterior for given hyperparameters. A nil kernel means
// [Matern52]. The length of h.LengthScales is the dimension; with no observations
// the result is the prior. New copies what it keeps.
//
// New panics if the lengths disagree. It returns an error that names the first
// value that is not finite or out of range, and one wrapping
// [ErrNotPositiveDefinite] if the covariance cannot be factorised. The cost is
// O(n³).
func New(kernel Kernel, h Hyperparameters, obs Observations) (*GP, error) {
	return NewWithBase(kernel, h, obs, nil)
}

// NewWithBase is [New] with a prior mean from an earlier posterior of the same
// dimension and units, for instance from a study of a similar problem:
//
//	m(x) = h.Mean + h.BaseWeight · (posterior mean of base at x).
//
// The variance of base does not enter. Every prediction also computes the mean of base, in
// time linear in the number of its observations. A nil base is the
// same as the weight 0; any other weight is then an error.
func NewWithBase(kernel Kernel, h Hyperparameters, obs Observations, base *GP) (*GP, error) {
	if err := h.check("Hyperparameters"); err != nil {
		return nil, err
	}
	if base != nil && base.d != len(h.LengthScales) {
		panic(panicDimension)
	}
	if base == nil && h.BaseWeight != 0 {
		return nil, fmt.Errorf("surrogate: Hyperparameters.BaseWeight is %v, want 0 without a base", h.BaseWeight)
	}
	if err := obs.check(len(h.LengthScales)); err != nil {
		return nil, err
	}
	if kernel == nil {
		kernel = Matern52{}
	}
	prior := &GP{kernel: kernel, hyper: h.clone(), d: len(h.LengthScales), scaled: newPoints(0, len(h.LengthScales))}
	if h.BaseWeight > 0 {
		prior.base = base
	}
	g := prior.observe(obs)
	if err := g.factorise(); err != nil {
		return nil, err
	}
	return g, nil
}

// observe returns g with more observations, but not yet their factor.
func (g *GP) observe(obs Observations) *GP {
	n := g.n + len(obs.X)
	next := &GP{
		kernel:   g.kernel,
		hyper:    g.hyper,
		base:     g.base,
		n:        n,
		d:        g.d,
		scaled:   g.scaled.grow(g.n, len(obs.X)),
		residual: make([]float64, n),
		noise:    g.noise.append(g.hyper, obs),
		jitter:   g.jitter,
	}
	copy(next.residual, g.residual)
	z := make([]float64, g.d)
	for i, x := range obs.X {
		k := g.n + i
		scaleTo(z, x, g.hyper.LengthScales)
		next.scaled.set(k, z)
		next.residual[k] = obs.Y[i] - g.priorMean(x)
	}
	return next
}

// fillRow stores the covariances of observation i and those up to i. z is scratch memory
// for a point.
func (g *GP) fillRow(row []float64, i int, z []float64) {
	g.scaled.at(z, i)
	g.covariances(row[:i], nil, z, g.scaled)
	g.noise.addCovariances(row[:i], i)
	row[i] = g.hyper.SignalVariance + g.noise.variance(i)
}

// factorise computes the factor and the weights from the observations.
func (g *GP) factorise() error {
	covariance, z := newLower(g.n), make([]float64, g.d)
	var err error
	g.jitter, err = factorise(covariance, g.hyper.SignalVariance, 0, func() {
		for i, row := range covariance.rows {
			g.fillRow(row, i, z)
		}
	})
	if err != nil {
		return err
	}
	g.factor = covariance.rows
	g.whitened = slices.Clone(g.residual)
	g.factor.solve(blas.NoTrans, g.whitened)
	g.solveWeights()
	return nil
}

// solveWeights computes the weights from the factor and the whitened residuals.
func (g *GP) solveWeights() {
	g.weights = slices.Clone(g.whitened)
	g.factor.solve(blas.Trans, g.weights)
}

// scaleTo stores x_j/ℓ_j into dst.
func scaleTo(dst, x, lengthScales []float64) {
	for j, l := range lengthScales {
		dst[j] = x[j] / l
	}
}

// covariances stores into k the covariances of f at the scaled point z and at
// the first len(k) of the scaled points, and into dk, unless nil, their
// derivatives with respect to r².
func (g *GP) covariances(k, dk, z []float64, scaled points) {
	scaled.squaredDistances(k, z)
	correlate(g.kernel, g.hyper.SignalVariance, k, dk)
}

// Append returns the posterior with one more observation, of a single run in no group. It is
// [GP.Extend] otherwise; the known noise variance is in units of Y².
func (g *GP) Append(x []float64, y, noiseVariance float64) (*GP, error) {
	if len(x) != g.d {
		panic(panicDimension)
	}
	if err := checkFinite("x", x); err != nil {
		return nil, err
	}
	if !finite(y) {
		return nil, fmt.Errorf("surrogate: y is %v, want a finite number", y)
	}
	if err := checkVariance("noiseVariance", noiseVariance); err != nil {
		return nil, err
	}
	return g.extend(Observations{X: [][]float64{x}, Y: []float64{y}, NoiseVariance: []float64{noiseVariance}})
}

// Extend returns the posterior with m more observations and the same
// hyperparameters; the receiver is unchanged. Their groups may be groups of
// earlier observations.
//
// The cost is O(n² m): the Cholesky factor gains rows. Only if the new
// covariance is singular to rounding, as for a noise-free duplicate, it is
// factorised again with more jitter, in O(n³).
//
// Extend panics if the lengths disagree. It returns an error that names the
// first value that is not finite or out of range, and one wrapping
// [ErrNotPositiveDefinite] if the new covariance cannot be factorised.
func (g *GP) Extend(obs Observations) (*GP, error) {
	if err := obs.check(g.d); err != nil {
		return nil, err
	}
	return g.extend(obs)
}

// extend is Extend without the checks.
func (g *GP) extend(obs Observations) (*GP, error) {
	n, next := g.n, g.observe(obs)
	factor, tail := g.factor.grow(next.n - n)
	next.factor = factor
	z := make([]float64, g.d)
	for i := n; i < next.n; i++ {
		row := next.factor[i]
		next.fillRow(row, i, z)
		row[i] += g.jitter
	}
	if !cholesky(lowerOf(g.factor.eliminate(tail)), minPivot(next.n, g.hyper.SignalVariance)) {
		if err := next.factorise(); err != nil {
			return nil, err
		}
		return next, nil
	}
	// The whitened residuals of the old observations stay.
	next.whitened = append(slices.Clip(g.whitened), next.residual[n:]...)
	for i := n; i < next.n; i++ {
		row := next.factor[i]
		next.whitened[i] = (next.whitened[i] - blas64.Dot(vector(row[:i]), vector(next.whitened[:i]))) / row[i]
	}
	next.solveWeights()
	return next, nil
}

// LogMarginalLikelihood returns the logarithm of the density of Y,
//
//	log p(y | X) = −½ (y−m)ᵀK⁻¹(y−m) − ½ log|K| − n/2 log 2π,
//
// where m is the prior mean at X, without the prior of the hyperparameters. See Rasmussen and Williams,
// Gaussian Processes for Machine Learning, MIT Press 2006, equation 5.8.
// It is 0 with no observations.
func (g *GP) LogMarginalLikelihood() float64 {
	return logLikelihood(g.factor, g.whitened)
}

// Hyperparameters returns a copy of the hyperparameters.
func (g *GP) Hyperparameters() Hyperparameters {
	return g.hyper.clone()
}

// Noise returns the learned noise variance τ²(x) of one run at x, in units of
// Y²; see Hyperparameters.NoiseSlopes. It is no part of the predictions of this
// package, which are of the function without noise. Noise panics if len(x) is
// not the dimension.
func (g *GP) Noise(x []float64) float64 {
	if len(x) != g.d {
		panic(panicDimension)
	}
	return g.hyper.noise(x)
}

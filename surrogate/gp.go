package surrogate

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// Observations are n noisy values of a function of d inputs.
type Observations struct {
	// X holds n points of d coordinates. Coordinates should be scaled to
	// [0, 1]; values outside are accepted. Points may repeat.
	X [][]float64

	// Y holds the n outputs.
	Y []float64

	// NoiseVariance holds n known noise variances >= 0 in units of Y²,
	// for instance s²/R for the mean of R replicates with sample variance s².
	// Nil means that all are 0.
	NoiseVariance []float64
}

// check panics if the lengths disagree and returns an error that names the
// first value that is not finite, or the first noise variance that is negative.
// The dimension of every point must be d.
func (o Observations) check(d int) error {
	if len(o.Y) != len(o.X) || (o.NoiseVariance != nil && len(o.NoiseVariance) != len(o.X)) {
		panic(panicLength)
	}
	for _, x := range o.X {
		if len(x) != d {
			panic(panicDimension)
		}
	}
	for i, x := range o.X {
		for j, v := range x {
			if !finite(v) {
				return fmt.Errorf("surrogate: X[%d][%d] is %v, want a finite number", i, j, v)
			}
		}
	}
	if err := checkFinite("Y", o.Y); err != nil {
		return err
	}
	for i, v := range o.NoiseVariance {
		if !finite(v) || v < 0 {
			return fmt.Errorf("surrogate: NoiseVariance[%d] is %v, want a finite variance >= 0", i, v)
		}
	}
	return nil
}

// Hyperparameters describe a Gaussian process before it sees data.
type Hyperparameters struct {
	// Mean is the constant prior mean m, in units of Y.
	Mean float64

	// SignalVariance is the prior variance s_f² > 0, in units of Y².
	SignalVariance float64

	// LengthScales are the d length scales ℓ_j > 0, in units of X. A
	// large one means that the input matters little.
	LengthScales []float64

	// NoiseVariance is the homoscedastic noise variance σ_n² >= 0, in units of
	// Y². It adds to the known noise variances of the observations.
	NoiseVariance float64
}

// check returns an error that names the first value out of range, as a field of
// the struct called name.
func (h Hyperparameters) check(name string) error {
	if !finite(h.Mean) {
		return fmt.Errorf("surrogate: %s.Mean is %v, want a finite number", name, h.Mean)
	}
	if !finite(h.SignalVariance) || h.SignalVariance <= 0 {
		return fmt.Errorf("surrogate: %s.SignalVariance is %v, want a finite number > 0", name, h.SignalVariance)
	}
	for j, l := range h.LengthScales {
		if !finite(l) || l <= 0 {
			return fmt.Errorf("surrogate: %s.LengthScales[%d] is %v, want a finite number > 0", name, j, l)
		}
	}
	return checkVariance(name+".NoiseVariance", h.NoiseVariance)
}

func (h Hyperparameters) clone() Hyperparameters {
	h.LengthScales = slices.Clone(h.LengthScales)
	return h
}

// GP is the posterior of a Gaussian process given observations.
//
// A GP is immutable and safe for concurrent use.
type GP struct {
	kernel Kernel
	hyper  Hyperparameters
	n, d   int

	scaled   []float64 // n×d row-major, x_ij / ℓ_j
	residual []float64 // n, y_i − m
	known    []float64 // n, known noise variances τ_i²

	jitter   float64   // added to the diagonal, included in factor
	factor   []float64 // n×n row-major, lower triangle: K = LLᵀ
	whitened []float64 // n, L⁻¹(y − m)
	weights  []float64 // n, K⁻¹(y − m)
}

// New returns the posterior for given hyperparameters. A nil kernel means
// [Matern52]. The dimension is that of h.LengthScales; with no observations
// the result is the prior. New copies what it keeps.
//
// New panics if the lengths disagree. It returns an error that names the first
// value that is not finite or out of range, and one wrapping
// [ErrNotPositiveDefinite] if the covariance cannot be factorised. The cost is
// O(n³).
func New(kernel Kernel, h Hyperparameters, obs Observations) (*GP, error) {
	if err := h.check("Hyperparameters"); err != nil {
		return nil, err
	}
	n, d := len(obs.X), len(h.LengthScales)
	if err := obs.check(d); err != nil {
		return nil, err
	}
	if kernel == nil {
		kernel = Matern52{}
	}
	g := &GP{
		kernel:   kernel,
		hyper:    h.clone(),
		n:        n,
		d:        d,
		scaled:   make([]float64, n*d),
		residual: make([]float64, n),
		known:    make([]float64, n),
	}
	for i, x := range obs.X {
		scaleTo(g.scaled[i*d:(i+1)*d], x, h.LengthScales)
		g.residual[i] = obs.Y[i] - h.Mean
	}
	copy(g.known, obs.NoiseVariance)
	if err := g.factorise(); err != nil {
		return nil, err
	}
	return g, nil
}

// factorise computes the factor and the weights from the observations.
func (g *GP) factorise() error {
	n := g.n
	g.factor = make([]float64, n*n)
	var err error
	g.jitter, err = factorise(n, g.factor, g.hyper.SignalVariance, func() {
		for i := range n {
			row := g.factor[i*n : i*n+i+1]
			g.covariances(row[:i], nil, g.scaled[i*g.d:(i+1)*g.d])
			row[i] = g.hyper.SignalVariance + g.hyper.NoiseVariance + g.known[i]
		}
	})
	if err != nil {
		return err
	}
	g.whitened = slices.Clone(g.residual)
	blas64.Trsv(blas.NoTrans, lower(n, g.factor), vector(g.whitened))
	g.solveWeights()
	return nil
}

// solveWeights computes the weights from the factor and the whitened residuals.
func (g *GP) solveWeights() {
	g.weights = slices.Clone(g.whitened)
	blas64.Trsv(blas.Trans, lower(g.n, g.factor), vector(g.weights))
}

// scaleTo stores x_j/ℓ_j into dst.
func scaleTo(dst, x, lengthScales []float64) {
	for j, l := range lengthScales {
		dst[j] = x[j] / l
	}
}

// squaredDistance returns |a − b|².
func squaredDistance(a, b []float64) float64 {
	var sum float64
	b = b[:len(a)]
	for j, v := range a {
		diff := v - b[j]
		sum += diff * diff
	}
	return sum
}

// covariances stores into k the covariances of f at the scaled point z and at
// the first len(k) observed points, and into dk, unless nil, their derivatives
// with respect to r².
func (g *GP) covariances(k, dk, z []float64) {
	s, d := g.hyper.SignalVariance, g.d
	for i := range k {
		c, dc := g.kernel.Correlation(squaredDistance(z, g.scaled[i*d:(i+1)*d]))
		k[i] = s * c
		if dk != nil {
			dk[i] = s * dc
		}
	}
}

// Append returns the posterior with one more observation and the same
// hyperparameters; the receiver is unchanged. The known noise variance of the
// new observation is in units of Y².
//
// The cost is O(n²): the Cholesky factor gains one row. Only if the new
// covariance is singular to rounding, as for a noise-free duplicate, it is
// factorised again with more jitter, in O(n³).
//
// Append panics if len(x) is not the dimension. It returns an error if an
// argument is not finite or the noise variance is negative, and one wrapping
// [ErrNotPositiveDefinite] if the new covariance cannot be factorised.
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

	n := g.n
	next := &GP{
		kernel:   g.kernel,
		hyper:    g.hyper,
		n:        n + 1,
		d:        g.d,
		scaled:   append(slices.Clip(g.scaled), make([]float64, g.d)...),
		residual: append(slices.Clip(g.residual), y-g.hyper.Mean),
		known:    append(slices.Clip(g.known), noiseVariance),
		jitter:   g.jitter,
		factor:   make([]float64, (n+1)*(n+1)),
	}
	z := next.scaled[n*g.d:]
	scaleTo(z, x, g.hyper.LengthScales)

	// [K  k]   [L  0] [Lᵀ l]
	// [kᵀ κ] = [lᵀ p] [0  p]  with Ll = k and p² = κ − lᵀl.
	for i := range n {
		copy(next.factor[i*(n+1):], g.factor[i*n:i*n+i+1])
	}
	l := next.factor[n*(n+1) : n*(n+1)+n]
	g.covariances(l, nil, z)
	blas64.Trsv(blas.NoTrans, lower(n, g.factor), vector(l))
	variance := g.hyper.SignalVariance + g.hyper.NoiseVariance + noiseVariance + g.jitter
	pivot2 := variance - blas64.Dot(vector(l), vector(l))
	// The comparison is false for NaN.
	if !(pivot2 >= minPivot(n+1, g.hyper.SignalVariance)) {
		if err := next.factorise(); err != nil {
			return nil, err
		}
		return next, nil
	}
	pivot := math.Sqrt(pivot2)
	next.factor[(n+1)*(n+1)-1] = pivot
	next.whitened = append(slices.Clip(g.whitened), (next.residual[n]-blas64.Dot(vector(l), vector(g.whitened)))/pivot)
	next.solveWeights()
	return next, nil
}

// LogMarginalLikelihood returns the logarithm of the density of Y,
//
//	log p(y | X) = −½ (y−m)ᵀK⁻¹(y−m) − ½ log|K| − n/2 log 2π,
//
// without the prior of the hyperparameters. See Rasmussen and Williams,
// Gaussian Processes for Machine Learning, MIT Press 2006, equation 5.8.
// It is 0 with no observations.
func (g *GP) LogMarginalLikelihood() float64 {
	return logLikelihood(g.n, g.factor, g.whitened)
}

// Hyperparameters returns a copy of the hyperparameters.
func (g *GP) Hyperparameters() Hyperparameters {
	return g.hyper.clone()
}

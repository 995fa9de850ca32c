package surrogate

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// Conditioned is S copies of a posterior, each of which knows the function at
// the same b base points: copy s knows the values f(B) = f_B^s drawn from the
// joint posterior,
//
//	f_B^s = mean_B + P z^s,   PPᵀ = cov_BB,
//
// with the standard normals z^s. All copies have the same variance
//
//	v(x) = variance(x) − uᵀu,   u = P⁻¹ cov_Bx,
//
// and copy s has the mean mean(x) + uᵀz^s. The average over z of a function of
// the values at B and of mean and variance of copy s at x is its expectation
// under the joint posterior at B and x, of which only the part at B is
// sampled: the Rao-Blackwellised estimate that the noisy expected hypervolume
// improvement needs, where B are the points of the front. See Daulton, Balandat
// and Bakshy, "Parallel Bayesian Optimization of Multiple Noisy Objectives with
// Expected Hypervolume Improvement", NeurIPS 2021, section 4.
//
// A Conditioned is immutable and safe for concurrent use.
type Conditioned struct {
	gp      *GP
	size    int            // n + b
	scaled  points         // n+b, observations and base points
	base    points         // b, the base points in the memory of scaled
	factor  triangle       // (n+b)×(n+b), of the joint covariance of Y and f(B)
	normals blas64.General // S×b
	values  blas64.General // S×b, f_B^s
}

// Condition returns S copies of the posterior that know the function at the
// given b base points, drawn with S rows of b standard normal numbers. With no
// base points and one empty row of normals it is the posterior itself.
//
// The values at base points are known up to a jitter of 1e-8 times the signal
// variance (more if that is needed for a Cholesky factor), so that base points
// may be close to each other and to observations. The cost is O(n²b + nb² + Sb²).
//
// Condition panics if there are no normals or the lengths disagree. It returns
// an error that names the first value that is not finite, and one wrapping
// [ErrNotPositiveDefinite] if the covariance at the base points cannot be
// factorised.
func (g *GP) Condition(points, normals [][]float64) (*Conditioned, error) {
	b := len(points)
	if len(normals) == 0 {
		panic(panicLength)
	}
	for i, x := range points {
		if len(x) != g.d {
			panic(panicDimension)
		}
		if err := checkFinite(fmt.Sprintf("points[%d]", i), x); err != nil {
			return nil, err
		}
	}
	for s, z := range normals {
		if len(z) != b {
			panic(panicLength)
		}
		if err := checkFinite(fmt.Sprintf("normals[%d]", s), z); err != nil {
			return nil, err
		}
	}

	n, z := g.n, make([]float64, g.d)
	factor, tail := g.factor.grow(b)
	c := &Conditioned{
		gp:      g,
		size:    n + b,
		scaled:  g.scaled.grow(g.n, b),
		factor:  factor,
		normals: newGeneral(len(normals), b),
		values:  newGeneral(len(normals), b),
	}
	for i, x := range points {
		k := n + i
		scaleTo(z, x, g.hyper.LengthScales)
		c.scaled.set(k, z)
		row := c.factor[k]
		g.covariances(row[:k], nil, z, c.scaled)
		row[k] = g.hyper.SignalVariance
	}
	c.base = c.scaled.from(n)
	corner := lowerOf(g.factor.eliminate(tail))
	covariance := make(triangle, b)
	for i, row := range corner.rows {
		covariance[i] = slices.Clone(row)
	}
	_, err := factorise(corner, g.hyper.SignalVariance, firstJitter, func() {
		for i, row := range covariance {
			copy(corner.rows[i], row)
		}
	})
	if err != nil {
		return nil, err
	}

	// A row [V P] of the factor times the whitened residuals of the observations
	// is the posterior mean there, and times the normals the draw around it.
	for s, z := range normals {
		copy(generalRow(c.normals, s), z)
		for i := range b {
			row := c.factor[n+i]
			generalRow(c.values, s)[i] = g.priorMean(points[i]) +
				blas64.Dot(vector(row[:n]), vector(g.whitened)) +
				blas64.Dot(vector(row[n:]), vector(z[:i+1]))
		}
	}
	return c, nil
}

// newGeneral returns an r×c matrix of zeros.
func newGeneral(r, c int) blas64.General {
	return blas64.General{Rows: r, Cols: c, Stride: max(1, c), Data: make([]float64, r*c)}
}

// generalRow returns row i of a, which may have no columns.
func generalRow(a blas64.General, i int) []float64 {
	if a.Cols == 0 {
		return nil
	}
	return a.Data[i*a.Stride : i*a.Stride+a.Cols]
}

// Samples returns the number S of copies.
func (c *Conditioned) Samples() int { return c.normals.Rows }

// BaseValues returns the values f_B^s that copy s knows, in the order of the
// base points and in units of Y. They must not be changed.
func (c *Conditioned) BaseValues(s int) []float64 { return generalRow(c.values, s) }

// Predict stores the S means of the latent function at x into means, in units
// of Y, and returns their common variance >= 0, in units of Y². The results are
// NaN if x is not finite. The cost is O((n+b)² + Sb), without allocation.
// Predict panics if a length is wrong.
func (c *Conditioned) Predict(means, x []float64) (variance float64) {
	if len(x) != c.gp.d || len(means) != c.Samples() {
		panic(panicDimension)
	}
	w := workspaces.Get().(*workspace)
	defer workspaces.Put(w)
	w.point = resize(w.point, c.gp.d)
	w.covariance = resize(w.covariance, c.size)
	scaleTo(w.point, x, c.gp.hyper.LengthScales)
	c.gp.covariances(w.covariance, nil, w.point, c.scaled)
	c.factor.solve(blas.NoTrans, w.covariance)
	return c.moments(means, x, w.covariance)
}

// moments stores the means at x and returns the variance, given the whitened
// covariances with it, (l, u) = factor⁻¹ k.
func (c *Conditioned) moments(means, x, whitened []float64) (variance float64) {
	n := c.gp.n
	mean := c.gp.priorMean(x) + blas64.Dot(vector(whitened[:n]), vector(c.gp.whitened))
	for s := range means {
		means[s] = mean + blas64.Dot(vector(whitened[n:]), vector(generalRow(c.normals, s)))
	}
	return max(0, c.gp.hyper.SignalVariance-blas64.Dot(vector(whitened), vector(whitened)))
}

// batch is the number of points that PredictBatch treats at once: enough for
// the speed of matrix products, few enough for the cache.
const batch = 64

// PredictBatch is [Conditioned.Predict] at q points: it stores the means into
// the q×S row-major matrix means and the variances into variances. For many
// points it is several times faster than calls of Predict. It panics if a
// length is wrong.
func (c *Conditioned) PredictBatch(means, variances []float64, x [][]float64) {
	c.predict(means, variances, x, func(a blas64.General, first int) { c.gp.whiten(a, x[first:first+a.Rows]) })
}

// predict is PredictBatch, given a function that stores the whitened covariances of the observations with the points
// from a first one on, one in each row.
func (c *Conditioned) predict(means, variances []float64, x [][]float64, whiten func(a blas64.General, first int)) {
	n, samples := c.gp.n, c.Samples()
	if len(means) != len(x)*samples || len(variances) != len(x) {
		panic(panicLength)
	}
	w := workspaces.Get().(*workspace)
	defer workspaces.Put(w)
	w.point = resize(w.point, c.gp.d)
	w.covariance = resize(w.covariance, min(batch, len(x))*c.size)
	for first := 0; first < len(x); first += batch {
		part := x[first:min(first+batch, len(x))]
		// Row a holds (l, u) of point a.
		k := blas64.General{Rows: len(part), Cols: c.size, Stride: max(1, c.size), Data: w.covariance}
		whiten(columns(k, 0, n), first)
		for a, p := range part {
			scaleTo(w.point, p, c.gp.hyper.LengthScales)
			c.gp.covariances(generalRow(k, a)[n:], nil, w.point, c.base)
		}
		c.factor.solveRows(k, n)
		for a := range part {
			q := first + a
			variances[q] = c.moments(means[q*samples:(q+1)*samples], x[q], generalRow(k, a))
		}
	}
}

// Whitened are points with their covariances with the observations of a posterior, which have
// been solved for once: predictions there by all copies of the posterior, whatever their base
// points, need them.
type Whitened struct {
	gp   *GP
	x    [][]float64
	rows blas64.General // q×n, L⁻¹k
}

// Whiten returns q points for [Conditioned.PredictWhitened] of copies of the posterior g. They must not
// be changed afterwards. It takes O(q n²) operations and keeps q n numbers. It panics if a length is wrong.
func (g *GP) Whiten(x [][]float64) *Whitened {
	w := &Whitened{gp: g, x: x, rows: newGeneral(len(x), g.n)}
	g.whiten(w.rows, x)
	return w
}

// whiten stores L⁻¹k of every point of x in a row of a.
func (g *GP) whiten(a blas64.General, x [][]float64) {
	w := workspaces.Get().(*workspace)
	defer workspaces.Put(w)
	w.point = resize(w.point, g.d)
	for i, p := range x {
		if len(p) != g.d {
			panic(panicDimension)
		}
		scaleTo(w.point, p, g.hyper.LengthScales)
		g.covariances(generalRow(a, i), nil, w.point, g.scaled)
	}
	g.factor.solveRows(a, 0)
}

// PredictWhitened is [Conditioned.PredictBatch] at points that the posterior has whitened, in
// O(q b (n+b+S)) operations for b base points. It panics if they are another posterior's.
func (c *Conditioned) PredictWhitened(w *Whitened) (means, variances []float64) {
	if w.gp != c.gp {
		panic(panicPosterior)
	}
	means, variances = make([]float64, len(w.x)*c.Samples()), make([]float64, len(w.x))
	c.predict(means, variances, w.x, func(a blas64.General, first int) {
		for i := range a.Rows {
			copy(generalRow(a, i), generalRow(w.rows, first+i))
		}
	})
	return means, variances
}

// Partial is a prediction that can be continued to a gradient. The zero value
// is ready for [Conditioned.PredictPartial] and can be used again and again
// without allocation, but not concurrently.
type Partial struct {
	process      *Conditioned
	x            []float64 // d
	point        []float64 // d, scaled
	derivative   []float64 // n+b, dk/d(r²)
	whitened     []float64 // n+b, (l, u)
	coefficients []float64 // n+b
}

// PredictPartial is [Conditioned.Predict] that keeps in p what
// [Partial.Gradient] needs.
func (c *Conditioned) PredictPartial(p *Partial, means, x []float64) (variance float64) {
	if len(x) != c.gp.d || len(means) != c.Samples() {
		panic(panicDimension)
	}
	p.process = c
	p.x = append(p.x[:0], x...)
	p.point = resize(p.point, c.gp.d)
	p.derivative = resize(p.derivative, c.size)
	p.whitened = resize(p.whitened, c.size)
	scaleTo(p.point, x, c.gp.hyper.LengthScales)
	c.gp.covariances(p.whitened, p.derivative, p.point, c.scaled)
	c.factor.solve(blas.NoTrans, p.whitened)
	return c.moments(means, x, p.whitened)
}

// Gradient stores into grad the gradient with respect to x of
//
//	Σ_s weights_s mean_s(x) + varianceWeight · variance(x)
//
// at the point of the last PredictPartial. With the derivatives of a function
// of the S means and the variance as weights that is the gradient of the
// function. The cost is O((n+b)² + Sb). It may be called more than once, with
// other weights. Gradient panics if a length is wrong.
func (p *Partial) Gradient(grad, weights []float64, varianceWeight float64) {
	c := p.process
	n := c.gp.n
	if len(grad) != c.gp.d || len(weights) != c.Samples() {
		panic(panicDimension)
	}
	// The sum is W m(x) + qᵀ(l, u) + varianceWeight (s_f² − |(l, u)|²) with W = Σ_s weights_s,
	// q = Σ_s weights_s (L⁻¹(y − m), z^s), and (l, u) = factor⁻¹ k.
	p.coefficients = resize(p.coefficients, c.size)
	clear(p.coefficients)
	var total float64
	for s, w := range weights {
		total += w
		blas64.Axpy(w, vector(generalRow(c.normals, s)), vector(p.coefficients[n:]))
	}
	blas64.Axpy(total, vector(c.gp.whitened), vector(p.coefficients[:n]))
	blas64.Axpy(-2*varianceWeight, vector(p.whitened), vector(p.coefficients))
	c.factor.solve(blas.Trans, p.coefficients)
	clear(grad)
	c.gp.addPriorGradient(grad, p.x, total)
	c.gp.addGradient(grad, p.point, p.derivative, p.coefficients, c.scaled)
}

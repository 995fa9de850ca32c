package surrogate

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// Mixture is a [Kernel] that is positive definite in every dimension, and so a scale mixture of
// Gaussians: I. J. Schoenberg, "Metric Spaces and Completely Monotone Functions", Annals of
// Mathematics 39, 1938.
type Mixture interface {
	Kernel

	// Scale draws s with k(r²) = E[e^{−s²r²/2}].
	Scale(rng *rand.Rand) float64
}

// Scale implements [Mixture]: the spectral density is Student's t with 5 degrees of freedom
// (Rasmussen and Williams, equation 4.15).
func (Matern52) Scale(rng *rand.Rand) float64 {
	const degrees = 5
	var chiSquared float64
	for range degrees {
		z := rng.NormFloat64()
		chiSquared += z * z
	}
	return math.Sqrt(degrees / chiSquared)
}

// Scale implements [Mixture]: it returns 1.
func (SquaredExponential) Scale(*rand.Rand) float64 { return 1 }

// Paths are functions drawn from a posterior, which can be evaluated anywhere and together. A
// *Paths is immutable and safe for concurrent use.
//
// They are made by Matheron's rule: a draw of the prior is corrected by the posterior mean of what
// it misses at the observations. The draws of the prior are sums of random Fourier features, so
// that means are exact up to the number of draws, and variances are right on average over the
// features, with an error that falls with their number. See J. T. Wilson, V. Borovitskiy,
// A. Terenin, P. Mostowsky, M. P. Deisenroth, "Efficiently Sampling Functions from Gaussian
// Process Posteriors", ICML 2020.
type Paths struct {
	gp          *GP
	count       int
	frequencies blas64.General // F×d, in scaled coordinates
	weights     blas64.General // (2F+n)×count, of cosines, sines and covariances
}

// Paths draws count functions from the posterior of f, without observation noise. They share the
// given number of random frequencies, each a cosine and a sine; some hundreds are enough for
// averages over many points. The cost is O(count·n·(n + frequencies)). It returns an error if the
// kernel is no [Mixture].
func (g *GP) Paths(rng *rand.Rand, count, frequencies int) (*Paths, error) {
	kernel, ok := g.kernel.(Mixture)
	if !ok {
		return nil, fmt.Errorf("surrogate: no paths can be drawn with the kernel %q", g.kernel.Name())
	}
	p := &Paths{gp: g, count: count, frequencies: newGeneral(frequencies, g.d), weights: newGeneral(2*frequencies+g.n, count)}
	for f := range frequencies {
		scale := kernel.Scale(rng)
		row := generalRow(p.frequencies, f)
		for j := range row {
			row[j] = scale * rng.NormFloat64()
		}
	}
	amplitude := math.Sqrt(g.hyper.SignalVariance / float64(frequencies))
	for i := range p.weights.Data[:2*frequencies*count] {
		p.weights.Data[i] = amplitude * rng.NormFloat64()
	}
	p.correct(rng)
	return p, nil
}

// correct sets the weights of the covariances to K⁻¹(y − m − f − e), given a draw f of the prior
// and a draw e of the noise at the observations.
func (p *Paths) correct(rng *rand.Rand) {
	g, features := p.gp, 2*p.frequencies.Rows
	if g.n == 0 {
		return
	}
	prior, row, z := newGeneral(g.n, p.count), make([]float64, features), make([]float64, g.d)
	for i := range g.n {
		g.scaled.at(z, i)
		p.features(row, z)
		blas64.Gemv(blas.Trans, 1, p.priorWeights(), vector(row), 0, vector(generalRow(prior, i)))
	}
	column := make([]float64, g.n)
	for s := range p.count {
		g.noise.draw(column, g.jitter, rng)
		for i := range column {
			column[i] = g.residual[i] - prior.Data[i*prior.Stride+s] - column[i]
		}
		g.factor.solve(blas.NoTrans, column)
		g.factor.solve(blas.Trans, column)
		for i, v := range column {
			p.weights.Data[(features+i)*p.weights.Stride+s] = v
		}
	}
}

// priorWeights returns the weights of the cosines and sines.
func (p *Paths) priorWeights() blas64.General {
	w := p.weights
	w.Rows = 2 * p.frequencies.Rows
	return w
}

// features stores the cosines and sines at the scaled point z.
func (p *Paths) features(dst, z []float64) {
	for f := range p.frequencies.Rows {
		var angle float64
		for j, w := range generalRow(p.frequencies, f) {
			angle += w * z[j]
		}
		dst[2*f+1], dst[2*f] = math.Sincos(angle)
	}
}

// Evaluate stores the values of all functions at q points, q rows of a value of each one after the
// other, into dst. The cost is O(q(d + count)(frequencies + n)). It panics if a length is wrong.
func (p *Paths) Evaluate(dst []float64, x [][]float64) {
	g := p.gp
	if len(dst) != len(x)*p.count {
		panic(panicLength)
	}
	if p.count == 0 {
		return
	}
	features, width := 2*p.frequencies.Rows, p.weights.Rows
	terms, z := newGeneral(min(batch, len(x)), width), make([]float64, g.d)
	for first := 0; first < len(x); first += batch {
		part := x[first:min(first+batch, len(x))]
		terms.Rows = len(part)
		values := blas64.General{Rows: len(part), Cols: p.count, Stride: p.count, Data: dst[first*p.count:]}
		for a, q := range part {
			if len(q) != g.d {
				panic(panicDimension)
			}
			scaleTo(z, q, g.hyper.LengthScales)
			row := generalRow(terms, a)
			p.features(row[:features], z)
			g.covariances(row[features:], nil, z, g.scaled)
			mean := g.priorMean(q)
			for s := range p.count {
				values.Data[a*p.count+s] = mean
			}
		}
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, terms, p.weights, 1, values)
	}
}

// draw stores a draw of the noise of n observations, with jitter. Along a run the shared noise is
// drawn from one position to the next, since it correlates like a Markov process.
func (e *noise) draw(dst []float64, jitter float64, rng *rand.Rand) {
	order := make([]int, len(dst))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(e.groups[a], e.groups[b]), cmp.Compare(e.positions[a], e.positions[b]))
	})
	var fading, shared float64 // by the run, of variance 1
	for k, i := range order {
		continues := k > 0 && e.groups[i] > 0 && e.groups[i] == e.groups[order[k-1]]
		correlation := 0.0
		if continues && e.decay > 0 {
			correlation = math.Exp(-(e.positions[i] - e.positions[order[k-1]]) / e.decay)
		}
		fading = correlation*fading + math.Sqrt(1-correlation*correlation)*rng.NormFloat64()
		if e.fading < 1 && !continues {
			shared = rng.NormFloat64()
		}
		learned := e.deviations[i] * (math.Sqrt(e.fading)*fading + math.Sqrt(1-e.fading)*shared)
		dst[i] = learned + math.Sqrt(e.known[i]+jitter)*rng.NormFloat64()
	}
}

package surrogate

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// Foresight is a posterior and b further observations whose outcomes are not known yet. They
// are distributed as Y = mean + Pz, with b standard normals z and the factor P of the
// covariance of the outcomes, noise included. Once the first c of them are known, the
// posterior mean at x has moved by
//
//	Σ_{i<c} loadings_i(x) z_i.
//
// So a draw of z shows what a posterior may become with one observation after the other.
// A Foresight is immutable and safe for concurrent use.
type Foresight struct {
	gp *GP // with the further observations
	n  int // number of observations before them
}

// Foresee returns the posterior with further observations, whose field Y is not used. It is
// [GP.Extend] otherwise.
func (g *GP) Foresee(obs Observations) (*Foresight, error) {
	obs.Y = make([]float64, len(obs.X))
	gp, err := g.Extend(obs)
	if err != nil {
		return nil, err
	}
	return &Foresight{gp: gp, n: g.n}, nil
}

// Len returns the number b of further observations.
func (f *Foresight) Len() int { return f.gp.n - f.n }

// Predict stores the b loadings at x and returns the posterior mean without the further
// observations, in units of Y. The cost is O((n+b)²), without allocation. Predict panics if a
// length is wrong.
func (f *Foresight) Predict(loadings, x []float64) (mean float64) {
	g := f.gp
	if len(x) != g.d {
		panic(panicDimension)
	}
	if len(loadings) != f.Len() {
		panic(panicLength)
	}
	w := g.workspace()
	defer workspaces.Put(w)
	scaleTo(w.point, x, g.hyper.LengthScales)
	g.covariances(w.covariance, nil, w.point, g.scaled)
	g.factor.solve(blas.NoTrans, w.covariance)
	copy(loadings, w.covariance[f.n:])
	return g.priorMean(x) + blas64.Dot(vector(w.covariance[:f.n]), vector(g.whitened[:f.n]))
}

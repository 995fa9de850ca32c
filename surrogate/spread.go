package surrogate

import (
	"errors"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

const (
	// spreadStep is the step of θ by which gradients are compared.
	spreadStep = 1e-3
	// leastPrecision bounds the curvature of the log density from below: where the data and the
	// prior say less of a logarithm, it varies with this precision.
	leastPrecision = 0.25
)

// Spread returns count draws of hyperparameters from the normal approximation of their posterior
// density around h, which [Fit] has found for the same observations and options (Laplace's method,
// see D. J. C. MacKay, Information Theory, Inference, and Learning Algorithms, Cambridge University
// Press 2003, chapter 27). Draws come in pairs, on opposite sides of h, so that their mean is near h.
// Draws outside of the bounds of Fit are moved to them, and the weight of Options.Base does not vary.
// Predictions averaged over the draws hold the uncertainty of the hyperparameters. The cost is
// O(k n³) for k hyperparameters. Spread returns an error if the density cannot be computed.
func Spread(obs Observations, o Options, h Hyperparameters, count int, rng *rand.Rand) ([]Hyperparameters, error) {
	p, err := o.problemAt(obs, h)
	if err != nil {
		return nil, err
	}
	theta := p.logs(h)
	p.clamp(theta)
	precision, err := p.curvature(theta)
	if err != nil {
		return nil, err
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(precision, true) {
		return nil, errors.New("surrogate: the curvature of the posterior has no eigenvalues")
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	values := eigen.Values(nil)
	var draws []Hyperparameters
	steps := mat.NewVecDense(len(values), nil)
	for k := range count {
		if k%2 == 1 {
			steps.ScaleVec(-1, steps)
		} else {
			for i, v := range values {
				steps.SetVec(i, rng.NormFloat64()/math.Sqrt(max(v, leastPrecision)))
			}
		}
		var moved mat.VecDense
		moved.MulVec(&vectors, steps)
		at := make([]float64, len(theta))
		for i := range at {
			at[i] = theta[i] + moved.AtVec(i)
		}
		p.clamp(at)
		next, err := p.hyperparameters(at)
		if err != nil {
			return nil, err
		}
		next.BaseWeight = h.BaseWeight
		draws = append(draws, next)
	}
	return draws, nil
}

// LogPosterior returns the logarithm of the density that [Fit] maximises, at h: of the observations, in
// their units, times the prior of the hyperparameters that are fitted, up to a constant of each prior. It
// compares models of the same observations. Hyperparameters that are not fitted come from Options; h must be
// within the bounds of Fit. LogPosterior returns an error if the density cannot be computed.
func LogPosterior(obs Observations, o Options, h Hyperparameters) (float64, error) {
	p, err := o.problemAt(obs, h)
	if err != nil {
		return 0, err
	}
	value, err := newLogPosterior(p).Value(p.logs(h))
	belief, _ := o.BaseWeight.LogDensity(h.BaseWeight)
	return belief - value - float64(p.n)*math.Log(p.units.scale), err
}

// problemAt returns the problem that Fit solves, with the base weight of h.
func (o Options) problemAt(obs Observations, h Hyperparameters) (*problem, error) {
	d := len(h.LengthScales)
	if err := obs.check(d); err != nil {
		return nil, err
	}
	if err := o.checkTied(d); err != nil {
		return nil, err
	}
	kernel, prior, scale := o.Kernel, o.Prior, 1.0
	if kernel == nil {
		kernel = Matern52{}
	}
	if prior == nil {
		scales, _ := ties(o, d)
		prior = new(DefaultPrior(scales))
	}
	if o.Base != nil {
		scale = math.Sqrt(o.Base.hyper.SignalVariance)
	}
	obs.Y = residuals(obs, o.Base, h.BaseWeight)
	units, err := standardise(obs.Y, scale)
	if err != nil {
		return nil, err
	}
	return newProblem(kernel, *prior, obs, units, o), nil
}

// clamp moves θ into its bounds.
func (p *problem) clamp(theta []float64) {
	for i := range theta {
		theta[i] = min(max(theta[i], p.lower[i]), p.upper[i])
	}
}

// curvature returns the second derivatives of minus the log density at θ, by differences of
// gradients.
func (p *problem) curvature(theta []float64) (*mat.SymDense, error) {
	k := len(theta)
	density, at := newLogPosterior(p), make([]float64, k)
	gradients := [2][]float64{make([]float64, k), make([]float64, k)}
	rows := mat.NewDense(k, k, nil)
	for i := range k {
		for side, step := range []float64{-spreadStep, spreadStep} {
			copy(at, theta)
			at[i] += step
			if _, err := density.Value(at); err != nil {
				return nil, err
			}
			density.Gradient(gradients[side])
		}
		for j := range k {
			rows.Set(i, j, (gradients[1][j]-gradients[0][j])/(2*spreadStep))
		}
	}
	symmetric := mat.NewSymDense(k, nil)
	for i := range k {
		for j := range i + 1 {
			symmetric.SetSym(i, j, (rows.At(i, j)+rows.At(j, i))/2)
		}
	}
	return symmetric, nil
}

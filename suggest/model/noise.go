package model

import (
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/mathext"
)

const (
	// priorDegrees is the weight, in degrees of freedom, of the smoothed
	// variance against a configuration's own sample variance.
	priorDegrees = 4.0

	// givenDegrees is the weight of a standard error of a single run, which does not come
	// from the spread of runs.
	givenDegrees = 30.0

	// slopeDeviation is the prior standard deviation of the change of the log
	// variance from one face of the unit cube to the other.
	slopeDeviation = 2.0

	// roughness is the variance of the log variance around its linear trend.
	roughness = 0.5

	// minVarianceRatio bounds single variances from below, relative to their
	// mean, so that the logarithm of a lucky zero does not count for much.
	minVarianceRatio = 1e-4
)

// smoothVariances completes and steadies the noise variances of means of runs:
// each variance per run is shrunk towards a trend over x, with which unknown
// (NaN) ones are filled in. It returns nil if all are unknown.
func smoothVariances(x [][]float64, variance []float64, runs []int) []float64 {
	var known [][]float64
	var perRun, degrees []float64
	for i, v := range variance {
		if math.IsNaN(v) {
			continue
		}
		known = append(known, x[i])
		perRun = append(perRun, v*float64(runs[i]))
		degrees = append(degrees, degreesOfFreedom(runs[i]))
	}
	if len(known) == 0 {
		return nil
	}
	trend := fitLogVariance(known, perRun, degrees)
	smooth := make([]float64, len(variance))
	for i, v := range variance {
		r := float64(runs[i])
		smooth[i] = trend.at(x[i]) / r
		if !math.IsNaN(v) {
			nu := degreesOfFreedom(runs[i])
			smooth[i] = (priorDegrees*smooth[i] + nu*v) / (priorDegrees + nu)
		}
	}
	return smooth
}

func degreesOfFreedom(runs int) float64 {
	if runs == 1 {
		return givenDegrees
	}
	return float64(runs - 1)
}

// logVariance is the trend exp(intercept + slope·x) of a variance; the zero
// variance if slope is nil.
type logVariance struct {
	intercept float64
	slope     []float64
}

func (v logVariance) at(x []float64) float64 {
	if v.slope == nil {
		return 0
	}
	sum := v.intercept
	for j, b := range v.slope {
		sum += b * x[j]
	}
	return math.Exp(sum)
}

// fitLogVariance fits the trend to sample variances at x with the given
// degrees of freedom ν, by Bayesian linear regression: a sample variance is
// σ²χ²_ν/ν, whose logarithm has the mean ln σ² + ψ(ν/2) - ln(ν/2) and the
// variance ψ₁(ν/2). Slopes have a Gaussian prior, the intercept a flat one.
func fitLogVariance(x [][]float64, variance, degrees []float64) logVariance {
	mean := 0.0
	for _, v := range variance {
		mean += v / float64(len(variance))
	}
	if mean == 0 {
		return logVariance{}
	}
	dim := len(x[0]) + 1
	precision := mat.NewSymDense(dim, nil)
	for j := 1; j < dim; j++ {
		precision.SetSym(j, j, 1/(slopeDeviation*slopeDeviation))
	}
	target := mat.NewVecDense(dim, nil)
	row := mat.NewVecDense(dim, nil)
	row.SetVec(0, 1)
	for i, v := range variance {
		for j, u := range x[i] {
			row.SetVec(j+1, u-0.5)
		}
		half := degrees[i] / 2
		level := math.Log(math.Max(v, minVarianceRatio*mean)) - mathext.Digamma(half) + math.Log(half)
		weight := 1 / (trigamma(half) + roughness)
		precision.SymRankOne(precision, weight, row)
		target.AddScaledVec(target, weight*level, row)
	}
	var chol mat.Cholesky
	if !chol.Factorize(precision) {
		panic("suggest: the precision of a ridge regression is positive definite")
	}
	var b mat.VecDense
	if err := chol.SolveVecTo(&b, target); err != nil {
		panic("suggest: " + err.Error())
	}
	trend := logVariance{intercept: b.AtVec(0), slope: make([]float64, dim-1)}
	for j := range trend.slope {
		trend.slope[j] = b.AtVec(j + 1)
		trend.intercept -= trend.slope[j] / 2
	}
	return trend
}

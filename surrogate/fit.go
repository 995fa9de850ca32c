package surrogate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpareto/dpareto/internal/lbfgs"
)

// Bounds of the hyperparameters that [Fit] searches, for outputs standardised
// to mean 0 and standard deviation 1. The bounds of the noise variance apply at the
// centre of the unit cube.
const (
	MinLengthScale = 0.05
	MaxLengthScale = 10

	// MaxFixedNoiseLengthScale is the bound where the noise is fixed: there the values may show, to three digits, that
	// they do not depend on an input. With at most 10 a function without noise stayed uncertain by a hundredth of its range
	// far from all observations. With 1000 rounding errors show in derivatives.
	MaxFixedNoiseLengthScale = 100

	MinSignalVariance = 0.05
	MaxSignalVariance = 20
	MinNoiseVariance  = 1e-6
	MaxNoiseVariance  = 10
	MinRunVariance    = 1e-6
	MinNoiseSlope     = -8
	MaxNoiseSlope     = 8
	MinNoiseDecay     = 0.02
	MaxNoiseDecay     = 50
)

// DefaultRestarts is the number of restarts of [Fit] if Options.Restarts is 0.
const DefaultRestarts = 5

// Options configure [Fit]. The zero value is ready to use.
type Options struct {
	// Kernel is the correlation function. Nil means [Matern52].
	Kernel Kernel

	// Prior is the prior of the hyperparameters. Nil means [DefaultPrior] for
	// the number of length scales; the zero [LogNormalPrior] gives maximum likelihood.
	Prior *LogNormalPrior

	// Restarts is the number of starting points of the optimiser beyond the
	// first. The starting points are, in this order, Start if given, one at
	// typical values, and random ones. Zero means DefaultRestarts; a negative
	// number means none, which with Start is a cheap refit.
	Restarts int

	// FixedNoise, if not nil, is the homoscedastic noise variance >= 0 of one
	// run in units of Y², which is then not fitted. Zero is right if the known
	// noise variances of the observations are all the noise there is.
	FixedNoise *float64

	// MaxRunVariance, if not 0, fits Hyperparameters.RunVariance too if a group has two
	// observations, even if FixedNoise is given. It is the largest value, in units of Y². How
	// runs differ does not tell noise from what sets them apart, so that the bound should come from
	// observations that are not in groups. With 0 it is 0.
	MaxRunVariance float64

	// MaxNoise, if not 0, is about the largest learned noise variance of one run at any
	// observation, in units of Y². It keeps noise that grows over the space from
	// explaining signal.
	MaxNoise float64

	// NoiseSlopes fits Hyperparameters.NoiseSlopes too, unless FixedNoise is given.
	// Without, the noise of one run is the same everywhere.
	NoiseSlopes bool

	// Base, if not nil, is the posterior of an earlier study with the same inputs
	// and units of Y, whose mean may serve as prior mean. Fit chooses its weight
	// Hyperparameters.BaseWeight among 0, ½ and 1 by the posterior density, with
	// the other hyperparameters fitted for each; with fewer than 3 observations it
	// is 1. That multiplies the cost of Fit by three.
	Base *GP

	// BaseWeight is the prior of that weight. By default it is flat.
	BaseWeight Normal

	// Tied holds for each of the d inputs the index of its length scale, from 0 to
	// the number of length scales less 1. Inputs that share one are for instance
	// the indicators of the levels of a categorical parameter: their kernel then
	// depends only on whether the levels are equal (Hamming distance). The prior
	// counts a shared length scale once. Nil means one length scale per input.
	Tied []int

	// Tolerance is the gain of log posterior density, in nats, that a step of the
	// optimiser must promise to be taken. Zero means to go on to the maximum. For
	// a refit from Start 0.01 is enough to follow new observations and takes 3 to 8
	// evaluations instead of 10 to 40.
	Tolerance float64

	// MaxEvaluations is the largest number of evaluations, each of cost O(n³), per
	// starting point. Zero or less means no limit but 100 steps.
	MaxEvaluations int

	// Seed determines the random starting points.
	Seed uint64

	// Workers climb from the starting points in parallel. The zero value uses
	// GOMAXPROCS goroutines.
	Workers Workers

	// Start, if not nil, is a first starting point, for instance the
	// hyperparameters of an earlier fit. It is moved into the bounds; its Mean
	// and BaseWeight are ignored.
	Start *Hyperparameters
}

// checkTied panics if Tied does not have d entries and returns an error unless
// they are the indices 0 to g − 1 of some g.
func (o Options) checkTied(d int) error {
	if o.Tied == nil {
		return nil
	}
	if len(o.Tied) != d {
		panic(panicDimension)
	}
	used := make([]bool, d+1)
	highest := -1
	for j, k := range o.Tied {
		if k < 0 || k >= d {
			return fmt.Errorf("surrogate: Options.Tied[%d] is %d, want an index from 0 to %d", j, k, d-1)
		}
		used[k] = true
		highest = max(highest, k)
	}
	if unused := slices.Index(used, false); unused < highest {
		return fmt.Errorf("surrogate: Options.Tied gives no input the length scale %d, but one %d", unused, highest)
	}
	return nil
}

// standardisation maps outputs y to (y − mean)/scale.
type standardisation struct {
	mean, scale float64
}

// standardise returns the sample mean and standard deviation of y. For outputs
// that do not vary (up to rounding) the scale is the fallback.
func standardise(y []float64, fallback float64) (standardisation, error) {
	n := float64(len(y))
	var mean, magnitude float64
	for _, v := range y {
		mean += v / n
		magnitude = max(magnitude, math.Abs(v))
	}
	if magnitude > 1e150 {
		return standardisation{}, fmt.Errorf("surrogate: Y reaches the magnitude %g, want at most 1e150", magnitude)
	}
	var sum float64
	for _, v := range y {
		sum += (v - mean) * (v - mean)
	}
	scale := math.Sqrt(sum / max(1, n-1))
	if scale <= 1e-14*magnitude || scale < 1e-150 {
		scale = fallback
	}
	return standardisation{mean: mean, scale: scale}, nil
}

// Fit returns the posterior at the hyperparameters that maximise the marginal
// likelihood times the prior (MAP over the logarithms of the hyperparameters),
// within the bounds MinLengthScale to MaxNoiseDecay. The mean is estimated by
// generalised least squares, with a normal prior around the sample mean of Y less
// the share of Base, as wide as their standard deviation. The result is never less probable
// than Start moved into the bounds, and does not depend on Options.Workers.
//
// The decay of the noise within groups is fitted if a group has two
// observations and the noise is not fixed at 0. Otherwise it is taken from Start, or is
// 1, so that later checkpoints of a run are not taken for new runs.
//
// Outputs that do not vary leave the scale of the function unknown; the bounds
// and the prior then hold in the units of Y, or for Base's signal variance in
// place of 1. With no observations Fit returns Base if there is one, and else the
// prior given by Start, which must not be nil.
//
// Fit uses a projected L-BFGS with analytic gradients from several starting
// points in parallel; each evaluation costs O(n³).
//
// Fit panics if the lengths disagree. It returns an error that names the first
// value that is not finite or out of range, the error of ctx if that ends
// first, and one if no starting point is feasible: it wraps
// [ErrNotPositiveDefinite] if the covariance cannot be factorised there.
func Fit(ctx context.Context, obs Observations, o Options) (*GP, error) {
	kernel, prior := o.Kernel, o.Prior
	if kernel == nil {
		kernel = Matern52{}
	}
	if o.FixedNoise != nil {
		if err := checkVariance("Options.FixedNoise", *o.FixedNoise); err != nil {
			return nil, err
		}
	}
	if o.Start != nil {
		if err := o.Start.check("Options.Start"); err != nil {
			return nil, err
		}
	}
	if err := checkVariance("Options.MaxRunVariance", o.MaxRunVariance); err != nil {
		return nil, err
	}
	if !(o.MaxNoise >= 0) {
		return nil, fmt.Errorf("surrogate: Options.MaxNoise is %v, want a number >= 0", o.MaxNoise)
	}
	if !(o.Tolerance >= 0) {
		return nil, fmt.Errorf("surrogate: Options.Tolerance is %v, want a number >= 0", o.Tolerance)
	}
	if len(obs.X) == 0 {
		if o.Base != nil {
			return o.Base, nil
		}
		if o.Start == nil {
			return nil, errors.New("surrogate: no observations, no Options.Base and no Options.Start, so the dimension is unknown")
		}
		h := o.Start.clone()
		if o.FixedNoise != nil {
			h.NoiseVariance, h.NoiseSlopes = *o.FixedNoise, nil
		}
		return New(kernel, h, obs)
	}
	d := len(obs.X[0])
	if o.Start != nil && len(o.Start.LengthScales) != d {
		panic(panicDimension)
	}
	if err := obs.check(d); err != nil {
		return nil, err
	}
	if err := o.checkTied(d); err != nil {
		return nil, err
	}
	if prior == nil {
		scales, _ := ties(o, d)
		prior = new(DefaultPrior(scales))
	}
	scale := 1.0 // of outputs that do not vary
	if o.Base != nil {
		if o.Base.d != d {
			panic(panicDimension)
		}
		scale = math.Sqrt(o.Base.hyper.SignalVariance)
	}

	limits := lbfgs.Options{MaxEvaluations: max(0, o.MaxEvaluations), Decrease: o.Tolerance}
	var best Hyperparameters
	least := math.Inf(1)
	for _, weight := range baseWeights(o.Base, len(obs.X)) {
		part := obs
		part.Y = residuals(obs, o.Base, weight)
		units, err := standardise(part.Y, scale)
		if err != nil {
			return nil, err
		}
		problem := newProblem(kernel, *prior, part, units, o)
		theta, value, err := maximise(ctx, problem, problem.starts(o), limits, o.Workers)
		if err != nil {
			return nil, err
		}
		// The density of the residuals in units of Y.
		belief, _ := o.BaseWeight.LogDensity(weight)
		if value += float64(len(obs.X))*math.Log(units.scale) - belief; value < least {
			least = value
			if best, err = problem.hyperparameters(theta); err != nil {
				return nil, err
			}
			best.BaseWeight = weight
		}
	}
	return NewWithBase(kernel, best, obs, o.Base)
}

// starts returns the starting points.
func (p *problem) starts(o Options) [][]float64 {
	count := 1 + DefaultRestarts
	switch {
	case o.Restarts > 0:
		count = 1 + o.Restarts
	case o.Restarts < 0:
		count = 1
	}
	starts := make([][]float64, 0, count)
	if o.Start != nil {
		starts = append(starts, p.logs(*o.Start))
	}
	if len(starts) < count {
		starts = append(starts, p.typical())
	}
	// The second word keeps this sequence apart from others with the same seed.
	rng := rand.New(rand.NewPCG(o.Seed, 0x7375727267617465))
	for len(starts) < count {
		starts = append(starts, p.random(rng))
	}
	return starts
}

// maximise climbs from every start and returns the best maximum found, of equal
// ones the first, with minus the logarithm of the density there. The climbs are
// independent, so the workers cannot change the result. A panic in one of them, for
// instance of a foreign kernel, reaches the caller, who can recover from it.
func maximise(ctx context.Context, p *problem, starts [][]float64, limits lbfgs.Options, workers Workers) (theta []float64, value float64, err error) {
	values := make([]float64, len(starts))
	errs := make([]error, len(starts))
	workers.Share(len(starts), func() func(int) {
		posterior := newLogPosterior(p)
		return func(i int) {
			values[i], errs[i] = lbfgs.Minimise(ctx, posterior, starts[i], p.lower, p.upper, limits)
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, 0, fmt.Errorf("surrogate: fit: %w", err)
	}
	best := -1
	for i, err := range errs {
		if err == nil && (best < 0 || values[i] < values[best]) {
			best = i
		}
	}
	if best < 0 {
		return nil, 0, errs[0]
	}
	return starts[best], values[best], nil
}

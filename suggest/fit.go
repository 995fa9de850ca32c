package suggest

import (
	"cmp"
	"context"
	"slices"

	"github.com/dpareto/dpareto/surrogate"
)

// observations are the data of one objective's surrogate.
type observations struct {
	x             [][]float64 // encoded points
	y             []float64   // values on the surrogate's scale
	variance      []float64   // noise variances of y, NaN if unknown
	runs          []int       // runs behind each y
	deterministic bool        // there is no noise
}

func (d *observations) add(x []float64, y, variance float64, runs int) {
	d.x = append(d.x, x)
	d.y = append(d.y, y)
	d.variance = append(d.variance, variance)
	d.runs = append(d.runs, runs)
}

// fit returns the surrogate of d and the noise variance of a typical
// observation, beyond what the surrogate has learned by itself.
//
// Where the history knows standard errors they are the noise, smoothed over the
// space because few runs say little about a variance. A noise variance that all
// observations share is learned as well: it is all the noise if no standard
// error is known, and takes up what the kernel can not follow otherwise.
func (d *observations) fit(ctx context.Context, restarts int, seed uint64) (gp *surrogate.GP, typicalNoise float64, err error) {
	options := surrogate.Options{Restarts: cmp.Or(restarts, defaultRestarts(len(d.y))), Seed: seed}
	obs := surrogate.Observations{X: d.x, Y: d.y}
	if d.deterministic {
		options.FixedNoise = new(float64)
	} else if obs.NoiseVariance = smoothVariances(d.x, d.variance, d.runs); obs.NoiseVariance != nil {
		sorted := slices.Sorted(slices.Values(obs.NoiseVariance))
		typicalNoise = sorted[len(sorted)/2]
	}
	gp, err = fitSubset(ctx, obs, options)
	return gp, typicalNoise, err
}

// maxFitted is the number of observations up to which all of them determine the
// hyperparameters. An evaluation of their posterior costs O(n³).
const maxFitted = 128

// fitSubset returns the surrogate of all observations, with hyperparameters
// fitted to an evenly spaced subset of at most maxFitted of them.
func fitSubset(ctx context.Context, obs surrogate.Observations, o surrogate.Options) (*surrogate.GP, error) {
	n := len(obs.Y)
	if n <= maxFitted {
		return surrogate.Fit(ctx, obs, o)
	}
	var subset surrogate.Observations
	for i := range maxFitted {
		k := i * (n - 1) / (maxFitted - 1)
		subset.X = append(subset.X, obs.X[k])
		subset.Y = append(subset.Y, obs.Y[k])
		if obs.NoiseVariance != nil {
			subset.NoiseVariance = append(subset.NoiseVariance, obs.NoiseVariance[k])
		}
	}
	gp, err := surrogate.Fit(ctx, subset, o)
	if err != nil {
		return nil, err
	}
	return surrogate.New(surrogate.Matern52{}, gp.Hyperparameters(), obs)
}

// defaultRestarts is the number of starting points beyond the first for n observations: the
// fewer data, the more local maxima the posterior of the hyperparameters has.
func defaultRestarts(n int) int {
	switch {
	case n <= 32:
		return 4
	case n <= 64:
		return 2
	case n <= 128:
		return 1
	default:
		return -1 // none
	}
}

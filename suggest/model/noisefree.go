package model

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/surrogate"
)

// noiseFreeEvidence is the logarithm of how many times as probable values must be without noise as
// with learned noise before they count as free of it. The prior of learned noise expects some, and a
// few values can look smooth by chance.
const noiseFreeEvidence = 3

// learned are the hyperparameters that a fit has found.
type learned struct {
	noisy surrogate.Hyperparameters // with learned noise, or with the known one
	best  surrogate.Hyperparameters // these, or those without noise
	// noiseFree says that best are those without noise.
	noiseFree bool
	// ofRuns is the bound of the noise that whole runs share, 0 if that was not learned.
	ofRuns float64
	// narrow says that the fence is narrow.
	narrow bool
}

// at returns the hyperparameters for observations that may have grown since the fit, and whether they
// are without noise.
func (l learned) at(d *observations) (surrogate.Hyperparameters, bool) {
	if l.noiseFree {
		if _, differ := d.repetitions(); differ {
			return l.noisy, false
		}
	}
	return l.best, l.noiseFree
}

// withoutNoise fits a surrogate without noise to observations with learned noise, and reports whether
// the observations are free of it: repetitions gave the same, or the surrogate without noise is the
// better one. It costs a fit only where repetitions say so, or where the values ask for less noise than
// its prior expects: larger noise is supported by the values themselves. Fractions of records, whose noise has a
// floor, never count as free of it. Values without noise may share the noise of their run, unless repetitions are the
// same.
func (d *observations) withoutNoise(ctx context.Context, obs surrogate.Observations, options surrogate.Options, noisy *surrogate.GP) (surrogate.Hyperparameters, bool, error) {
	var none surrogate.Hyperparameters
	if options.FixedNoise != nil || d.knowsNoise() || d.homoscedastic {
		return none, false, nil
	}
	agreement, differ := d.repetitions()
	if differ || agreement < noiseFreeEvidence && d.asksForNoise(noisy) {
		return none, false, nil
	}
	with := noisy.Hyperparameters()
	none, odds, err := d.oddsOfNone(ctx, obs, options, with)
	return none, agreement+max(odds, 0) > noiseFreeEvidence, err
}

// oddsOfNone fits a surrogate without noise. It returns its hyperparameters, and the logarithm of how many
// times as probable it is as one with the given hyperparameters.
func (d *observations) oddsOfNone(ctx context.Context, obs surrogate.Observations, options surrogate.Options, with surrogate.Hyperparameters) (none surrogate.Hyperparameters, odds float64, err error) {
	obs = d.distinct(obs)
	density, err := surrogate.LogPosterior(obs, options, with)
	if err != nil {
		return none, 0, err
	}
	options.FixedNoise, options.NoiseSlopes, options.Start = d.nugget(), false, &with
	if agreement, _ := d.repetitions(); agreement >= noiseFreeEvidence {
		options.MaxRunVariance = 0
	}
	options.Restarts = 1 // typical values
	gp, err := surrogate.Fit(ctx, obs, options)
	if err != nil {
		return none, 0, err
	}
	none = gp.Hyperparameters()
	without, err := surrogate.LogPosterior(obs, options, none)
	return none, without - density, err
}

// showNoise reports whether values with learned noise show that there is some, see [Model.ShowsNoise]. h are the
// hyperparameters with noise. Repetitions that agree speak against it.
func (d *observations) showNoise(ctx context.Context, obs surrogate.Observations, options surrogate.Options, h surrogate.Hyperparameters, byRepetitions bool) (bool, error) {
	agreement, differ := d.repetitions()
	if differ || byRepetitions || agreement > 0 {
		return differ, nil
	}
	_, odds, err := d.oddsOfNone(ctx, obs, options, h)
	return -odds > noiseFreeEvidence, err
}

// asksForNoise reports whether the learned noise is at least as large as its prior expects, but for what whole
// runs share.
func (d *observations) asksForNoise(noisy *surrogate.GP) bool {
	noise := 0.0
	for _, x := range d.x {
		noise += noisy.Noise(x) / float64(len(d.x))
	}
	h := noisy.Hyperparameters()
	noise *= h.NoiseVariance / (h.NoiseVariance + h.RunVariance)
	return noise >= d.expectedNoise()*stat.Variance(d.y, nil)
}

// expectedNoise returns the mode of the prior of learned noise, relative to the variance of the values.
func (d *observations) expectedNoise() float64 {
	if d.forReading {
		return math.Exp(readingNoise.Mean)
	}
	return math.Exp(surrogate.DefaultPrior(d.lengthScales()).Noise.Mean)
}

// repetitions reports whether some configuration has values that differ by more than the nugget. If
// none has, evidence is the logarithm of how improbable it is that repeated values agree by
// chance. They do where values are rounded, which shows in how often the values of different
// configurations are equal. Noise is smaller than the spread of all values, so that it makes
// repetitions equal that much more often.
func (d *observations) repetitions() (evidence float64, differ bool) {
	limit := math.Sqrt(*d.nugget())
	first := make(map[int]float64)
	var values []float64
	agreements := 0
	for i, c := range d.configuration {
		if c < 0 {
			continue
		}
		v, repeated := first[c]
		switch {
		case !repeated:
			first[c] = d.y[i]
			values = append(values, d.y[i])
		case math.Abs(d.y[i]-v) > limit:
			return 0, true
		default:
			agreements++
		}
	}
	if agreements == 0 {
		return 0, false
	}
	slices.Sort(values)
	ties, equal := 0, 0
	for i := 1; i < len(values); i++ {
		if values[i] == values[i-1] {
			equal++
		} else {
			equal = 0
		}
		ties += equal
	}
	pairs := len(values) * (len(values) - 1) / 2
	chance := float64(ties+1) / float64(pairs+1) / math.Sqrt(d.expectedNoise())
	return -float64(agreements) * math.Log(min(chance, 1)), false
}

// distinct returns the observations in the surrogate's form without repeated ones.
func (d *observations) distinct(obs surrogate.Observations) surrogate.Observations {
	var kept []int
	seen := make(map[int]bool)
	for i, c := range d.configuration {
		if c < 0 || !seen[c] {
			kept = append(kept, i)
			seen[c] = true
		}
	}
	if len(kept) == len(obs.X) {
		return obs
	}
	out := surrogate.Observations{X: pick(obs.X, kept), Y: pick(obs.Y, kept), Runs: pick(obs.Runs, kept)}
	out.NoiseVariance = pick(obs.NoiseVariance, kept)
	out.Groups, out.Positions = pick(obs.Groups, kept), pick(obs.Positions, kept)
	return out
}

// pick returns the elements of s at the given places, or nil if s is nil.
func pick[T any](s []T, places []int) []T {
	if s == nil {
		return nil
	}
	out := make([]T, len(places))
	for i, k := range places {
		out[i] = s[k]
	}
	return out
}

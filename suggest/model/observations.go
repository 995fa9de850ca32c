package model

import (
	"cmp"
	"context"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/surrogate"
)

// observations are the data of one metric's surrogate.
type observations struct {
	configuration []int       // that was observed, −1 for an infeasible one
	x             [][]float64 // encoded points
	y             []float64   // values on the surrogate's scale
	variance      []float64   // noise variances of y, NaN if unknown
	floor         []float64   // least noise variances of y, also where they are unknown
	doubt         []float64   // further noise variances of squashed values, nil if there are none
	fence         fence       // beyond which values are squashed
	narrow        bool        // the fence is narrow
	logSlope      float64     // of the squashed values, in all
	runs          []int       // runs behind each y
	group         []int       // the run that shares its noise with others, 0 for none
	position      []float64   // logarithm of the checkpoint
	deterministic bool        // there is no noise
	noiseFree     bool        // there is no noise but the known
	homoscedastic bool        // unknown noise is the same everywhere
	fractions     bool        // values are logits
	forReading    bool        // see ModelOptions
	smooth        bool        // see Options
	featured      bool        // inputs are features
	tied          []int       // see surrogate.Options
}

// reserve makes room for n observations.
func (d *observations) reserve(n int) {
	d.configuration, d.x = make([]int, 0, n), make([][]float64, 0, n)
	d.y, d.variance, d.position = make([]float64, 0, n), make([]float64, 0, n), make([]float64, 0, n)
	d.runs, d.group = make([]int, 0, n), make([]int, 0, n)
}

func (d *observations) add(configuration int, x []float64, y, variance float64, runs, group int, position float64) {
	d.configuration = append(d.configuration, configuration)
	d.x = append(d.x, x)
	d.y = append(d.y, y)
	d.variance = append(d.variance, variance)
	d.runs = append(d.runs, runs)
	d.group = append(d.group, group)
	d.position = append(d.position, position)
}

// surrogate returns the data in the surrogate's form, and how to fit them.
//
// Standard errors that the history knows are the noise, smoothed over the
// space because few runs say little about a variance. A noise variance that all
// observations share is learned as well, and takes up what the kernel cannot
// follow. If no standard error is known all noise is learned: how it changes
// over the space, how long the checkpoints of a run share it, and what of it a whole run shares.
func (d *observations) surrogate() (surrogate.Observations, surrogate.Options) {
	obs, options := d.trusted()
	if d.doubt == nil {
		return obs, options
	}
	noise := slices.Clone(d.doubt)
	for i, v := range obs.NoiseVariance {
		noise[i] += v
	}
	obs.NoiseVariance = noise
	return obs, options
}

// trusted is surrogate without the noise of squashed values.
func (d *observations) trusted() (surrogate.Observations, surrogate.Options) {
	obs := surrogate.Observations{X: d.x, Y: d.y}
	options := surrogate.Options{Tied: d.tied}
	prior := d.prior()
	switch {
	case d.deterministic:
		options.FixedNoise = new(float64)
		return obs, options
	case slices.ContainsFunc(d.variance, func(v float64) bool { return !math.IsNaN(v) }):
		obs.NoiseVariance = smoothVariances(d.x, d.cappedVariance(), d.runs)
		prior.Noise = surrogate.Normal{Mean: -7, StdDev: 2} // a misfit only
		isNoisy := slices.Max(obs.NoiseVariance) > 0
		if !isNoisy || d.noiseFree {
			options.FixedNoise = d.nugget()
		}
		if isNoisy && !d.featured {
			prior.Length = smoothness(d.lengthScales())
		}
	default:
		obs.Runs = make([]float64, len(d.runs))
		for i, r := range d.runs {
			obs.Runs[i] = float64(r)
		}
		if slices.ContainsFunc(d.floor, func(v float64) bool { return v > 0 }) {
			obs.NoiseVariance = d.floor
		}
		options.NoiseSlopes = !d.homoscedastic
		if d.forReading {
			prior.Noise = readingNoise
		}
	}
	if slices.Max(d.group) > 0 && !d.homoscedastic {
		obs.Groups, obs.Positions = d.group, d.position
		options.MaxNoise = max(sharedNoise*stat.PopVariance(d.y, nil), roughFactor*d.roughness())
		prior.Decay.StdDev = sharedDeviation
		if !d.fractions {
			prior.Slope.StdDev = sharedDeviation
		}
		if d.forReading {
			prior.Run = readingRun
		}
	}
	options.Prior = &prior
	return obs, options
}

// prior returns the prior of hyperparameters before it is made to suit the noise.
func (d *observations) prior() surrogate.LogNormalPrior {
	prior := surrogate.DefaultPrior(d.lengthScales())
	if d.featured {
		prior.Length = featureLength
	}
	return prior
}

// featureLength is the prior of the logarithm of a length scale where inputs are features: these are
// scaled so that 1/2 is typical, and known well enough for a factor of 2.2 to be one standard
// deviation.
var featureLength = surrogate.Normal{Mean: -math.Ln2, StdDev: 0.8}

// smoothness is the prior of the logarithm of a length scale, of n in all, where values have
// noise of a known size: about the diagonal of the unit cube, to a factor of e. Such
// noise makes a smooth function with a large range and a rough one look alike, and
// [surrogate.DefaultPrior], with its mode at a fifth of the diagonal and a standard
// deviation of a factor of 5.7, leaves too much to chance: the search looks for rough
// functions everywhere, and the measurements near a front do not add up.
func smoothness(n int) surrogate.Normal {
	return surrogate.Normal{Mean: math.Log(float64(n)) / 2, StdDev: 1}
}

// readingNoise is the prior of the logarithm of learned noise, relative to the variance of
// the values, in models for reading: from 0.25 % to 37 % of it within two standard
// deviations. With a wider one, a short history in which most runs learned nothing is all
// noise.
var readingNoise = surrogate.Normal{Mean: -3.5, StdDev: 1.25}

// readingRun is the prior of the logarithm of the noise that a whole run shares, relative to the variance of the
// values, in models for reading. One run does not show it: it shifts a curve, which stays as smooth as it was.
var readingRun = surrogate.Normal{Mean: -5, StdDev: 1}

// Noise that is free to grow along a run and towards some corner is a better model of curves that start flat and
// then fall than any stationary function is, and explains all that was learned as luck. So where runs have
// checkpoints, it may not.
const (
	// sharedDeviation is the prior standard deviation of the logarithm of the decay, and of the slopes, but for
	// fractions: the noise of their logits does differ by orders of magnitude, and they fall no further than a
	// stationary function.
	sharedDeviation = 0.5

	// sharedNoise bounds the noise, relative to the variance of the values, where runs do not show more of it.
	sharedNoise = 0.3

	// roughFactor is the largest learned noise relative to the roughness of runs: noise differs over the space.
	roughFactor = 3
)

// roughness returns a noise variance that three of four runs with at least three checkpoints stay below, and all runs
// where values are fractions. It is the mean square deviation of a checkpoint from the line between its neighbours,
// divided by the mean square deviation of unit noise. It includes the curvature of the curve and excludes noise that
// the run shares. It is 0 without such runs.
func (d *observations) roughness() float64 {
	groups := make(map[int][]int)
	for i, g := range d.group {
		if g != 0 {
			groups[g] = append(groups[g], i)
		}
	}
	var all []float64
	for _, run := range groups {
		slices.SortFunc(run, func(a, b int) int { return cmp.Compare(d.position[a], d.position[b]) })
		sum := 0.0
		for k := 1; k+1 < len(run); k++ {
			before, at, after := run[k-1], run[k], run[k+1]
			w := 0.5 // where all three are at the same place
			if length := d.position[after] - d.position[before]; length > 0 {
				w = (d.position[after] - d.position[at]) / length
			}
			off := d.y[at] - w*d.y[before] - (1-w)*d.y[after]
			sum += off * off / (1 + w*w + (1-w)*(1-w))
		}
		if len(run) > 2 {
			all = append(all, sum/float64(len(run)-2))
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	if d.fractions {
		return all[len(all)-1]
	}
	return all[3*len(all)/4]
}

// lengthScales returns the number of different length scales.
func (d *observations) lengthScales() int {
	if d.tied == nil {
		return len(d.x[0])
	}
	return slices.Max(d.tied) + 1
}

// maxNoise is the known noise variance, relative to the variance of the values, beyond
// which an observation is worthless anyway.
const maxNoise = 1e6

// cappedVariance returns the known noise variances, capped so that a single one does not
// hide the others.
func (d *observations) cappedVariance() []float64 {
	limit := maxNoise * stat.PopVariance(d.y, nil)
	if !(limit > 0) {
		limit = maxNoise // values that are all equal have no scale
	}
	capped := slices.Clone(d.variance)
	for i, v := range capped {
		if v > limit {
			capped[i] = limit
		}
	}
	return capped
}

// noiseFree is the noise variance, relative to the variance of the values, with which
// values without noise are modelled: enough for the factorisation of covariances.
const noiseFree = 1e-8

// nugget returns the noise variance for values that have none.
func (d *observations) nugget() *float64 {
	variance := noiseFree * stat.PopVariance(d.y, nil)
	return &variance
}

// knowsNoise reports whether noise, or the least that it can be, is known.
func (d *observations) knowsNoise() bool {
	return slices.ContainsFunc(d.variance, func(v float64) bool { return !math.IsNaN(v) }) ||
		slices.ContainsFunc(d.floor, func(v float64) bool { return v > 0 })
}

// typicalNoise returns the median of the noise variances per run if they are
// known, else NaN.
func (d *observations) typicalNoise(obs surrogate.Observations) float64 {
	if obs.NoiseVariance == nil || !d.knowsNoise() {
		return math.NaN()
	}
	perRun := make([]float64, len(obs.NoiseVariance))
	for i, v := range obs.NoiseVariance {
		perRun[i] = v * float64(d.runs[i])
		if d.doubt != nil {
			perRun[i] -= d.doubt[i] * float64(d.runs[i])
		}
	}
	slices.Sort(perRun)
	return perRun[len(perRun)/2]
}

// digest hashes everything that hyperparameters depend on: the data, the seed, and the
// hyperparameters that were learned before.
func (d *observations) digest(seed uint64, before digest) digest {
	h := fnv.New128a()
	var b [8]byte
	word := func(v uint64) {
		binary.LittleEndian.PutUint64(b[:], v)
		h.Write(b[:])
	}
	number := func(v float64) { word(math.Float64bits(v)) }
	flag := func(v bool) {
		if v {
			word(1)
		} else {
			word(0)
		}
	}
	h.Write(before[:])
	word(seed)
	flag(d.deterministic)
	flag(d.noiseFree)
	flag(d.homoscedastic)
	flag(d.forReading)
	flag(d.fractions)
	flag(d.smooth)
	flag(d.featured)
	word(uint64(len(d.tied)))
	for _, t := range d.tied {
		word(uint64(t))
	}
	for i, x := range d.x {
		for _, v := range x {
			number(v)
		}
		number(d.y[i])
		number(d.variance[i])
		number(float64(d.runs[i]))
		number(float64(d.group[i]))
		number(d.position[i])
		if d.floor != nil {
			number(d.floor[i])
		}
		if d.doubt != nil {
			number(d.doubt[i])
		}
	}
	var key digest
	h.Sum(key[:0])
	return key
}

// endsFactor is how many times as large as their ends show the noise of runs may be: a few ends leave it uncertain.
const endsFactor = 2

// noiseOfEnds returns the largest noise variance of one run that its ends allow, which are independent of each
// other, or 0 if there is nothing but ends.
func (d *observations) noiseOfEnds(ctx context.Context, obs surrogate.Observations, options surrogate.Options) (float64, error) {
	var ends []int
	last := make(map[int]int) // by group, its place in ends
	for i, group := range d.group {
		k, ok := last[group]
		switch {
		case group == 0 || !ok:
			last[group] = len(ends)
			ends = append(ends, i)
		case d.position[i] > d.position[ends[k]]:
			ends[k] = i
		}
	}
	if len(ends) == len(d.group) {
		return 0, nil
	}
	options.NoiseSlopes = false
	gp, err := surrogate.Fit(ctx, surrogate.Observations{
		X: pick(obs.X, ends), Y: pick(obs.Y, ends), Runs: pick(obs.Runs, ends), NoiseVariance: pick(obs.NoiseVariance, ends),
	}, options)
	if err != nil {
		return 0, err
	}
	return endsFactor * gp.Hyperparameters().NoiseVariance, nil
}

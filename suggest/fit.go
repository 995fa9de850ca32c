package suggest

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/surrogate"
)

// observations are the data of one metric's surrogate.
type observations struct {
	x             [][]float64 // encoded points
	y             []float64   // values on the surrogate's scale
	variance      []float64   // noise variances of y, NaN if unknown
	runs          []int       // runs behind each y
	group         []int       // the run that shares its noise with others, 0 for none
	position      []float64   // logarithm of the checkpoint
	deterministic bool        // there is no noise
	homoscedastic bool        // unknown noise is the same everywhere
	forReading    bool        // see ModelOptions
	tied          []int       // see surrogate.Options
}

// reserve makes room for n observations.
func (d *observations) reserve(n int) {
	d.x = make([][]float64, 0, n)
	d.y, d.variance, d.position = make([]float64, 0, n), make([]float64, 0, n), make([]float64, 0, n)
	d.runs, d.group = make([]int, 0, n), make([]int, 0, n)
}

func (d *observations) add(x []float64, y, variance float64, runs, group int, position float64) {
	d.x = append(d.x, x)
	d.y = append(d.y, y)
	d.variance = append(d.variance, variance)
	d.runs = append(d.runs, runs)
	d.group = append(d.group, group)
	d.position = append(d.position, position)
}

// surrogate returns the data as the surrogate takes them, and how to fit them.
//
// Where the history knows standard errors they are the noise, smoothed over the
// space because few runs say little about a variance. A noise variance that all
// observations share is learned as well, and takes up what the kernel can not
// follow. If no standard error is known all noise is learned: how it changes
// over the space, and how long the checkpoints of a run share it.
func (d *observations) surrogate() (surrogate.Observations, surrogate.Options) {
	obs := surrogate.Observations{X: d.x, Y: d.y}
	options := surrogate.Options{Tied: d.tied}
	switch {
	case d.deterministic:
		options.FixedNoise = new(float64)
		return obs, options
	case slices.ContainsFunc(d.variance, func(v float64) bool { return !math.IsNaN(v) }):
		obs.NoiseVariance = smoothVariances(d.x, d.cappedVariance(), d.runs)
		prior := surrogate.DefaultPrior(d.lengthScales())
		prior.Noise = surrogate.Normal{Mean: -7, StdDev: 2} // a misfit only
		if slices.Max(obs.NoiseVariance) == 0 {
			options.FixedNoise = d.nugget()
		} else {
			prior.Length = smoothness(d.lengthScales())
		}
		options.Prior = prior
	default:
		obs.Runs = make([]float64, len(d.runs))
		for i, r := range d.runs {
			obs.Runs[i] = float64(r)
		}
		options.NoiseSlopes = !d.homoscedastic
		if d.forReading {
			prior := surrogate.DefaultPrior(d.lengthScales())
			prior.Noise = readingNoise
			options.Prior = prior
		}
	}
	if slices.Max(d.group) > 0 && !d.homoscedastic {
		obs.Groups, obs.Positions = d.group, d.position
	}
	return obs, options
}

// smoothness is the prior of the logarithm of a length scale, of n in all, where values have
// noise of a known size: it is about the diagonal of the unit cube, to a factor of e. Such
// noise hides what would tell a smooth function that changes by much from a rough one, so
// that [surrogate.DefaultPrior], whose mode is at a fifth of the diagonal and whose standard
// deviation is a factor of 5.7, leaves too much to chance: rough functions are looked for
// everywhere, and near a front the measurements do not add up.
func smoothness(n int) surrogate.Normal {
	return surrogate.Normal{Mean: math.Log(float64(n)) / 2, StdDev: 1}
}

// readingNoise is the prior of the logarithm of noise that is learned, relative to the
// variance of the values, in models for reading: from 0.25 % to 37 % of it within two
// standard deviations. A wider one takes all of a history of few runs for noise where most
// of them learned nothing.
var readingNoise = surrogate.Normal{Mean: -3.5, StdDev: 1.25}

// lengthScales returns the number of different length scales.
func (d *observations) lengthScales() int {
	if d.tied == nil {
		return len(d.x[0])
	}
	return slices.Max(d.tied) + 1
}

// maxNoise is the known noise variance, relative to the variance of the values, beyond
// which an observation tells nothing anyway.
const maxNoise = 1e6

// cappedVariance returns the known noise variances, none so large that a single one
// hides the others.
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

// typicalNoise returns the median of the noise variances per run if they are
// known, else NaN.
func (d *observations) typicalNoise(obs surrogate.Observations) float64 {
	if obs.NoiseVariance == nil {
		return math.NaN()
	}
	perRun := make([]float64, len(obs.NoiseVariance))
	for i, v := range obs.NoiseVariance {
		perRun[i] = v * float64(d.runs[i])
	}
	slices.Sort(perRun)
	return perRun[len(perRun)/2]
}

// fitSize is the number of observations that determine the hyperparameters at
// most. An evaluation of their posterior costs O(n³).
const fitSize = 256

// milestone returns the largest number of runs, at most n, after which
// hyperparameters are learned anew: every number up to refitBelow, then at intervals
// that grow with it. At first, and at every doubling, they are learned from scratch,
// otherwise from those before, so that they depend on the history alone, however a
// study came to it, and yet cost little.
func milestone(n int) (at int, cold bool) {
	at, cold = 1, true
	for next, doubling := 1, coldBelow; next <= n; {
		at, cold = next, next <= coldBelow
		if next >= 2*doubling {
			doubling *= 2
			cold = true
		}
		next += max(1, (next-refitBelow)/10)
	}
	return at, cold
}

// fitTolerance is the gain of the log posterior density, in nats, below which a
// step of a fit is not worth its cost.
const fitTolerance = 0.01

// refitBelow is the number of runs up to which hyperparameters are learned after every
// run.
const refitBelow = 60

// coldBelow is the number of runs up to which hyperparameters are always learned
// from scratch.
const coldBelow = 40

// memo keeps values that were computed, by all that they depend on. It saves time
// and changes nothing.
type memo[T any] struct {
	size   int // number of entries at which it is emptied
	mu     sync.Mutex
	values map[[16]byte]T
}

func (m *memo[T]) get(key [16]byte) (T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.values[key]
	return v, ok
}

func (m *memo[T]) put(key [16]byte, v T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil || len(m.values) >= m.size {
		m.values = make(map[[16]byte]T)
	}
	m.values[key] = v
}

var (
	learned = memo[surrogate.Hyperparameters]{size: 4096}

	// earlierModels holds the surrogates of earlier studies, which are large.
	earlierModels = memo[*surrogate.GP]{size: 16}
)

// digest hashes all that hyperparameters depend on: the data, the seed, and what
// was learned before.
func (d *observations) digest(seed uint64, before [16]byte) [16]byte {
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
	flag(d.homoscedastic)
	flag(d.forReading)
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
	}
	var key [16]byte
	h.Sum(key[:0])
	return key
}

// learn returns the hyperparameters of metric j after the given number of runs,
// and their digest.
func (f *fitter) learn(ctx context.Context, j, runs int) (surrogate.Hyperparameters, [16]byte, error) {
	at, cold := milestone(runs)
	start, before := (*surrogate.Hyperparameters)(nil), f.bases[j].digest
	if !cold {
		h, digest, err := f.learn(ctx, j, at-1)
		if err != nil {
			return h, digest, err
		}
		start, before = &h, digest
	}
	data, err := f.observe(j, f.sampled(at), false)
	if errors.Is(err, ErrNoData) && at < len(f.runs) {
		data, err = f.observe(j, f.sampled(len(f.runs)), false) // the first runs measured nothing
	}
	if err != nil {
		return surrogate.Hyperparameters{}, before, err
	}
	seed := mix(f.options.Seed ^ mix(uint64(j)))
	key := data.digest(seed, before)
	if h, ok := learned.get(key); ok {
		return h, key, nil
	}
	obs, options := data.surrogate()
	options.Seed = seed
	options.Start = start
	options.Base = f.bases[j].gp
	options.Tolerance = fitTolerance
	options.Restarts = -1
	if cold {
		options.Restarts = restarts(at)
	}
	gp, err := surrogate.Fit(ctx, obs, options)
	if err != nil {
		return surrogate.Hyperparameters{}, key, err
	}
	h := gp.Hyperparameters()
	learned.put(key, h)
	return h, key, nil
}

// fewRuns is the number of runs up to which a fit has several starting points.
const fewRuns = 24

// restarts is the number of starting points beyond the first for n runs: the
// fewer data, the more local maxima the posterior of the hyperparameters has.
func restarts(n int) int {
	if n <= fewRuns {
		return 3
	}
	return 1
}

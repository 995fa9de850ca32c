package dpsgd

import (
	"context"
	"fmt"
	"math"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
)

// Purposes of the random streams of a replicate. The lots do not depend on how
// much noise is drawn.
const (
	streamLots    = 0xd95d_0001
	streamNoise   = 0xd95d_0002
	streamInitial = 0xd95d_0003
)

// The constants of Algorithm 4 of Avent et al. (2020).
const (
	beta1 = 0.9
	beta2 = 0.999
	kappa = 1e-8
)

// blockParameters is the number of parameters that one worker updates at a time. It
// does not depend on the number of workers, and every block has its own stream of
// noise.
const blockParameters = 4096

// replicate is one model in training, an experiment.Learner. Nothing is allocated after it is made.
type replicate[T model.Float] struct {
	model    model.Model[T]
	c        configuration
	sampling Sampling
	order    []int32 // the lot is a part of it: of a permutation of the rows unless Poisson sampled
	// bins and ends are of a RandomAllocation: scratch space, and the ends in order of the lots of an epoch.
	bins, ends []int32
	// expected is by what sums are divided: the size of a lot or, if it is random, its expectation.
	expected float64

	cycle      *cycle          // nil if every step may draw all rows
	correlated correlatedNoise // nil for independent noise

	lots  *random.Stream
	noise []*random.Stream // of each block of parameters; nil without noise
	step  uint64           // of the whole training, from 1

	workers model.Workers
	// grid on which clipped gradients are summed and the noise is drawn; 0 without noise.
	grid float64
	// span is the number of rows in a group of independently drawn lots of a network; 0 means that lots
	// are summed as a whole.
	span int32
	// mean and square are µ and ν of Adam; nil for SGD.
	mean, square []T
	updateBlock  func(block int) // method, bound once
}

// newReplicate returns a *trainer.ParameterError if the noise is too small or too large for the
// arithmetic.
func newReplicate[T model.Float](
	m model.Model[T], options Options, c configuration, seed *uint64, number int, workers model.Workers,
) (*replicate[T], error) {
	r := &replicate[T]{
		model: m, c: c, workers: workers,
		sampling: options.Sampling,
		order:    make([]int32, c.rows),
		expected: float64(c.lotSize),
	}
	if r.sampling == RandomAllocation || r.sampling == FixedOrder {
		r.expected = float64(c.rows) / float64(c.stepsPerEpoch)
	}
	if r.sampling == RandomAllocation {
		r.bins, r.ends = make([]int32, c.rows), make([]int32, c.stepsPerEpoch)
	}
	stream := func(purpose uint64, index int) *random.Stream {
		return random.Open(seed, number, purpose, index)
	}
	m.Initialize(options.Initialization, stream(streamInitial, 0))
	r.lots = stream(streamLots, 0)
	for i := range r.order {
		r.order[i] = int32(i)
	}
	switch {
	case r.sampling == FixedOrder:
		r.cycle = newCycle(c.rows, int(c.stepsPerEpoch), 1, r.lots)
	case c.bands > 1:
		r.cycle = newCycle(c.rows, c.bands, c.probability(), r.lots)
	}
	if c.noiseMultiplier > 0 {
		r.grid = c.grid(options.Adjacency)
		switch {
		case options.Matrix == BLT:
			r.correlated = newBufferedNoise(buffers, len(m.Weights()), c.noiseMultiplier)
		case options.Matrix == Tree:
			r.correlated = newTreeNoise(int(c.stepsPerEpoch), len(m.Weights()))
		case c.bands > 1:
			r.correlated = newBandedNoise(c.column, len(m.Weights()))
		}
		if r.correlated != nil {
			r.grid = r.correlated.grid(r.grid)
		}
		if err := model.CheckGrid(len(m.Weights()), c.clippingNorm, r.grid); err != nil {
			return nil, &trainer.ParameterError{Name: ParameterNoiseMultiplier, Reason: fmt.Sprintf("is %g: %v", c.noiseMultiplier, err)}
		}
		if r.sampling.independent() && !options.Model.Linear() {
			r.span = int32(min(int64(c.rows), max(1, groupRows*int64(c.rows)/int64(c.lotSize))))
		}
		for block := range blocks(m) {
			r.noise = append(r.noise, stream(streamNoise, block))
		}
	}
	r.updateBlock = r.sgd
	if options.Optimizer == Adam {
		r.updateBlock = r.adam
		r.mean, r.square = make([]T, len(m.Weights())), make([]T, len(m.Weights()))
	}
	return r, nil
}

// grid returns the grid of the sums: the standard deviation of the noise on the sum of clipped
// gradients, σ times their sensitivity and at least that, over random.NoiseScale.
func (c configuration) grid(adjacency Adjacency) float64 {
	sensitivity := c.clippingNorm * adjacency.sensitivity()
	return math.Nextafter(sensitivity*c.noiseMultiplier, math.Inf(1)) / random.NoiseScale
}

// blocks returns the number of blocks of a model's parameters.
func blocks[T model.Float](m model.Model[T]) int {
	return (len(m.Weights()) + blockParameters - 1) / blockParameters
}

// Epoch implements experiment.Learner.
func (r *replicate[T]) Epoch(ctx context.Context) bool {
	for i := range int(r.c.stepsPerEpoch) {
		if ctx.Err() != nil {
			return false
		}
		r.step++
		if r.grid > 0 {
			r.accumulate(r.lot(i))
		} else {
			r.model.Accumulate(r.lot(i), r.c.clippingNorm)
		}
		r.workers.Do(blocks(r.model), r.updateBlock)
	}
	return true
}

// Sizes of the groups of independently drawn lots.
const (
	groupRows   = 32             // expected
	mostInGroup = model.Together // the others are summed one by one
)

// accumulate adds the rounded gradients of a lot. The theorems of Poisson sampling and of random allocation compare a lot
// with the same lot and one row more, after which every other row has another place. So rows are summed
// together by their numbers and not by their places: one row more changes the sum of its group alone.
func (r *replicate[T]) accumulate(lot []int32) {
	if r.span == 0 {
		r.model.AccumulateRounded(lot, r.c.clippingNorm, r.grid)
		return
	}
	for len(lot) > 0 {
		n := 1
		for n < len(lot) && lot[n]/r.span == lot[0]/r.span { // they increase
			n++
		}
		together := min(n, mostInGroup)
		r.model.AccumulateRounded(lot[:together], r.c.clippingNorm, r.grid)
		for i := together; i < n; i++ {
			r.model.AccumulateRounded(lot[i:i+1], r.c.clippingNorm, r.grid)
		}
		lot = lot[n:]
	}
}

// lot draws the rows of step i of an epoch.
func (r *replicate[T]) lot(i int) []int32 {
	switch {
	case r.cycle != nil:
		return r.cycle.lot(r.order[:0], r.step, r.lots)
	case r.sampling == Poisson:
		return r.lots.Bernoulli(r.order[:0], r.c.rows, r.c.probability())
	case r.sampling == RandomAllocation:
		begin := int32(0)
		if i > 0 {
			begin = r.ends[i-1]
		} else {
			r.lots.Allocate(r.order, r.bins, r.ends)
		}
		return r.order[begin:r.ends[i]]
	default:
		r.lots.Lot(r.order, r.c.lotSize)
		return r.order[:r.c.lotSize]
	}
}

// part returns the bounds of a block of parameters.
func (r *replicate[T]) part(block int) (first, last int) {
	first = block * blockParameters
	return first, min(first+blockParameters, r.Size())
}

// noisy returns a block of the sum of clipped gradients with its noise, in units of the grid: it is exact before it
// becomes a float. The caller clears it.
func (r *replicate[T]) noisy(block int) []int64 {
	first, last := r.part(block)
	sum := r.model.Sum()[first:last]
	if r.correlated != nil {
		r.correlated.addTo(sum, first, r.step, r.noise[block])
	} else {
		random.AddNoise(sum, r.noise[block])
	}
	return sum
}

// sgd moves a block of weights and clears the block's gradient.
func (r *replicate[T]) sgd(block int) {
	first, last := r.part(block)
	weights := r.model.Weights()[first:last]
	rate := T(r.c.learningRate / r.expected)
	if r.grid > 0 {
		sum := r.noisy(block)
		for j := range weights {
			weights[j] -= rate * T(float64(sum[j])*r.grid)
		}
		clear(sum)
		return
	}
	gradient := r.model.Gradient()[first:last]
	for j := range weights {
		weights[j] -= rate * gradient[j]
	}
	clear(gradient)
}

// adam moves a block of weights and clears the block's gradient.
func (r *replicate[T]) adam(block int) {
	first, last := r.part(block)
	weights, mean, square := r.model.Weights()[first:last], r.mean[first:last], r.square[first:last]
	gradient := r.model.Gradient()[first:last]
	if r.grid > 0 {
		sum := r.noisy(block)
		for j, units := range sum {
			gradient[j] = T(float64(units) * r.grid)
		}
		clear(sum)
	}
	scale := 1 / r.expected
	unbiasMean := 1 / (1 - math.Pow(beta1, float64(r.step)))
	unbiasSquare := 1 / (1 - math.Pow(beta2, float64(r.step)))
	for j, sum := range gradient {
		g := float64(sum) * scale
		m := beta1*float64(mean[j]) + (1-beta1)*g
		v := beta2*float64(square[j]) + (1-beta2)*g*g
		mean[j], square[j] = T(m), T(v)
		weights[j] -= T(r.c.learningRate * m * unbiasMean / (math.Sqrt(v*unbiasSquare) + kappa))
	}
	clear(gradient)
}

// Finite implements experiment.Learner.
func (r *replicate[T]) Finite() bool {
	for _, w := range r.model.Weights() {
		if math.IsNaN(float64(w)) || math.IsInf(float64(w), 0) {
			return false
		}
	}
	return true
}

// Size implements experiment.Learner.
func (r *replicate[T]) Size() int { return len(r.model.Weights()) }

// Layers returns the layers of the model.
func (r *replicate[T]) Layers() []trainer.Layer { return r.model.Layers() }

// Evaluate implements experiment.Learner.
func (r *replicate[T]) Evaluate(examples *model.Examples) (errorRate, loss float64) {
	return r.model.Evaluate(examples)
}

// OutputsTo implements experiment.Predictor.
func (r *replicate[T]) OutputsTo(dst []float64, examples *model.Examples) {
	r.model.OutputsTo(dst, examples)
}

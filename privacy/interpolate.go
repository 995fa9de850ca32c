package privacy

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
)

// InterpolationError is the relative error that an [Interpolant] aims at. It
// checks itself against values of [Exact] where it is built, so that larger errors
// are rare and small (of 800 random points in random domains 6 had one, of at most
// 3e-3); it is no bound, and may lie on either side.
const InterpolationError = 1e-3

// fewestSteps is the number of steps below which nothing is interpolated: ε changes
// with every step there.
const fewestSteps = 20

// InterpolationDomain is a box of configurations of DP-SGD. Every range is
// [least, largest], both positive and finite.
type InterpolationDomain struct {
	NoiseMultiplier [2]float64 // σ, as that of the mechanism
	// SamplingRate is BatchSize/DatasetSize or SamplingProbability, at most 1.
	SamplingRate [2]float64
	// Passes is the number of steps times the sampling rate: about the number of
	// epochs.
	Passes [2]float64
}

// Interpolant is ε of [Exact] as a smooth function of noise multiplier, sampling
// rate and number of steps, for one δ: fast enough to rank thousands of
// configurations. What is reported or decided upon needs the value of Exact.
//
// log ε is a polynomial of the logarithms in each cell of a tree, which is built
// where it is asked for: cells are halved until their polynomials are good. An
// Interpolant is safe for concurrent use.
type Interpolant struct {
	pairs    func(rate, noise float64) []lossPair
	logDelta float64
	root     *interpolationCell
}

// InterpolateFixedSize returns the interpolant for [FixedSizeGaussian]. The errors
// are FieldErrors for "noise_multiplier", "sampling_rate", "passes" and "delta".
func InterpolateFixedSize(domain InterpolationDomain, delta float64) (*Interpolant, error) {
	return newInterpolant(domain, delta, func(rate, noise float64) []lossPair {
		return []lossPair{fixedSizePair(rate, noise)}
	})
}

// InterpolatePoisson returns the interpolant for [PoissonGaussian]. The errors are
// those of [InterpolateFixedSize], and a FieldError for "adjacency".
func InterpolatePoisson(domain InterpolationDomain, delta float64, neighbours Adjacency) (*Interpolant, error) {
	if err := checkAdjacency(neighbours); err != nil {
		return nil, err
	}
	return newInterpolant(domain, delta, func(rate, noise float64) []lossPair {
		return PoissonGaussian{rate, noise, neighbours}.lossPairs()
	})
}

func newInterpolant(domain InterpolationDomain, delta float64, pairs func(rate, noise float64) []lossPair) (*Interpolant, error) {
	errs := []error{checkDelta(delta)}
	root := &interpolationCell{}
	for d, axis := range [axes]struct {
		field string
		span  [2]float64
	}{
		{"noise_multiplier", domain.NoiseMultiplier},
		{"sampling_rate", domain.SamplingRate},
		{"passes", domain.Passes},
	} {
		lo, hi := axis.span[0], axis.span[1]
		if !(lo > 0 && hi >= lo) || math.IsInf(hi, 1) || axis.field == "sampling_rate" && hi > 1 {
			errs = append(errs, FieldErrorf(axis.field, "must be a range of positive finite numbers, rates at most 1, is %g to %g", lo, hi))
		}
		root.lo[d], root.hi[d] = math.Log(lo), math.Log(hi)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Interpolant{pairs: pairs, logDelta: math.Log(delta), root: root}, nil
}

// Epsilon returns ε, about, for steps >= 0 runs at the given noise multiplier > 0
// and sampling rate in (0, 1]. It takes some hundred nanoseconds where the cell
// is built, and up to seconds to build one. Outside the domain, for fewer than 20
// steps, and where ε is 0, infinite or has a jump, it is that of Exact, which takes
// milliseconds. The errors are FieldErrors for "noise_multiplier", "sampling_rate" and "steps".
func (p *Interpolant) Epsilon(noise, rate float64, steps int64) (float64, error) {
	if steps < 0 || !(noise > 0 && rate > 0 && rate <= 1) || math.IsInf(noise, 1) {
		err := errors.Join(checkSteps(steps), checkPositive("noise_multiplier", noise))
		if !(rate > 0 && rate <= 1) {
			err = errors.Join(err, FieldErrorf("sampling_rate", "must lie in (0, 1], is %g", rate))
		}
		return 0, err
	}
	if steps == 0 {
		return 0, nil
	}
	x := [axes]float64{math.Log(noise), math.Log(rate), math.Log(float64(steps) * rate)}
	if steps >= fewestSteps && p.root.contains(x) {
		if leaf := p.leaf(x); leaf.coefficients != nil {
			return math.Exp(leaf.polynomial(x)), nil
		}
	}
	return p.column(rate, noise).epsilon([]lossMethod{(*lossSum).invert, pessimistic}, float64(steps), p.logDelta), nil
}

// Build builds all cells of the domain, in the order of the noise from above: less
// noise takes longer. It returns the error of ctx when that ends first; what was
// built by then stays.
func (p *Interpolant) Build(ctx context.Context) error {
	stack := []*interpolationCell{p.root}
	for len(stack) > 0 {
		if err := ctx.Err(); err != nil {
			return err //nolint:wrapcheck // as documented
		}
		c := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		c.once.Do(func() { p.build(c) })
		if c.children[0] != nil {
			stack = append(stack, c.children[0], c.children[1])
		}
	}
	return nil
}

// column is a mechanism, for any number of runs.
func (p *Interpolant) column(rate, noise float64) directions {
	return directions(nil).add(p.pairs(rate, noise), 1)
}

// epsilon returns the largest ε of the directions.
func (d directions) epsilon(methods []lossMethod, runs, logDelta float64) float64 {
	var most float64
	for _, sum := range d {
		epsilon, _ := sum.epsilon(methods, runs, logDelta, 1)
		most = math.Max(most, epsilon)
	}
	return most
}

// extrapolated is the method of PLD without its excess, of the order of the square
// of the step: from two grids that are coarse.
func extrapolated(s *lossSum, l line, b bound, runs, _ float64) (epsilon float64, ok bool) {
	fine, ok := s.convolve(l, b, runs, 4, 2, false)
	coarse, ok2 := s.convolve(l, b, runs, 8, 1, false)
	return fine - (coarse-fine)/3, ok && ok2
}

// axes are the dimensions of a cell: noise, rate and passes.
const axes = 3

// interpolationSize is the number of Chebyshev points on each axis.
var interpolationSize = [axes]int{7, 5, 5}

const interpolationPoints = 7 * 5 * 5

// Limits of the tree. Cells do not get smaller than narrowest, in logarithms.
const (
	narrowest   = 0.02
	largestTail = InterpolationError / 2 // of the coefficients of highest order
)

// interpolationCell is a box in the logarithms of noise, rate and passes. Once
// built it has coefficients, or children, or neither where there is no polynomial.
type interpolationCell struct {
	lo, hi [axes]float64

	once         sync.Once
	coefficients *[interpolationPoints]float64 // of products of Chebyshev polynomials
	axis         int                           // along which the children divide the cell
	children     [2]*interpolationCell
}

func (c *interpolationCell) contains(x [axes]float64) bool {
	const slack = 1e-12 // of a logarithm
	for d := range x {
		if x[d] < c.lo[d]-slack || x[d] > c.hi[d]+slack {
			return false
		}
	}
	return true
}

// leaf returns the cell at x, which has to lie in the root.
func (p *Interpolant) leaf(x [axes]float64) *interpolationCell {
	c := p.root
	for {
		c.once.Do(func() { p.build(c) })
		if c.children[0] == nil {
			return c
		}
		if x[c.axis] <= c.children[0].hi[c.axis] {
			c = c.children[0]
		} else {
			c = c.children[1]
		}
	}
}

// build fits a polynomial to c, or divides it along the axis on which the fit is
// worst. The three lines through the centre tell most bad cells at little cost.
func (p *Interpolant) build(c *interpolationCell) {
	logEpsilon := p.sampler()
	for d, size := range interpolationSize {
		values := make([]float64, size)
		at := [axes]float64{}
		for i := range values {
			at[d] = chebyshevPoint(i, size)
			values[i] = logEpsilon(c.at(at))
		}
		nowhere := !slices.ContainsFunc(values, func(v float64) bool { return !math.IsNaN(v) })
		if nowhere {
			return
		}
		chebyshevTransform(values, 1)
		if !(tail(values, 1) < largestTail) {
			p.divide(c, d)
			return
		}
	}
	var coefficients [interpolationPoints]float64
	n := interpolationSize
	for i := range coefficients {
		coefficients[i] = logEpsilon(c.at([axes]float64{
			chebyshevPoint(i/(n[1]*n[2]), n[0]),
			chebyshevPoint(i/n[2]%n[1], n[1]),
			chebyshevPoint(i%n[2], n[2]),
		}))
	}
	stride := interpolationPoints
	worst, most := 0, 0.0
	for _, size := range n {
		block := stride
		stride /= size
		for from := 0; from < interpolationPoints; from += block {
			for i := from; i < from+stride; i++ {
				line := coefficients[i : i+block-stride+1]
				chebyshevTransform(line, stride)
			}
		}
	}
	stride = interpolationPoints
	for d, size := range n {
		block := stride
		stride /= size
		for from := 0; from < interpolationPoints; from += block {
			for i := from; i < from+stride; i++ {
				if rest := tail(coefficients[i:i+block-stride+1], stride); !(rest <= most) {
					worst, most = d, rest
				}
			}
		}
	}
	c.coefficients = &coefficients
	good := most < largestTail
	for _, at := range [][axes]float64{{0.97, -0.93, 0.4}, {-0.95, 0.6, -0.9}, {-0.55, -0.96, 0.91}, {0.3, 0.92, 0.95}} {
		x := c.at(at)
		good = good && math.Abs(c.polynomial(x)-logEpsilon(x)) < 0.5*InterpolationError
	}
	if !good {
		c.coefficients = nil
		p.divide(c, worst)
	}
}

// divide gives c two children unless it is too small.
func (p *Interpolant) divide(c *interpolationCell, axis int) {
	if c.hi[axis]-c.lo[axis] < narrowest {
		return
	}
	mid := 0.5 * (c.lo[axis] + c.hi[axis])
	c.axis = axis
	for i := range c.children {
		child := &interpolationCell{lo: c.lo, hi: c.hi}
		if i == 0 {
			child.hi[axis] = mid
		} else {
			child.lo[axis] = mid
		}
		c.children[i] = child
	}
}

// sampler returns log ε at points of which those with the same noise and rate
// follow each other, NaN where ε is not positive and finite.
func (p *Interpolant) sampler() func(x [axes]float64) float64 {
	var column directions
	var noise, rate float64
	return func(x [axes]float64) float64 {
		if column == nil || x[0] != noise || x[1] != rate {
			noise, rate = x[0], x[1]
			column = p.column(math.Min(1, math.Exp(rate)), math.Exp(noise))
		}
		runs := math.Exp(x[2]) / math.Min(1, math.Exp(rate))
		epsilon := column.epsilon([]lossMethod{(*lossSum).invert, extrapolated}, runs, p.logDelta)
		if !(epsilon > 0) || math.IsInf(epsilon, 1) {
			return math.NaN()
		}
		return math.Log(epsilon)
	}
}

// at maps [−1, 1]³ to the cell.
func (c *interpolationCell) at(unit [axes]float64) (x [axes]float64) {
	for d, u := range unit {
		x[d] = 0.5*(c.lo[d]+c.hi[d]) + 0.5*(c.hi[d]-c.lo[d])*u
	}
	return x
}

// polynomial returns the fit of log ε at x.
func (c *interpolationCell) polynomial(x [axes]float64) float64 {
	var basis [axes][7]float64 // Chebyshev polynomials at x
	for d, size := range interpolationSize {
		u := 0.0
		if half := 0.5 * (c.hi[d] - c.lo[d]); half > 0 {
			u = (x[d] - 0.5*(c.lo[d]+c.hi[d])) / half
		}
		basis[d][0], basis[d][1] = 1, u
		for i := 2; i < size; i++ {
			basis[d][i] = 2*u*basis[d][i-1] - basis[d][i-2]
		}
	}
	var sum float64
	next := c.coefficients[:]
	for _, first := range basis[0] {
		var plane float64
		for _, second := range basis[1][:5] {
			third := &basis[2]
			plane += second * (next[0]*third[0] + next[1]*third[1] + next[2]*third[2] + next[3]*third[3] + next[4]*third[4])
			next = next[5:]
		}
		sum += first * plane
	}
	return sum
}

// chebyshevPoint returns the i-th zero of the Chebyshev polynomial of degree n.
func chebyshevPoint(i, n int) float64 {
	return math.Cos(math.Pi * (float64(i) + 0.5) / float64(n))
}

// chebyshevTransform turns the values at the Chebyshev points, stride apart, into
// the coefficients of the polynomial through them.
func chebyshevTransform(values []float64, stride int) {
	n := (len(values) + stride - 1) / stride
	out := make([]float64, n)
	for k := range out {
		for i := range n {
			out[k] += values[i*stride] * math.Cos(math.Pi*float64(k)*(float64(i)+0.5)/float64(n))
		}
		out[k] *= 2 / float64(n)
	}
	out[0] *= 0.5
	for k, v := range out {
		values[k*stride] = v
	}
}

// tail estimates the error of cutting off a Chebyshev series after coefficients
// that are stride apart.
func tail(coefficients []float64, stride int) float64 {
	last := len(coefficients) - 1
	return math.Max(math.Abs(coefficients[last]), 0.25*math.Abs(coefficients[last-stride]))
}

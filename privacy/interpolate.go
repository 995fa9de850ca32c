package privacy

import (
	"errors"
	"math"
	"sync"

	"github.com/dpareto/dpareto/privacy/internal/composition"
)

// Interpolant is ε of DP-SGD for one δ as a smooth function of sampling rate, noise
// multiplier and number of steps, none of which needs to be a whole number. It is for
// comparing thousands of configurations; take reported values and the bases of
// decisions from an [Accountant].
//
// log ε is interpolated by cubic polynomials with a continuous derivative (Catmull and
// Rom, "A class of local interpolating splines", 1974) in the logarithms of the rate and of the
// epochs, the number of steps times the rate, and in a function of the noise, noisePosition. The derivative changes a little at one
// epoch, where the grid changes. The nodes are values of the accountant, to 1e-4, computed
// the first time that they are needed. They lie closer together where ε bends more: at rates near 1,
// and in the epochs for accountants whose ε is not smooth in them.
// An Interpolant is safe for concurrent use.
type Interpolant struct {
	accountant Accountant
	open       func(rate, noise float64) (Curve, error)
	delta      float64
	logLimit   float64
	kinks      bool // ε has kinks, around which nothing is interpolated
	replacing  bool // a record: at rates near 1, ε bends more than nodes tell
	axes       [gridAxes]gridAxis
	cells      lazyMap[gridPoint, *gridCell]
	nodes      lazyMap[gridPoint, float64] // ε
	curves     lazyMap[[2]int, Curve]      // by the indexes of rate and noise
}

// InterpolateFixedSize returns the interpolant of ε by an accountant, for δ in (0, 1),
// of [FixedSizeGaussian], whose adjacency is [ReplaceOne]. It may be inaccurate above
// limit > 0, but exceeds limit where ε exceeds 2·limit. The errors are
// FieldErrors for "delta" and "limit".
func InterpolateFixedSize(a Accountant, delta, limit float64) (*Interpolant, error) {
	const records = 1 << 50 // so many allow any rate, about
	p, err := newInterpolant(a, delta, limit, func(rate, noise float64) Mechanism {
		return FixedSizeGaussian{records, max(1, int64(math.Round(rate*records))), noise}
	})
	if err != nil {
		return nil, err
	}
	if rdp, ok := a.(RDP); ok && rdp.Conversion == Classic { // wherever the best order, an integer, changes
		p.kinks, p.axes[rateAxis].coarse = true, 1
	}
	return p, nil
}

// InterpolatePoisson returns the interpolant of ε of [PoissonGaussian] with an
// adjacency, otherwise as [InterpolateFixedSize]. The errors are the same, and a
// FieldError for "adjacency".
func InterpolatePoisson(a Accountant, delta, limit float64, neighbours Adjacency) (*Interpolant, error) {
	if err := CheckAdjacency(neighbours); err != nil {
		return nil, err
	}
	p, err := newInterpolant(a, delta, limit, func(rate, noise float64) Mechanism {
		return PoissonGaussian{rate, noise, neighbours, false}
	})
	if err != nil {
		return nil, err
	}
	p.replacing = neighbours == ReplaceOne
	return p, nil
}

// InterpolateAllocation returns the interpolant of ε of [RandomAllocation] with one pick and an adjacency, otherwise as
// [InterpolatePoisson]. The rate is one over the steps of an epoch, and there is at least one epoch.
func InterpolateAllocation(a Accountant, delta, limit float64, neighbours Adjacency) (*Interpolant, error) {
	if err := CheckAdjacency(neighbours); err != nil {
		return nil, err
	}
	p, err := newInterpolant(a, delta, limit, nil)
	if err != nil {
		return nil, err
	}
	p.open = func(rate, noise float64) (Curve, error) {
		return allocationCurve{p.accountant, RandomAllocation{
			Steps: int64(math.Round(1 / rate)), Picks: 1, NoiseMultiplier: noise, Epochs: 1, Neighbours: neighbours,
		}}, nil
	}
	return p, nil
}

// allocationCurve is ε by steps of whole epochs.
type allocationCurve struct {
	accountant Accountant
	epoch      RandomAllocation
}

// Epsilon rounds up to whole epochs.
func (c allocationCurve) Epsilon(steps int64, delta float64) (Guarantee, error) {
	m := c.epoch
	m.Epochs = (steps + m.Steps - 1) / m.Steps
	return Epsilon(c.accountant, m, 1, delta)
}

func newInterpolant(a Accountant, delta, limit float64, mechanism func(rate, noise float64) Mechanism) (*Interpolant, error) {
	if err := errors.Join(CheckDelta(delta), CheckPositive("limit", limit)); err != nil {
		return nil, err
	}
	switch a.(type) {
	case Exact, PLD, Tightest: // which differ by less than the error here
		a = rough{}
	}
	p := &Interpolant{accountant: a, delta: delta, logLimit: math.Log(limit)}
	p.open = func(rate, noise float64) (Curve, error) { return a.Curve(mechanism(rate, noise)) }
	p.axes = [gridAxes]gridAxis{{math.Ln2, 2}, {0.35, 1}, {2 * math.Ln2, 1}}
	if _, ok := a.(RDP); ok { // whose best order jumps
		p.axes[passesAxis].width = math.Ln2
	}
	p.cells.compute, p.nodes.compute, p.curves.compute = p.cell, p.node, p.curve
	return p, nil
}

// rough is [Exact] in half of the time. Its ε is higher by at most about 6e-5 of it.
type rough struct{ Exact }

func (rough) Curve(m Mechanism) (Curve, error) {
	return newLossCurve(Exact{}, m, composition.Rough, true)
}

// The axes of the grid.
const (
	rateAxis = iota
	noiseAxis
	passesAxis // the number of steps times the rate
	gridAxes
)

// gridAxis has the places of nodes on an axis: of the natural logarithm of the rate, of noisePosition, or of the
// logarithm of the passes. Node 0 is at 0. Nodes are width apart from fineNodes on, and coarse times as far below.
type gridAxis struct {
	width  float64
	coarse int
}

// fineNodes is the first node with equal distances after it. Nodes below it may be further apart. Extrapolating beyond
// a rate of 1 takes four nodes at equal distances.
const fineNodes = -3

// at returns the place of a node in units of the width, which is whole.
func (a gridAxis) at(node int) int {
	return node + (a.coarse-1)*min(node-fineNodes, 0)
}

// find returns the last node at or before a place, and how far beyond it the place is in units of the distance
// to the next node.
func (a gridAxis) find(place float64) (node int, x float64) {
	place /= a.width
	node = int(math.Floor(place + 1e-9)) // a pass may be rounded to a little less
	if below := node - fineNodes; below < 0 {
		node = fineNodes + int(math.Floor((place-fineNodes)/float64(a.coarse)+1e-9))
	}
	return node, a.within(node, place)
}

// within returns how far beyond a node a place is, in units of the distance to the next node.
func (a gridAxis) within(node int, place float64) float64 {
	first := a.at(node)
	return (place - float64(first)) / float64(a.at(node+1)-first)
}

// weights returns the weights of the values at the node before, at node, and at the two next ones, for a place x in
// [0, 1] between node and the next one. The slope at a node is the slope of the parabola through it and its
// neighbours.
func (a gridAxis) weights(node int, x float64) [4]float64 {
	own := float64(a.at(node+1) - a.at(node))
	before, after := own/float64(a.at(node)-a.at(node-1)), own/float64(a.at(node+2)-a.at(node+1))
	y := 1 - x
	first, last := x*y*y, -x*x*y // of the slopes
	p, q := first/(1+before), last/(1+after)
	return [4]float64{
		-p * before * before,
		(1+2*x)*y*y + p*(before*before-1) - q,
		x*x*(3-2*x) + p + q*(1-after*after),
		q * after * after,
	}
}

// steepNoise is the noise multiplier below which the axis of the noise is straight in its logarithm.
const steepNoise = 0.5

// noisePosition returns the place of a noise multiplier σ on its axis: −½·log(exp(σ⁻²) − 1), with which log ε
// is about linear where there are many steps. By the central limit theorem of Bu, Dong, Long and Su ("Deep
// learning with Gaussian differential privacy", 2020) ε is a function of the rate times the square root of
// the steps, divided by the exponential of this. Below steepNoise the nodes would lie too close.
func noisePosition(noise float64) float64 {
	if noise < steepNoise {
		return steepPosition + steepSlope*math.Log(noise/steepNoise)
	}
	return -math.Log(math.Expm1(1/(noise*noise))) / 2
}

// noiseAt is the inverse of noisePosition.
func noiseAt(position float64) float64 {
	if position < steepPosition {
		return steepNoise * math.Exp((position-steepPosition)/steepSlope)
	}
	return 1 / math.Sqrt(math.Log1p(math.Exp(-2*position)))
}

// The axis of the noise at steepNoise, and its slope there in the logarithm of the noise.
var (
	steepPosition = -math.Log(math.Expm1(1/(steepNoise*steepNoise))) / 2
	steepSlope    = 1 / (steepNoise * steepNoise) / -math.Expm1(-1/(steepNoise*steepNoise))
)

// Bounds of the grid; nothing beyond them is common.
const (
	gridLeastRate  = 1e-9
	gridLeastNoise = 0.05
	gridMostNoise  = 1e4
	gridMostSteps  = 1 << 40
)

// directNoise is the noise multiplier from which on no node is extrapolated.
const directNoise = 1

// gridPoint is a node, by its index on every axis.
type gridPoint [gridAxes]int

// gridCell is a cube between neighbouring nodes: log ε at the 4 nodes on each axis that
// surround it.
type gridCell [4 * 4 * 4]float64

// Epsilon returns ε at a sampling rate in (0, 1], a noise multiplier > 0 and a number of
// steps >= 1, mostly within 1 % of the accountant's where that is at most the limit, 4 % at
// noise multipliers well below 1, and +Inf where there is none. It takes a fraction of a
// microsecond, and the time of up to 64 values of the accountant the first time near a point:
// tens of milliseconds, seconds at noise multipliers below 0.5.
//
// Some values are the accountant's, each of which takes as long as the accountant does:
// at rates below 1e-9, noise multipliers outside of [0.05, 1e4] and more than 2^40
// steps, next to points where ε is 0 or infinite, and around the kinks of [RDP] with
// [Classic] for fixed sizes, whose orders are integers. Between whole numbers of steps they are
// interpolated linearly if need be. Where they begin, ε jumps within its error.
// At noise multipliers below 0.05 an ε above the limit is extrapolated instead: accountants take longest there.
func (p *Interpolant) Epsilon(rate, noise, steps float64) float64 {
	if !(rate > 0 && rate <= 1 && noise > 0 && steps >= 1 && steps < 1<<62) {
		return math.Inf(1)
	}
	if rate >= gridLeastRate && noise >= gridLeastNoise && noise <= gridMostNoise && steps <= gridMostSteps {
		var first gridPoint
		var x [gridAxes]float64
		for axis, v := range [gridAxes]float64{math.Log(rate), noisePosition(noise), math.Log(steps * rate)} {
			node, within := p.axes[axis].find(v)
			if axis == rateAxis && node == 0 {
				node, within = -1, 1
			}
			first[axis], x[axis] = node-1, within
		}
		if c := p.cells.get(first); c != nil {
			return math.Exp(p.interpolate(first, c, x))
		}
	}
	if noise < gridLeastNoise {
		if least := p.Epsilon(rate, gridLeastNoise, steps); math.Log(least) > p.logLimit {
			return least * (gridLeastNoise / noise) * (gridLeastNoise / noise)
		}
	}
	return p.direct(rate, noise, steps)
}

// direct returns the accountant's ε, or +Inf if it has none.
func (p *Interpolant) direct(rate, noise, steps float64) float64 {
	curve, err := p.open(rate, noise)
	if err != nil {
		return math.Inf(1)
	}
	epsilon := p.epsilon(curve, steps)
	if math.IsNaN(epsilon) {
		return math.Inf(1)
	}
	return epsilon
}

// epsilon returns ε of a curve, or NaN.
func (p *Interpolant) epsilon(c Curve, steps float64) float64 {
	low := math.Floor(steps)
	a, err := c.Epsilon(int64(low), p.delta)
	if err != nil {
		return math.NaN()
	}
	if low == steps {
		return a.Epsilon
	}
	b, err := c.Epsilon(int64(low)+1, p.delta)
	if err != nil {
		return math.NaN()
	}
	return a.Epsilon + (steps-low)*(b.Epsilon-a.Epsilon)
}

// interpolate returns log ε at a point of the cell with a first node, in [0, 1] on each axis.
func (p *Interpolant) interpolate(first gridPoint, c *gridCell, x [gridAxes]float64) float64 {
	var weights [gridAxes][4]float64
	for axis := range weights {
		weights[axis] = p.axes[axis].weights(first[axis]+1, x[axis])
	}
	next, w := c[:], &weights[passesAxis]
	var sum float64
	for _, a := range weights[rateAxis] {
		var plane float64
		for _, b := range weights[noiseAxis] {
			plane += b * (next[0]*w[0] + next[1]*w[1] + next[2]*w[2] + next[3]*w[3])
			next = next[4:]
		}
		sum += a * plane
	}
	return sum
}

// cell computes the cell with a first node, or returns nil if a value is missing.
func (p *Interpolant) cell(first gridPoint) *gridCell {
	c := new(gridCell)
	for i := range c {
		n := gridPoint{first[0] + i/16, first[1] + i/4%4, first[2] + i%4}
		v := p.log(n, first[passesAxis] >= -1)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		c[i] = v
	}
	// Where a record is replaced and nearly everything is sampled, ε can be a third below its extrapolation.
	edge := p.replacing && first[rateAxis] >= -3 && first[passesAxis] < 3
	if (p.kinks || edge) && !p.check(first, c) {
		return nil
	}
	return c
}

// place returns the place of a node on an axis.
func (p *Interpolant) place(axis, node int) float64 {
	return float64(p.axes[axis].at(node)) * p.axes[axis].width
}

// octaves returns the number of steps at a node, as a power of two.
func (p *Interpolant) octaves(n gridPoint) int {
	return int(math.Round((p.place(passesAxis, n[passesAxis]) - p.place(rateAxis, n[rateAxis])) / math.Ln2))
}

// check reports whether a cell is good at some points within it.
func (p *Interpolant) check(first gridPoint, c *gridCell) bool {
	const tolerance = 0.01
	for _, x := range [][gridAxes]float64{{0.5, 0.5, 0.5}, {0.2, 0.8, 0.3}, {0.8, 0.7, 0.2}, {0.3, 0.2, 0.8}, {0.7, 0.3, 0.7}, {0.5, 0.05, 0.5}, {0.5, 0.95, 0.5}} {
		var at [gridAxes]float64
		for axis := range at {
			at[axis] = p.place(axis, first[axis]+1)
			at[axis] += x[axis] * (p.place(axis, first[axis]+2) - at[axis])
		}
		rate := math.Exp(at[rateAxis])
		want := math.Log(p.direct(rate, noiseAt(at[noiseAxis]), math.Exp(at[passesAxis])/rate))
		if !(math.Abs(p.interpolate(first, c, x)-want) <= tolerance) {
			return false
		}
	}
	return true
}

// log returns log ε at a node. What a cell needs of nodes at rates above 1 and less than
// one step follows from the cubic polynomial through the next four nodes. So does, for
// a cell of at least one pass, less than a pass (whole): few steps take an accountant
// much longer.
func (p *Interpolant) log(n gridPoint, whole bool) float64 {
	axis, inwards := passesAxis, 1
	switch {
	case n[rateAxis] > 0:
		axis, inwards = rateAxis, -1
	case whole && n[passesAxis] < 0, p.octaves(n) < 0:
	default:
		return math.Log(p.nodes.get(n))
	}
	var v float64
	for _, c := range [...]float64{4, -6, 4, -1} {
		n[axis] += inwards
		v += c * p.log(n, whole)
	}
	return v
}

// node computes ε at a node, or 0 if there is none. At less noise than gives a multiple
// of the limit it is extrapolated: exact values, which are not needed there, take much
// longer.
func (p *Interpolant) node(n gridPoint) float64 {
	if noiseAt(p.place(noiseAxis, n[noiseAxis])) < directNoise {
		above, next := n, n
		above[noiseAxis]++
		next[noiseAxis] += 2
		if a, b := math.Log(p.nodes.get(above)), math.Log(p.nodes.get(next)); b > p.logLimit {
			return math.Exp(2*a - b)
		}
	}
	curve := p.curves.get([2]int{n[rateAxis], n[noiseAxis]})
	if curve == nil {
		return 0
	}
	return p.epsilon(curve, math.Exp2(float64(p.octaves(n))))
}

// curve returns the accountant's curve, or nil if it has none.
func (p *Interpolant) curve(at [2]int) Curve {
	c, err := p.open(math.Exp(p.place(rateAxis, at[0])), noiseAt(p.place(noiseAxis, at[1])))
	if err != nil {
		return nil
	}
	return c
}

// lazyMap is a function that computes every value once. It is safe for concurrent use.
// A value whose computation panics is the zero value from then on.
type lazyMap[K comparable, V any] struct {
	compute func(K) V
	mu      sync.RWMutex
	entries map[K]*lazyEntry[V]
}

type lazyEntry[V any] struct {
	once  sync.Once
	value V
}

func (m *lazyMap[K, V]) get(key K) V {
	m.mu.RLock()
	e := m.entries[key]
	m.mu.RUnlock()
	if e == nil {
		m.mu.Lock()
		if e = m.entries[key]; e == nil {
			if m.entries == nil {
				m.entries = make(map[K]*lazyEntry[V])
			}
			e = new(lazyEntry[V])
			m.entries[key] = e
		}
		m.mu.Unlock()
	}
	e.once.Do(func() { e.value = m.compute(key) })
	return e.value
}

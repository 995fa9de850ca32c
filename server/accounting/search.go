package accounting

import (
	"math"
	"sync"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/expression"
)

// Search returns a cheap stand-in for ε at values of the environment's variables, in
// their order (that of a category does not matter): within 2 % where ε is at most limit,
// and rough but larger than limit where ε is a lot larger. It is for the comparison of
// candidates; what is reported comes from Guarantee. named names the values for
// expressions, as Guarantee takes them.
//
// It is nil where there is none: for anything but DP-SGD with lots of a fixed size or
// Poisson sampled ones. It is +Inf where Guarantee gives an error, and that of Guarantee
// where nothing is interpolated. It is safe for concurrent use. A value takes a fraction
// of a microsecond where the table is filled; filling it at a new place takes some
// milliseconds, once.
func (f *Function) Search(named func([]float64) map[string]any, limit float64) func([]float64) float64 {
	d := f.mechanism.dpSGD
	if d == nil || d.sampling == dparetov1.Sampling_SAMPLING_SHUFFLED {
		return nil
	}
	table := newTable(f.accountant, d, f.spec.GetDelta(), limit)
	n, m := native(d.datasetSize, named), native(d.batchSize, named)
	sigma, length := native(d.noiseMultiplier, named), native(d.length, named)
	return func(values []float64) float64 {
		n, m, sigma, length := n(values), m(values), sigma(values), length(values)
		if !(m >= 1 && m <= n && sigma > 0 && length >= 1) {
			return math.Inf(1)
		}
		steps := length
		if d.unit == unitEpochs {
			steps *= max(1, math.RoundToEven(n/m)) // as privacy.StepsPerEpoch
		}
		if epsilon, ok := table.epsilon(m/n, d.multiplier(sigma), steps); ok {
			return epsilon
		}
		g, err := f.Guarantee(named(values))
		if err != nil {
			return math.Inf(1)
		}
		return g.GetEpsilon()
	}
}

// native returns the Go form of an expression, or a detour through CEL.
func native(n *expression.Number, named func([]float64) map[string]any) expression.Native {
	if f := n.Native(); f != nil {
		return f
	}
	return func(values []float64) float64 {
		x, err := n.Float(named(values))
		if err != nil {
			return math.NaN()
		}
		return x
	}
}

// table interpolates log ε of sampled Gaussian mechanisms for one δ, cubically in the
// logarithms of sampling rate, noise multiplier and number of steps. It is filled where
// it is asked for.
type table struct {
	accountant privacy.Accountant
	mechanism  func(rate, sigma float64) privacy.Mechanism
	delta      float64
	logLimit   float64
	checked    bool               // cells are checked
	width      [tableAxes]float64 // between nodes

	mu      sync.RWMutex
	cells   map[node]*cell
	columns map[[2]int]*column
}

// The axes of a table.
const (
	rateAxis = iota
	sigmaAxis
	passesAxis
	tableAxes
)

// Bounds of a table; beyond them nothing is common.
const (
	leastRate          = 1e-9
	leastSigma         = 0.05
	mostSigma          = 1e4
	mostSteps          = 1 << 40
	representedRecords = 1 << 50 // of which a lot of a fixed size has any rate, about
)

// node is a point of the grid, by its index on every axis.
type node [tableAxes]int

// cell is the cube between neighbouring nodes.
type cell struct {
	once  sync.Once
	first node               // of the 4 nodes on each axis that surround it
	log   [4 * 4 * 4]float64 // log ε there
	ok    bool               // all are there, and finite
}

// column is a mechanism for any number of steps.
type column struct {
	mu    sync.Mutex
	curve privacy.Curve   // nil if there is none
	log   map[int]float64 // log ε by index on the axis of steps
}

// newTable returns the empty table of a mechanism.
func newTable(accountant privacy.Accountant, d *dpSGD, delta, limit float64) *table {
	t := &table{
		accountant: accountant, delta: delta, logLimit: math.Log(limit),
		width:   [tableAxes]float64{math.Ln2, 0.15, math.Ln2},
		cells:   make(map[node]*cell),
		columns: make(map[[2]int]*column),
	}
	switch accountant.(type) {
	case privacy.RDP: // has a kink wherever the best order changes, if orders are integers
		t.checked = d.sampling == dparetov1.Sampling_SAMPLING_FIXED_SIZE
	case privacy.PLD: // is above Exact by less than the error here, but slower
		t.accountant = privacy.Exact{}
	}
	t.mechanism = func(rate, sigma float64) privacy.Mechanism {
		return privacy.FixedSizeGaussian{
			DatasetSize: representedRecords, BatchSize: max(1, int64(math.Round(rate*representedRecords))), NoiseMultiplier: sigma,
		}
	}
	if d.sampling == dparetov1.Sampling_SAMPLING_POISSON {
		t.mechanism = func(rate, sigma float64) privacy.Mechanism {
			return privacy.PoissonGaussian{SamplingProbability: rate, NoiseMultiplier: sigma, Neighbours: d.adjacency}
		}
	}
	return t
}

// epsilon returns ε, or false where there is no interpolation.
func (t *table) epsilon(rate, sigma, steps float64) (float64, bool) {
	if !(rate >= leastRate && rate <= 1 && sigma >= leastSigma && sigma <= mostSigma && steps <= mostSteps) {
		return 0, false
	}
	x := [tableAxes]float64{math.Log(rate) / t.width[rateAxis], math.Log(sigma) / t.width[sigmaAxis], math.Log(steps*rate) / t.width[passesAxis]}
	c := t.cell(cellAt(x))
	if !c.ok {
		return 0, false
	}
	return math.Exp(c.interpolate(x)), true
}

// interpolate returns log ε at a point in units of the nodes.
func (c *cell) interpolate(x [tableAxes]float64) float64 {
	var weight [tableAxes][4]float64
	for axis := range weight {
		weight[axis] = lagrange(x[axis] - float64(c.first[axis]))
	}
	next := c.log[:]
	w := &weight[passesAxis]
	var sum float64
	for _, a := range weight[rateAxis] {
		var plane float64
		for _, b := range weight[sigmaAxis] {
			plane += b * (next[0]*w[0] + next[1]*w[1] + next[2]*w[2] + next[3]*w[3])
			next = next[4:]
		}
		sum += a * plane
	}
	return sum
}

// lagrange returns the weights of the values at 0, 1, 2 and 3 in the cubic polynomial
// through them, at x.
func lagrange(x float64) [4]float64 {
	a, b, c, d := x, x-1, x-2, x-3
	return [4]float64{-b * c * d / 6, a * c * d / 2, -a * b * d / 2, a * b * c / 6}
}

// cellAt returns the first of the nodes that surround a point. A rate is at most 1, and
// there is at least one step. About a pass and more is told from whole passes alone:
// exact values for a few steps take much longer.
func cellAt(x [tableAxes]float64) node {
	var first node
	for axis := range first {
		first[axis] = int(math.Floor(x[axis])) - 1
	}
	first[rateAxis] = min(first[rateAxis], -3)
	least := first[rateAxis] + 3
	if x[passesAxis] > -0.5 {
		least = 0
	}
	first[passesAxis] = max(first[passesAxis], least)
	return first
}

// cell returns the cell with the given first node, with its values.
func (t *table) cell(at node) *cell {
	t.mu.RLock()
	c := t.cells[at]
	t.mu.RUnlock()
	if c == nil {
		t.mu.Lock()
		if c = t.cells[at]; c == nil {
			c = &cell{first: at}
			t.cells[at] = c
		}
		t.mu.Unlock()
	}
	c.once.Do(func() { t.fill(c) })
	return c
}

// fill computes the values of a cell. It may panic in an accountant: then the cell is
// not ok, and is not filled again.
func (t *table) fill(c *cell) {
	ok := true
	for i := range 4 {
		for j := range 4 {
			for k := range 4 {
				v := t.at(node{c.first[0] + i, c.first[1] + j, c.first[2] + k})
				c.log[16*i+4*j+k] = v
				ok = ok && !math.IsNaN(v) && !math.IsInf(v, 0)
			}
		}
	}
	c.ok = ok && (!t.checked || t.check(c))
}

// check reports whether a cell is good at some points within it.
func (t *table) check(c *cell) bool {
	const tolerance = 0.01
	for _, at := range [][tableAxes]float64{{0.5, 0.5, 0.5}, {0.2, 0.8, 0.3}, {0.8, 0.7, 0.2}, {0.3, 0.2, 0.8}, {0.7, 0.3, 0.7}, {0.5, 0.05, 0.5}, {0.5, 0.95, 0.5}} {
		for axis := range at {
			at[axis] += float64(c.first[axis] + 1)
		}
		rate := math.Exp(at[rateAxis] * t.width[rateAxis])
		steps := math.Max(1, math.Round(math.Exp(at[passesAxis]*t.width[passesAxis])/rate))
		at[passesAxis] = math.Log(steps*rate) / t.width[passesAxis]
		want := t.log(t.curve(rate, math.Exp(at[sigmaAxis]*t.width[sigmaAxis])), int64(steps))
		if !(math.Abs(c.interpolate(at)-want) <= tolerance) {
			return false
		}
	}
	return true
}

// directSigma is the noise multiplier from which on no node is extrapolated.
const directSigma = 1

// at returns log ε at a node. At less noise than gives a multiple of the limit it is
// extrapolated: exact values, which nobody needs there, take much longer.
func (t *table) at(n node) float64 {
	c := t.column([2]int{n[rateAxis], n[sigmaAxis]})
	c.mu.Lock()
	v, ok := c.log[n[passesAxis]]
	c.mu.Unlock()
	if ok {
		return v
	}
	if sigma := float64(n[sigmaAxis]) * t.width[sigmaAxis]; sigma < math.Log(directSigma) {
		n[sigmaAxis]++
		above := t.at(n)
		n[sigmaAxis]++
		next := t.at(n)
		if n[sigmaAxis] -= 2; next > t.logLimit {
			v, ok = 2*above-next, true
		}
	}
	if !ok {
		v = t.log(c.curve, 1<<(n[passesAxis]-n[rateAxis]))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log[n[passesAxis]] = v
	return v
}

// log returns log ε of a curve, or NaN if it has none.
func (t *table) log(curve privacy.Curve, steps int64) float64 {
	if curve == nil {
		return math.NaN()
	}
	g, err := curve.Epsilon(steps, t.delta)
	if err != nil {
		return math.NaN()
	}
	return math.Log(g.Epsilon)
}

// column returns the column at a rate and a noise multiplier.
func (t *table) column(at [2]int) *column {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.columns[at]
	if c == nil {
		c = &column{
			curve: t.curve(math.Exp(float64(at[0])*t.width[rateAxis]), math.Exp(float64(at[1])*t.width[sigmaAxis])),
			log:   make(map[int]float64),
		}
		t.columns[at] = c
	}
	return c
}

// curve returns the accountant's curve, or nil if it has none.
func (t *table) curve(rate, sigma float64) privacy.Curve {
	curve, err := t.accountant.Curve(t.mechanism(rate, sigma))
	if err != nil {
		return nil
	}
	return curve
}

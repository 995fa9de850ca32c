package model

import (
	"math"
	"slices"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
)

// Linear is a hyperplane z = w·x + b in float64 under a loss of the margin.
type Linear struct {
	examples          *Examples
	kind              Kind
	width             float64   // h of HuberSVM
	weights, gradient []float64 // one for each feature, then the bias
	sum               []int64   // like the gradient, in units of a grid
}

var _ Model[float64] = (*Linear)(nil)

// NewLinear returns a hyperplane with all weights 0. It panics unless the spec is
// valid, its Linear method returns true, and the examples have two classes.
func NewLinear(spec Spec, examples *Examples) *Linear {
	if !spec.Linear() || spec.Validate() != nil {
		panic("model: spec is not a valid linear model")
	}
	if examples.count != spec.outputs() {
		panic("model: linear model for other labels")
	}
	if spec.HuberWidth == 0 {
		spec.HuberWidth = DefaultHuberWidth
	}
	size := examples.data.Dim + 1
	return &Linear{
		examples: examples, kind: spec.Kind, width: spec.HuberWidth,
		weights: make([]float64, size), gradient: make([]float64, size), sum: make([]int64, size),
	}
}

// Weights implements Model: one for each feature, then the bias.
func (m *Linear) Weights() []float64 { return m.weights }

// Layers implements Model: one layer with one output, the score of the second class.
func (m *Linear) Layers() []trainer.Layer {
	dim := len(m.weights) - 1
	return []trainer.Layer{{In: dim, Out: 1, Weights: slices.Clone(m.weights[:dim]), Biases: slices.Clone(m.weights[dim:])}}
}

// Gradient implements Model.
func (m *Linear) Gradient() []float64 { return m.gradient }

// Sum implements Model.
func (m *Linear) Sum() []int64 { return m.sum }

// Initialize implements Model.
func (m *Linear) Initialize(initialization Initialization, s *random.Stream) {
	dim := len(m.weights) - 1
	initialize(m.weights[:dim], m.weights[dim:], dim, 1, initialization, s)
}

// Accumulate implements Model.
func (m *Linear) Accumulate(rows []int32, clippingNorm float64) {
	var coefficients [rowsAtOnce]float64
	for len(rows) > 0 {
		n := min(rowsAtOnce, len(rows))
		m.coefficientsTo(coefficients[:n], rows[:n], clippingNorm)
		for i, row := range rows[:n] {
			addScaled(m.gradient, m.examples, coefficients[i], row)
		}
		rows = rows[n:]
	}
}

// AccumulateRounded implements Model. Every coordinate of every clipped gradient is
// truncated to the grid, which makes no norm larger, and integers are added exactly.
func (m *Linear) AccumulateRounded(rows []int32, clippingNorm, grid float64) {
	const slack = 0x1p-30 // for the rounding errors of norms and products, of rows up to 2²⁰ values
	var coefficients [rowsAtOnce]float64
	for len(rows) > 0 {
		n := min(rowsAtOnce, len(rows))
		m.coefficientsTo(coefficients[:n], rows[:n], clippingNorm*(1-slack))
		for i, row := range rows[:n] {
			c := coefficients[i] / grid
			if !math.IsNaN(c) { // of a model that diverged
				addScaled(m.sum, m.examples, c, row)
			}
		}
		rows = rows[n:]
	}
}

// rowsAtOnce is the number of rows whose coefficients are computed before the first is used:
// without a write between them, the processor works on a few rows at once.
const rowsAtOnce = 32

// coefficientsTo stores in dst the factors c of the rows' clipped gradients.
//
// With the margin u = y(w·x + b), the loss φ(u) has the gradient c·(x, 1), where
// c = y φ'(u); the squared loss has c = z − y. Its norm is |c|·(‖x‖² + 1)^½, so that to clip the gradient at L is to
// clip c at L/(‖x‖² + 1)^½.
func (m *Linear) coefficientsTo(dst []float64, rows []int32, clippingNorm float64) {
	e := m.examples
	for i, row := range rows {
		limit := clippingNorm / math.Sqrt(e.squaredNorm(row)+1)
		y := float64(e.signs[row])
		z := m.predict(e, row)
		c := z - y
		if m.kind != LinearRegression {
			c = y * m.slope(y*z)
		}
		dst[i] = max(-limit, min(c, limit))
	}
}

// predict returns z = w·x + b for a row of the examples.
func (m *Linear) predict(e *Examples, row int32) float64 {
	z := m.weights[len(m.weights)-1]
	if e.data.Dense != nil {
		for k, x := range e.dense(row) {
			z += m.weights[k] * float64(x)
		}
		return z
	}
	indices, values := e.data.Row(int(row))
	if values == nil {
		for _, index := range indices {
			z += m.weights[index]
		}
		return z
	}
	for k, index := range indices {
		z += m.weights[index] * float64(values[k])
	}
	return z
}

// addScaled adds c·(x, 1) to dst for a row x, each coordinate truncated for integers.
func addScaled[T int64 | float64](dst []T, e *Examples, c float64, row int32) {
	dst[len(dst)-1] += T(c)
	if e.data.Dense != nil {
		for k, x := range e.dense(row) {
			dst[k] += T(c * float64(x))
		}
		return
	}
	indices, values := e.data.Row(int(row))
	if values == nil {
		whole := T(c)
		for _, index := range indices {
			dst[index] += whole
		}
		return
	}
	for k, index := range indices {
		dst[index] += T(c * float64(values[k]))
	}
}

// slope returns φ'(u).
func (m *Linear) slope(u float64) float64 {
	switch m.kind {
	case LogisticRegression:
		return -1 / (1 + math.Exp(u))
	case LinearSVM:
		if u >= 1 {
			return 0
		}
		return -1
	default:
		return max(-1, min((u-1-m.width)/(2*m.width), 0))
	}
}

// Evaluate implements Model. An output of 0 is on the negative side.
func (m *Linear) Evaluate(e *Examples) (errorRate, loss float64) {
	if e.data.Dim+1 != len(m.weights) || e.count != m.examples.count {
		panic("model: examples of another shape")
	}
	if m.kind == LinearRegression {
		return m.evaluateNumbers(e)
	}
	// log(1 + e^(−u)) = max(−u, 0) + log(1 + e^(−|u|)). The logarithm is taken of
	// products of factors in (1, 2], each of as many as fit in the range of float64.
	const factors = 1000
	wrong := 0
	product := 1.0
	for i := range e.data.Rows {
		z := m.predict(e, int32(i))
		y := float64(e.signs[i])
		u := y * z
		if (z > 0) != (y > 0) {
			wrong++
		}
		switch m.kind {
		case LogisticRegression:
			loss += max(-u, 0)
			product *= 1 + math.Exp(-math.Abs(u))
			if i%factors == factors-1 {
				loss += math.Log(product)
				product = 1
			}
		case LinearSVM:
			loss += max(0, 1-u)
		default:
			loss += huber(u, m.width)
		}
	}
	loss += math.Log(product)
	n := float64(e.data.Rows)
	return float64(wrong) / n, loss / n
}

// evaluateNumbers returns the root mean squared error over the width of the range of labels, and the mean loss.
func (m *Linear) evaluateNumbers(e *Examples) (errorRate, loss float64) {
	const width = 2 // of [−1, 1]
	var squares float64
	for i := range e.data.Rows {
		z, y := m.predict(e, int32(i)), float64(e.signs[i])
		loss += (z - y) * (z - y) / 2
		z = max(-1, min(z, 1))
		squares += (z - y) * (z - y)
	}
	n := float64(e.data.Rows)
	return math.Sqrt(squares/n) / width, loss / n
}

// OutputsTo implements Model.
func (m *Linear) OutputsTo(dst []float64, e *Examples) {
	for i := range e.data.Rows {
		dst[i] = m.predict(e, int32(i))
	}
}

// huber is the loss of HuberSVM at margin u.
func huber(u, width float64) float64 {
	switch d := 1 - u; {
	case d < -width:
		return 0
	case d > width:
		return d
	default:
		return (width + d) * (width + d) / (4 * width)
	}
}

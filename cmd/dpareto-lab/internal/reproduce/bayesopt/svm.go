package bayesopt

import (
	"context"
	"fmt"
	"math"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
)

// svm is a support vector machine with the kernel exp(−‖x − x′‖²/γ²) (Cortes and Vapnik 1995):
// the sign of Σα_i·y_i·k(x_i, x) + b, with 0 <= α_i <= C.
type svm struct {
	cost, width float64   // C and γ²
	weights     []float64 // α_i·y_i
	offset      float64
}

// stoppingTolerance is the violation of the optimality conditions at which trainings stop, as in LIBSVM.
const stoppingTolerance = 1e-3

// trainSVM solves the dual problem by sequential minimal optimisation with second-order working sets
// (Fan, Chen and Lin, "Working set selection using second order information for training support
// vector machines", 2005). squares are the squared distances of the n records, by rows, and labels
// are −1 or 1. The optimality conditions hold to the tolerance. It needs memory for the kernel
// matrix, and fails if ctx is done or after 10 million steps.
func trainSVM(ctx context.Context, squares, labels []float64, cost, width, tolerance float64) (*svm, error) {
	n := len(labels)
	kernel := make([]float64, len(squares))
	for i, square := range squares {
		kernel[i] = math.Exp(-square / width)
	}
	alpha, gradient := make([]float64, n), make([]float64, n) // of ½αᵀQα − Σα
	for i := range gradient {
		gradient[i] = -1
	}
	for step := range 10_000_000 {
		if step%1000 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		i, j, most, leastViolation := workingSet(kernel, labels, alpha, gradient, cost)
		if most-leastViolation < tolerance || j < 0 {
			return machineOf(labels, alpha, gradient, cost, width, (most+leastViolation)/2), nil
		}
		curvature := math.Max(2-2*kernel[i*n+j], 1e-12)
		t := (most + labels[j]*gradient[j]) / curvature
		t = min(t, room(labels[i], alpha[i], cost), room(-labels[j], alpha[j], cost))
		alpha[i] = min(max(alpha[i]+labels[i]*t, 0), cost)
		alpha[j] = min(max(alpha[j]-labels[j]*t, 0), cost)
		rowI, rowJ := kernel[i*n:(i+1)*n], kernel[j*n:(j+1)*n]
		for k, y := range labels {
			gradient[k] += y * t * (rowI[k] - rowJ[k])
		}
	}
	return nil, fmt.Errorf("the support vector machine with C = %g and γ² = %g does not converge", cost, width)
}

// room returns how far a weight can move in the direction of a sign.
func room(sign, alpha, cost float64) float64 {
	if sign > 0 {
		return cost - alpha
	}
	return alpha
}

// workingSet returns the pair of weights to move, j < 0 if there is none, and the largest and the
// least violation.
func workingSet(kernel, labels, alpha, gradient []float64, cost float64) (i, j int, most, least float64) {
	n := len(labels)
	i, j, most, least = -1, -1, math.Inf(-1), math.Inf(1)
	for k, y := range labels {
		if v := -y * gradient[k]; room(y, alpha[k], cost) > 0 && v > most {
			i, most = k, v
		}
	}
	if i < 0 {
		return i, j, most, least
	}
	gain := 0.0
	for k, y := range labels {
		if room(-y, alpha[k], cost) <= 0 {
			continue
		}
		v := -y * gradient[k]
		least = math.Min(least, v)
		if b := most - v; b > 0 {
			if g := b * b / math.Max(2-2*kernel[i*n+k], 1e-12); g > gain {
				j, gain = k, g
			}
		}
	}
	return i, j, most, least
}

// machineOf returns the machine of a solution. The offset is the mean over the weights between the
// bounds, or the given one if there are none.
func machineOf(labels, alpha, gradient []float64, cost, width, offset float64) *svm {
	m := &svm{cost: cost, width: width, weights: make([]float64, len(labels)), offset: offset}
	sum, free := 0.0, 0
	for i, a := range alpha {
		m.weights[i] = a * labels[i]
		if a > 0 && a < cost {
			sum -= labels[i] * gradient[i]
			free++
		}
	}
	if free > 0 {
		m.offset = sum / float64(free)
	}
	return m
}

// decide returns the decision value of a record at these squared distances from the training records.
func (m *svm) decide(squares []float64) float64 {
	sum := m.offset
	for i, w := range m.weights {
		if w != 0 {
			sum += w * math.Exp(-squares[i]/m.width)
		}
	}
	return sum
}

// distances computes squared distances from the records of a dataset.
type distances struct {
	to    *dataset.Dataset
	norms []float64
	row   []float64 // scratch
}

func newDistances(to *dataset.Dataset) *distances {
	d := &distances{to: to, norms: make([]float64, to.Rows), row: make([]float64, to.Dim)}
	for i := range d.norms {
		d.norms[i] = to.SquaredNorm(i)
	}
	return d
}

// from sets dst to the squared distances of row i of another dataset.
func (d *distances) from(dst []float64, other *dataset.Dataset, i int) {
	clear(d.row)
	each(other, i, func(feature int, value float64) { d.row[feature] = value })
	norm := other.SquaredNorm(i)
	for j := range dst {
		product := 0.0
		each(d.to, j, func(feature int, value float64) { product += value * d.row[feature] })
		dst[j] = math.Max(0, norm+d.norms[j]-2*product)
	}
}

// each calls f with the features of a record that are not 0.
func each(data *dataset.Dataset, i int, f func(feature int, value float64)) {
	if data.Dense != nil {
		for feature, value := range data.Dense[i*data.Dim : (i+1)*data.Dim] {
			f(feature, float64(value))
		}
		return
	}
	indices, values := data.Row(i)
	for k, feature := range indices {
		value := 1.0
		if values != nil {
			value = float64(values[k])
		}
		f(int(feature), value)
	}
}

// sobol returns the first n points of the two-dimensional Sobol sequence after the origin, in the
// open unit square (Bratley and Fox, "Algorithm 659", 1988). It has no more than 2³¹ points.
func sobol(n int) [][2]float64 {
	var directions [2][32]uint32
	for k := range 32 {
		directions[0][k] = 1 << (31 - k)
		directions[1][k] = 1 << (31 - k)
		if k > 0 { // of the primitive polynomial x + 1
			directions[1][k] = directions[1][k-1] ^ directions[1][k-1]>>1
		}
	}
	points, state := make([][2]float64, n), [2]uint32{}
	for i := range points {
		bit := 0
		for rest := i; rest&1 == 1; rest >>= 1 {
			bit++
		}
		for d := range state {
			state[d] ^= directions[d][bit]
			points[i][d] = float64(state[d]) / (1 << 32)
		}
	}
	return points
}

package correlated

import (
	"context"
	"fmt"
	"math"

	"github.com/dpareto/dpareto/internal/lbfgs"
)

// Objective is what [Optimise] minimises.
type Objective int

// The objectives: both are sens(C)² times a variance of [Column.Errors], for records that take part at most once in
// as many steps as there are bands.
const (
	// MeanError is the mean over all prefixes, for optimisers that average or forget.
	MeanError Objective = iota
	// LastError is the variance at the last prefix, the largest.
	LastError
)

// weight returns the weight of b_j² in the error of n steps.
func (o Objective) weight(j, n int) float64 {
	if o == LastError {
		return 1
	}
	return float64(n-j) / float64(n)
}

// Optimise returns a banded column of norm 1 that minimises an objective for a run of steps >= 1 steps, by L-BFGS from
// the square-root column. bands is from 1 to steps; other values panic. It returns the error of ctx.
func Optimise(ctx context.Context, steps, bands int, objective Objective) (Column, error) {
	if bands < 1 || bands > steps {
		panic(fmt.Sprintf("correlated: %d bands for %d steps", bands, steps))
	}
	start := SquareRoot(bands)
	if bands == 1 {
		return start, nil
	}
	// The objective does not depend on the scale: c₀ stays 1, and no entry is larger.
	x, lower, upper := make([]float64, bands-1), make([]float64, bands-1), make([]float64, bands-1)
	for i := range x {
		x[i], upper[i] = start[i+1]/start[0], 1
	}
	options := lbfgs.Options{GradientTolerance: 1e-9, ValueTolerance: 1e-14}
	if _, err := lbfgs.Minimise(ctx, newLoss(steps, bands, objective), x, lower, upper, options); err != nil {
		return nil, fmt.Errorf("optimise %d bands for %d steps: %w", bands, steps, err)
	}
	return append(Column{1}, x...).normalised(), nil
}

// loss is the logarithm of ‖c‖²·Σ_j w_j·b_j², with b = C⁻¹1 and c₀ = 1, an lbfgs.Function.
type loss struct {
	c         Column
	w         []float64
	b         []float64
	adjoint   []float64
	norm, sum float64
}

func newLoss(steps, bands int, objective Objective) *loss {
	l := &loss{c: make(Column, bands), w: make([]float64, steps), b: make([]float64, steps), adjoint: make([]float64, steps)}
	for j := range l.w {
		l.w[j] = objective.weight(j, steps)
	}
	l.c[0] = 1
	return l
}

// Value returns the loss, which is not finite where b overflows.
func (l *loss) Value(x []float64) (float64, error) {
	copy(l.c[1:], x)
	l.norm, l.sum = 1, 0
	for _, v := range x {
		l.norm += v * v
	}
	for j := range l.b {
		b := 1.0
		for k := 1; k < min(len(l.c), j+1); k++ {
			b -= l.c[k] * l.b[j-k]
		}
		l.b[j] = b
		l.sum += l.w[j] * b * b
	}
	return math.Log(l.norm) + math.Log(l.sum), nil
}

// Gradient stores the gradient at the point of the last Value. From C·b = 1 follows ∂b/∂c_k = −C⁻¹(b shifted by k),
// and with λ = C⁻ᵀ(2w∘b)
//
//	∂/∂c_k = 2c_k/‖c‖² − Σ_{j >= k} λ_j·b_{j−k} / Σ_j w_j·b_j².
func (l *loss) Gradient(grad []float64) {
	n := len(l.b)
	for j := n - 1; j >= 0; j-- {
		v := 2 * l.w[j] * l.b[j]
		for k := 1; k < min(len(l.c), n-j); k++ {
			v -= l.c[k] * l.adjoint[j+k]
		}
		l.adjoint[j] = v
	}
	for k := 1; k < len(l.c); k++ {
		product := 0.0
		for j := k; j < n; j++ {
			product += l.adjoint[j] * l.b[j-k]
		}
		grad[k-1] = 2*l.c[k]/l.norm - product/l.sum
	}
}

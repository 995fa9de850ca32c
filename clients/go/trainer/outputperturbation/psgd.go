package outputperturbation

import (
	"context"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
)

// descent is permutation-based SGD in progress. Nothing is allocated after it is
// made.
type descent struct {
	risk   linear.Risk
	gamma  float64 // γ
	beta   float64 // β, at least the second derivative of the regularised loss
	radius float64 // of the ball to which iterates are projected; +Inf for none
	orders *random.Stream

	// The iterate is scale·direction: the shrinking by the regulariser costs nothing
	// for sparse records.
	direction []float64
	scale     float64
	squared   float64 // ‖direction‖²
	order     []int32
	step      int64 // updates made
}

func newDescent(risk linear.Risk, gamma, radius float64, orders *random.Stream) *descent {
	d := &descent{
		risk:      risk,
		gamma:     gamma,
		beta:      1 + gamma,
		radius:    radius,
		orders:    orders,
		direction: make([]float64, risk.Examples.Dim()),
		scale:     1,
		order:     make([]int32, risk.Examples.Rows()),
	}
	for i := range d.order {
		d.order[i] = int32(i)
	}
	return d
}

// epoch visits every example once, in a random order. It returns false, soon, when
// the context is done.
func (d *descent) epoch(ctx context.Context) bool {
	const between = 1024 // looks at the context
	d.orders.Shuffle(d.order)
	for k, i := range d.order {
		if k%between == 0 && ctx.Err() != nil {
			return false
		}
		d.update(int(i))
	}
	d.normalize()
	return true
}

// update takes the step of one example: the regulariser shrinks the iterate by
// 1 − ηγ, the loss adds −η·ℓ′(w·z)·z, then the iterate is projected.
func (d *descent) update(i int) {
	d.step++
	eta := min(1/d.beta, 1/(d.gamma*float64(d.step)))
	along := d.risk.Examples.Margin(i, d.direction)
	slope, _ := d.risk.Loss.Derivatives(d.scale * along)
	d.scale *= 1 - eta*d.gamma
	if c := -eta * slope / d.scale; c != 0 {
		d.risk.Examples.AddScaled(d.direction, c, i)
		d.squared += c * (2*along + c*d.risk.Examples.SquaredNorm(i))
	}
	if norm := d.scale * math.Sqrt(max(d.squared, 0)); norm > d.radius {
		d.scale *= d.radius / norm
	}
}

// normalize makes the scale 1 and clears the rounding errors of the norm.
func (d *descent) normalize() {
	floats.Scale(d.scale, d.direction)
	d.scale = 1
	d.squared = floats.Dot(d.direction, d.direction)
}

// weights returns the iterate after an epoch. The slice belongs to d.
func (d *descent) weights() []float64 { return d.direction }

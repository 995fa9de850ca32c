package dpsgd

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/dpareto/dpareto/clients/go/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer"
)

// Purposes of the random streams of a replicate. The lots do not depend on how
// much noise is drawn.
const (
	streamLots  = 0xd95d_0001
	streamNoise = 0xd95d_0002
)

// replicate is one model in training. Nothing is allocated after it is made.
type replicate struct {
	data        *dataset.Dataset
	c           configuration
	weights     []float64 // one for each feature, then the bias
	gradient    []float64 // sum over the lot; zero between steps
	order       []int32   // a permutation of the rows; the lot is its beginning
	lots, noise *rand.Rand
}

func newReplicate(data *dataset.Dataset, c configuration, seed uint64, index int) *replicate {
	r := &replicate{
		data:     data,
		c:        c,
		weights:  make([]float64, data.Dim+1),
		gradient: make([]float64, data.Dim+1),
		order:    make([]int32, data.Rows),
		lots:     trainer.Stream(seed, index, streamLots),
		noise:    trainer.Stream(seed, index, streamNoise),
	}
	for i := range r.order {
		r.order[i] = int32(i)
	}
	return r
}

// epoch takes the steps of one epoch. It returns false as soon as the context is
// done.
func (r *replicate) epoch(ctx context.Context) bool {
	for range r.c.stepsPerEpoch {
		if ctx.Err() != nil {
			return false
		}
		r.drawLot()
		r.accumulate(r.order[:r.c.lotSize])
		r.update()
	}
	return true
}

// drawLot moves a uniform sample without replacement to the beginning of the
// order: the first lotSize steps of the shuffle of Fisher and Yates, which needs
// no particular order to start from.
func (r *replicate) drawLot() {
	order := r.order
	for i := range r.c.lotSize {
		j := i + int(r.lots.Uint32N(uint32(len(order)-i)))
		order[i], order[j] = order[j], order[i]
	}
}

// accumulate adds the clipped gradients of the rows to r.gradient.
func (r *replicate) accumulate(rows []int32) {
	// The coefficients of several rows are computed before the first is used:
	// without a write between them, the processor works on a few rows at once.
	const block = 32
	var coefficients [block]float64
	for len(rows) > 0 {
		n := min(block, len(rows))
		r.coefficientsTo(coefficients[:n], rows[:n])
		for i, row := range rows[:n] {
			indices, values := r.data.Row(int(row))
			addScaled(r.gradient, coefficients[i], indices, values)
		}
		rows = rows[n:]
	}
}

// coefficientsTo stores in dst the factors c of the rows' clipped gradients.
//
// With y = ±1 and z = w·x + b, the loss log(1 + e^(−yz)) has the gradient
// c·(x, 1), where c = −y/(1 + e^(yz)). Its norm is |c|·(‖x‖² + 1)^½, so that to
// clip the gradient at L is to clip c at L/(‖x‖² + 1)^½.
func (r *replicate) coefficientsTo(dst []float64, rows []int32) {
	for i, row := range rows {
		indices, values := r.data.Row(int(row))
		squared := float64(len(indices))
		if values != nil {
			squared = r.data.SquaredNorm(int(row))
		}
		limit := r.c.clippingNorm / math.Sqrt(squared+1)
		y := float64(r.data.Labels[row])
		c := -y / (1 + math.Exp(y*predict(r.weights, indices, values)))
		dst[i] = max(-limit, min(c, limit))
	}
}

// predict returns z = w·x + b for a sparse row.
func predict(weights []float64, indices []int32, values []float32) float64 {
	z := weights[len(weights)-1]
	if values == nil {
		for _, index := range indices {
			z += weights[index]
		}
		return z
	}
	for k, index := range indices {
		z += weights[index] * float64(values[k])
	}
	return z
}

// addScaled adds c·(x, 1) to dst for a sparse row x.
func addScaled(dst []float64, c float64, indices []int32, values []float32) {
	dst[len(dst)-1] += c
	if values == nil {
		for _, index := range indices {
			dst[index] += c
		}
		return
	}
	for k, index := range indices {
		dst[index] += c * float64(values[k])
	}
}

// update averages the gradient, adds the noise and moves the weights.
func (r *replicate) update() {
	scale := 1 / float64(r.c.lotSize)
	deviation := 2 * r.c.clippingNorm * scale * r.c.noiseMultiplier
	for j, sum := range r.gradient {
		g := sum * scale
		if deviation > 0 {
			g += deviation * r.noise.NormFloat64()
		}
		r.weights[j] -= r.c.learningRate * g
		r.gradient[j] = 0
	}
}

// evaluate returns the fraction of examples on the wrong side of the model, z = 0
// being on the negative one, and their mean log loss in nats.
func evaluate(data *dataset.Dataset, weights []float64) (errorRate, loss float64) {
	// log(1 + e^(−yz)) = max(−yz, 0) + log(1 + e^(−|z|)). The logarithm is taken of
	// products of factors in (1, 2], of as many as stay within the range of float64.
	const factors = 1000
	wrong := 0
	product := 1.0
	for i := range data.Rows {
		indices, values := data.Row(i)
		z := predict(weights, indices, values)
		y := float64(data.Labels[i])
		if (z > 0) != (y > 0) {
			wrong++
		}
		loss += max(-y*z, 0)
		product *= 1 + math.Exp(-math.Abs(z))
		if i%factors == factors-1 {
			loss += math.Log(product)
			product = 1
		}
	}
	loss += math.Log(product)
	n := float64(data.Rows)
	return float64(wrong) / n, loss / n
}

// allFinite reports whether no value is infinite or not a number.
func allFinite(values []float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

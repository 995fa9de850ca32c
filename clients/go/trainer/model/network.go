package model

import (
	"math"

	"gonum.org/v1/gonum/blas"

	"github.com/dpareto/dpareto/clients/go/trainer/random"
)

// Workers runs loops with independent bodies.
type Workers interface {
	// Do calls body with every number in [0, tasks), in any order and possibly at
	// the same time, and returns when all calls have.
	Do(tasks int, body func(int))
}

// Sizes of what one worker does at a time. They do not depend on the number of
// workers, and each result is computed by one of them, so that results do not
// either.
const (
	chunkRows   = 64            // examples
	blockRows   = 4 * chunkRows // examples between two sums over examples
	chunkInputs = 128           // rows of a matrix of weights
)

// Network is a feedforward network in float32: layers of ReLU units, and softmax
// outputs.
type Network struct {
	examples          *Examples
	workers           Workers
	weights, gradient []float32 // of each layer the weights, input by input, then the biases
	layers            []layer
	input             []float32 // dense rows of the block: blockRows × inputs
	sums              []sum     // tasks of accumulate

	// The block at work.
	current      *Examples
	rows         []int32
	clippingNorm float64
	consecutive  [blockRows]int32
	wrong        [blockRows / chunkRows]int
	loss         [blockRows / chunkRows]float64

	propagate, accumulate, evaluate func(task int) // methods, bound once
}

var _ Model[float32] = (*Network)(nil)

// layer is one layer and what the block at work makes of it.
type layer struct {
	in, out                       int
	weights, biases               []float32 // in × out, out
	weightsGradient, biasGradient []float32
	output                        []float32 // blockRows × out, after ReLU except in the last layer
	delta                         []float32 // blockRows × out: gradient with respect to what ReLU is applied to
}

// sum is a part of a layer's gradient: the inputs from, …, to−1, and the biases with
// input 0.
type sum struct{ layer, from, to int }

// NewNetwork returns a network with all weights 0, made for the examples. The
// workers divide the work on one lot; nil stands for none beside the caller. It
// panics unless the spec is valid and its Linear method returns false.
func NewNetwork(spec Spec, examples *Examples, workers Workers) *Network {
	if spec.Linear() || spec.Validate() != nil {
		panic("model: spec is of no valid network")
	}
	if workers == nil {
		workers = alone{}
	}
	widths := append(append([]int{examples.data.Dim}, spec.Hidden...), examples.count)
	size := 0
	for l, out := range widths[1:] {
		size += (widths[l] + 1) * out
	}
	n := &Network{
		examples: examples, workers: workers,
		weights: make([]float32, size), gradient: make([]float32, size),
	}
	sparse := examples.data.Dense == nil
	if !sparse {
		n.input = make([]float32, blockRows*examples.data.Dim)
	}
	weights, gradient := n.weights, n.gradient
	for i, out := range widths[1:] {
		in := widths[i]
		l := layer{
			in: in, out: out,
			output: make([]float32, blockRows*out), delta: make([]float32, blockRows*out),
		}
		l.weights, l.biases, weights = weights[:in*out], weights[in*out:(in+1)*out], weights[(in+1)*out:]
		l.weightsGradient, l.biasGradient, gradient = gradient[:in*out], gradient[in*out:(in+1)*out], gradient[(in+1)*out:]
		n.layers = append(n.layers, l)
		step := chunkInputs
		if i == 0 && sparse {
			step = in // rows name inputs anywhere
		}
		for from := 0; from < in; from += step {
			n.sums = append(n.sums, sum{i, from, min(from+step, in)})
		}
	}
	n.propagate, n.accumulate, n.evaluate = n.propagateChunk, n.accumulateSum, n.evaluateChunk
	return n
}

// alone works without help.
type alone struct{}

func (alone) Do(tasks int, body func(int)) {
	for i := range tasks {
		body(i)
	}
}

// Weights implements Model: layer by layer the weights, input by input, then the
// biases.
func (n *Network) Weights() []float32 { return n.weights }

// Gradient implements Model.
func (n *Network) Gradient() []float32 { return n.gradient }

// Initialize implements Model.
func (n *Network) Initialize(initialization Initialization, s *random.Stream) {
	for i := range n.layers {
		l := &n.layers[i]
		initialize(l.weights, l.biases, l.in, l.out, initialization, s)
	}
}

// Accumulate implements Model.
func (n *Network) Accumulate(rows []int32, clippingNorm float64) {
	n.current, n.clippingNorm = n.examples, clippingNorm
	for len(rows) > 0 {
		n.rows = rows[:min(blockRows, len(rows))]
		n.workers.Do(chunks(len(n.rows)), n.propagate)
		n.workers.Do(len(n.sums), n.accumulate)
		rows = rows[len(n.rows):]
	}
}

// Evaluate implements Model. Of equal outputs the first class counts.
func (n *Network) Evaluate(e *Examples) (errorRate, loss float64) {
	if e.data.Dim != n.layers[0].in || e.count != n.examples.count || (e.data.Dense == nil) != (n.input == nil) {
		panic("model: examples of another shape")
	}
	n.current = e
	wrong := 0
	for first := 0; first < e.data.Rows; first += blockRows {
		n.rows = n.consecutive[:min(blockRows, e.data.Rows-first)]
		for i := range n.rows {
			n.rows[i] = int32(first + i)
		}
		tasks := chunks(len(n.rows))
		n.workers.Do(tasks, n.evaluate)
		for task := range tasks {
			wrong += n.wrong[task]
			loss += n.loss[task]
		}
	}
	rows := float64(e.data.Rows)
	return float64(wrong) / rows, loss / rows
}

// chunks returns the number of chunks that hold the rows.
func chunks(rows int) int { return (rows + chunkRows - 1) / chunkRows }

// chunk returns the part of the block that task number task works on.
func (n *Network) chunk(task int) (lo, hi int) {
	return task * chunkRows, min((task+1)*chunkRows, len(n.rows))
}

// evaluateChunk counts errors and sums losses of a chunk.
func (n *Network) evaluateChunk(task int) {
	lo, hi := n.chunk(task)
	n.forward(lo, hi)
	last := &n.layers[len(n.layers)-1]
	wrong, loss := 0, 0.0
	for i := lo; i < hi; i++ {
		outputs := last.output[i*last.out : (i+1)*last.out]
		class := n.current.classes[n.rows[i]]
		best := 0
		for k, z := range outputs {
			if z > outputs[best] {
				best = k
			}
		}
		if int32(best) != class {
			wrong++
		}
		var total float64
		for _, z := range outputs {
			total += math.Exp(float64(z) - float64(outputs[best]))
		}
		loss += math.Log(total) + float64(outputs[best]) - float64(outputs[class])
	}
	n.wrong[task], n.loss[task] = wrong, loss
}

// propagateChunk computes the clipped δ of all layers for a chunk.
func (n *Network) propagateChunk(task int) {
	lo, hi := n.chunk(task)
	n.forward(lo, hi)
	n.backward(lo, hi)
	if !math.IsInf(n.clippingNorm, 1) {
		n.clip(lo, hi)
	}
}

// forward computes the outputs of all layers for rows lo to hi of the block.
func (n *Network) forward(lo, hi int) {
	for i := range n.layers {
		l := &n.layers[i]
		output := l.output[lo*l.out : hi*l.out]
		for k := 0; k < len(output); k += l.out {
			copy(output[k:k+l.out], l.biases)
		}
		if i == 0 && n.input == nil {
			n.multiplySparse(lo, hi)
		} else {
			input := n.inputOf(i)
			if i == 0 {
				for j, row := range n.rows[lo:hi] {
					copy(input[(lo+j)*l.in:(lo+j+1)*l.in], n.current.dense(row))
				}
			}
			matrices.Sgemm(blas.NoTrans, blas.NoTrans, hi-lo, l.out, l.in,
				1, input[lo*l.in:hi*l.in], l.in, l.weights, l.out, 1, output, l.out)
		}
		if i < len(n.layers)-1 {
			for k, z := range output {
				output[k] = max(z, 0)
			}
		}
	}
}

// inputOf returns the input of layer i, which is dense, for the block.
func (n *Network) inputOf(i int) []float32 {
	if i == 0 {
		return n.input
	}
	return n.layers[i-1].output
}

// multiplySparse adds the products of sparse rows and weights to the outputs of the
// first layer.
func (n *Network) multiplySparse(lo, hi int) {
	l := &n.layers[0]
	for i := lo; i < hi; i++ {
		indices, values := n.current.data.Row(int(n.rows[i]))
		output := l.output[i*l.out : (i+1)*l.out]
		for k, index := range indices {
			x := float32(1)
			if values != nil {
				x = values[k]
			}
			vectors.Saxpy(l.out, x, l.weights[int(index)*l.out:], 1, output, 1)
		}
	}
}

// backward computes δ of all layers for rows lo to hi of the block.
func (n *Network) backward(lo, hi int) {
	// The loss −log p of the class has the gradient p − (1 at the class, else 0).
	last := &n.layers[len(n.layers)-1]
	for i := lo; i < hi; i++ {
		delta := last.delta[i*last.out : (i+1)*last.out]
		softmax(delta, last.output[i*last.out:(i+1)*last.out])
		delta[n.current.classes[n.rows[i]]]--
	}
	for i := len(n.layers) - 1; i > 0; i-- {
		l, below := &n.layers[i], &n.layers[i-1]
		delta := below.delta[lo*l.in : hi*l.in]
		matrices.Sgemm(blas.NoTrans, blas.Trans, hi-lo, l.in, l.out,
			1, l.delta[lo*l.out:hi*l.out], l.out, l.weights, l.out, 0, delta, l.in)
		for k, output := range below.output[lo*l.in : hi*l.in] {
			// δ is 0 where the output of ReLU is, which no branch predictor foresees: the
			// sign of −output, as an integer, is a mask. Where the output is NaN, δ remains.
			mask := uint32(-int32(math.Float32bits(output)) >> 31)
			delta[k] = math.Float32frombits(math.Float32bits(delta[k]) & mask)
		}
	}
}

// softmax stores e^z / Σ e^z in dst.
func softmax(dst, z []float32) {
	highest := z[0]
	for _, v := range z {
		highest = max(highest, v)
	}
	var total float64
	for k, v := range z {
		e := math.Exp(float64(v - highest))
		dst[k] = float32(e)
		total += e
	}
	scale := float32(1 / total)
	for k := range dst {
		dst[k] *= scale
	}
}

// clip scales δ of all layers by min(1, L/‖g‖) for rows lo to hi of the block.
func (n *Network) clip(lo, hi int) {
	for i := lo; i < hi; i++ {
		input := n.current.squaredNorm(n.rows[i])
		var squared float64
		for k := range n.layers {
			l := &n.layers[k]
			squared += (input + 1) * squaredNorm(l.delta[i*l.out:(i+1)*l.out])
			if k < len(n.layers)-1 {
				input = squaredNorm(l.output[i*l.out : (i+1)*l.out])
			}
		}
		norm := math.Sqrt(squared)
		if norm <= n.clippingNorm {
			continue
		}
		scale := float32(n.clippingNorm / norm)
		for k := range n.layers {
			l := &n.layers[k]
			for j := i * l.out; j < (i+1)*l.out; j++ {
				l.delta[j] *= scale
			}
		}
	}
}

// squaredNorm returns ‖x‖², summed in float64.
func squaredNorm(x []float32) float64 { return vectors.Dsdot(len(x), x, 1, x, 1) }

// accumulateSum adds the products of inputs and δ over the block to a part of the
// gradient.
func (n *Network) accumulateSum(task int) {
	s := n.sums[task]
	l := &n.layers[s.layer]
	rows := len(n.rows)
	if s.layer == 0 && n.input == nil {
		n.accumulateSparse()
	} else {
		matrices.Sgemm(blas.Trans, blas.NoTrans, s.to-s.from, l.out, rows,
			1, n.inputOf(s.layer)[s.from:rows*l.in], l.in, l.delta[:rows*l.out], l.out,
			1, l.weightsGradient[s.from*l.out:s.to*l.out], l.out)
	}
	if s.from > 0 {
		return
	}
	for i := range rows {
		vectors.Saxpy(l.out, 1, l.delta[i*l.out:(i+1)*l.out], 1, l.biasGradient, 1)
	}
}

// accumulateSparse is the sum of the first layer on sparse rows.
func (n *Network) accumulateSparse() {
	l := &n.layers[0]
	for i, row := range n.rows {
		indices, values := n.current.data.Row(int(row))
		delta := l.delta[i*l.out : (i+1)*l.out]
		for k, index := range indices {
			x := float32(1)
			if values != nil {
				x = values[k]
			}
			vectors.Saxpy(l.out, x, delta, 1, l.weightsGradient[int(index)*l.out:], 1)
		}
	}
}

package model

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/internal/linalg"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
)

// engine does the linear algebra of all networks. The workers of a network share its
// work by rows and by inputs.
var engine = linalg.New()

// Workers runs loops with independent bodies.
type Workers interface {
	// Do calls body with every number in [0, tasks), in any order and possibly at
	// the same time, and returns when all calls have.
	Do(tasks int, body func(int))
	// Count is the number of calls that run at the same time, at least 1.
	Count() int
}

// Sizes of what is summed at a time. They do not depend on the number of
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
	sum               []int64   // like the gradient, in units of a grid
	layers            []layer
	input             []float32 // dense rows of the block: blockRows × inputs
	sums              []sum     // tasks of accumulate

	// The block at work.
	current      *Examples
	rows         []int32
	clippingNorm float64
	perGrid      float64 // 1/grid
	consecutive  [blockRows]int32
	// What clip computes of each row: a squared norm of an input and of δ, the sum of
	// the products, and the factor.
	inputNorm, deltaNorm, norm [blockRows]float64
	factor                     [blockRows]float32
	wrong                      [blockRows / chunkRows]int
	loss                       [blockRows / chunkRows]float64

	propagate, accumulate, accumulateRounded, evaluate func(task int) // methods, bound once
}

var _ Model[float32] = (*Network)(nil)

// layer is one layer and its results for the block at work.
type layer struct {
	in, out                       int
	weights, biases               []float32 // in × out, out
	weightsGradient, biasGradient []float32
	weightsSum, biasSum           []int64
	output                        []float32 // blockRows × out, after ReLU except in the last layer
	delta                         []float32 // blockRows × out: gradient with respect to what ReLU is applied to
}

// rowsOf returns rows lo to hi of the matrix with the given number of columns.
func rowsOf(a []float32, columns, lo, hi int) blas32.General {
	return blas32.General{Rows: hi - lo, Cols: columns, Stride: columns, Data: a[lo*columns : hi*columns]}
}

// weightsMatrix returns the weights as in × out.
func (l *layer) weightsMatrix() blas32.General { return rowsOf(l.weights, l.out, 0, l.in) }

// sum is a part of a layer's gradient: the inputs from, …, to−1, and the biases with
// input 0.
type sum struct{ layer, from, to int }

// NewNetwork returns a network with all weights 0, made for the examples. The workers
// divide the work on one lot; nil means the caller alone. It panics unless the spec is
// valid and its Linear method returns false.
func NewNetwork(spec Spec, examples *Examples, workers Workers) *Network {
	if spec.Linear() || spec.Validate() != nil {
		panic("model: spec is not a valid network")
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
		weights: make([]float32, size), gradient: make([]float32, size), sum: make([]int64, size),
	}
	sparse := examples.data.Dense == nil
	if !sparse {
		n.input = make([]float32, blockRows*examples.data.Dim)
	}
	weights, gradient, whole := n.weights, n.gradient, n.sum
	for i, out := range widths[1:] {
		in := widths[i]
		l := layer{
			in: in, out: out,
			output: make([]float32, blockRows*out), delta: make([]float32, blockRows*out),
		}
		l.weights, l.biases, weights = weights[:in*out], weights[in*out:(in+1)*out], weights[(in+1)*out:]
		l.weightsGradient, l.biasGradient, gradient = gradient[:in*out], gradient[in*out:(in+1)*out], gradient[(in+1)*out:]
		l.weightsSum, l.biasSum, whole = whole[:in*out], whole[in*out:(in+1)*out], whole[(in+1)*out:]
		n.layers = append(n.layers, l)
		step := chunkInputs
		if i == 0 && sparse {
			step = in // rows name inputs anywhere
		}
		for from := 0; from < in; from += step {
			n.sums = append(n.sums, sum{i, from, min(from+step, in)})
		}
	}
	n.propagate, n.accumulate, n.accumulateRounded, n.evaluate = n.propagateShare, n.accumulateSum, n.accumulateRoundedSum, n.evaluateShare
	return n
}

// alone works without help.
type alone struct{}

func (alone) Do(tasks int, body func(int)) {
	for i := range tasks {
		body(i)
	}
}

func (alone) Count() int { return 1 }

// Weights implements Model: layer by layer the weights, input by input, then the
// biases.
func (n *Network) Weights() []float32 { return n.weights }

// Layers implements Model: the last one has an output for each class.
func (n *Network) Layers() []trainer.Layer {
	layers := make([]trainer.Layer, len(n.layers))
	for i, l := range n.layers {
		layers[i] = trainer.Layer{In: l.in, Out: l.out, Weights: widened(l.weights), Biases: widened(l.biases)}
	}
	return layers
}

// widened returns a copy in float64.
func widened(values []float32) []float64 {
	wide := make([]float64, len(values))
	for i, v := range values {
		wide[i] = float64(v)
	}
	return wide
}

// Gradient implements Model.
func (n *Network) Gradient() []float32 { return n.gradient }

// Sum implements Model.
func (n *Network) Sum() []int64 { return n.sum }

// Initialize implements Model.
func (n *Network) Initialize(initialization Initialization, s *random.Stream) {
	for i := range n.layers {
		l := &n.layers[i]
		initialize(l.weights, l.biases, l.in, l.out, initialization, s)
	}
}

// Accumulate implements Model.
func (n *Network) Accumulate(rows []int32, clippingNorm float64) {
	n.clippingNorm = clippingNorm
	n.accumulateBlocks(rows, n.accumulate)
}

// AccumulateRounded implements Model. The rows of a block are summed in float32, chunk by chunk, and the sum
// is truncated to the grid and added as an integer. Blocks and chunks are places in the lot, so that
// exchanging a row changes the sum of its chunk and of its block and no other.
func (n *Network) AccumulateRounded(rows []int32, clippingNorm, grid float64) {
	const slack = 0x1p-10 // the package comment says what for
	n.clippingNorm, n.perGrid = clippingNorm*(1-slack), 1/grid
	n.accumulateBlocks(rows, n.accumulateRounded)
}

// accumulateBlocks computes the clipped δ of the rows block by block, and calls accumulate
// with the tasks of each block.
func (n *Network) accumulateBlocks(rows []int32, accumulate func(task int)) {
	n.current = n.examples
	for len(rows) > 0 {
		n.rows = rows[:min(blockRows, len(rows))]
		n.workers.Do(n.tasks(), n.propagate)
		n.workers.Do(len(n.sums), accumulate)
		rows = rows[len(n.rows):]
	}
}

// Evaluate implements Model. Of equal outputs the first class counts.
func (n *Network) Evaluate(e *Examples) (errorRate, loss float64) { return n.pass(e, nil) }

// OutputsTo implements Model.
func (n *Network) OutputsTo(dst []float64, e *Examples) { n.pass(e, dst) }

// pass evaluates the examples, and stores the outputs in dst unless it is nil.
func (n *Network) pass(e *Examples, dst []float64) (errorRate, loss float64) {
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
		n.workers.Do(n.tasks(), n.evaluate)
		for chunk := range chunks(len(n.rows)) {
			wrong += n.wrong[chunk]
			loss += n.loss[chunk]
		}
		if dst != nil {
			last := &n.layers[len(n.layers)-1]
			for i, z := range last.output[:len(n.rows)*last.out] {
				dst[first*last.out+i] = float64(z)
			}
		}
	}
	rows := float64(e.data.Rows)
	return float64(wrong) / rows, loss / rows
}

// chunks returns the number of chunks that hold the rows.
func chunks(rows int) int { return (rows + chunkRows - 1) / chunkRows }

// chunk returns the rows of a chunk of the block.
func (n *Network) chunk(chunk int) (lo, hi int) {
	return chunk * chunkRows, min((chunk+1)*chunkRows, len(n.rows))
}

// share is the number of chunks that one worker passes through the layers at a time: as many as there
// are for each, since every pass packs the weights again.
func (n *Network) share() int {
	return (chunks(len(n.rows)) + n.workers.Count() - 1) / n.workers.Count()
}

// tasks returns the number of shares of the block.
func (n *Network) tasks() int { return (chunks(len(n.rows)) + n.share() - 1) / n.share() }

// rowsOfTask returns the rows of a share.
func (n *Network) rowsOfTask(task int) (lo, hi int) {
	return task * n.share() * chunkRows, min((task+1)*n.share()*chunkRows, len(n.rows))
}

// evaluateShare counts errors and sums losses of the chunks of a share.
func (n *Network) evaluateShare(task int) {
	lo, hi := n.rowsOfTask(task)
	n.forward(lo, hi)
	for chunk := lo / chunkRows; chunk*chunkRows < hi; chunk++ {
		n.evaluateChunk(chunk)
	}
}

// evaluateChunk counts errors and sums losses of a chunk with outputs.
func (n *Network) evaluateChunk(chunk int) {
	lo, hi := n.chunk(chunk)
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
	n.wrong[chunk], n.loss[chunk] = wrong, loss
}

// propagateShare computes the clipped δ of all layers for a share.
func (n *Network) propagateShare(task int) {
	lo, hi := n.rowsOfTask(task)
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
		output := rowsOf(l.output, l.out, lo, hi)
		if i == 0 && n.input == nil {
			n.multiplySparse(lo, hi)
		} else {
			input := rowsOf(n.inputOf(i), l.in, lo, hi)
			if i == 0 {
				for j, row := range n.rows[lo:hi] {
					copy(input.Data[j*l.in:(j+1)*l.in], n.current.dense(row))
				}
			}
			engine.Gemm(blas.NoTrans, blas.NoTrans, 1, input, l.weightsMatrix(), 0, output)
		}
		if i < len(n.layers)-1 {
			engine.AddBiasReLU(output, l.biases)
		} else {
			engine.AddBias(output, l.biases)
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

// multiplySparse stores the products of sparse rows and weights in the outputs of the
// first layer.
func (n *Network) multiplySparse(lo, hi int) {
	l := &n.layers[0]
	for i := lo; i < hi; i++ {
		indices, values := n.current.data.Row(int(n.rows[i]))
		output := l.output[i*l.out : (i+1)*l.out]
		clear(output)
		for k, index := range indices {
			engine.Axpy(valueAt(values, k), l.weights[int(index)*l.out:(int(index)+1)*l.out], output)
		}
	}
}

// valueAt returns a stored value of a sparse row; nil values stand for ones.
func valueAt(values []float32, k int) float32 {
	if values == nil {
		return 1
	}
	return values[k]
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
		delta := rowsOf(below.delta, l.in, lo, hi)
		engine.Gemm(blas.NoTrans, blas.Trans, 1, rowsOf(l.delta, l.out, lo, hi), l.weightsMatrix(), 0, delta)
		engine.MaskReLU(delta, rowsOf(below.output, l.in, lo, hi))
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

// largestActivations bounds the squared norm of the inputs of a layer in clip. Beyond, the
// least number of float32 in δ could be a gradient that matters.
const largestActivations = 0x1p100

// clip scales δ of all layers by min(1, L/‖g‖) for rows lo to hi of the block. A row without
// a finite gradient gets a gradient of 0.
func (n *Network) clip(lo, hi int) {
	input, delta, norm, factor := n.inputNorm[lo:hi], n.deltaNorm[lo:hi], n.norm[lo:hi], n.factor[lo:hi]
	for i, row := range n.rows[lo:hi] {
		input[i], norm[i] = n.current.squaredNorm(row), 0
	}
	for i := range n.layers {
		l := &n.layers[i]
		engine.SquaredNorms(delta, rowsOf(l.delta, l.out, lo, hi))
		for k, squared := range delta {
			norm[k] += (input[k] + 1) * squared
			if !(input[k] <= largestActivations) {
				norm[k] = math.Inf(1)
			}
		}
		if i < len(n.layers)-1 {
			engine.SquaredNorms(input, rowsOf(l.output, l.out, lo, hi))
		}
	}
	for i, squared := range norm {
		if !(squared <= math.MaxFloat64) {
			n.drop(lo + i)
			squared = 0
		}
		factor[i] = roundDown(min(1, n.clippingNorm/math.Sqrt(squared)))
	}
	for i := range n.layers {
		l := &n.layers[i]
		engine.ScaleRows(rowsOf(l.delta, l.out, lo, hi), factor)
	}
}

// drop makes the gradient of a row of the block 0.
func (n *Network) drop(row int) {
	for i := range n.layers {
		l := &n.layers[i]
		clear(l.delta[row*l.out : (row+1)*l.out])
		clear(l.output[row*l.out : (row+1)*l.out]) // 0 times infinity is no 0
	}
	if n.input != nil {
		dim := n.layers[0].in
		clear(n.input[row*dim : (row+1)*dim])
	}
}

// accumulateSum adds the products of inputs and δ over the block to a part of the
// gradient.
func (n *Network) accumulateSum(task int) { n.addProducts(n.sums[task], 0, len(n.rows)) }

// accumulateRoundedSum adds the products of inputs and δ over the block, truncated to the grid, to a part of the
// sum. A product of dense matrices is finished for each chunk before it is added to the products of earlier
// chunks, so that few roundings depend on several chunks (package comment). Biases and sparse rows are added one
// by one: these are truncated after every chunk.
func (n *Network) accumulateRoundedSum(task int) {
	s := n.sums[task]
	l := &n.layers[s.layer]
	weights := func() {
		moveRounded(l.weightsSum[s.from*l.out:s.to*l.out], l.weightsGradient[s.from*l.out:s.to*l.out], n.perGrid)
	}
	sparse := s.layer == 0 && n.input == nil
	for chunk := range chunks(len(n.rows)) {
		lo, hi := n.chunk(chunk)
		n.addProducts(s, lo, hi)
		if sparse {
			weights()
		}
		if s.from == 0 {
			moveRounded(l.biasSum, l.biasGradient, n.perGrid)
		}
	}
	if !sparse {
		weights()
	}
}

// moveRounded adds values·perGrid, truncated, to dst, and clears the values.
func moveRounded(dst []int64, values []float32, perGrid float64) {
	for j, v := range values {
		dst[j] += int64(float64(v) * perGrid)
		values[j] = 0
	}
}

// addProducts adds the products of inputs and δ over rows lo to hi of the block to a part of
// the gradient.
func (n *Network) addProducts(s sum, lo, hi int) {
	l := &n.layers[s.layer]
	delta := rowsOf(l.delta, l.out, lo, hi)
	if s.layer == 0 && n.input == nil {
		n.addSparseProducts(lo, hi)
	} else {
		input := blas32.General{
			Rows: hi - lo, Cols: s.to - s.from, Stride: l.in, Data: n.inputOf(s.layer)[lo*l.in+s.from : hi*l.in],
		}
		engine.Gemm(blas.Trans, blas.NoTrans, 1, input, delta, 1, rowsOf(l.weightsGradient, l.out, s.from, s.to))
	}
	if s.from > 0 {
		return
	}
	for i := range hi - lo {
		engine.Axpy(1, delta.Data[i*l.out:(i+1)*l.out], l.biasGradient)
	}
}

// addSparseProducts is addProducts for the first layer on sparse rows.
func (n *Network) addSparseProducts(lo, hi int) {
	l := &n.layers[0]
	for i := lo; i < hi; i++ {
		indices, values := n.current.data.Row(int(n.rows[i]))
		delta := l.delta[i*l.out : (i+1)*l.out]
		for k, index := range indices {
			engine.Axpy(valueAt(values, k), delta, l.weightsGradient[int(index)*l.out:(int(index)+1)*l.out])
		}
	}
}

// roundDown returns the largest float32 that is not above x >= 0, and 0 where it would be
// subnormal: a factor that is rounded up would clip to more than the norm.
func roundDown(x float64) float32 {
	const smallest = 0x1p-126 // normal
	if x < smallest {
		return 0
	}
	rounded := float32(x)
	if float64(rounded) > x {
		rounded = math.Nextafter32(rounded, 0)
	}
	return rounded
}

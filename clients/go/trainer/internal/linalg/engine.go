package linalg

import "sync"

// Engine performs the operations of this package with one set of kernels. It may
// be used by any number of goroutines at the same time. It keeps its workspaces,
// 1.2 MB for each worker of each product that is computed at the same time, so
// that its methods allocate nothing once warm.
type Engine struct {
	kernels kernels
	workers int

	mu         sync.Mutex // guards what follows
	workspaces []*workspace
	products   []*product
}

// Best returns the fastest engine for this CPU: AVX-512 or AVX2 with fused
// multiply-add, or the scalar kernels. Its results differ in the last bits from
// those of other engines. Gemm divides large products among the given number of
// workers, at least 1.
func Best(workers int) *Engine { return newEngine(fastest(true), workers) }

// Reproducible returns the fastest engine whose results are the same bits as those
// of Scalar, on every machine. See Best for workers.
func Reproducible(workers int) *Engine { return newEngine(fastest(false), workers) }

// Scalar returns the engine of the kernels in Go, the reference for all others.
// See Best for workers.
func Scalar(workers int) *Engine { return newEngine(scalarKernels, workers) }

// String names the instructions of the engine's products, for reports: scalar,
// avx2, avx512, and these with +fma.
func (e *Engine) String() string { return e.kernels.name }

func fastest(fused bool) kernels {
	if sets := vectorKernels(fused); len(sets) > 0 {
		return sets[len(sets)-1]
	}
	return scalarKernels
}

func newEngine(set kernels, workers int) *Engine {
	if workers < 1 {
		panic(badWorkers)
	}
	return &Engine{kernels: set, workers: workers}
}

const (
	badWorkers   = "linalg: number of workers below 1"
	badTranspose = "linalg: illegal transpose"
	badShape     = "linalg: dimension mismatch"
	badStride    = "linalg: stride below the number of columns"
	badDimension = "linalg: negative dimension"
	shortData    = "linalg: too few elements for the dimensions"
)

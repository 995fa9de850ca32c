package linalg

import "sync"

// Engine performs the operations of this package. Any number of goroutines may use
// it at the same time. It keeps one workspace of 1.2 MB for each product computed
// at the same time, so that its methods allocate nothing once warm.
type Engine struct {
	kernels kernels

	mu         sync.Mutex // guards workspaces
	workspaces []*workspace
}

// New returns an engine with the fastest kernels that this CPU can execute.
func New() *Engine {
	if sets := vectorKernels(); len(sets) > 0 {
		return &Engine{kernels: sets[len(sets)-1]}
	}
	return &Engine{kernels: scalarKernels}
}

const (
	badTranspose = "linalg: illegal transpose"
	badShape     = "linalg: dimension mismatch"
	badStride    = "linalg: stride below the number of columns"
	badDimension = "linalg: negative dimension"
	shortData    = "linalg: too few elements for the dimensions"
)

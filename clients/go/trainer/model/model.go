package model

import (
	"fmt"
	"math"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
)

// Float is the type of a model's weights.
type Float interface{ float32 | float64 }

// Model is a model in training, on examples that it was made for. It is not safe
// for concurrent use. Its methods allocate nothing.
type Model[T Float] interface {
	// Weights returns all weights and biases, which the caller moves.
	Weights() []T
	// Layers returns a copy of the weights and biases by layer.
	Layers() []trainer.Layer
	// Gradient returns the sum to which Accumulate adds, in the order of the weights.
	// It is zero at first; the caller clears it between lots.
	Gradient() []T
	// Initialize sets the weights. The stream is not used where nothing is random.
	Initialize(initialization Initialization, s *random.Stream)
	// Accumulate adds to the gradient the gradients of the loss at the rows, each
	// clipped at norm clippingNorm, which is positive; +Inf clips nothing.
	Accumulate(rows []int32, clippingNorm float64)
	// Sum returns the sum to which AccumulateRounded adds, in the order of the weights.
	// It is zero at first; the caller clears it between lots.
	Sum() []int64
	// AccumulateRounded adds to the sum the clipped gradients, rounded to multiples of
	// grid, in units of grid. What one row adds has norm clippingNorm/grid at most, in
	// exact arithmetic: a row whose gradient becomes 0 moves the sum by that much at most, and a
	// row that becomes another by twice as much. A row that is left out moves the sum by that much
	// at most of up to Together rows (see Rounding in the package comment). A row without a finite gradient adds nothing. The gradient, which
	// must be zero, is a workspace. CheckGrid must allow clippingNorm and grid.
	AccumulateRounded(rows []int32, clippingNorm, grid float64)
	// Evaluate returns the fraction of the examples that the model classifies
	// wrongly (the root mean squared error over the width of the range, of numbers), and their mean loss; neither need be finite in a model that diverged.
	// The examples must have the model's dimension and classes.
	Evaluate(examples *Examples) (errorRate, loss float64)
	// OutputsTo stores the outputs for the examples, as many for each as there are classes, and one for two classes
	// of a hyperplane. The examples are as for Evaluate.
	OutputsTo(dst []float64, examples *Examples)
}

// Together is the number of rows that AccumulateRounded may add in one call if one of them could be
// left out: every row after it has another place then. Any number may be added by a Linear.
const Together = chunkRows

// CheckGrid returns an error unless AccumulateRounded can keep its promise for a model with
// the given number of parameters, from 1 to 2⁴⁰: the clipping norm is between 2⁻⁶⁰ and 2⁶⁰,
// and the grid between 2⁻⁵⁴ and 2⁻¹³/√parameters of it.
func CheckGrid(parameters int, clippingNorm, grid float64) error {
	switch finest, coarsest := 0x1p-54*clippingNorm, 0x1p-13*clippingNorm/math.Sqrt(float64(parameters)); {
	case !(clippingNorm >= 0x1p-60 && clippingNorm <= 0x1p60):
		return fmt.Errorf("clipping norm %g is outside [%.2g, %.2g]", clippingNorm, 0x1p-60, 0x1p60)
	case !(grid >= finest && grid <= coarsest):
		// 256 rows on the finest grid are below 2⁶³.
		return fmt.Errorf("grid %g is outside [%.2g, %.2g] for clipping norm %g and %d parameters",
			grid, finest, coarsest, clippingNorm, parameters)
	default:
		return nil
	}
}

// Initialization says where training starts.
type Initialization string

// The initialisations.
const (
	// InitializeZero sets all weights to 0, as Algorithms 3 and 4 of Avent et al.
	// (2020) say. It is for models without hidden layers: the hidden units of others
	// would stay dead.
	InitializeZero Initialization = "zero"
	// InitializePublished draws every weight and every bias from a normal distribution of
	// variance 6/(fan-in + fan-out), as the code published with that paper does; a
	// bias counts as a weight of fan-in 1.
	InitializePublished Initialization = "published"
	// InitializeHe draws weights from a normal distribution of variance 2/fan-in and sets
	// biases to 0 (He, Zhang, Ren and Sun, "Delving deep into rectifiers", 2015).
	InitializeHe Initialization = "he"
)

// Check returns an error when the initialisation is unknown or cannot start the
// model.
func (i Initialization) Check(s Spec) error {
	switch i {
	case InitializeZero:
		if s.Kind == MLP {
			return fmt.Errorf("initialisation %s leaves the hidden units of model %s without gradients, want %s or %s",
				i, s.Kind, InitializeHe, InitializePublished)
		}
		return nil
	case InitializePublished, InitializeHe:
		return nil
	default:
		return fmt.Errorf("initialisation %q is unknown, want one of %s, %s, %s",
			string(i), InitializeZero, InitializePublished, InitializeHe)
	}
}

// initialize sets the weights and biases of a layer.
func initialize[T Float](weights, biases []T, in, out int, initialization Initialization, s *random.Stream) {
	clear(weights)
	clear(biases)
	switch initialization {
	case InitializePublished:
		random.AddNormals(weights, s, math.Sqrt(6/float64(in+out)))
		random.AddNormals(biases, s, math.Sqrt(6/float64(1+out)))
	case InitializeHe:
		random.AddNormals(weights, s, math.Sqrt(2/float64(in)))
	case InitializeZero:
	default:
		panic("model: unknown initialization")
	}
}

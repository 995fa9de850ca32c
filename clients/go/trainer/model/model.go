package model

import (
	"fmt"
	"math"

	"github.com/dpareto/dpareto/clients/go/trainer/random"
)

// Float is the type of a model's weights.
type Float interface{ float32 | float64 }

// Model is a model in training, on examples that it was made for. It is not safe
// for concurrent use. Its methods allocate nothing.
type Model[T Float] interface {
	// Weights returns all weights and biases, which the caller moves.
	Weights() []T
	// Gradient returns the sum to which Accumulate adds, in the order of the weights.
	// It is zero at first; the caller clears it between lots.
	Gradient() []T
	// Initialize sets the weights. The stream is not used where nothing is random.
	Initialize(initialization Initialization, s *random.Stream)
	// Accumulate adds to the gradient the gradients of the loss at the rows, each
	// clipped at norm clippingNorm, which is positive; +Inf clips nothing.
	Accumulate(rows []int32, clippingNorm float64)
	// Evaluate returns the fraction of the examples that the model classifies
	// wrongly, and their mean loss; neither need be finite in a model that diverged.
	// The examples must have the model's dimension and classes.
	Evaluate(examples *Examples) (errorRate, loss float64)
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

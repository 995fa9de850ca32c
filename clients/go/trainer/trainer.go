package trainer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dpareto/dpareto/privacy"
)

// Run asks for one configuration to be trained.
type Run struct {
	// Parameters of the configuration. The trainer does not modify it.
	Parameters Parameters
	// Replicates is the number of independent training runs, at least 1, each with
	// random streams of its own.
	Replicates int
	// Seed of all the randomness of the run. nil means the operating system's entropy: nothing
	// repeats the run. With a seed the same Run gives the same metrics on any number of
	// processors, as experiments need. Anyone who knows the seed can remove the noise, so that
	// no model, nor anything else that the run gives, is private.
	Seed *uint64
	// Fitted, when not nil, receives the layers of the trained model of every replicate, in their order, when
	// training has ended without an error. DP-SGD and DP-Adam call it; other trainers do not. The receiver owns
	// the layers.
	Fitted func(replicate int, layers []Layer)
}

// Layer is an affine map of a model: output k is Σᵢ Weights[i·Out+k]·inputᵢ + Biases[k]. ReLU stands between
// two layers.
type Layer struct {
	In, Out int
	Weights []float64 // In × Out
	Biases  []float64
}

// Validate returns an error when the run asks for fewer than one replicate.
func (r Run) Validate() error {
	if r.Replicates < 1 {
		return fmt.Errorf("replicates is %d, want at least 1", r.Replicates)
	}
	return nil
}

// Measurement holds the measured values of a configuration after a number of steps.
type Measurement struct {
	// Step counts the checkpoints passed in the trainer's own unit, which its
	// documentation states (epochs, for DP-SGD). It is 1 for a trainer without
	// checkpoints.
	Step int64
	// Metrics holds one value per replicate, in the order of the replicates. All
	// values are finite. The receiver owns the map and its slices.
	Metrics map[string][]float64
	// Elapsed is the wall-clock time since the training of this run began.
	Elapsed time.Duration
}

// Report receives a measurement at every checkpoint, in order of Step, the last
// one included, from one goroutine. Training waits for it to return.
//
// An error ends the training: [ErrStop] means that enough has been measured and
// Train returns the measurement just reported, without error; Train returns any
// other error as it is.
type Report func(Measurement) error

// ErrStop is returned by a [Report] to stop a training early.
var ErrStop = errors.New("trainer: stop")

// Trainer trains configurations. Its methods are safe for concurrent use.
type Trainer interface {
	// Name is the name under which the trainer is registered.
	Name() string

	// Train trains run.Replicates models and returns the last measurement. The
	// report may be nil; a trainer without checkpoints never calls it.
	//
	// Errors are
	//   - *ParameterError, when a parameter is missing, unknown, of the wrong type or
	//     outside its range; trying again cannot help;
	//   - *InfeasibleError, when the configuration cannot work, for instance because
	//     its training diverged; it is a property of the configuration and the
	//     outcome of the trial;
	//   - the context's error, soon after the context is done;
	//   - the error of the report, unless it is ErrStop.
	Train(ctx context.Context, run Run, report Report) (Measurement, error)
}

// PrivateTrainer is a trainer whose models are differentially private.
type PrivateTrainer interface {
	Trainer

	// Mechanism returns the mechanism that gives one model of a configuration its
	// privacy, over its whole training run, for package privacy to account. It is the
	// mechanism of the trainer's PrivacyDeclaration. A *ParameterError says that a
	// parameter is invalid, or that there is no noise and so no privacy.
	Mechanism(p Parameters) (privacy.Mechanism, error)
}

// InfeasibleError says that a configuration cannot work. No utility is
// measured: a score made up for it would mislead the search.
type InfeasibleError struct {
	// Reason in words, for people, such as "weights are not finite after epoch 3".
	Reason string
}

// Error implements error.
func (e *InfeasibleError) Error() string { return "infeasible: " + e.Reason }

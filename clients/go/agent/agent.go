package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/trainer"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

const (
	// DefaultMaxFailures is the default of Agent.MaxFailures.
	DefaultMaxFailures = 10
	// DefaultGrace is the default of Agent.Grace.
	DefaultGrace = 5 * time.Second
)

// Agent trains the trials of a study. Its fields must not change while it runs.
type Agent struct {
	// Study whose trials are run. Required.
	Study *dpareto.Study
	// Trainer that runs them. Required.
	Trainer trainer.Trainer
	// Workers is the number of trials that are trained at the same time. Default 1.
	Workers int
	// WorkerID is the prefix of the workers' ids: they are called "{WorkerID}-1",
	// "{WorkerID}-2" and so on. Required. It should be the same after a restart, so that
	// the agent gets its trials back, and must be unique among the agents of the study.
	WorkerID string
	// Seed of all randomness of the training (see TrialSeed). nil, the default, is the operating
	// system's entropy. With a seed the measurements are marked as seeded: the noise of their
	// runs is known to everyone who knows the seed, so that no ε holds for them. Studies with
	// private_mode or random_stopping refuse them.
	Seed *uint64
	// MaxFailures is the number of consecutive trials, over all workers, that may fail
	// before Run gives up: the fault is then likely here and should not use up the
	// study's trials. Default DefaultMaxFailures.
	MaxFailures int
	// Grace is how long Run keeps trying to report results and release trials after its
	// context is done. Default DefaultGrace.
	Grace time.Duration
	// Attributes are set on every trial that a worker trains, before its training.
	Attributes map[string]string
	// Events receives what happens, for a display of progress.
	Events Events
}

// Events are functions that are called when something happens; any of them may be
// nil. They are called by all workers, possibly at the same time, and training waits
// for them. worker is the worker's id.
type Events struct {
	// TrialStarted is called when a trial was handed out, before its training.
	TrialStarted func(worker string, trial *dpareto.Trial)
	// Measured is called when an intermediate measurement was recorded.
	Measured func(worker string, trial *dpareto.Trial, m trainer.Measurement)
	// TrialDone is called when a worker is done with a trial. The measurement is the
	// final one if the outcome is Succeeded or Stopped. err is why the trial did not
	// succeed, or was stopped.
	TrialDone func(worker string, trial *dpareto.Trial, outcome Outcome, m trainer.Measurement, err error)
}

// Outcome is how a worker's run of a trial ended.
type Outcome int

const (
	// Succeeded means that the trial was completed with a measurement.
	Succeeded Outcome = iota
	// Infeasible means that the trainer found that the configuration cannot work.
	Infeasible
	// Failed means that training failed. The trial may be run again.
	Failed
	// Released means that the trial was given back unfinished.
	Released
	// Abandoned means that the worker lost the trial, or could not report its outcome.
	Abandoned
	// Stopped means that the trial was completed early with its last measurement, as the
	// server asked.
	Stopped
)

// String returns the outcome in lower case.
func (o Outcome) String() string {
	switch o {
	case Succeeded:
		return "succeeded"
	case Infeasible:
		return "infeasible"
	case Failed:
		return "failed"
	case Released:
		return "released"
	case Abandoned:
		return "abandoned"
	case Stopped:
		return "stopped"
	default:
		return fmt.Sprintf("Outcome(%d)", int(o))
	}
}

// TwinError says that two agents use the same worker id and take each other's trials. The
// agent that notices ends.
type TwinError struct {
	Worker string // the worker id
	Trial  string // the name of the trial that was taken
}

// Error implements error.
func (e *TwinError) Error() string {
	return fmt.Sprintf("agent: another agent took %s as worker %s; worker ids must be unique", e.Trial, e.Worker)
}

// MetricError says that the study asks for metrics that the trainer does not measure.
type MetricError struct {
	// Trainer is the name of the trainer.
	Trainer string
	// Missing are the ids of the metrics, sorted.
	Missing []string
	// Measured are the names of the metrics that the trainer measures, sorted.
	Measured []string
}

// Error implements error.
func (e *MetricError) Error() string {
	return fmt.Sprintf("trainer %s does not measure %s, which the study needs; it measures %s",
		e.Trainer, strings.Join(e.Missing, ", "), strings.Join(e.Measured, ", "))
}

// PanicError is the failure of a trial whose training panicked.
type PanicError struct {
	// Value of the panic.
	Value any
	// Stack of the goroutine that panicked.
	Stack []byte
}

// Error implements error. The text is without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// TrialSeed returns the seed of the training of one attempt at a trial. It depends
// on all three arguments, so that trials are independent of each other, another
// attempt sees other randomness, and the same agent's seed gives the same
// measurements for the same configurations.
//
// Its values will not change. Each argument in turn is added to the state, which is
// then mixed by the finaliser of SplitMix64 (Steele, Lea, Flood: "Fast splittable
// pseudorandom number generators", OOPSLA 2014, with the constants of Stafford's
// variant 13).
func TrialSeed(seed uint64, number int64, attempt int) uint64 {
	return mix(mix(mix(seed)+uint64(number)) + uint64(attempt))
}

// mix is one step of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Run trains trials until the study hands out no more, and then returns nil. It
// returns
//   - ctx.Err() when ctx is done: training is stopped and unfinished trials are given
//     back within Grace;
//   - a *MetricError when the trainer does not measure a metric that the study needs;
//   - the error of the last trial when MaxFailures trials failed in a row;
//   - the error of the server when it refuses to hand out trials or to take results.
//
// Unfinished trials are given back before it returns, with or without an error.
func (a *Agent) Run(ctx context.Context) error {
	if err := a.validate(); err != nil {
		return err
	}
	study, err := a.Study.Get(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	c := newCrew(a, study.GetSpec())
	group, ctx := errgroup.WithContext(ctx)
	for i := range max(1, a.Workers) {
		group.Go(func() error { return c.work(ctx, fmt.Sprintf("%s-%d", a.WorkerID, i+1)) })
	}
	return group.Wait()
}

func (a *Agent) validate() error {
	switch {
	case a.Study == nil:
		return errors.New("agent: no study")
	case a.Trainer == nil:
		return errors.New("agent: no trainer")
	case a.WorkerID == "":
		return errors.New("agent: no worker id")
	case a.Workers < 0 || a.MaxFailures < 0 || a.Grace < 0:
		return errors.New("agent: negative number of workers or failures, or negative grace")
	default:
		return nil
	}
}

// crew holds the state that the workers of a running agent share.
type crew struct {
	*Agent
	maxFailures int64
	grace       time.Duration
	declared    map[string]bool // ids of the study's metrics
	required    []string        // ids of those that a measurement must have, sorted
	private     []string        // ids of those that the server computes from a mechanism
	failures    atomic.Int64    // since the last trial that did not fail
	checkpoints bool            // the study has a checkpoint parameter
	privateMode *dparetov1.PrivateModeSpec
}

func newCrew(a *Agent, spec *dparetov1.StudySpec) *crew {
	c := &crew{Agent: a, maxFailures: DefaultMaxFailures, grace: DefaultGrace, declared: make(map[string]bool)}
	if a.MaxFailures > 0 {
		c.maxFailures = int64(a.MaxFailures)
	}
	if a.Grace > 0 {
		c.grace = a.Grace
	}
	c.checkpoints, c.privateMode = spec.GetCheckpointParameter() != "", spec.GetPrivateMode()
	for _, m := range spec.GetMetrics() {
		c.declared[m.GetId()] = true
		if m.GetComputed().GetPrivacy() != nil {
			c.private = append(c.private, m.GetId())
		}
		if m.GetReported() != nil && m.GetRole() != dparetov1.MetricRole_METRIC_ROLE_TRACKED {
			c.required = append(c.required, m.GetId())
		}
	}
	slices.Sort(c.required)
	return c
}

// work runs trials as one worker.
func (c *crew) work(ctx context.Context, worker string) error {
	for {
		trial, err := c.Study.Ask(ctx, worker)
		switch {
		case errors.Is(err, dpareto.ErrDone):
			return nil
		case ctx.Err() != nil && err != nil:
			return ctx.Err()
		case err != nil:
			return err
		}
		if err := c.run(ctx, worker, trial); err != nil {
			return err
		}
	}
}

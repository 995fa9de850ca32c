package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/trainer"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// stopped is the reason of trials that are given back because the agent was stopped.
const stopped = "the worker was stopped"

// run trains one trial and reports its outcome to the server. It returns an error if the
// worker should end.
func (c *crew) run(ctx context.Context, worker string, trial *dpareto.Trial) error {
	if c.Events.TrialStarted != nil {
		c.Events.TrialStarted(worker, trial)
	}
	held, endRenewals := trial.KeepAlive(ctx)
	defer endRenewals()
	m, stop, err := c.train(held, worker, trial)

	lasting, cancel := linger(ctx, c.grace)
	defer cancel()
	switch {
	case err == nil && stop != nil: // the server keeps its reason with its last measurement
		err = trial.CompleteWithLast(lasting)
	case err == nil:
		err = trial.CompleteMeasurement(lasting, c.message(m))
	}
	if lost := context.Cause(held); err != nil && errors.Is(lost, dpareto.ErrLeaseLost) {
		err = fmt.Errorf("%w (%w)", lost, err)
	}
	outcome, fatal := c.conclude(ctx, lasting, trial, err)
	if outcome == Succeeded && stop != nil {
		outcome, err = Stopped, stop
	}
	if c.Events.TrialDone != nil {
		c.Events.TrialDone(worker, trial, outcome, m, err)
	}
	return fatal
}

// linger returns a context that outlives ctx by the grace.
func linger(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return out, func() {
		stop()
		cancel()
	}
}

// train runs the trainer and returns its final measurement. stop is the server's reason
// to stop the run, if that ended it: then the server has the measurement. A panic is an
// error.
func (c *crew) train(ctx context.Context, worker string, trial *dpareto.Trial) (m trainer.Measurement, stop, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &PanicError{Value: r, Stack: debug.Stack()}
		}
	}()
	fitting, err := c.trainerFor(ctx, trial)
	if err != nil {
		return m, nil, err
	}
	if err := c.checkPrivacy(trial, fitting); err != nil {
		return m, nil, err
	}
	if err := c.checkFinalRun(ctx, trial); err != nil {
		return m, nil, err
	}
	if err := c.setAttributes(ctx, trial); err != nil {
		return m, nil, err
	}
	run := trainer.Run{
		Parameters: trial.Parameters(),
		Replicates: trial.Replicates(),
	}
	if c.Seed != nil {
		run.Seed = new(TrialSeed(*c.Seed, trial.Number(), trial.Attempt()))
	}
	var last trainer.Measurement // that the server has
	var reportErr error          // counts even if the trainer drops it
	m, err = fitting.Train(ctx, run, func(m trainer.Measurement) error {
		stop, reportErr = nil, c.report(ctx, worker, trial, m)
		if errors.Is(reportErr, errNotKept) {
			reportErr = nil
			return nil
		}
		if errors.Is(reportErr, dpareto.ErrStop) {
			last, stop, reportErr = m, reportErr, nil
			return trainer.ErrStop
		}
		if reportErr == nil {
			last = m
		}
		return reportErr
	})
	err = cmp.Or(reportErr, err)
	if cause := context.Cause(ctx); errors.Is(cause, dpareto.ErrStop) && errors.Is(err, context.Canceled) {
		return last, cause, nil
	}
	if err != nil {
		return m, nil, err
	}
	if m.Step != last.Step { // the trainer continued to its end
		stop = nil
	}
	return m, stop, c.check(m)
}

// setAttributes sets the agent's attributes on a trial.
func (c *crew) setAttributes(ctx context.Context, trial *dpareto.Trial) error {
	if len(c.Attributes) == 0 {
		return nil
	}
	attributes := make(map[string]*structpb.Value)
	for key, value := range c.Attributes {
		attributes[key] = structpb.NewStringValue(value)
	}
	_, err := c.Study.UpdateTrial(ctx, trial.Number(), &dparetov1.Trial{Attributes: attributes}, "attributes")
	return err
}

// errNotKept says that a study with private_mode has no room for an intermediate
// measurement. The run continues: there is room for its last one.
var errNotKept = errors.New("agent: the study keeps no such measurement")

// report sends an intermediate measurement.
func (c *crew) report(ctx context.Context, worker string, trial *dpareto.Trial, m trainer.Measurement) error {
	if err := c.check(m); err != nil {
		return err
	}
	if c.privateMode != nil && !c.checkpoints {
		return errNotKept
	}
	err := trial.ReportMeasurement(ctx, c.message(m))
	if c.privateMode != nil && status.Code(err) == codes.ResourceExhausted {
		return errNotKept
	}
	if c.Events.Measured != nil && (err == nil || errors.Is(err, dpareto.ErrStop)) {
		c.Events.Measured(worker, trial, m)
	}
	return err
}

// check returns a *MetricError if a measurement lacks a metric that the study needs.
func (c *crew) check(m trainer.Measurement) error {
	missing := slices.DeleteFunc(slices.Clone(c.required), func(id string) bool { return len(m.Metrics[id]) > 0 })
	if len(missing) == 0 {
		return nil
	}
	return &MetricError{Trainer: c.Trainer.Name(), Missing: missing, Measured: slices.Sorted(maps.Keys(m.Metrics))}
}

// message returns a measurement with the metrics that the study declares.
func (c *crew) message(m trainer.Measurement) *dparetov1.Measurement {
	metrics := make(dpareto.Metrics, len(m.Metrics))
	for id, runs := range m.Metrics {
		if c.declared[id] {
			metrics[id] = runs
		}
	}
	message := metrics.Measurement(m.Step, m.Elapsed)
	message.Seeded = c.Seed != nil
	return message
}

// conclude reports the outcome of a trial to the server, unless it was completed (err is
// nil). It returns the outcome, and an error if the worker should end. ctx ends with the
// worker, lasting later.
func (c *crew) conclude(ctx, lasting context.Context, trial *dpareto.Trial, err error) (Outcome, error) {
	infeasible, isInfeasible := errors.AsType[*trainer.InfeasibleError](err)
	_, isMismatch := errors.AsType[*MetricError](err)
	if _, ok := errors.AsType[*PrivacyError](err); ok {
		isMismatch = true
	}
	if _, ok := errors.AsType[*ShardError](err); ok {
		isMismatch = true
	}
	if _, ok := errors.AsType[*SubsetError](err); ok {
		isMismatch = true
	}
	var (
		outcome Outcome
		fatal   error // what ends the worker
		lost    error // why the server does not know the outcome
	)
	switch {
	case err == nil:
		outcome = Succeeded
		c.failures.Store(0)
	case isInfeasible:
		outcome = Infeasible
		c.failures.Store(0)
		lost = trial.Infeasible(lasting, cmp.Or(infeasible.Reason, "no reason given"))
	case isMismatch:
		outcome, fatal = Released, err
		lost = trial.Release(lasting, err.Error())
	case errors.Is(err, dpareto.ErrLeaseLost):
		outcome, fatal = Abandoned, c.twin(lasting, trial)
	case ctx.Err() != nil:
		outcome, fatal = Released, ctx.Err()
		lost = trial.Release(lasting, stopped)
	default:
		outcome = Failed
		if n := c.failures.Add(1); n >= c.maxFailures {
			fatal = fmt.Errorf("agent: %d trials failed in a row, the last one was %s: %w", n, trial.Name(), err)
		}
		lost = trial.Fail(lasting, cmp.Or(err.Error(), "no reason given"), isRetryable(err))
	}
	if lost == nil {
		return outcome, fatal
	}
	if fatal == nil && !errors.Is(lost, dpareto.ErrLeaseLost) {
		fatal = lost
		if ctx.Err() != nil {
			fatal = ctx.Err()
		}
	}
	return Abandoned, fatal
}

// twin returns a *TwinError if a lost trial is with a worker of the same id. That worker
// belongs to another agent, since one agent gives its workers different ids.
func (c *crew) twin(ctx context.Context, lost *dpareto.Trial) error {
	worker := lost.Message().GetLease().GetWorkerId()
	now, err := c.Study.Trial(ctx, lost.Number())
	if err != nil || now.GetLease() == nil || now.GetLease().GetWorkerId() != worker {
		return nil //nolint:nilerr // the holder is not known to be a twin
	}
	return &TwinError{Worker: worker, Trial: lost.Name()}
}

// isRetryable reports whether another attempt at a trial that failed could succeed.
func isRetryable(err error) bool {
	if _, ok := errors.AsType[*PanicError](err); ok {
		return false
	}
	if _, ok := errors.AsType[*trainer.ParameterError](err); ok {
		return false
	}
	// A measurement that the server refuses is refused again.
	code := status.Code(err)
	return code != codes.InvalidArgument && code != codes.ResourceExhausted
}

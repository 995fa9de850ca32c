package dpareto

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dpareto/dpareto/clients/go/subset"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

const (
	// maxReason is the length of reasons that the server takes, in characters.
	maxReason = 2000
	// longestLease is the longest lease that a study can have.
	longestLease = 24 * time.Hour
	// defaultLease is assumed if a trial does not show how long its lease lasts.
	defaultLease = time.Minute
)

// Metrics holds measured values by metric id: one value per independent run of the
// configuration, in any order. All values must be finite.
type Metrics map[string][]float64

// Measurement returns the message of metrics that were measured at a step (see
// Trial.Report), and how long the worker had spent by then; 0 means that this is not
// recorded.
func (m Metrics) Measurement(step int64, elapsed time.Duration) *dparetov1.Measurement {
	out := &dparetov1.Measurement{Step: step, Metrics: make(map[string]*dparetov1.MetricValue, len(m))}
	if elapsed != 0 {
		out.Elapsed = durationpb.New(elapsed)
	}
	for id, runs := range m {
		out.Metrics[id] = &dparetov1.MetricValue{Runs: runs}
	}
	return out
}

// Trial is a trial that this worker holds under a lease. It is safe for concurrent
// use.
type Trial struct {
	study   *Study
	message *dparetov1.Trial // as handed out; never changed

	measured atomic.Bool // the server has an intermediate measurement
}

func newTrial(s *Study, message *dparetov1.Trial) *Trial {
	return &Trial{study: s, message: message}
}

// Message returns the trial as it was handed out. It must not be modified.
func (t *Trial) Message() *dparetov1.Trial { return t.message }

// Name returns the resource name of the trial: studies/{study}/trials/{number}.
func (t *Trial) Name() string { return t.message.GetName() }

// Number returns the position of the trial in its study, from 1.
func (t *Trial) Number() int64 { return t.message.GetNumber() }

// Attempt returns how often the trial has been handed out, this time included.
func (t *Trial) Attempt() int { return int(t.message.GetAttempt()) }

// Replicates returns how many independent runs of the configuration the worker is to
// make, at least 1.
func (t *Trial) Replicates() int { return max(1, int(t.message.GetReplicates())) }

// Float returns the value of a parameter with a double, discrete or integer domain.
// It panics if the trial has no such parameter.
func (t *Trial) Float(param string) float64 {
	switch v := value(t.message.GetParameters()[param]).(type) {
	case float64:
		return v
	case int64:
		return float64(v)
	default:
		panic("dpareto: " + t.Name() + " has no numerical parameter " + param)
	}
}

// Int returns the value of a parameter with an integer domain. It panics if the trial
// has no such parameter.
func (t *Trial) Int(param string) int64 {
	v, ok := value(t.message.GetParameters()[param]).(int64)
	if !ok {
		panic("dpareto: " + t.Name() + " has no integer parameter " + param)
	}
	return v
}

// Text returns the value of a parameter with a categorical domain. It panics if the
// trial has no such parameter.
func (t *Trial) Text(param string) string {
	v, ok := value(t.message.GetParameters()[param]).(string)
	if !ok {
		panic("dpareto: " + t.Name() + " has no categorical parameter " + param)
	}
	return v
}

// Parameters returns a new map of all parameters, each a float64 (double and discrete
// domains), an int64 (integer domains) or a string (categorical domains).
func (t *Trial) Parameters() map[string]any { return Plain(t.message.GetParameters()) }

// Plain returns the values of parameters as float64, int64 and string.
func Plain(parameters map[string]*dparetov1.Value) map[string]any {
	out := make(map[string]any, len(parameters))
	for id, v := range parameters {
		out[id] = value(v)
	}
	return out
}

// TrainingSubset returns the secret subset of the training records to train on, nil for all of
// them.
func (t *Trial) TrainingSubset() *subset.Subset {
	s := t.message.GetTrainingSubset()
	if s == nil {
		return nil
	}
	return &subset.Subset{Key: s.GetKey(), Size: int(s.GetSize()), Of: int(s.GetOf())}
}

// value returns the plain value of a parameter, or nil if there is none.
func value(v *dparetov1.Value) any {
	switch kind := v.GetKind().(type) {
	case *dparetov1.Value_DoubleValue:
		return kind.DoubleValue
	case *dparetov1.Value_IntValue:
		return kind.IntValue
	case *dparetov1.Value_StringValue:
		return kind.StringValue
	default:
		return nil
	}
}

// Report records an intermediate measurement and renews the lease. In a study with a
// checkpoint parameter the step is the value of that parameter at the measurement;
// otherwise it is any number from 0 on that orders the measurements. Other metrics at a
// step that was already reported are refused.
//
// It returns ErrStop when the worker should complete the trial with its results so
// far, and ErrLeaseLost when the trial is no longer the worker's.
func (t *Trial) Report(ctx context.Context, step int64, metrics Metrics) error {
	return t.ReportMeasurement(ctx, metrics.Measurement(step, 0))
}

// ReportMeasurement is Report of a measurement with more than a step and metrics.
func (t *Trial) ReportMeasurement(ctx context.Context, m *dparetov1.Measurement) error {
	resp, err := t.study.client.Studies.AddMeasurement(ctx, &dparetov1.AddMeasurementRequest{
		Name: t.Name(), LeaseToken: t.token(), Measurement: m,
	})
	if err != nil {
		return t.callError(ctx, "report on", err)
	}
	t.measured.Store(true)
	switch {
	case resp.GetShouldStop() && resp.GetStopReason() != "":
		return fmt.Errorf("report on %s: %w: %s", t.Name(), ErrStop, resp.GetStopReason())
	case resp.GetShouldStop():
		return fmt.Errorf("report on %s: %w", t.Name(), ErrStop)
	default:
		return nil
	}
}

// Complete ends the trial with its final metrics, measured at the end of the run. A
// result under an expired lease is also accepted if no other worker completed the trial.
func (t *Trial) Complete(ctx context.Context, metrics Metrics) error {
	return t.CompleteMeasurement(ctx, metrics.Measurement(0, 0))
}

// CompleteMeasurement is Complete with a measurement that has more than metrics, for
// example the step at which a stopped run ended.
func (t *Trial) CompleteMeasurement(ctx context.Context, m *dparetov1.Measurement) error {
	return t.complete(ctx, &dparetov1.CompleteTrialRequest{
		Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: m},
	})
}

// CompleteWithLast ends the trial with its last reported measurement, which must exist.
func (t *Trial) CompleteWithLast(ctx context.Context) error {
	return t.complete(ctx, &dparetov1.CompleteTrialRequest{
		Outcome: &dparetov1.CompleteTrialRequest_UseLastMeasurement{UseLastMeasurement: &dparetov1.UseLastMeasurement{}},
	})
}

// Infeasible ends the trial: its configuration cannot work, for example because training
// diverges, and the study should avoid similar ones. A reason is required; it is cut at
// 2,000 characters.
func (t *Trial) Infeasible(ctx context.Context, reason string) error {
	return t.complete(ctx, &dparetov1.CompleteTrialRequest{
		Outcome: &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: clip(reason)}},
	})
}

// Fail ends the attempt: the machinery failed, which says nothing about the
// configuration. A retryable failure queues the trial again, up to the study's number of
// attempts. A reason is required; it is cut at 2,000 characters.
func (t *Trial) Fail(ctx context.Context, reason string, retryable bool) error {
	return t.complete(ctx, &dparetov1.CompleteTrialRequest{
		Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: clip(reason), Retryable: retryable}},
	})
}

func (t *Trial) complete(ctx context.Context, request *dparetov1.CompleteTrialRequest) error {
	request.Name, request.LeaseToken = t.Name(), t.token()
	if _, err := t.study.client.Studies.CompleteTrial(ctx, request); err != nil {
		return t.callError(ctx, "complete", err)
	}
	return nil
}

// Release gives the trial back unfinished, so that another worker can have it at
// once. The reason may be empty; it is cut at 2,000 characters.
func (t *Trial) Release(ctx context.Context, reason string) error {
	_, err := t.study.client.Studies.ReleaseTrial(ctx, &dparetov1.ReleaseTrialRequest{
		Name: t.Name(), LeaseToken: t.token(), Reason: clip(reason),
	})
	if err != nil {
		return t.callError(ctx, "release", err)
	}
	return nil
}

// KeepAlive renews the lease in the background, every third of its duration, for runs
// that may go longer without a report. The run should use the returned context, which is
// done when the lease is lost (with the cause ErrLeaseLost), the server asks to stop a
// trial of which it has a measurement (ErrStop), ctx is done or stop is called. stop ends
// the renewals and waits for the last one; it must be called, and can be called again.
//
// After ErrStop the worker should stop training and call CompleteWithLast. A run without
// a measurement would be worthless: it continues to its first Report, which returns
// ErrStop.
func (t *Trial) KeepAlive(ctx context.Context) (held context.Context, stop func()) {
	held, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for wait(held, t.leaseDuration()/3) == nil {
			// Any other error may pass before the lease runs out.
			err := t.renew(held)
			if errors.Is(err, ErrLeaseLost) || errors.Is(err, ErrStop) && t.measured.Load() {
				cancel(err)
				return
			}
		}
	}()
	return held, func() {
		cancel(nil)
		<-ended
	}
}

// renew renews the lease once. ErrStop comes with a lease that was renewed.
func (t *Trial) renew(ctx context.Context) error {
	resp, err := t.study.client.Studies.RenewLeases(ctx, &dparetov1.RenewLeasesRequest{
		Parent: t.study.name, LeaseTokens: map[string]string{t.Name(): t.token()},
	})
	if err != nil {
		return t.callError(ctx, "renew the lease of", err)
	}
	result := resp.GetResults()[t.Name()]
	switch {
	case !result.GetHeld():
		return fmt.Errorf("renew the lease of %s: %w", t.Name(), ErrLeaseLost)
	case result.GetShouldStop():
		return fmt.Errorf("renew the lease of %s: %w", t.Name(), ErrStop)
	default:
		return nil
	}
}

// leaseDuration is how long a renewed lease lasts. Both times are from the server's
// clock, which may differ from ours.
func (t *Trial) leaseDuration() time.Duration {
	d := t.message.GetLease().GetExpireTime().AsTime().Sub(t.message.GetStartTime().AsTime())
	if d <= 0 || d > longestLease {
		return defaultLease
	}
	return d
}

func (t *Trial) token() string { return t.message.GetLease().GetToken() }

// callError is the error of a call about the trial. A refusal because of the trial's
// state, or its absence, means that the worker has lost it.
func (t *Trial) callError(ctx context.Context, action string, err error) error {
	e := newCallError(ctx, action+" "+t.Name(), err)
	if code := e.status.Code(); code == codes.FailedPrecondition || code == codes.NotFound {
		e.means = ErrLeaseLost
	}
	return e
}

// clip makes a reason valid UTF-8 of limited length.
func clip(reason string) string {
	runes := []rune(strings.ToValidUTF8(reason, "\uFFFD"))
	return string(runes[:min(len(runes), maxReason)])
}

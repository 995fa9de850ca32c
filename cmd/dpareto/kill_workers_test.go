package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/linearizability"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// crowd is a number of workers that treat a server badly: they take long, vanish, give up
// calls half-way, and say things twice and in the wrong order.
type crowd struct {
	t       *testing.T
	memory  *memory
	history *linearizability.History
	studies []string
	dial    func(...dpareto.Option) (*dpareto.Client, error)
	working sync.WaitGroup
}

// start starts workers that go on until ctx is done.
func (c *crowd) start(ctx context.Context, workers int, seed uint64) {
	for i := range workers {
		c.working.Go(func() {
			client, err := c.dial(c.history.Listen())
			if err != nil {
				c.t.Error(err)
				return
			}
			defer client.Close()
			w := &worker{
				crowd: c, client: client, study: client.Study(c.studies[i%len(c.studies)]),
				place: i, random: rand.New(rand.NewPCG(seed, uint64(i))),
			}
			for w.rename(); ctx.Err() == nil; {
				w.round(ctx)
			}
		})
	}
}

// worker is one of the crowd.
type worker struct {
	*crowd

	client *dpareto.Client
	study  *dpareto.Study
	place  int // in the crowd
	life   int // how often it vanished and came back
	id     string
	said   int
	random *rand.Rand
}

// rename gives the worker a new id, as if it had died and another had come.
func (w *worker) rename() {
	w.life++
	w.id = fmt.Sprintf("worker-%d-%d", w.place, w.life)
}

// value returns a number that no other worker reports.
func (w *worker) value() float64 { return w.random.Float64() }

// reason returns a reason that no other worker gives.
func (w *worker) reason() string {
	w.said++
	return fmt.Sprintf("%s says its word %d", w.id, w.said)
}

// chance returns true with a probability.
func (w *worker) chance(p float64) bool { return w.random.Float64() < p }

// pause waits for a random time.
func (w *worker) pause(ctx context.Context, longest time.Duration) {
	timer := time.NewTimer(time.Duration(w.random.Int64N(int64(longest))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// hurried returns the context of a call: now and then one that ends so soon that the
// worker may not learn what became of it.
func (w *worker) hurried(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.chance(0.05) {
		return context.WithTimeout(ctx, time.Duration(w.random.Int64N(int64(30*time.Millisecond))))
	}
	return context.WithCancel(ctx)
}

// call makes a call and returns whether it was acknowledged. refused is called with a
// refusal. What the worker gave up is neither.
func (w *worker) call(ctx context.Context, call func(context.Context) error, refused func(error)) bool {
	ctx, cancel := w.hurried(ctx)
	defer cancel()
	err := call(ctx)
	switch {
	case err == nil:
		return true
	case ctx.Err() != nil, status.Code(err) == codes.DeadlineExceeded, status.Code(err) == codes.Canceled: // it may have taken effect
	case errors.Is(err, dpareto.ErrLeaseLost) || status.Code(err) == codes.FailedPrecondition || status.Code(err) == codes.NotFound:
		refused(err)
	default:
		w.t.Errorf("%s: %v", w.id, err)
	}
	return false
}

// ignore is for refusals that mean nothing.
func ignore(error) {}

// round asks for a trial and does something to it.
func (w *worker) round(ctx context.Context) {
	if w.chance(0.03) {
		w.create(ctx)
	}
	var trial *dpareto.Trial
	asked := time.Now()
	if !w.call(ctx, func(ctx context.Context) (err error) {
		trial, err = w.study.Ask(ctx, w.id)
		return err
	}, func(err error) { w.t.Errorf("%s: %v", w.id, err) }) {
		return
	}
	h := w.memory.handedOut(w.id, trial.Message(), asked, time.Now())
	if !w.train(ctx, trial, h) {
		return
	}
	if w.chance(0.2) { // somebody looks
		w.call(ctx, func(ctx context.Context) error {
			_, err := w.client.Studies.GetTrial(ctx, &dparetov1.GetTrialRequest{Name: trial.Name()})
			return err
		}, ignore)
		w.call(ctx, func(ctx context.Context) error {
			_, err := w.study.Get(ctx)
			return err
		}, ignore)
	}
	switch fate := w.random.Float64(); {
	case fate < 0.06: // it vanishes
		w.rename()
	case fate < 0.12: // its time is up
		w.end(ctx, trial, h, "release", w.reason(), 0)
	case fate < 0.18:
		w.end(ctx, trial, h, "infeasible", w.reason(), 0)
	case fate < 0.24:
		w.end(ctx, trial, h, "fail", w.reason(), 0)
	case fate < 0.34:
		w.end(ctx, trial, h, "retryable", w.reason(), 0)
	case fate < 0.36: // it is late: somebody else may have the trial
		w.pause(ctx, 2*w.memory.lease)
		w.end(ctx, trial, h, "complete", "", w.value())
	default:
		w.end(ctx, trial, h, "complete", "", w.value())
	}
}

// train reports measurements and renews the lease. It returns false when the trial is
// lost.
func (w *worker) train(ctx context.Context, trial *dpareto.Trial, h *hold) bool {
	steps := []int64{1, 2, 3, 4}[:w.random.IntN(5)]
	if w.chance(0.2) { // measurements can overtake each other
		w.random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	}
	held := true
	lost := func(err error) {
		w.memory.refused(trial.Name(), h, time.Now(), err)
		held = false
	}
	for _, step := range steps {
		if w.pause(ctx, 20*time.Millisecond); !held || ctx.Err() != nil {
			return false
		}
		value := w.value()
		report := func(ctx context.Context) error {
			err := trial.Report(ctx, step, dpareto.Metrics{"error": {value}})
			if errors.Is(err, dpareto.ErrStop) {
				return nil
			}
			return err
		}
		w.memory.sends(trial.Name(), h, value, "", false)
		for range 1 + w.random.IntN(2) { // often twice
			sent := time.Now()
			if w.call(ctx, report, lost) {
				w.memory.measured(h, step, value)
				w.memory.alive(h, sent, "measure")
			}
		}
		if w.chance(0.2) {
			w.renew(ctx, trial, h)
		}
		if w.chance(0.02) { // a user wants an end
			w.stop(ctx, trial)
		}
	}
	return held && ctx.Err() == nil
}

// renew renews the lease.
func (w *worker) renew(ctx context.Context, trial *dpareto.Trial, h *hold) {
	var resp *dparetov1.RenewLeasesResponse
	sent := time.Now()
	if w.call(ctx, func(ctx context.Context) (err error) {
		resp, err = w.client.Studies.RenewLeases(ctx, &dparetov1.RenewLeasesRequest{
			Parent: w.study.Name(), LeaseTokens: map[string]string{trial.Name(): h.token},
		})
		return err
	}, ignore) && resp.GetResults()[trial.Name()].GetHeld() {
		w.memory.alive(h, sent, "renew")
	}
}

// stop asks the server to have a trial stopped.
func (w *worker) stop(ctx context.Context, trial *dpareto.Trial) {
	reason := w.reason()
	w.memory.sends(trial.Name(), nil, 0, reason, false)
	w.call(ctx, func(ctx context.Context) error {
		resp, err := w.client.Studies.StopTrial(ctx, &dparetov1.StopTrialRequest{Name: trial.Name(), Reason: reason})
		if err == nil {
			w.memory.ended(resp.GetTrial(), "stop")
		}
		if status.Code(err) == codes.Unavailable { // the client does not repeat it
			return nil
		}
		return err
	}, ignore)
}

// create asks for a trial with a unique note.
func (w *worker) create(ctx context.Context) {
	w.call(ctx, func(ctx context.Context) error {
		resp, err := w.client.Studies.CreateTrial(ctx, &dparetov1.CreateTrialRequest{Parent: w.study.Name(), Trial: &dparetov1.Trial{
			Note: w.reason(),
			Parameters: map[string]*dparetov1.Value{
				"cutoff":      {Kind: &dparetov1.Value_IntValue{IntValue: 1 + w.random.Int64N(30)}},
				"noise_scale": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 0.01 + w.random.Float64()}},
			},
		}})
		if err == nil {
			w.memory.created(resp.GetTrial())
		}
		if status.Code(err) == codes.Unavailable { // the client does not repeat it
			return nil
		}
		return err
	}, ignore)
}

// end ends the worker's hold of a trial, and now and then says so again.
func (w *worker) end(ctx context.Context, trial *dpareto.Trial, h *hold, how, reason string, value float64) {
	w.memory.sends(trial.Name(), h, value, reason, true)
	send := func(ctx context.Context) error {
		if how == "release" {
			resp, err := w.client.Studies.ReleaseTrial(ctx, &dparetov1.ReleaseTrialRequest{Name: trial.Name(), LeaseToken: h.token, Reason: reason})
			if err == nil {
				w.memory.ended(resp.GetTrial(), how)
			}
			return err
		}
		request := &dparetov1.CompleteTrialRequest{Name: trial.Name(), LeaseToken: h.token}
		switch how {
		case "complete":
			request.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: dpareto.Metrics{"error": {value}}.Measurement(0, 0)}
			if len(h.measured) > 0 && value < 0.2 {
				request.Outcome = &dparetov1.CompleteTrialRequest_UseLastMeasurement{UseLastMeasurement: &dparetov1.UseLastMeasurement{}}
			}
		case "infeasible":
			request.Outcome = &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: reason}}
		case "fail", "retryable":
			request.Outcome = &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: reason, Retryable: how == "retryable"}}
		}
		resp, err := w.client.Studies.CompleteTrial(ctx, request)
		if err == nil {
			w.memory.ended(resp.GetTrial(), how)
		}
		return err
	}
	refused := func(err error) { w.memory.refused(trial.Name(), h, time.Now(), err) }
	if !w.call(ctx, send, refused) {
		return
	}
	if w.chance(0.1) { // the repetition is answered like the first, unless the trial went on
		w.call(ctx, send, refused)
	}
	if w.chance(0.1) { // another outcome is never taken for one that was
		other := w.value()
		w.memory.sends(trial.Name(), h, other, "", true)
		w.call(ctx, func(ctx context.Context) error { return trial.Complete(ctx, dpareto.Metrics{"error": {other}}) }, ignore)
	}
}

package study_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/fault"
	"github.com/dpareto/dpareto/server/study"
)

// traffic counts the transactions of calls whose contexts it has marked. Background work has other
// contexts, and is not counted.
type traffic struct {
	mu             sync.Mutex
	views, updates int
}

type countedKey struct{}

// hooks returns the hooks that count.
func (f *traffic) hooks() enginetest.Hooks {
	count := func(ctx context.Context, n *int) {
		if ctx.Value(countedKey{}) == f {
			f.mu.Lock()
			defer f.mu.Unlock()
			*n++
		}
	}
	return enginetest.Hooks{
		View:   func(ctx context.Context) { count(ctx, &f.views) },
		Update: func(ctx context.Context) error { count(ctx, &f.updates); return nil },
	}
}

// of returns the transactions of a call.
func (f *traffic) of(t *testing.T, call func(context.Context) error) (views, updates int) {
	t.Helper()
	f.mu.Lock()
	f.views, f.updates = 0, 0
	f.mu.Unlock()
	require.NoError(t, call(context.WithValue(t.Context(), countedKey{}, f)))
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.views, f.updates
}

// A measurement and a result take one transaction each. What takes long is computed before it begins, after
// a look at the trial; a result needs none if no metric takes long.
func TestReportsAreOneTransaction(t *testing.T) {
	for name, change := range map[string]func(*dparetov1.StudySpec){
		"expressions":                    nil,
		"model":                          enginetest.ModelBased,
		"accountant":                     enginetest.Accounted,
		"accountant without checkpoints": func(a *dparetov1.StudySpec) { enginetest.Accounted(a); a.CheckpointParameter = "" },
		"early stopping":                 enginetest.Checkpoints,
		"accountant and early stopping":  func(a *dparetov1.StudySpec) { enginetest.Accounted(a); enginetest.Checkpoints(a) },
	} {
		t.Run(name, func(t *testing.T) {
			var f traffic
			hooks := f.hooks()
			count, inTransaction := hooks.Update, func() {}
			hooks.Update = func(ctx context.Context) error {
				if ctx.Value(countedKey{}) == &f {
					inTransaction()
				}
				return count(ctx)
			}
			s := enginetest.New(t, enginetest.Options{Around: hooks.Around, Designer: enginetest.Always(enginetest.At(0.25, 60))})
			record := &storev1.StudyRecord{Study: s.Runs(t, change)}
			report := func(s *enginetest.Service, step int64, looks int, call func(context.Context) error) {
				t.Helper()
				inTransaction = func() {
					cached, err := s.Get(record)
					require.NoError(t, err)
					if !cached.Compiled.Metrics.AtHand(cached.Compiled.Points.At([]float64{0.25, 60}, step)) {
						t.Errorf("the metrics at step %d are computed in the transaction", step)
					}
				}
				if views, updates := f.of(t, call); views != looks || updates != 1 {
					t.Errorf("a report at step %d takes %d views and %d updates, want %d and 1", step, views, updates, looks)
				}
			}
			measured := func(trial *dparetov1.Trial, step int64) {
				t.Helper()
				req := &dparetov1.AddMeasurementRequest{
					Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: enginetest.ErrorAt(step, 0.5),
				}
				report(s, step, 1, func(ctx context.Context) error { _, err := s.AddMeasurement(ctx, req); return err })
			}
			completed := func(s *enginetest.Service, looks int, trial *dparetov1.Trial, id string) {
				t.Helper()
				req := &dparetov1.CompleteTrialRequest{
					Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), RequestId: id,
					Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: enginetest.ErrorAt(0, 0.4)},
				}
				report(s, 60, looks, func(ctx context.Context) error { _, err := s.CompleteTrial(ctx, req); return err })
			}
			trial, another := s.AskRun(t), s.AskRun(t)
			measured(trial, 1)
			record.Study.Spec.Budget = &dparetov1.Budget{MaxTrials: 100}
			resp, err := s.UpdateStudy(t.Context(), &dparetov1.UpdateStudyRequest{
				Study: record.GetStudy(), UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"spec.budget"}},
			})
			require.NoError(t, err)
			record.Study = resp.GetStudy()
			measured(trial, 1) // again
			measured(trial, 2)
			looks := 1
			if cached, err := s.Get(record); err != nil {
				t.Fatal(err)
			} else if cached.Compiled.Metrics.ComputesAtOnce() {
				looks = 0
			}
			completed(s, looks, trial, "id")
			completed(s, looks, trial, "id")            // the answer is remembered
			completed(s, looks, trial, "")              // it was lost
			completed(s.Fresh(t), looks+1, another, "") // the study is read first
		})
	}
}

// watcher sees what a study tells and stores.
type watcher struct {
	s      *enginetest.Service
	wake   <-chan struct{}
	mu     sync.Mutex
	events []*study.Events
}

// watch returns a watcher of studies/runs. It must be called before the first call.
func watch(t *testing.T, s *enginetest.Service) *watcher {
	t.Helper()
	w := &watcher{s: s}
	wake, unsubscribe := s.Subscribe("runs")
	t.Cleanup(unsubscribe)
	w.wake = wake
	s.Observe(func(events *study.Events) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, events)
	})
	return w
}

// told returns what observers were told since the last call, and whether streams were woken.
func (w *watcher) told() (events []*study.Events, woken bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	events, w.events = w.events, nil
	select {
	case <-w.wake:
		return events, true
	default:
		return events, false
	}
}

// stored is everything of studies/runs that is stored.
type stored struct {
	study   *storev1.StudyRecord
	trials  []*storev1.TrialRecord
	changes int // that streams could see
}

// stored reads studies/runs.
func (w *watcher) stored(t *testing.T) (out stored) {
	t.Helper()
	require.NoError(t, w.s.Store.View(t.Context(), func(tx *store.ReadTx) (err error) {
		if out.study, err = tx.Study("runs"); err != nil {
			return err
		}
		err = tx.Trials("runs", 0, func(record *storev1.TrialRecord) (bool, error) {
			out.trials = append(out.trials, record)
			return true, nil
		})
		if err != nil {
			return err
		}
		return tx.Changes("runs", 0, func(int64, *storev1.RevisionRecord) (bool, error) {
			out.changes++
			return true, nil
		})
	}))
	return out
}

// wantNothing fails the test unless nothing was told, and everything is as it was.
func (w *watcher) wantNothing(t *testing.T, before stored) {
	t.Helper()
	if events, woken := w.told(); len(events) > 0 || woken {
		t.Errorf("observers are told of %d changes, streams woken: %t", len(events), woken)
	}
	if d := cmp.Diff(before, w.stored(t), cmp.AllowUnexported(stored{}), protocmp.Transform()); d != "" {
		t.Error(d)
	}
}

// wantOne fails the test unless observers were told of one change, which made one revision.
func (w *watcher) wantOne(t *testing.T, before stored) *study.Events {
	t.Helper()
	events, woken := w.told()
	if len(events) != 1 || !woken {
		t.Fatalf("observers are told of %d changes, streams woken: %t; want one", len(events), woken)
	}
	if got, want := w.stored(t).study.GetStudy().GetRevision(), before.study.GetStudy().GetRevision()+1; got != want {
		t.Errorf("revision %d, want %d", got, want)
	}
	return events[0]
}

// stopper is a study.Stopper that needs something computed, as often as a test says.
type stopper struct {
	unknown int // how often
	later   func(context.Context) error
}

// ShouldStop implements study.Stopper.
func (s *stopper) ShouldStop(*study.Cached, *dparetov1.Trial, int64) (string, func(context.Context) error) {
	if s.unknown == 0 {
		return "", nil
	}
	return "", func(ctx context.Context) error {
		s.unknown--
		return s.later(ctx)
	}
}

// A computation before a change is no event, uses no revision, and wakes nobody; the study can be
// changed meanwhile.
func TestComputationsLeaveNothing(t *testing.T) {
	s := enginetest.With(t, enginetest.At(0.25, 60))
	slow := new(stopper)
	s.StopEarly(slow)
	w := watch(t, s)
	s.Runs(t, nil)
	trial := s.AskRun(t)
	w.told()
	before := w.stored(t)
	report := func(step int64) error {
		_, err := s.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: enginetest.ErrorAt(step, 0.5), RequestId: "report",
		})
		return err
	}

	broken := errors.New("it cannot be computed")
	slow.unknown, slow.later = 1, func(context.Context) error {
		w.wantNothing(t, before)
		return broken
	}
	if err := report(1); !errors.Is(err, broken) || slow.unknown != 0 {
		t.Errorf("error %v; something was to be computed %d more times", err, slow.unknown)
	}
	w.wantNothing(t, before)

	// The request that failed is not remembered: with its id another can be made.
	slow.unknown, slow.later = 1, func(context.Context) error {
		w.wantNothing(t, before)
		return nil
	}
	if err := report(2); err != nil || slow.unknown != 0 {
		t.Errorf("error %v; something was to be computed %d more times", err, slow.unknown)
	}
	if events := w.wantOne(t, before); len(events.Measured) != 1 || len(events.Moves)+len(events.Suggested)+events.Expired > 0 || events.Completed {
		t.Errorf("events %v", events)
	}
	after := w.stored(t)
	if m := after.trials[0].GetTrial().GetMeasurements(); len(m) != 1 || m[0].GetStep() != 2 {
		t.Errorf("measurements %v", m)
	}
	if after.changes != before.changes { // the trial's entry has moved
		t.Errorf("streams see %d changes, before %d", after.changes, before.changes)
	}

	// Others change the study while something is computed: the change is made on top of theirs.
	slow.unknown, slow.later = 1, func(ctx context.Context) error {
		_, err := s.UpdateTrial(ctx, &dparetov1.UpdateTrialRequest{
			Trial: &dparetov1.Trial{Name: trial.GetName(), Note: "meanwhile"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"note"}},
		})
		return err
	}
	s.Report(t, trial, enginetest.ErrorAt(3, 0.5))
	last := w.stored(t)
	if got := last.trials[0].GetTrial(); got.GetNote() != "meanwhile" || len(got.GetMeasurements()) != 2 || got.GetRevision() != after.study.GetStudy().GetRevision()+2 {
		t.Errorf("trial %v", got)
	}
	if events, _ := w.told(); len(events) != 2 {
		t.Errorf("observers are told of %d changes, want 2", len(events))
	}

	// The trial may be complete when the change is made, which then fails.
	slow.unknown, slow.later = 1, func(context.Context) error {
		s.Complete(t, trial, nil)
		w.told()
		last = w.stored(t)
		return nil
	}
	_, err := s.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: enginetest.ErrorAt(4, 0.5),
	})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a complete trial is measured: %v", err)
	}
	w.wantNothing(t, last)
}

// Where what is computed is forgotten before it is used, the change goes on without it.
func TestComputedOnce(t *testing.T) {
	s := enginetest.With(t, enginetest.At(0.25, 60))
	computed := 0
	slow := &stopper{later: func(context.Context) error { computed++; return nil }}
	s.StopEarly(slow)
	w := watch(t, s)
	s.Runs(t, nil)
	trial := s.AskRun(t)
	w.told()
	before := w.stored(t)
	slow.unknown = 100
	s.Report(t, trial, enginetest.ErrorAt(1, 0.5))
	if computed != 1 {
		t.Errorf("it was computed %d times, want once", computed)
	}
	w.wantOne(t, before)
}

// A call that nobody waits for any more computes nothing for a change, and makes none.
func TestAbandonedChange(t *testing.T) {
	s := enginetest.With(t, enginetest.At(0.25, 60))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	slow := &stopper{later: func(context.Context) error { cancel(); return nil }}
	s.StopEarly(slow)
	w := watch(t, s)
	s.Runs(t, nil)
	trial := s.AskRun(t)
	w.told()
	before := w.stored(t)
	slow.unknown = 100
	_, err := s.AddMeasurement(ctx, &dparetov1.AddMeasurementRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: enginetest.ErrorAt(1, 0.5),
	})
	if !errors.Is(err, context.Canceled) || slow.unknown != 99 {
		t.Errorf("error %v after %d computations", err, 100-slow.unknown)
	}
	w.wantNothing(t, before)
}

// Of a change that the store loses, or does not begin, nobody is told.
func TestLostChanges(t *testing.T) {
	lost := errors.New("the disk is gone")
	outcome := fault.Commit
	s := enginetest.New(t, enginetest.Options{
		Around: func(kv store.KV) store.KV {
			return fault.New(kv, func() (fault.Outcome, error) { return outcome, lost })
		},
		Designer: enginetest.Always(enginetest.At(0.25, 60)),
	})
	w := watch(t, s)
	s.Runs(t, nil)
	trial := s.AskRun(t)
	w.told()
	before := w.stored(t)
	for _, outcome = range []fault.Outcome{fault.Lose, fault.Refuse} {
		_, err := s.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: enginetest.ErrorAt(1, 0.5),
		})
		if !errors.Is(err, lost) {
			t.Errorf("error %v", err)
		}
		w.wantNothing(t, before)
	}
	outcome = fault.Commit
	s.Report(t, trial, enginetest.ErrorAt(1, 0.5))
	w.wantOne(t, before)
}

// Trials that users create, and results, are one change although ε is computed first.
func TestComputedBefore(t *testing.T) {
	var f traffic
	s := enginetest.New(t, enginetest.Options{Around: f.hooks().Around, Designer: enginetest.Always(enginetest.At(0.25, 60))})
	w := watch(t, s)
	s.Runs(t, enginetest.Accounted)
	w.told()
	before := w.stored(t)
	_, updates := f.of(t, func(ctx context.Context) error {
		resp, err := s.CreateTrial(ctx, &dparetov1.CreateTrialRequest{Parent: "studies/runs", Trial: &dparetov1.Trial{Parameters: map[string]*dparetov1.Value{
			"x":      {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 0.5}},
			"epochs": {Kind: &dparetov1.Value_IntValue{IntValue: 10}},
		}}})
		if resp.GetTrial().GetNumber() != 1 || resp.GetTrial().GetComputedMetrics()["loss"].GetValue() == 0 {
			t.Errorf("created %v", resp.GetTrial())
		}
		return err
	})
	if updates != 1 {
		t.Errorf("creating a trial takes %d updates, want 1", updates)
	}
	queued := []study.Move{{Number: 1, To: dparetov1.TrialState_TRIAL_STATE_QUEUED}}
	if events := w.wantOne(t, before); !slices.Equal(events.Moves, queued) {
		t.Errorf("moves %v", events.Moves)
	}
	trial := s.AskRun(t)

	restarted := s.Fresh(t) // has computed nothing yet
	w = watch(t, restarted)
	before = w.stored(t)
	_, updates = f.of(t, func(ctx context.Context) error {
		_, err := restarted.CompleteTrial(ctx, &dparetov1.CompleteTrialRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
			Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: enginetest.ErrorAt(0, 0.5)},
		})
		return err
	})
	if updates != 1 {
		t.Errorf("a result takes %d updates, want 1", updates)
	}
	succeeded := []study.Move{{Number: 1, From: dparetov1.TrialState_TRIAL_STATE_ACTIVE, To: dparetov1.TrialState_TRIAL_STATE_SUCCEEDED}}
	if events := w.wantOne(t, before); !slices.Equal(events.Moves, succeeded) || !events.Completed {
		t.Errorf("events %v", events)
	}
}

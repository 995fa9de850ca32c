package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/clock/clocktest"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/dpareto"
	"github.com/dpareto/dpareto/suggest/designers/random"
)

// The suggestion that was prepared when a trial completed is the one that is handed out:
// the designer is not asked again.
func TestPrepared(t *testing.T) {
	random := random.New()
	calls := make(chan int, 10) // the number of evaluations known
	s := enginetest.With(t, enginetest.Designer(func(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
		calls <- len(h.Evaluations)
		return random.Suggest(ctx, p, h, r)
	}))
	s.Runs(t, enginetest.ModelBased)
	trial := s.AskRun(t)
	<-calls
	s.Complete(t, trial, enginetest.ErrorAt(0, 0.5))
	if n := <-calls; n != 1 {
		t.Errorf("prepared from %d evaluations", n)
	}
	next := s.AskRun(t)
	if len(calls) != 0 {
		t.Error("the designer was asked again")
	}
	// Leases are renewed and measurements taken meanwhile: the history is the same.
	s.Complete(t, next, enginetest.ErrorAt(0, 0.5))
	<-calls
	other := s.AskRun(t)
	if len(calls) != 0 {
		t.Error("the designer was asked again")
	}
	third := s.AskRun(t) // nothing was prepared for it
	<-calls
	s.Complete(t, other, enginetest.ErrorAt(0, 0.5))
	<-calls
	s.Report(t, third, enginetest.ErrorAt(1, 0.5))
	s.AskRun(t)
	if len(calls) != 0 {
		t.Error("the designer was asked again after a measurement")
	}
}

// What was prepared from another history is given up.
func TestPreparationIsGivenUp(t *testing.T) {
	random := random.New()
	begun, given := make(chan int, 10), make(chan error, 10)
	s := enginetest.With(t, enginetest.Designer(func(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
		begun <- len(h.Evaluations)
		if len(h.Evaluations) == 1 && r.Count == 1 {
			<-ctx.Done()
			given <- ctx.Err()
			return nil, ctx.Err()
		}
		return random.Suggest(ctx, p, h, r)
	}))
	s.Runs(t, enginetest.ModelBased)
	first, second := s.AskRun(t), s.AskRun(t)
	<-begun
	<-begun
	s.Complete(t, first, enginetest.ErrorAt(0, 0.5))
	if n := <-begun; n != 1 {
		t.Fatalf("prepared from %d evaluations", n)
	}
	s.Complete(t, second, enginetest.ErrorAt(0, 0.5)) // the next preparation waits for the end of this one
	if err := <-given; err == nil {
		t.Error("it was not cancelled")
	}
	if n := <-begun; n != 2 {
		t.Errorf("prepared from %d evaluations", n)
	}
	s.AskRun(t)
	if len(begun) != 0 {
		t.Error("the designer was asked again")
	}
}

// Nothing is prepared for a study that nobody has asked for some time, nor after the end
// of its budget.
func TestNothingToPrepare(t *testing.T) {
	now := clocktest.NewManual(time.Now())
	calls := make(chan int, 10)
	random := random.New()
	designer := enginetest.Designer(func(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
		calls <- len(h.Evaluations)
		return random.Suggest(ctx, p, h, r)
	})
	s := enginetest.New(t, enginetest.Options{Clock: now, Designer: enginetest.Always(designer)})
	s.Runs(t, func(asked *dparetov1.StudySpec) {
		enginetest.ModelBased(asked)
		asked.Budget = &dparetov1.Budget{MaxTrials: 2}
	})
	first, second := s.AskRun(t), s.AskRun(t)
	s.Complete(t, first, enginetest.ErrorAt(0, 0.5))
	now.Advance(time.Hour)
	s.Complete(t, second, enginetest.ErrorAt(0, 0.5))
	s.Close() // waits
	if len(calls) != 2 {
		t.Errorf("%d calls of the designer, want 2", len(calls))
	}
}

// work runs a trial of studies/runs.
func work(s *enginetest.Service) error {
	no := false
	resp, err := s.SuggestTrials(context.Background(), &dparetov1.SuggestTrialsRequest{Parent: "studies/runs", WorkerId: "w", Resume: &no})
	if err != nil {
		return err
	}
	for _, trial := range resp.GetTrials() {
		_, err = s.CompleteTrial(context.Background(), &dparetov1.CompleteTrialRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
			Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: enginetest.ErrorAt(0, 0.5)},
		})
	}
	return err
}

// Suggestions are the same with preparation and without, also when several workers ask
// and complete at the same time.
func TestPreparationChangesNothing(t *testing.T) {
	history := func(algorithm func(*dparetov1.StudySpec)) []*dparetov1.Trial {
		s := enginetest.With(t, enginetest.Designer(dpareto.New(dpareto.Options{InitialPoints: 3, Candidates: 50, Restarts: 2}).Suggest))
		s.Runs(t, algorithm)
		var trials []*dparetov1.Trial
		for range 10 {
			trial := s.AskRun(t)
			trials = append(trials, trial)
			s.Complete(t, trial, enginetest.ErrorAt(0, 0.2+0.5*trial.GetParameters()["x"].GetDoubleValue()))
		}
		return trials
	}
	options := []cmp.Option{
		protocmp.Transform(), protocmp.IgnoreFields(&dparetov1.Trial{}, "lease", "create_time", "start_time", "etag"),
	}
	if d := cmp.Diff(history(nil), history(enginetest.ModelBased), options...); d != "" {
		t.Error(d)
	}

	s := enginetest.With(t, enginetest.Random())
	s.Runs(t, enginetest.ModelBased)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for range 10 {
				if err := work(s); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
}

// Nothing is computed any more for a study that was deleted.
func TestPreparesNothingForDeletedStudies(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	cached, err := s.Get(&storev1.StudyRecord{Study: s.Simple(t)})
	require.NoError(t, err)
	preparing, cancel := context.WithCancel(t.Context())
	s.Engine.Preparing(cached, cancel)
	require.NoError(t, require.ErrOf(s.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: "studies/s"})))
	if preparing.Err() == nil {
		t.Error("the next suggestion of a deleted study is still being prepared")
	}
}

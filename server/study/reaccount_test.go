package study_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/clock"
	"github.com/dpareto/dpareto/server/engine"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/suggest"
)

// What is kept in memory of a study, and of those that learn from it, is that of its spec
// now.
func TestReaccountingIsNoticed(t *testing.T) {
	var learned *suggest.History
	s := enginetest.With(t, enginetest.Learning(&learned))
	pure := &dparetov1.PrivacySpec{
		Mechanism: &dparetov1.PrivacySpec_Laplace{Laplace: &dparetov1.LaplaceMechanism{Sensitivity: "1", Scale: "1.0 + x"}},
		Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
	}
	runs := s.Runs(t, func(asked *dparetov1.StudySpec) {
		asked.GetMetrics()[0].GetComputed().Function = &dparetov1.ComputedSource_Privacy{Privacy: pure}
	})
	asked := proto.CloneOf(runs.GetSpec())
	asked.PriorStudies = []string{runs.GetName()}
	next, err := s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "next", Study: &dparetov1.Study{Spec: asked}})
	require.NoError(t, err)
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.5))
	values := func() (own, prior float64) {
		t.Helper()
		require.NoError(t, require.ErrOf(engine.Propose(t.Context(), s.Engine, "runs", runs.GetUid(), 1)))
		if len(learned.Evaluations) > 0 {
			own = learned.Evaluations[0].Values[0]
		}
		require.NoError(t, require.ErrOf(engine.Propose(t.Context(), s.Engine, "next", next.GetStudy().GetUid(), 1)))
		if len(learned.Prior) > 0 {
			prior = learned.Prior[0].Values[0]
		}
		return own, prior
	}
	own, prior := values()
	if own == 0 || prior == 0 {
		t.Fatalf("no evaluations: %g, %g", own, prior)
	}
	twice := proto.CloneOf(pure)
	twice.GetLaplace().Sensitivity = "2"
	metric := runs.GetSpec().GetMetrics()[0].GetId()
	wake, unsubscribe := s.Subscribe("runs")
	defer unsubscribe()
	require.NoError(t, require.ErrOf(s.ReaccountStudy(t.Context(), &dparetov1.ReaccountStudyRequest{Name: runs.GetName(), Metric: metric, Privacy: twice})))
	if a, b := values(); a != 2*own || b != 2*prior {
		t.Errorf("ε is %g here and %g for the prior, was %g and %g; want twice as much", a, b, own, prior)
	}
	if len(wake) == 0 {
		t.Error("streams of changes were not woken")
	}
}

// hooked is a clock that calls hook, unless nil, before it tells the time.
type hooked struct {
	clock.Clock
	hook func()
}

// Now implements clock.Clock.
func (h *hooked) Now() time.Time {
	if h.hook != nil {
		h.hook()
	}
	return h.Clock.Now()
}

// What others have kept of the spec of a re-accounting that failed is forgotten: else
// the spec would be compiled again for every call, until the study has come so far.
func TestFailedReaccountingIsForgotten(t *testing.T) {
	now := &hooked{Clock: clock.System()}
	s := enginetest.New(t, enginetest.Options{Designer: enginetest.Always(enginetest.Random()), Clock: now})
	pure := &dparetov1.PrivacySpec{
		Mechanism: &dparetov1.PrivacySpec_Laplace{Laplace: &dparetov1.LaplaceMechanism{Sensitivity: "1", Scale: "1.0 + x"}},
		Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
	}
	runs := s.Runs(t, func(asked *dparetov1.StudySpec) {
		asked.GetMetrics()[0].GetComputed().Function = &dparetov1.ComputedSource_Privacy{Privacy: pure}
	})
	s.AskRun(t)
	twice := proto.CloneOf(runs)
	metric := twice.GetSpec().GetMetrics()[0]
	metric.GetComputed().GetPrivacy().GetLaplace().Sensitivity = "2"
	twice.Revision, twice.Etag = 1000, "of a commit that failed"
	ctx, cancel := context.WithCancel(t.Context())
	now.hook = func() { // in the transaction
		cancel()
		if _, err := s.Get(&storev1.StudyRecord{Study: twice}); err != nil {
			t.Error(err)
		}
	}
	_, err := s.ReaccountStudy(ctx, &dparetov1.ReaccountStudyRequest{Name: runs.GetName(), Metric: metric.GetId(), Privacy: metric.GetComputed().GetPrivacy()})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	first, err := s.Get(&storev1.StudyRecord{Study: runs})
	require.NoError(t, err)
	if second, err := s.Get(&storev1.StudyRecord{Study: runs}); err != nil || first != second {
		t.Errorf("what is derived from the study is not kept: %v", err)
	}
}

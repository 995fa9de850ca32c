package study_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
)

// ledgers counts how often studies come to their ledgers.
type ledgers struct{ callers, checks atomic.Int64 }

// CheckCaller implements study.Ledgers.
func (l *ledgers) CheckCaller(context.Context, *dparetov1.StudySpec, *dparetov1.StudySpec) error {
	l.callers.Add(1)
	return nil
}

// Check implements study.Ledgers.
func (l *ledgers) Check(*store.ReadTx, *dparetov1.StudySpec) error {
	l.checks.Add(1)
	return nil
}

// An ordinary study has no policy of its own and comes to no ledger, whatever is done with it. One
// that names a ledger comes to it when it is created, and when the ledger is named later.
func TestOrdinaryStudies(t *testing.T) {
	var asked atomic.Int64
	l := new(ledgers)
	s := enginetest.New(t, enginetest.Options{
		Ledgers: l,
		Policies: func(*study.Studies, *dparetov1.StudySpec) study.Policy {
			asked.Add(1)
			return nil
		},
	})
	do := func(name string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	spec := enginetest.RunSpec()
	enginetest.Accounted(spec)
	enginetest.Checkpoints(spec)
	_, err := s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "runs", Study: &dparetov1.Study{Spec: spec}, ValidateOnly: true})
	do("validate", err)
	runs := s.Runs(t, func(asked *dparetov1.StudySpec) {
		enginetest.Accounted(asked)
		enginetest.Checkpoints(asked)
	})
	if policy := s.Policy(runs.GetSpec()); policy != (study.Ordinary{}) {
		t.Errorf("policy %T", policy)
	}
	trial, given, failed := s.AskRun(t), s.AskRun(t), s.AskRun(t)
	s.Report(t, trial, enginetest.ErrorAt(1, 0.5))
	_, err = s.RenewLeases(t.Context(), &dparetov1.RenewLeasesRequest{
		Parent: "studies/runs", LeaseTokens: map[string]string{trial.GetName(): trial.GetLease().GetToken()},
	})
	do("renew", err)
	s.Complete(t, trial, nil)
	_, err = s.ReleaseTrial(t.Context(), &dparetov1.ReleaseTrialRequest{Name: given.GetName(), LeaseToken: given.GetLease().GetToken(), Reason: "r"})
	do("release", err)
	_, err = s.StopTrial(t.Context(), &dparetov1.StopTrialRequest{Name: given.GetName()})
	do("stop", err)
	_, err = s.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: failed.GetName(), LeaseToken: failed.GetLease().GetToken(), Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "r"}},
	})
	do("fail", err)
	_, err = s.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: "studies/runs", Trial: &dparetov1.Trial{ReplicateOf: trial.GetName()}})
	do("replicate", err)
	_, err = s.UpdateTrial(t.Context(), &dparetov1.UpdateTrialRequest{
		Trial: &dparetov1.Trial{Name: trial.GetName(), Note: "n"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"note"}},
	})
	do("update a trial", err)
	_, err = s.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: trial.GetName()})
	do("get a trial", err)
	_, err = s.ListTrials(t.Context(), &dparetov1.ListTrialsRequest{Parent: "studies/runs"})
	do("list trials", err)
	_, err = s.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: failed.GetName()})
	do("delete a trial", err)
	twice := runs.GetSpec().GetMetrics()[0].GetComputed().GetPrivacy()
	twice.GetDpSgd().NoiseMultiplier = "2.0 + x"
	_, err = s.ReaccountStudy(t.Context(), &dparetov1.ReaccountStudyRequest{Name: runs.GetName(), Metric: "loss", Privacy: twice})
	do("account again", err)
	_, err = s.PauseStudy(t.Context(), &dparetov1.PauseStudyRequest{Name: runs.GetName()})
	do("pause", err)
	_, err = s.ResumeStudy(t.Context(), &dparetov1.ResumeStudyRequest{Name: runs.GetName()})
	do("resume", err)
	_, err = s.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: runs.GetName()})
	do("get", err)
	_, err = s.ListStudies(t.Context(), new(dparetov1.ListStudiesRequest))
	do("list", err)
	seen := errors.New("seen")
	if err := s.Watch(t.Context(), &dparetov1.WatchStudyRequest{Name: runs.GetName()}, func(*dparetov1.WatchStudyResponse) error { return seen }); !errors.Is(err, seen) {
		do("watch", err)
	}
	_, err = s.UpdateStudy(t.Context(), &dparetov1.UpdateStudyRequest{
		Study:      &dparetov1.Study{Name: runs.GetName(), Spec: &dparetov1.StudySpec{Budget: &dparetov1.Budget{MaxTrials: 100}}},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"spec.budget"}},
	})
	do("update", err)
	hidden, err := s.IsHidden(t.Context(), "runs")
	do("ask whether it is hidden", err)
	if callers, checks := l.callers.Load(), l.checks.Load(); hidden || callers+checks > 0 || asked.Load() == 0 {
		t.Errorf("hidden: %t; its ledgers were checked %d times, its callers %d times, its policy asked for %d times", hidden, checks, callers, asked.Load())
	}

	naming := func(ledger string) *dparetov1.Study {
		return &dparetov1.Study{Name: runs.GetName(), Spec: &dparetov1.StudySpec{TestLedger: ledger}}
	}
	_, err = s.UpdateStudy(t.Context(), &dparetov1.UpdateStudyRequest{Study: naming("ledgers/l"), UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"spec.test_ledger"}}})
	do("name a ledger", err)
	if l.callers.Load() == 0 || l.checks.Load() == 0 {
		t.Error("a ledger that is named later is not checked")
	}
	l.callers.Store(0)
	l.checks.Store(0)
	_, err = s.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: runs.GetName()})
	do("delete", err)
	s.Runs(t, func(asked *dparetov1.StudySpec) { asked.TestLedger = "ledgers/l" })
	if l.callers.Load() == 0 || l.checks.Load() == 0 {
		t.Error("a ledger that a new study names is not checked")
	}
}

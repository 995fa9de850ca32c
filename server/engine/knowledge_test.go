package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
)

// Of all studies together so many evaluations are kept, those used last; what was
// forgotten is read again.
func TestHistoriesAreForgotten(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	s.Engine.LimitMemory(4)
	var studies []*study.Cached
	var uids []string
	histories := make(map[string]*suggest.History)
	ids := []string{"a", "b", "c", "d"}
	read := func(i int) *suggest.History {
		snapshot, err := s.Engine.Snapshot(t.Context(), ids[i], uids[i])
		if err != nil {
			t.Fatal(err)
		}
		return snapshot.History
	}
	for i, id := range ids {
		asked := enginetest.RunSpec()
		if id == "c" { // keeps 1 of its own, and 2 for its prior
			asked.PriorStudies = []string{"studies/a"}
		}
		resp, err := s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: id, Study: &dparetov1.Study{Spec: asked}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: resp.GetStudy().GetName(), Trial: &dparetov1.Trial{
			Parameters: map[string]*dparetov1.Value{
				"x":      {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 0.25}},
				"epochs": {Kind: &dparetov1.Value_IntValue{IntValue: 64}},
			},
			FinalMeasurement: enginetest.ErrorAt(0, 0.5),
		}})
		if err != nil {
			t.Fatal(err)
		}
		cached, err := s.Get(&storev1.StudyRecord{Study: resp.GetStudy()})
		if err != nil {
			t.Fatal(err)
		}
		studies, uids = append(studies, cached), append(uids, resp.GetStudy().GetUid())
		histories[id] = read(i)
	}
	kept := func(want ...int) {
		t.Helper()
		total := 0
		for i, cached := range studies {
			got := s.Engine.Kept(cached)
			total += got
			if got != want[i] || cached.Compiled == nil {
				t.Errorf("of study %s %d evaluations are kept, want %d", ids[i], got, want[i])
			}
		}
		if n := s.Engine.Remembered(); n != total {
			t.Errorf("%d evaluations are kept, it thinks %d", total, n)
		}
	}
	kept(0, 0, 3, 1) // a and b had to go for c
	read(2)
	read(1)
	kept(0, 1, 3, 0)
	read(0)
	kept(1, 1, 0, 0)
	for i, id := range ids {
		if d := cmp.Diff(histories[id], read(i), cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); d != "" {
			t.Error(d)
		}
	}
	s.Engine.LimitMemory(1)
	read(2)
	kept(0, 0, 3, 0) // alone it may have more
	if _, err := s.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: "studies/c"}); err != nil {
		t.Fatal(err)
	}
	if n := s.Engine.Remembered(); n != 0 {
		t.Errorf("%d evaluations are kept of nothing", n)
	}
}

// Nothing is kept of the runs of complete trials, whatever their workers still say.
func TestCompleteTrialsAreForgotten(t *testing.T) {
	s := enginetest.With(t, enginetest.At(0.25, 64))
	cached, err := s.Get(&storev1.StudyRecord{Study: s.Runs(t, enginetest.Checkpoints)})
	if err != nil {
		t.Fatal(err)
	}
	trial := s.AskRun(t)
	s.Report(t, trial, enginetest.ErrorAt(1, 0.5))
	if n := s.Engine.UsefulKnown(cached); n != 1 {
		t.Errorf("the last useful step of %d trials is kept, want 1", n)
	}
	s.Complete(t, trial, nil)
	gone := s.AskRun(t)
	_, later := s.Engine.ShouldStop(cached, gone, 1)
	s.Complete(t, gone, enginetest.ErrorAt(0, 0.5))
	if err := later(t.Context()); err != nil {
		t.Fatal(err)
	}
	late := &dparetov1.AddMeasurementRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: enginetest.ErrorAt(2, 0.4)}
	if _, err := s.AddMeasurement(t.Context(), late); err == nil {
		t.Error("a complete trial was measured")
	}
	if n := s.Engine.UsefulKnown(cached); n != 0 {
		t.Errorf("the last useful step of %d trials is kept, want 0", n)
	}
}

// What is kept of a study goes with its spec: when its space has grown, nothing is kept of the
// smaller one, also not for a reader who still has that.
func TestHistoryOfTheSmallerSpaceIsForgotten(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	runs := s.Runs(t, nil)
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(0, 0.5))
	smaller, err := s.Get(&storev1.StudyRecord{Study: runs})
	if err != nil {
		t.Fatal(err)
	}
	historyOf(t, s, runs)
	if n := s.Engine.Remembered(); n != 1 {
		t.Errorf("%d evaluations are kept, want 1", n)
	}
	runs.GetSpec().GetParameters()[0].GetDoubleDomain().Max = 2
	resp, err := s.UpdateStudy(t.Context(), &dparetov1.UpdateStudyRequest{
		Study: &dparetov1.Study{Name: runs.GetName(), Spec: runs.GetSpec()}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"spec.parameters"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	larger, err := s.Get(&storev1.StudyRecord{Study: resp.GetStudy()})
	if err != nil || larger == smaller {
		t.Fatalf("the same is derived from another spec: %v", err)
	}
	if n := s.Engine.Remembered(); n != 0 {
		t.Errorf("%d evaluations are kept of the smaller space", n)
	}
	s.Engine.Keep(smaller, 9) // a late reader
	if n := s.Engine.Remembered(); n != 0 {
		t.Errorf("%d evaluations are kept for a late reader", n)
	}
	historyOf(t, s, runs)
	if n := s.Engine.Kept(larger); n != 1 || s.Engine.Remembered() != 1 {
		t.Errorf("%d evaluations are kept of the larger space, it thinks %d", n, s.Engine.Remembered())
	}
}

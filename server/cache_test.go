package server

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/suggest"
)

// Of all studies together so many evaluations are kept, those used last; what was
// forgotten is read again.
func TestHistoriesAreForgotten(t *testing.T) {
	s := serviceWith(t, fakeDesigner{suggest: suggest.NewRandom().Suggest})
	s.studies.limit = 4
	var studies []*cachedStudy
	var uids []string
	histories := make(map[string]*suggest.History)
	ids := []string{"a", "b", "c", "d"}
	read := func(i int) *suggest.History {
		snapshot, err := s.snapshot(t.Context(), ids[i], uids[i])
		if err != nil {
			t.Fatal(err)
		}
		return snapshot.history
	}
	for i, id := range ids {
		asked := runSpec()
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
			FinalMeasurement: errorAt(0, 0.5),
		}})
		if err != nil {
			t.Fatal(err)
		}
		cached, err := s.studies.get(resp.GetStudy())
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
			got := len(cached.history.evaluations) + cached.prior.size()
			total += got
			if got != want[i] || cached.compiled == nil {
				t.Errorf("of study %s %d evaluations are kept, want %d", ids[i], got, want[i])
			}
		}
		if s.studies.kept != total {
			t.Errorf("%d evaluations are kept, it thinks %d", total, s.studies.kept)
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
	s.studies.limit = 1
	read(2)
	kept(0, 0, 3, 0) // alone it may have more
	if _, err := s.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: "studies/c"}); err != nil {
		t.Fatal(err)
	}
	if s.studies.kept != 0 {
		t.Errorf("%d evaluations are kept of nothing", s.studies.kept)
	}
}

// Nothing is kept of the runs of complete trials, whatever their workers still say.
func TestCompleteTrialsAreForgotten(t *testing.T) {
	s := serviceWith(t, at(0.25, 64))
	study := runs(t, s, checkpoints)
	cached, err := s.studies.get(study)
	if err != nil {
		t.Fatal(err)
	}
	trial := askRun(t, s)
	report(t, s, trial, errorAt(1, 0.5))
	if n := len(cached.stopping.useful); n != 1 {
		t.Errorf("the last useful step of %d trials is kept, want 1", n)
	}
	completeRun(t, s, trial, nil)
	late := &dparetov1.AddMeasurementRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: errorAt(2, 0.4)}
	if _, err := s.AddMeasurement(t.Context(), late); err == nil {
		t.Error("a complete trial was measured")
	}
	if n := len(cached.stopping.useful); n != 0 {
		t.Errorf("the last useful step of %d trials is kept, want 0", n)
	}
}

// So many studies are kept, those used last; another spec takes the place of the one
// before, but not of a later one.
func TestStudiesAreForgotten(t *testing.T) {
	studies := studyCache{maximum: 2, limit: 10}
	study := func(uid string, revision int64, most float64) *dparetov1.Study {
		asked := runSpec()
		asked.Parameters[0].GetDoubleDomain().Max = most
		return &dparetov1.Study{Uid: uid, Revision: revision, Etag: etag(uid+"12345678", revision), Spec: asked}
	}
	get := func(study *dparetov1.Study) *cachedStudy {
		cached, err := studies.get(study)
		if err != nil {
			t.Fatal(err)
		}
		if !cached.compiles(study.GetSpec()) {
			t.Errorf("compiled %v", cached.compiled.Spec)
		}
		return cached
	}
	a, b := get(study("a", 1, 1)), get(study("b", 1, 1))
	studies.keep("a", a, 3)
	studies.keep("b", b, 4)
	if get(study("a", 1, 1)) != a || get(study("b", 1, 1)) != b {
		t.Error("compiled again")
	}
	if get(study("a", 2, 1)) != a { // renamed
		t.Error("compiled again")
	}
	c := get(study("c", 1, 1))
	if studies.kept != 3 || len(studies.studies) != 2 || get(study("a", 2, 1)) != a {
		t.Errorf("%d evaluations of %d studies are kept, want those of a", studies.kept, len(studies.studies))
	}
	studies.keep("b", b, 9) // a late reader of what is not kept any more
	if studies.kept != 3 {
		t.Errorf("%d evaluations are kept", studies.kept)
	}
	grown := get(study("a", 3, 2))
	if grown == a || studies.kept != 0 {
		t.Errorf("%d evaluations are kept of the smaller space", studies.kept)
	}
	if past := get(study("a", 2, 1)); past == grown || get(study("a", 3, 2)) != grown || get(study("c", 1, 1)) != c {
		t.Error("the smaller space took the place of the larger one")
	}
}

package engine_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// A spec without an algorithm means ALGORITHM_DEFAULT, and the stored spec says so: created again with
// it or without, updated as a whole, or imported, the study is the same.
func TestAlgorithmHasADefault(t *testing.T) {
	f := servertest.Start(t)
	for id, algorithm := range map[string]*dparetov1.AlgorithmSpec{"none": nil, "unnamed": {InitialTrials: 3}} {
		without := servertest.SVTSpec()
		without.Algorithm = algorithm
		name := f.Create(id, without)
		stored := f.Study(name)
		if got := stored.GetSpec().GetAlgorithm(); got.GetName() != dparetov1.Algorithm_ALGORITHM_DEFAULT || got.GetInitialTrials() != algorithm.GetInitialTrials() {
			t.Errorf("%s: algorithm %v", id, got)
		}
		with := servertest.SVTSpec()
		with.Algorithm = &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_DEFAULT, InitialTrials: algorithm.GetInitialTrials()}
		for _, spec := range []*dparetov1.StudySpec{with, without} {
			again, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: id, Study: &dparetov1.Study{Spec: spec}})
			if err != nil || again.GetStudy().GetUid() != stored.GetUid() {
				t.Errorf("%s: created again as %v, %v", id, again, err)
			}
			updated, err := f.Studies.UpdateStudy(t.Context(), &dparetov1.UpdateStudyRequest{
				Study: &dparetov1.Study{Name: name, Spec: spec}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"spec"}},
			})
			if err != nil || updated.GetStudy().GetRevision() != stored.GetRevision() {
				t.Errorf("%s: updated as %v, %v", id, updated, err)
			}
		}
		records := f.Export(name)
		records[0].GetStudy().GetStudy().GetSpec().Algorithm = algorithm
		require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: name})))
		require.NoError(t, require.ErrOf(f.ImportRecords(records)))
		if got := f.Study(name).GetSpec().GetAlgorithm().GetName(); got != dparetov1.Algorithm_ALGORITHM_DEFAULT {
			t.Errorf("%s: imported with %v", id, got)
		}
	}
}

// Where the default does not do, its refusal says what does.
func TestDefaultAlgorithmIsRefused(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SearchSpec(5, 1)
	f.OpenLedgers(t.Context(), spec)
	spec.Algorithm = nil
	_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "s", Study: &dparetov1.Study{Spec: spec}})
	servertest.WantCode(t, err, codes.InvalidArgument, "study.spec.algorithm.name: must be ALGORITHM_RANDOM with random_stopping")
}

package transfer_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// One ledger cannot be that of both the test and the training records: a study has one
// charge for each.
func TestOneLedgerForBoth(t *testing.T) {
	f := servertest.Start(t)
	for id, records := range map[string]int64{"private": 10_000, "search": 50} {
		require.NoError(t, require.ErrOf(f.Releases().CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: id, Ledger: &dparetov1.Ledger{
			Records: records, Epsilon: 100, Delta: 1e-3, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
		}})))
	}
	for id, spec := range map[string]*dparetov1.StudySpec{"private": servertest.PrivateSpec(4, 0.5), "search": servertest.Single(servertest.NoisySpec(), "0.25")} {
		spec.TestLedger, spec.TrainLedger = "ledgers/"+id, "ledgers/"+id
		_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: id, Study: &dparetov1.Study{Spec: spec}})
		servertest.WantCode(t, err, codes.InvalidArgument, "study.spec.train_ledger")
	}
}

// A study that has paid for what it publishes is not imported, whatever the export says it has spent.
// The ledgers keep what they were charged.
func TestPaidStudiesAreNotImported(t *testing.T) {
	f := servertest.Start(t)
	for id, spec := range map[string]*dparetov1.StudySpec{"private": servertest.PrivateSpec(4, 5), "search": servertest.SearchSpec(10, 1)} {
		study := f.Create(id, spec)
		f.Tell(f.One(study, "w"), 0.25)
		records := f.Export(study)
		before := f.Charges(spec.GetTrainLedger())
		require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
		_, err := f.ImportRecords(records)
		servertest.WantCode(t, err, codes.InvalidArgument, "dpareto store copy")
		if after := f.Charges(spec.GetTrainLedger()); len(before) == 0 || len(after) != len(before) {
			t.Errorf("%d charges before, %d after", len(before), len(after))
		}
	}
	plain := f.Export(f.Create("plain", servertest.GaussianSpec()))
	plain[0].GetStudy().PrivateMode = new(dparetov1.ExportedPrivateMode)
	_, err := servertest.Start(t).ImportRecords(plain)
	servertest.WantCode(t, err, codes.InvalidArgument, "private_mode")
}

package server_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// One ledger cannot be that of both the test and the training records: a study has one
// charge for each.
func TestOneLedgerForBoth(t *testing.T) {
	f := start(t)
	for id, records := range map[string]int64{"private": 10_000, "search": 50} {
		if _, err := f.releases().CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: id, Ledger: &dparetov1.Ledger{
			Records: records, Epsilon: 100, Delta: 1e-3, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
		}}); err != nil {
			t.Fatal(err)
		}
	}
	for id, spec := range map[string]*dparetov1.StudySpec{"private": privateSpec(4, 0.5), "search": single(noisySpec(), "0.25")} {
		spec.TestLedger, spec.TrainLedger = "ledgers/"+id, "ledgers/"+id
		_, err := f.studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: id, Study: &dparetov1.Study{Spec: spec}})
		wantCode(t, err, codes.InvalidArgument, "study.spec.train_ledger")
	}
}

// A study that has paid for what it publishes is not imported, whatever the export says it has spent.
// The ledgers keep what they were charged.
func TestPaidStudiesAreNotImported(t *testing.T) {
	f := start(t)
	for id, spec := range map[string]*dparetov1.StudySpec{"private": privateSpec(4, 5), "search": searchSpec(10, 1)} {
		study := f.create(id, spec)
		f.tell(f.one(study, "w"), 0.25)
		records := f.export(study)
		before := f.charges(spec.GetTrainLedger())
		if _, err := f.studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study}); err != nil {
			t.Fatal(err)
		}
		_, err := f.importRecords(records)
		wantCode(t, err, codes.InvalidArgument, "dpareto store copy")
		if after := f.charges(spec.GetTrainLedger()); len(before) == 0 || len(after) != len(before) {
			t.Errorf("%d charges before, %d after", len(before), len(after))
		}
	}
	plain := f.export(f.create("plain", gaussianSpec()))
	plain[0].GetStudy().PrivateMode = new(dparetov1.ExportedPrivateMode)
	_, err := start(t).importRecords(plain)
	wantCode(t, err, codes.InvalidArgument, "private_mode")
}

package transfer_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/servertest"
	"github.com/dpareto/dpareto/server/store"
)

// A study takes its releases along, with the ids of their requests; what they cost is
// charged where it was not, and nowhere twice.
func TestExportReleases(t *testing.T) {
	f, other := servertest.Start(t), servertest.Start(t)
	ledger := f.NewLedger("l", 10)
	study := f.Fixed(ledger, 0.4, 0.1, 0.3)
	best := &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 1, RequestId: "best"}
	first, err := f.Releases().ReleaseBest(t.Context(), best)
	require.NoError(t, err)
	require.NoError(t, require.ErrOf(f.Releases().ReleaseFront(t.Context(), &dparetov1.ReleaseFrontRequest{Name: study, Epsilon: 2, Delta: 1e-6})))
	records := f.Export(study)

	_, err = other.ImportRecords(records)
	servertest.WantCode(t, err, codes.FailedPrecondition, "study.spec.test_ledger: ledgers/l does not exist")
	other.NewLedger("l", 2)
	_, err = other.ImportRecords(records)
	servertest.WantCode(t, err, codes.ResourceExhausted, "exceeds the remaining budget of ledgers/l")
	if _, err := other.Studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: study}); err == nil {
		t.Error("the study was imported all the same")
	}
	third := servertest.Start(t)
	third.NewLedger("l", 10)
	for range 2 { // the second time it exists and is equal
		require.NoError(t, require.ErrOf(third.ImportRecords(records)))
		if c := third.Charges(ledger); len(c) != 2 || c[0].GetResource() != first.GetRelease().GetName() || c[1].GetGuarantee().GetDelta() != 1e-6 {
			t.Errorf("charges %v", c)
		}
	}
	third.Restart()
	if diff := cmp.Diff(servertest.Lines(t, records), servertest.Lines(t, third.Export(study))); diff != "" {
		t.Errorf("exported again (-first +second):\n%s", diff)
	}
	again, err := third.Releases().ReleaseBest(t.Context(), best)
	if diff := cmp.Diff(first.GetRelease(), again.GetRelease(), protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("repeated elsewhere: %s, %v", diff, err)
	}

	// Where it comes from the charges are there: deleted and imported again it costs nothing.
	// What the older copy does not know of is not charged as something that was.
	forgotten, err := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 1})
	require.NoError(t, err)
	require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
	require.NoError(t, require.ErrOf(f.ImportRecords(records)))
	if n := len(f.Charges(ledger)); n != 3 {
		t.Errorf("%d charges after the import, want 3", n)
	}
	next, err := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 1})
	require.NoError(t, err)
	if next.GetRelease().GetName() == forgotten.GetRelease().GetName() || len(f.Charges(ledger)) != 4 {
		t.Errorf("%s after %s, %d charges", next.GetRelease().GetName(), forgotten.GetRelease().GetName(), len(f.Charges(ledger)))
	}
}

// Releases that cannot be are refused, by line and field.
func TestImportBadReleases(t *testing.T) {
	f := servertest.Start(t)
	ledger := f.NewLedger("l", 10)
	study := f.Fixed(ledger, 0.4, 0.1)
	for _, id := range []string{"a", "b"} {
		require.NoError(t, require.ErrOf(f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 1, RequestId: id})))
	}
	records := f.Export(study)
	require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
	last := len(records) - 1
	for field, change := range map[string]func(*dparetov1.ExportedRelease){
		"record.release.release.name":                func(r *dparetov1.ExportedRelease) { r.Release.Name = "studies/t/releases/2" },
		"record.release.release.create_time":         func(r *dparetov1.ExportedRelease) { r.Release.CreateTime = nil },
		"record.release.release.study_revision":      func(r *dparetov1.ExportedRelease) { r.Release.StudyRevision = 1000 },
		"record.release.release.ledger":              func(r *dparetov1.ExportedRelease) { r.Release.Ledger = "" },
		"record.release.release.guarantee":           func(r *dparetov1.ExportedRelease) { r.Release.Guarantee.Epsilon = math.NaN() },
		"record.release.release.guarantee.adjacency": func(r *dparetov1.ExportedRelease) { r.Release.Guarantee.Adjacency = 0 },
		"record.release.request_digest":              func(r *dparetov1.ExportedRelease) { r.RequestDigest = nil },
		"record.release.caller":                      func(r *dparetov1.ExportedRelease) { r.Caller = "a\x00b" },
		"record.release.request_id": func(r *dparetov1.ExportedRelease) {
			r.RequestId = records[last-1].GetRelease().GetRequestId()
		},
	} {
		changed := append([]*dparetov1.ExportedRecord(nil), records...)
		changed[last] = proto.CloneOf(records[last])
		change(changed[last].GetRelease())
		_, err := f.ImportRecords(changed)
		if diff := cmp.Diff([]string{field}, servertest.Violated(err)); diff != "" {
			t.Errorf("%s: %v", field, err)
		}
	}
	cheaper := append([]*dparetov1.ExportedRecord(nil), records...)
	cheaper[last] = proto.CloneOf(records[last])
	cheaper[last].GetRelease().GetRelease().GetGuarantee().Epsilon = 5
	_, err := f.ImportRecords(cheaper)
	servertest.WantCode(t, err, codes.FailedPrecondition, "studies/s/releases/2 was charged to ledgers/l with less than ε = 5")
	require.NoError(t, require.ErrOf(f.ImportRecords(records)))
	if n := len(f.Charges(ledger)); n != 2 {
		t.Errorf("%d charges, want 2", n)
	}
}

// What a check of the store says of ledgers and releases that do not fit together.
func TestCheckOfLedgers(t *testing.T) {
	for name, damage := range map[string]func(*store.Tx) error{
		"store: ledger \"l\": store: the charges exceed the budget": func(tx *store.Tx) error {
			record, err := tx.Ledger("l")
			if err != nil {
				return err
			}
			record.Ledger.Epsilon = 0.25
			return tx.PutLedger("l", record)
		},
		"studies/s/releases/1 is not charged to ledgers/l": func(tx *store.Tx) error {
			record, err := tx.Release("studies/s", 1)
			if err != nil {
				return err
			}
			record.Release.Guarantee.Epsilon = 0.75
			return tx.PutRelease("studies/s", 1, record)
		},
	} {
		f, records := servertest.Start(t), servertest.NewMemory(t)
		f.Stop()
		f.Configure = func(o *server.Options) { o.Store = records }
		f.Serve()
		study := f.Fixed(f.NewLedger("l", 1), 0.4, 0.1)
		require.NoError(t, require.ErrOf(f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error", Epsilon: 0.5})))
		if faults := records.Check(t.Context()); len(faults) != 0 {
			t.Fatalf("a sound store: %v", faults)
		}
		require.NoError(t, records.Update(t.Context(), store.In(store.StudyScope("s"), store.LedgerScope("l")), damage))
		faults := records.Check(t.Context())
		found := false
		for _, fault := range faults {
			found = found || fault.Error() == name
		}
		if !found {
			t.Errorf("faults %v, want %q", faults, name)
		}
	}
}

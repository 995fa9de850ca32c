package transfer_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/opentest"
)

// An exported study that is imported into an empty server is exported as the same bytes,
// and workers go on with it under the leases that they have.
func TestExportImport(t *testing.T) {
	from, to := servertest.Start(t), servertest.Start(t)
	study, held := from.Eventful()
	exported := servertest.Lines(t, from.Export(study))
	for _, want := range []string{`"deleted":true`, held.GetLease().GetToken(), `"stagnation"`, `"completionDigest"`, `"TRIAL_STATE_STOPPING"`, `"releases":"1"`} {
		if !strings.Contains(exported, want) {
			t.Errorf("the export lacks %s", want)
		}
	}
	resp, err := to.ImportRecords(servertest.Parse(t, exported))
	require.NoError(t, err)
	if resp.GetTrials() != 11 || resp.GetExisted() || resp.GetStudy().GetName() != study {
		t.Errorf("the answer is %v", resp)
	}
	if got := servertest.Lines(t, to.Export(study)); got != exported {
		t.Errorf("exported again: %s\nwant: %s", got, exported)
	}
	// Again, as after a lost answer.
	resp, err = to.ImportRecords(servertest.Parse(t, exported))
	if err != nil || !resp.GetExisted() || resp.GetTrials() != 0 {
		t.Errorf("importing again: %v, %v", resp, err)
	}
	to.Restart()
	// Both go on alike.
	to.Clock.Advance(1_234_567_891)
	for _, f := range []*servertest.Fixture{from, to} {
		f.Tell(held, 0.125, 0.25)
	}
	if a, b := servertest.Lines(t, from.Export(study)), servertest.Lines(t, to.Export(study)); a != b {
		t.Errorf("after the same result: %s\nand: %s", a, b)
	}
	if _, err = to.ImportRecords(servertest.Parse(t, exported)); status.Code(err) != codes.AlreadyExists {
		t.Errorf("importing over a study that has changed: %v", err)
	}
	a, b := from.Ask(study, "next", 1), to.Ask(study, "next", 1)
	if a.GetTrials()[0].GetName() != b.GetTrials()[0].GetName() {
		t.Errorf("the next trials are %v and %v", a, b)
	}
}

// set returns a change of the study's record.
func setStudy(change func(*dparetov1.ExportedStudy)) func([]*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord {
	return func(records []*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord {
		change(records[0].GetStudy())
		return records
	}
}

// Nothing that a server could not have exported is imported, and nothing of it remains.
func TestImportRefuses(t *testing.T) {
	f := servertest.Start(t)
	study, _ := f.Eventful()
	exported := servertest.Lines(t, f.Export(study))
	require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
	other := f.Create("other", servertest.SVTSpec())
	otherUID := f.Export(other)[0].GetStudy().GetStudy().GetUid()
	nan := math.NaN()
	for _, tt := range []struct {
		name   string
		field  string
		change func([]*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord
	}{
		{"empty", "record", func([]*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord { return nil }},
		{"no study", "record.trial", func(r []*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord { return r[1:] }},
		{"no record", "record", func(r []*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord { return append(r, nil) }},
		{"two studies", "record.study", func(r []*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord { return append(r, r[0]) }},
		{"a trial twice", "record.trial.deleted", func(r []*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord { return append(r, r[1]) }},
		{"cut", "record.study.study.trial_counts", func(r []*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord { return r[:5] }},
		{"order", "record.trial.trial.number", func(r []*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord { r[1], r[2] = r[2], r[1]; return r }},
		{"name", "record.study.study.name", setStudy(func(s *dparetov1.ExportedStudy) { s.Study.Name = "studies/../x" })},
		{"uid", "record.study.study.uid", setStudy(func(s *dparetov1.ExportedStudy) { s.Study.Uid = "short" })},
		{"uid of another", "record.study.study.uid", setStudy(func(s *dparetov1.ExportedStudy) {
			s.Study.Uid = otherUID
			s.Study.Etag = otherUID[:8] + "-1"
		})},
		{"etag", "record.study.study.etag", setStudy(func(s *dparetov1.ExportedStudy) { s.Study.Etag = "x-1" })},
		{"spec", "record.study.study.spec.metrics[1].id", setStudy(func(s *dparetov1.ExportedStudy) { s.Study.Spec.Metrics[1].Id = "" })},
		{"state", "record.study.study.state", setStudy(func(s *dparetov1.ExportedStudy) { s.Study.State = 17 })},
		{"time", "record.study.study.create_time", setStudy(func(s *dparetov1.ExportedStudy) { s.Study.CreateTime = &timestamppb.Timestamp{Nanos: -1} })},
		{"counts", "record.study.study.trial_counts", setStudy(func(s *dparetov1.ExportedStudy) { s.Study.TrialCounts.Active++ })},
		{"prior", "record.study.study.spec.prior_studies[0]", setStudy(func(s *dparetov1.ExportedStudy) { s.Study.Spec.PriorStudies = []string{study} })},
		{"next number", "record.trial.trial.number", setStudy(func(s *dparetov1.ExportedStudy) { s.NextTrialNumber = 8 })},
		{"negative", "record.study.next_trial_number", setStudy(func(s *dparetov1.ExportedStudy) { s.NextTrialNumber = math.MinInt64 })},
		{"huge", "record.study.next_trial_number", setStudy(func(s *dparetov1.ExportedStudy) { s.NextTrialNumber = math.MaxInt64 })},
		{"huge revision", "record.study.study.revision", setStudy(func(s *dparetov1.ExportedStudy) { s.Study.Revision = math.MaxInt64 })},
		{"completed", "record.study.completed_trials", setStudy(func(s *dparetov1.ExportedStudy) { s.CompletedTrials = 1 << 40 })},
		{"stagnation", "record.study.stagnation.front[0].costs", setStudy(func(s *dparetov1.ExportedStudy) {
			s.Stagnation.Front = []*dparetov1.ExportedPoint{{Costs: []float64{nan, 0}}}
		})},
		{"hypervolume", "record.study.stagnation.hypervolume", setStudy(func(s *dparetov1.ExportedStudy) { s.Stagnation.Hypervolume = math.Inf(1) })},
		{"trial's name", "record.trial.trial.name", servertest.SetTrial(1, func(r *dparetov1.ExportedTrial) { r.Trial.Name = other + "/trials/1" })},
		{"trial's state", "record.trial.trial.state", servertest.SetTrial(1, func(r *dparetov1.ExportedTrial) { r.Trial.State = 99 })},
		{"origin", "record.trial.trial.origin", servertest.SetTrial(1, func(r *dparetov1.ExportedTrial) { r.Trial.Origin = 99 })},
		{"parameter", `record.trial.trial.parameters["variance"]`, servertest.SetTrial(1, func(r *dparetov1.ExportedTrial) {
			r.Trial.Parameters["variance"] = &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: nan}}
		})},
		{"revision", "record.trial.trial.revision", servertest.SetTrial(1, func(r *dparetov1.ExportedTrial) { r.Trial.Revision = 1 << 50 })},
		{"revision of another", "record.trial.trial.revision", servertest.SetTrial(2, func(r *dparetov1.ExportedTrial) { r.Trial.Revision-- })},
		{"trial's etag", "record.trial.trial.etag", servertest.SetTrial(1, func(r *dparetov1.ExportedTrial) { r.Trial.Etag = "" })},
		{"metric", `record.trial.trial.final_measurement.metrics["error"].runs[0]`, servertest.SetTrial(1, func(r *dparetov1.ExportedTrial) {
			r.Trial.FinalMeasurement.Metrics["error"].Runs[0] = math.Inf(1)
		})},
		{"mean", `record.trial.trial.final_measurement.metrics["error"]`, servertest.SetTrial(1, func(r *dparetov1.ExportedTrial) {
			r.Trial.FinalMeasurement.Metrics["error"].Value = new(2.0)
		})},
		{"epsilon", `record.trial.trial.computed_metrics["epsilon"].value`, servertest.SetTrial(1, func(r *dparetov1.ExportedTrial) {
			r.Trial.ComputedMetrics["epsilon"].Value = &nan
		})},
		{"step", "record.trial.trial.measurements[0].step", servertest.SetTrial(1, func(r *dparetov1.ExportedTrial) { r.Trial.Measurements[0].Step = -1 })},
		{"no result", "record.trial.trial.final_measurement", servertest.SetTrial(1, func(r *dparetov1.ExportedTrial) { r.Trial.FinalMeasurement = nil })},
		{"completion order", "record.trial.completion_order", servertest.SetTrial(1, func(r *dparetov1.ExportedTrial) { r.CompletionOrder = 2 })},
		{"completion token", "record.trial.completion_token", servertest.SetTrial(1, func(r *dparetov1.ExportedTrial) { r.CompletionToken = "none" })},
		{"digest", "record.trial.completion_digest", servertest.SetTrial(1, func(r *dparetov1.ExportedTrial) { r.CompletionDigest = []byte{1} })},
		{"lease", "record.trial.trial.lease", servertest.SetTrial(9, func(r *dparetov1.ExportedTrial) { r.Trial.Lease = nil })},
		{"token", "record.trial.trial.lease.token", servertest.SetTrial(9, func(r *dparetov1.ExportedTrial) { r.Trial.Lease.Token = "x" })},
		{"worker", "record.trial.trial.worker_id", servertest.SetTrial(9, func(r *dparetov1.ExportedTrial) { r.Trial.WorkerId = "another" })},
		{"long worker", "record.trial.trial.worker_id", servertest.SetTrial(1, func(r *dparetov1.ExportedTrial) { r.Trial.WorkerId = strings.Repeat("x", 201) })},
		{"worker of a queued trial", "record.trial.trial.worker_id", servertest.SetTrial(6, func(r *dparetov1.ExportedTrial) { r.Trial.WorkerId = "w" })},
		{"tokens", "record.trial.lease_tokens", servertest.SetTrial(9, func(r *dparetov1.ExportedTrial) { r.LeaseTokens = nil })},
		{"releases", "record.trial.releases", servertest.SetTrial(6, func(r *dparetov1.ExportedTrial) { r.Releases = -1 })},
		{"replicate", "record.trial.trial.replicate_of", servertest.SetTrial(10, func(r *dparetov1.ExportedTrial) { r.Trial.ReplicateOf = r.GetTrial().GetName() })},
		{"replicates", "record.trial.trial.replicates", servertest.SetTrial(1, func(r *dparetov1.ExportedTrial) { r.Trial.Replicates = 0 })},
		{"label", "record.trial.trial.labels", servertest.SetTrial(10, func(r *dparetov1.ExportedTrial) { r.Trial.Labels[""] = "x" })},
		{"note", "record.trial.trial.note", servertest.SetTrial(10, func(r *dparetov1.ExportedTrial) { r.Trial.Note = strings.Repeat("x", 10_001) })},
		{"prediction", `record.trial.trial.provenance.predictions["error"]`, servertest.SetTrial(1, func(r *dparetov1.ExportedTrial) {
			r.Trial.Provenance.Predictions = map[string]*dparetov1.MetricPrediction{"error": {Median: nan}}
		})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := f.ImportRecords(tt.change(servertest.Parse(t, exported)))
			if status.Code(err) != codes.InvalidArgument || len(servertest.Violated(err)) == 0 || servertest.Violated(err)[0] != tt.field {
				t.Errorf("error %v of fields %v, want one of %s", err, servertest.Violated(err), tt.field)
			}
			if _, err := f.Studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: study}); status.Code(err) != codes.NotFound {
				t.Errorf("the study is there: %v", err)
			}
		})
	}
	unknown := servertest.Parse(t, exported)
	unknown[1].GetTrial().ProtoReflect().SetUnknown([]byte{0xf8, 0x7f, 1})
	if _, err := f.ImportRecords(unknown); status.Code(err) != codes.Unimplemented {
		t.Errorf("an unknown field: %v", err)
	}
	if _, err := f.ImportRecords(servertest.Parse(t, exported)); err != nil {
		t.Errorf("the same without a fault: %v", err)
	}
	if got := servertest.Lines(t, f.Export(study)); got != exported {
		t.Errorf("exported again: %s\nwant: %s", got, exported)
	}
}

// A client that goes away in the middle leaves nothing, and until then nobody sees or
// creates the study.
func TestImportHalf(t *testing.T) {
	f := servertest.Start(t)
	records := f.ManyTrials("many", 1200)
	stream, err := f.Admin.ImportStudy(t.Context())
	require.NoError(t, err)
	for _, record := range records[:1100] {
		require.NoError(t, stream.Send(&dparetov1.ImportStudyRequest{Record: record}))
	}
	// Messages of a stream and calls have no order: wait until the import is under way.
	var refused error
	for refused == nil || status.Code(refused) == codes.NotFound {
		_, refused = f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{
			StudyId: "many", Study: &dparetov1.Study{Spec: servertest.SVTSpec()}, ValidateOnly: true,
		})
	}
	servertest.WantCode(t, refused, codes.Aborted, "is being imported")
	for { // also when trials are written already
		var written bool
		require.NoError(t, f.Records.View(t.Context(), func(tx *store.ReadTx) error {
			_, err := tx.Trial("many", 1)
			written = err == nil
			return nil
		}))
		if written {
			break
		}
		runtime.Gosched()
	}
	_, err = f.Studies.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: "studies/many/trials/1"})
	servertest.WantCode(t, err, codes.NotFound, "studies/many/trials/1")
	if _, err := f.ImportRecords(records); status.Code(err) != codes.Aborted {
		t.Errorf("a second import of the study: %v", err)
	}
	f.Restart() // the connection breaks
	for {
		_, err := f.Studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "many", Study: &dparetov1.Study{Spec: servertest.SVTSpec()}})
		if err == nil {
			break
		}
		if status.Code(err) != codes.Aborted {
			t.Fatal(err)
		}
	}
	if got := f.Export("studies/many"); len(got) != 1 {
		t.Errorf("a new study has %d records", len(got))
	}
}

// Many trials are written in pieces, and come out as they went in.
func TestImportMany(t *testing.T) {
	f := servertest.Start(t)
	records := f.ManyTrials("many", 1600)
	resp, err := f.ImportRecords(records)
	if err != nil || resp.GetTrials() != 1600 {
		t.Fatalf("%v, %v", resp, err)
	}
	if servertest.Lines(t, f.Export("studies/many")) != servertest.Lines(t, records) {
		t.Error("exported again, the trials differ")
	}
}

// Two imports at a time cannot give two studies one uid.
func TestImportsOfOneUID(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("a", servertest.SVTSpec())
	records := f.Export(study)
	require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
	first, err := f.Admin.ImportStudy(t.Context())
	if err == nil {
		err = first.Send(&dparetov1.ImportStudyRequest{Record: records[0]})
	}
	for err == nil { // until it has begun
		var marked bool
		err = f.Records.View(t.Context(), func(tx *store.ReadTx) (err error) { marked, err = tx.Importing("a"); return err })
		if marked {
			break
		}
		runtime.Gosched()
	}
	require.NoError(t, err)
	other := proto.CloneOf(records[0])
	other.GetStudy().GetStudy().Name = "studies/b"
	_, err = f.ImportRecords([]*dparetov1.ExportedRecord{other})
	servertest.WantCode(t, err, codes.Aborted, "uid")
	if _, err := first.CloseAndRecv(); err != nil {
		t.Error(err)
	}
	_, err = f.ImportRecords([]*dparetov1.ExportedRecord{other})
	servertest.WantCode(t, err, codes.InvalidArgument, "uid")
}

// A study with many trials is deleted in pieces, also if a crash comes between, and nobody
// sees what is left of it.
func TestDeleteMany(t *testing.T) {
	f := servertest.Start(t)
	const study = "studies/many"
	for _, crash := range []bool{false, true} {
		require.NoError(t, require.ErrOf(f.ImportRecords(f.ManyTrials("many", 3000))))
		if crash {
			require.NoError(t, f.Records.Update(t.Context(), store.In(store.StudyScope("many")), func(tx *store.Tx) error { return tx.DeleteStudy("many") }))
		} else if _, err := f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study}); err != nil {
			t.Fatal(err)
		}
		_, err := f.Studies.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: study + "/trials/3000"})
		servertest.WantCode(t, err, codes.NotFound, "")
		f.Restart()
		if counts := trialCount(f); counts != 0 && !crash {
			t.Errorf("%d trials are left", counts)
		}
		for trialCount(f) > 0 { // the server removes them in the background
			runtime.Gosched()
		}
		if faults := f.Records.Check(t.Context()); len(faults) > 0 {
			t.Error(faults)
		}
	}
}

// trialCount returns the number of trials in the store.
func trialCount(f *servertest.Fixture) int64 {
	f.T.Helper()
	counts, err := f.Records.Counts(f.T.Context())
	require.NoError(f.T, err)
	return counts["trial"].Keys
}

// What a study that is not there is answered with names it, and nothing else.
func TestExportUnknown(t *testing.T) {
	f := servertest.Start(t)
	stream, err := f.Admin.ExportStudy(t.Context(), &dparetov1.ExportStudyRequest{Name: "studies/none"})
	if err == nil {
		_, err = stream.Recv()
	}
	if got := status.Convert(err); got.Code() != codes.NotFound || got.Message() != "study studies/none does not exist" {
		t.Errorf("%v", err)
	}
}

// A backup has everything that was acknowledged before, and its digest.
func TestBackupStore(t *testing.T) {
	f := servertest.Start(t)
	study, _ := f.Eventful()
	want := servertest.Lines(t, f.Export(study))
	stream, err := f.Admin.BackupStore(t.Context(), &dparetov1.BackupStoreRequest{})
	require.NoError(t, err)
	var data []byte
	var last *dparetov1.BackupStoreResponse
	for last.GetTotalBytes() == 0 {
		if last, err = stream.Recv(); err != nil {
			t.Fatal(err)
		}
		data = append(data, last.GetData()...)
		f.One(study, "meanwhile") // the server goes on
	}
	sum := sha256.Sum256(data)
	if last.GetTotalBytes() != int64(len(data)) || !bytes.Equal(last.GetSha256(), sum[:]) {
		t.Errorf("%d bytes with digest %x, the server says %d and %x", len(data), sum, last.GetTotalBytes(), last.GetSha256())
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last message: %v", err)
	}
	f.Stop()
	f.Path = filepath.Join(t.TempDir(), "restored.db")
	opentest.Restore(t, data, f.Path)
	f.Serve()
	if got := servertest.Lines(t, f.Export(study)); got != want {
		t.Errorf("restored: %s\nwant: %s", got, want)
	}
}

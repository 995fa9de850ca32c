package server_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/opentest"
)

// export returns the records of a study.
func (f *fixture) export(study string) []*dparetov1.ExportedRecord {
	f.t.Helper()
	stream, err := f.admin.ExportStudy(f.t.Context(), &dparetov1.ExportStudyRequest{Name: study})
	if err != nil {
		f.t.Fatal(err)
	}
	var records []*dparetov1.ExportedRecord
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return records
		}
		if err != nil {
			f.t.Fatal(err)
		}
		records = append(records, resp.GetRecord())
	}
}

// importRecords imports records, after creating the ledgers that create would.
func (f *fixture) importRecords(records []*dparetov1.ExportedRecord) (*dparetov1.ImportStudyResponse, error) {
	f.t.Helper()
	if len(records) > 0 {
		f.openLedgers(f.t.Context(), records[0].GetStudy().GetStudy().GetSpec())
	}
	stream, err := f.admin.ImportStudy(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, record := range records {
		if err := stream.Send(&dparetov1.ImportStudyRequest{Record: record}); err != nil {
			break // the answer says why
		}
	}
	return stream.CloseAndRecv()
}

// place writes the records of a study to the store as a copy of its store would hold them. The study
// may have private_mode or random_stopping, which no import takes.
func (f *fixture) place(records []*dparetov1.ExportedRecord) {
	f.t.Helper()
	exported := records[0].GetStudy()
	id := resource.StudyID(exported.GetStudy().GetName())
	convert := func(from, to proto.Message) { // of fields of the same names
		text, err := protojson.Marshal(from)
		if err == nil {
			err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, to)
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
	err := f.records.Update(f.t.Context(), store.In(store.StudyScope(id), store.StoreScope), func(tx *store.Tx) error {
		for _, r := range records[1:] {
			record := new(storev1.TrialRecord)
			convert(r.GetTrial(), record)
			put := tx.PutTrial
			if r.GetTrial().GetDeleted() {
				put = tx.DeleteTrial
			}
			if err := errors.Join(tx.PutParts(id, record), put(id, record)); err != nil {
				return err
			}
		}
		record := &storev1.StudyRecord{}
		convert(exported, record)
		record.Lineage = rand.Uint64()
		return tx.PutStudy(id, record)
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// replace deletes a study and places its records, changed, in its stead.
func (f *fixture) replace(study string, change func([]*dparetov1.ExportedRecord)) {
	f.t.Helper()
	records := f.export(study)
	change(records)
	if _, err := f.studies.DeleteStudy(f.t.Context(), &dparetov1.DeleteStudyRequest{Name: study}); err != nil {
		f.t.Fatal(err)
	}
	f.place(records)
}

// lines returns records as they are in a file.
func lines(t *testing.T, records []*dparetov1.ExportedRecord) string {
	t.Helper()
	var all bytes.Buffer
	for _, record := range records {
		line, err := protojson.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Compact(&all, line); err != nil { // protojson puts spaces in at random
			t.Fatal(err)
		}
		all.WriteByte('\n')
	}
	return all.String()
}

// parse is the inverse of lines.
func parse(t *testing.T, text string) []*dparetov1.ExportedRecord {
	t.Helper()
	var records []*dparetov1.ExportedRecord
	for line := range strings.Lines(text) {
		record := new(dparetov1.ExportedRecord)
		if err := protojson.Unmarshal([]byte(line), record); err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
	return records
}

// eventful makes a study with trials in every state, with every kind of history.
func (f *fixture) eventful() (study string, held *dparetov1.Trial) {
	f.t.Helper()
	spec := sgdSpec()
	spec.Seed = nil
	spec.Budget = &dparetov1.Budget{MaxStagnantTrials: 50}
	spec.Replicates = 2
	study = f.create("eventful", spec)
	must := func(err error) {
		f.t.Helper()
		if err != nil {
			f.t.Fatal(err)
		}
	}
	add := func(trial *dparetov1.Trial, m *dparetov1.Measurement) {
		_, err := f.studies.AddMeasurement(f.t.Context(), &dparetov1.AddMeasurementRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: m,
		})
		must(err)
	}
	complete := func(trial *dparetov1.Trial, req *dparetov1.CompleteTrialRequest) {
		req.Name, req.LeaseToken = trial.GetName(), trial.GetLease().GetToken()
		_, err := f.studies.CompleteTrial(f.t.Context(), req)
		must(err)
	}
	trials := f.ask(study, "worker", 9).GetTrials()
	f.clock.Advance(1_234_567_891)
	add(trials[0], measurement(1, 0.31, 0.1+0.2))
	worker := measurement(0, 0.25, 1.0/3)
	worker.Metrics["epsilon"] = &dparetov1.MetricValue{Value: new(3.0)}
	complete(trials[0], &dparetov1.CompleteTrialRequest{Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: worker}})
	single := &dparetov1.Measurement{Metrics: map[string]*dparetov1.MetricValue{"error": {Value: new(0.0), StandardError: new(1e-300)}}}
	complete(trials[1], &dparetov1.CompleteTrialRequest{Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: single}})
	complete(trials[2], &dparetov1.CompleteTrialRequest{Outcome: &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: "diverged \u2028 \"quoted\""}}})
	complete(trials[3], &dparetov1.CompleteTrialRequest{Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "disk"}}})
	complete(trials[4], &dparetov1.CompleteTrialRequest{Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "preempted", Retryable: true}}})
	_, err := f.studies.ReleaseTrial(f.t.Context(), &dparetov1.ReleaseTrialRequest{
		Name: trials[5].GetName(), LeaseToken: trials[5].GetLease().GetToken(), Reason: "going home",
	})
	must(err)
	add(trials[6], measurement(1, 0.5, 0.5))
	_, err = f.studies.StopTrial(f.t.Context(), &dparetov1.StopTrialRequest{Name: trials[6].GetName(), Reason: "enough"})
	must(err)
	f.tell(trials[7], 0.4, 0.5)
	_, err = f.studies.DeleteTrial(f.t.Context(), &dparetov1.DeleteTrialRequest{Name: trials[7].GetName()})
	must(err)
	_, err = f.studies.CreateTrial(f.t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
		ReplicateOf: trials[0].GetName(), Labels: map[string]string{"b": "2", "a": "1"}, Note: "once more",
		Attributes: attributes(f.t, map[string]any{"host": "a", "shape": []any{1.0, nil}}), Artifacts: []*dparetov1.Artifact{{Id: "log", Uri: "s3://b/1.log"}},
	}})
	must(err)
	_, err = f.studies.CreateTrial(f.t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
		Parameters: trials[1].GetParameters(), FinalMeasurement: measurement(0, 0.2),
	}})
	must(err)
	return study, trials[8]
}

// An exported study that is imported into an empty server is exported as the same bytes,
// and workers go on with it under the leases that they have.
func TestExportImport(t *testing.T) {
	from, to := start(t), start(t)
	study, held := from.eventful()
	exported := lines(t, from.export(study))
	for _, want := range []string{`"deleted":true`, held.GetLease().GetToken(), `"stagnation"`, `"completionDigest"`, `"TRIAL_STATE_STOPPING"`, `"releases":"1"`} {
		if !strings.Contains(exported, want) {
			t.Errorf("the export lacks %s", want)
		}
	}
	resp, err := to.importRecords(parse(t, exported))
	if err != nil {
		t.Fatal(err)
	}
	if resp.GetTrials() != 11 || resp.GetExisted() || resp.GetStudy().GetName() != study {
		t.Errorf("the answer is %v", resp)
	}
	if got := lines(t, to.export(study)); got != exported {
		t.Errorf("exported again: %s\nwant: %s", got, exported)
	}
	// Again, as after a lost answer.
	resp, err = to.importRecords(parse(t, exported))
	if err != nil || !resp.GetExisted() || resp.GetTrials() != 0 {
		t.Errorf("importing again: %v, %v", resp, err)
	}
	to.restart()
	// Both go on alike.
	to.clock.Advance(1_234_567_891)
	for _, f := range []*fixture{from, to} {
		f.tell(held, 0.125, 0.25)
	}
	if a, b := lines(t, from.export(study)), lines(t, to.export(study)); a != b {
		t.Errorf("after the same result: %s\nand: %s", a, b)
	}
	if _, err = to.importRecords(parse(t, exported)); status.Code(err) != codes.AlreadyExists {
		t.Errorf("importing over a study that has changed: %v", err)
	}
	a, b := from.ask(study, "next", 1), to.ask(study, "next", 1)
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

// setTrial returns a change of the record of a trial.
func setTrial(number int, change func(*dparetov1.ExportedTrial)) func([]*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord {
	return func(records []*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord {
		for _, record := range records {
			if record.GetTrial().GetTrial().GetNumber() == int64(number) {
				change(record.GetTrial())
			}
		}
		return records
	}
}

// Nothing that a server could not have exported is imported, and nothing of it remains.
func TestImportRefuses(t *testing.T) {
	f := start(t)
	study, _ := f.eventful()
	exported := lines(t, f.export(study))
	if _, err := f.studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study}); err != nil {
		t.Fatal(err)
	}
	other := f.create("other", svtSpec())
	otherUID := f.export(other)[0].GetStudy().GetStudy().GetUid()
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
		{"trial's name", "record.trial.trial.name", setTrial(1, func(r *dparetov1.ExportedTrial) { r.Trial.Name = other + "/trials/1" })},
		{"trial's state", "record.trial.trial.state", setTrial(1, func(r *dparetov1.ExportedTrial) { r.Trial.State = 99 })},
		{"origin", "record.trial.trial.origin", setTrial(1, func(r *dparetov1.ExportedTrial) { r.Trial.Origin = 99 })},
		{"parameter", `record.trial.trial.parameters["variance"]`, setTrial(1, func(r *dparetov1.ExportedTrial) {
			r.Trial.Parameters["variance"] = &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: nan}}
		})},
		{"revision", "record.trial.trial.revision", setTrial(1, func(r *dparetov1.ExportedTrial) { r.Trial.Revision = 1 << 50 })},
		{"revision of another", "record.trial.trial.revision", setTrial(2, func(r *dparetov1.ExportedTrial) { r.Trial.Revision-- })},
		{"trial's etag", "record.trial.trial.etag", setTrial(1, func(r *dparetov1.ExportedTrial) { r.Trial.Etag = "" })},
		{"metric", `record.trial.trial.final_measurement.metrics["error"].runs[0]`, setTrial(1, func(r *dparetov1.ExportedTrial) {
			r.Trial.FinalMeasurement.Metrics["error"].Runs[0] = math.Inf(1)
		})},
		{"mean", `record.trial.trial.final_measurement.metrics["error"]`, setTrial(1, func(r *dparetov1.ExportedTrial) {
			r.Trial.FinalMeasurement.Metrics["error"].Value = new(2.0)
		})},
		{"epsilon", `record.trial.trial.computed_metrics["epsilon"].value`, setTrial(1, func(r *dparetov1.ExportedTrial) {
			r.Trial.ComputedMetrics["epsilon"].Value = &nan
		})},
		{"step", "record.trial.trial.measurements[0].step", setTrial(1, func(r *dparetov1.ExportedTrial) { r.Trial.Measurements[0].Step = -1 })},
		{"no result", "record.trial.trial.final_measurement", setTrial(1, func(r *dparetov1.ExportedTrial) { r.Trial.FinalMeasurement = nil })},
		{"completion order", "record.trial.completion_order", setTrial(1, func(r *dparetov1.ExportedTrial) { r.CompletionOrder = 2 })},
		{"completion token", "record.trial.completion_token", setTrial(1, func(r *dparetov1.ExportedTrial) { r.CompletionToken = "none" })},
		{"digest", "record.trial.completion_digest", setTrial(1, func(r *dparetov1.ExportedTrial) { r.CompletionDigest = []byte{1} })},
		{"lease", "record.trial.trial.lease", setTrial(9, func(r *dparetov1.ExportedTrial) { r.Trial.Lease = nil })},
		{"token", "record.trial.trial.lease.token", setTrial(9, func(r *dparetov1.ExportedTrial) { r.Trial.Lease.Token = "x" })},
		{"tokens", "record.trial.lease_tokens", setTrial(9, func(r *dparetov1.ExportedTrial) { r.LeaseTokens = nil })},
		{"releases", "record.trial.releases", setTrial(6, func(r *dparetov1.ExportedTrial) { r.Releases = -1 })},
		{"replicate", "record.trial.trial.replicate_of", setTrial(10, func(r *dparetov1.ExportedTrial) { r.Trial.ReplicateOf = r.GetTrial().GetName() })},
		{"replicates", "record.trial.trial.replicates", setTrial(1, func(r *dparetov1.ExportedTrial) { r.Trial.Replicates = 0 })},
		{"label", "record.trial.trial.labels", setTrial(10, func(r *dparetov1.ExportedTrial) { r.Trial.Labels[""] = "x" })},
		{"note", "record.trial.trial.note", setTrial(10, func(r *dparetov1.ExportedTrial) { r.Trial.Note = strings.Repeat("x", 10_001) })},
		{"prediction", `record.trial.trial.provenance.predictions["error"]`, setTrial(1, func(r *dparetov1.ExportedTrial) {
			r.Trial.Provenance.Predictions = map[string]*dparetov1.MetricPrediction{"error": {Median: nan}}
		})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := f.importRecords(tt.change(parse(t, exported)))
			if status.Code(err) != codes.InvalidArgument || len(violated(err)) == 0 || violated(err)[0] != tt.field {
				t.Errorf("error %v of fields %v, want one of %s", err, violated(err), tt.field)
			}
			if _, err := f.studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: study}); status.Code(err) != codes.NotFound {
				t.Errorf("the study is there: %v", err)
			}
		})
	}
	unknown := parse(t, exported)
	unknown[1].GetTrial().ProtoReflect().SetUnknown([]byte{0xf8, 0x7f, 1})
	if _, err := f.importRecords(unknown); status.Code(err) != codes.Unimplemented {
		t.Errorf("an unknown field: %v", err)
	}
	if _, err := f.importRecords(parse(t, exported)); err != nil {
		t.Errorf("the same without a fault: %v", err)
	}
	if got := lines(t, f.export(study)); got != exported {
		t.Errorf("exported again: %s\nwant: %s", got, exported)
	}
}

// A client that goes away in the middle leaves nothing, and until then nobody sees or
// creates the study.
func TestImportHalf(t *testing.T) {
	f := start(t)
	records := f.manyTrials("many", 1200)
	stream, err := f.admin.ImportStudy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range records[:1100] {
		if err := stream.Send(&dparetov1.ImportStudyRequest{Record: record}); err != nil {
			t.Fatal(err)
		}
	}
	// Messages of a stream and calls have no order: wait until the import is under way.
	var refused error
	for refused == nil || status.Code(refused) == codes.NotFound {
		_, refused = f.studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{
			StudyId: "many", Study: &dparetov1.Study{Spec: svtSpec()}, ValidateOnly: true,
		})
	}
	wantCode(t, refused, codes.Aborted, "is being imported")
	for { // also when trials are written already
		var written bool
		err := f.records.View(t.Context(), func(tx *store.ReadTx) error {
			_, err := tx.Trial("many", 1)
			written = err == nil
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if written {
			break
		}
		runtime.Gosched()
	}
	_, err = f.studies.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: "studies/many/trials/1"})
	wantCode(t, err, codes.NotFound, "studies/many/trials/1")
	if _, err := f.importRecords(records); status.Code(err) != codes.Aborted {
		t.Errorf("a second import of the study: %v", err)
	}
	f.restart() // the connection breaks
	for {
		_, err := f.studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "many", Study: &dparetov1.Study{Spec: svtSpec()}})
		if err == nil {
			break
		}
		if status.Code(err) != codes.Aborted {
			t.Fatal(err)
		}
	}
	if got := f.export("studies/many"); len(got) != 1 {
		t.Errorf("a new study has %d records", len(got))
	}
}

// manyTrials returns the records of a study with n finished trials.
func (f *fixture) manyTrials(id string, n int) []*dparetov1.ExportedRecord {
	f.t.Helper()
	study := f.create(id, svtSpec())
	f.tell(f.one(study, "worker"), 0.5)
	records := f.export(study)
	if _, err := f.studies.DeleteStudy(f.t.Context(), &dparetov1.DeleteStudyRequest{Name: study}); err != nil {
		f.t.Fatal(err)
	}
	header := records[0].GetStudy()
	header.NextTrialNumber, header.CompletedTrials = int64(n)+1, int64(n)
	header.Study.TrialCounts.Succeeded = int64(n)
	header.Study.Revision = int64(n) + 1
	all := []*dparetov1.ExportedRecord{records[0]}
	for i := range n {
		record := proto.CloneOf(records[1])
		trial := record.GetTrial()
		trial.Trial.Number, trial.CompletionOrder = int64(i)+1, int64(n-i)
		trial.Trial.Name = study + "/trials/" + strconv.Itoa(i+1)
		trial.Trial.Revision = int64(i) + 2
		trial.Trial.Etag = header.GetStudy().GetUid()[:8] + "-" + strconv.FormatInt(trial.GetTrial().GetRevision(), 16)
		all = append(all, record)
	}
	return all
}

// Many trials are written in pieces, and come out as they went in.
func TestImportMany(t *testing.T) {
	f := start(t)
	records := f.manyTrials("many", 1600)
	resp, err := f.importRecords(records)
	if err != nil || resp.GetTrials() != 1600 {
		t.Fatalf("%v, %v", resp, err)
	}
	if lines(t, f.export("studies/many")) != lines(t, records) {
		t.Error("exported again, the trials differ")
	}
}

// Two imports at a time cannot give two studies one uid.
func TestImportsOfOneUID(t *testing.T) {
	f := start(t)
	study := f.create("a", svtSpec())
	records := f.export(study)
	if _, err := f.studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study}); err != nil {
		t.Fatal(err)
	}
	first, err := f.admin.ImportStudy(t.Context())
	if err == nil {
		err = first.Send(&dparetov1.ImportStudyRequest{Record: records[0]})
	}
	for err == nil { // until it has begun
		var marked bool
		err = f.records.View(t.Context(), func(tx *store.ReadTx) (err error) { marked, err = tx.Importing("a"); return err })
		if marked {
			break
		}
		runtime.Gosched()
	}
	if err != nil {
		t.Fatal(err)
	}
	other := proto.CloneOf(records[0])
	other.GetStudy().GetStudy().Name = "studies/b"
	_, err = f.importRecords([]*dparetov1.ExportedRecord{other})
	wantCode(t, err, codes.Aborted, "uid")
	if _, err := first.CloseAndRecv(); err != nil {
		t.Error(err)
	}
	_, err = f.importRecords([]*dparetov1.ExportedRecord{other})
	wantCode(t, err, codes.InvalidArgument, "uid")
}

// A study with many trials is deleted in pieces, also if a crash comes between, and nobody
// sees what is left of it.
func TestDeleteMany(t *testing.T) {
	f := start(t)
	const study = "studies/many"
	for _, crash := range []bool{false, true} {
		if _, err := f.importRecords(f.manyTrials("many", 3000)); err != nil {
			t.Fatal(err)
		}
		if crash {
			if err := f.records.Update(t.Context(), store.In(store.StudyScope("many")), func(tx *store.Tx) error { return tx.DeleteStudy("many") }); err != nil {
				t.Fatal(err)
			}
		} else if _, err := f.studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study}); err != nil {
			t.Fatal(err)
		}
		_, err := f.studies.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: study + "/trials/3000"})
		wantCode(t, err, codes.NotFound, "")
		f.restart()
		if counts := f.trialCount(); counts != 0 && !crash {
			t.Errorf("%d trials are left", counts)
		}
		for f.trialCount() > 0 { // the server removes them in the background
			runtime.Gosched()
		}
		if faults := f.records.Check(t.Context()); len(faults) > 0 {
			t.Error(faults)
		}
	}
}

// trialCount returns the number of trials in the store.
func (f *fixture) trialCount() int64 {
	f.t.Helper()
	counts, err := f.records.Counts(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return counts["trial"].Keys
}

// What a study that is not there is answered with names it, and nothing else.
func TestExportUnknown(t *testing.T) {
	f := start(t)
	stream, err := f.admin.ExportStudy(t.Context(), &dparetov1.ExportStudyRequest{Name: "studies/none"})
	if err == nil {
		_, err = stream.Recv()
	}
	if got := status.Convert(err); got.Code() != codes.NotFound || got.Message() != "study studies/none does not exist" {
		t.Errorf("%v", err)
	}
}

// A backup has everything that was acknowledged before, and its digest.
func TestBackupStore(t *testing.T) {
	f := start(t)
	study, _ := f.eventful()
	want := lines(t, f.export(study))
	stream, err := f.admin.BackupStore(t.Context(), &dparetov1.BackupStoreRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var data []byte
	var last *dparetov1.BackupStoreResponse
	for last.GetTotalBytes() == 0 {
		if last, err = stream.Recv(); err != nil {
			t.Fatal(err)
		}
		data = append(data, last.GetData()...)
		f.one(study, "meanwhile") // the server goes on
	}
	sum := sha256.Sum256(data)
	if last.GetTotalBytes() != int64(len(data)) || !bytes.Equal(last.GetSha256(), sum[:]) {
		t.Errorf("%d bytes with digest %x, the server says %d and %x", len(data), sum, last.GetTotalBytes(), last.GetSha256())
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last message: %v", err)
	}
	f.stop()
	f.path = filepath.Join(t.TempDir(), "restored.db")
	opentest.Restore(t, data, f.path)
	f.serve()
	if got := lines(t, f.export(study)); got != want {
		t.Errorf("restored: %s\nwant: %s", got, want)
	}
}

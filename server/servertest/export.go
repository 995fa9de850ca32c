package servertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/store"
)

// Export returns the records of a study.
func (f *Fixture) Export(study string) []*dparetov1.ExportedRecord {
	f.T.Helper()
	stream, err := f.Admin.ExportStudy(f.T.Context(), &dparetov1.ExportStudyRequest{Name: study})
	require.NoError(f.T, err)
	var records []*dparetov1.ExportedRecord
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return records
		}
		require.NoError(f.T, err)
		records = append(records, resp.GetRecord())
	}
}

// ImportRecords imports records, after creating the ledgers that create would.
func (f *Fixture) ImportRecords(records []*dparetov1.ExportedRecord) (*dparetov1.ImportStudyResponse, error) {
	f.T.Helper()
	if len(records) > 0 {
		f.OpenLedgers(f.T.Context(), records[0].GetStudy().GetStudy().GetSpec())
	}
	stream, err := f.Admin.ImportStudy(f.T.Context())
	require.NoError(f.T, err)
	for _, record := range records {
		if err := stream.Send(&dparetov1.ImportStudyRequest{Record: record}); err != nil {
			break // the answer says why
		}
	}
	return stream.CloseAndRecv()
}

// Place writes the records of a study to the store as a copy of its store would hold them. The study
// may have private_mode or random_stopping, which no import takes.
func (f *Fixture) Place(records []*dparetov1.ExportedRecord) {
	f.T.Helper()
	exported := records[0].GetStudy()
	id := resource.StudyID(exported.GetStudy().GetName())
	convert := func(from, to proto.Message) { // of fields of the same names
		text, err := protojson.Marshal(from)
		if err == nil {
			err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, to)
		}
		require.NoError(f.T, err)
	}
	require.NoError(f.T, f.Records.Update(f.T.Context(), store.In(store.StudyScope(id), store.StoreScope), func(tx *store.Tx) error {
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
	}))
}

// replace deletes a study and places its records, changed, in its stead.
func (f *Fixture) replace(study string, change func([]*dparetov1.ExportedRecord)) {
	f.T.Helper()
	records := f.Export(study)
	change(records)
	if _, err := f.Studies.DeleteStudy(f.T.Context(), &dparetov1.DeleteStudyRequest{Name: study}); err != nil {
		f.T.Fatal(err)
	}
	f.Place(records)
}

// Lines returns records as they are in a file.
func Lines(t *testing.T, records []*dparetov1.ExportedRecord) string {
	t.Helper()
	var all bytes.Buffer
	for _, record := range records {
		line, err := protojson.Marshal(record)
		require.NoError(t, err)
		if err := json.Compact(&all, line); err != nil { // protojson puts spaces in at random
			t.Fatal(err)
		}
		all.WriteByte('\n')
	}
	return all.String()
}

// Parse is the inverse of lines.
func Parse(t *testing.T, text string) []*dparetov1.ExportedRecord {
	t.Helper()
	var records []*dparetov1.ExportedRecord
	for line := range strings.Lines(text) {
		record := new(dparetov1.ExportedRecord)
		require.NoError(t, protojson.Unmarshal([]byte(line), record))
		records = append(records, record)
	}
	return records
}

// Eventful makes a study with trials in every state, with every kind of history.
func (f *Fixture) Eventful() (study string, held *dparetov1.Trial) {
	f.T.Helper()
	spec := SGDSpec()
	spec.Seed = nil
	spec.Budget = &dparetov1.Budget{MaxStagnantTrials: 50}
	spec.Replicates = 2
	study = f.Create("eventful", spec)
	must := func(err error) {
		f.T.Helper()
		require.NoError(f.T, err)
	}
	add := func(trial *dparetov1.Trial, m *dparetov1.Measurement) {
		_, err := f.Studies.AddMeasurement(f.T.Context(), &dparetov1.AddMeasurementRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: m,
		})
		must(err)
	}
	complete := func(trial *dparetov1.Trial, req *dparetov1.CompleteTrialRequest) {
		req.Name, req.LeaseToken = trial.GetName(), trial.GetLease().GetToken()
		_, err := f.Studies.CompleteTrial(f.T.Context(), req)
		must(err)
	}
	trials := f.Ask(study, "worker", 9).GetTrials()
	f.Clock.Advance(1_234_567_891)
	add(trials[0], Measurement(1, 0.31, 0.1+0.2))
	worker := Measurement(0, 0.25, 1.0/3)
	worker.Metrics["epsilon"] = &dparetov1.MetricValue{Value: new(3.0)}
	complete(trials[0], &dparetov1.CompleteTrialRequest{Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: worker}})
	single := &dparetov1.Measurement{Metrics: map[string]*dparetov1.MetricValue{"error": {Value: new(0.0), StandardError: new(1e-300)}}}
	complete(trials[1], &dparetov1.CompleteTrialRequest{Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: single}})
	complete(trials[2], &dparetov1.CompleteTrialRequest{Outcome: &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: "diverged \u2028 \"quoted\""}}})
	complete(trials[3], &dparetov1.CompleteTrialRequest{Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "disk"}}})
	complete(trials[4], &dparetov1.CompleteTrialRequest{Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "preempted", Retryable: true}}})
	_, err := f.Studies.ReleaseTrial(f.T.Context(), &dparetov1.ReleaseTrialRequest{
		Name: trials[5].GetName(), LeaseToken: trials[5].GetLease().GetToken(), Reason: "going home",
	})
	must(err)
	add(trials[6], Measurement(1, 0.5, 0.5))
	_, err = f.Studies.StopTrial(f.T.Context(), &dparetov1.StopTrialRequest{Name: trials[6].GetName(), Reason: "enough"})
	must(err)
	f.Tell(trials[7], 0.4, 0.5)
	_, err = f.Studies.DeleteTrial(f.T.Context(), &dparetov1.DeleteTrialRequest{Name: trials[7].GetName()})
	must(err)
	_, err = f.Studies.CreateTrial(f.T.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
		ReplicateOf: trials[0].GetName(), Labels: map[string]string{"b": "2", "a": "1"}, Note: "once more",
		Attributes: Attributes(f.T, map[string]any{"host": "a", "shape": []any{1.0, nil}}), Artifacts: []*dparetov1.Artifact{{Id: "log", Uri: "s3://b/1.log"}},
	}})
	must(err)
	_, err = f.Studies.CreateTrial(f.T.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
		Parameters: trials[1].GetParameters(), FinalMeasurement: Measurement(0, 0.2),
	}})
	must(err)
	return study, trials[8]
}

// SetTrial returns a change of the record of a trial.
func SetTrial(number int, change func(*dparetov1.ExportedTrial)) func([]*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord {
	return func(records []*dparetov1.ExportedRecord) []*dparetov1.ExportedRecord {
		for _, record := range records {
			if record.GetTrial().GetTrial().GetNumber() == int64(number) {
				change(record.GetTrial())
			}
		}
		return records
	}
}

// ManyTrials returns the records of a study with n finished trials.
func (f *Fixture) ManyTrials(id string, n int) []*dparetov1.ExportedRecord {
	f.T.Helper()
	study := f.Create(id, SVTSpec())
	f.Tell(f.One(study, "worker"), 0.5)
	records := f.Export(study)
	if _, err := f.Studies.DeleteStudy(f.T.Context(), &dparetov1.DeleteStudyRequest{Name: study}); err != nil {
		f.T.Fatal(err)
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

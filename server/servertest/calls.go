package servertest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// Analyses returns a client of the analyses.
func (f *Fixture) Analyses() dparetov1.AnalysisServiceClient {
	return dparetov1.NewAnalysisServiceClient(f.Conn)
}

// AskFor asks for trials under conditions.
func (f *Fixture) AskFor(study, worker string, conditions ...*dparetov1.SuggestionCondition) *dparetov1.SuggestTrialsResponse {
	f.T.Helper()
	resp, err := f.Studies.SuggestTrials(f.T.Context(), &dparetov1.SuggestTrialsRequest{
		Parent: study, WorkerId: worker, Count: int32(len(conditions)), Conditions: conditions,
	})
	require.NoError(f.T, err)
	return resp
}

// Prepared creates a study and waits until it is paid for.
func (f *Fixture) Prepared(id string, spec *dparetov1.StudySpec) *dparetov1.Study {
	f.T.Helper()
	return f.Settled(f.Create(id, spec))
}

// Settled returns a study once it is not being prepared any more.
func (f *Fixture) Settled(name string) *dparetov1.Study {
	f.T.Helper()
	for {
		study := f.Study(name)
		if study.GetState() != dparetov1.StudyState_STUDY_STATE_PREPARING {
			return study
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Respec changes the spec of a study.
func (f *Fixture) Respec(study string, change func(*dparetov1.StudySpec)) error {
	f.T.Helper()
	s := f.Study(study)
	change(s.GetSpec())
	_, err := f.Update(s, "spec")
	return err
}

// ImportTrial adds a completed trial of the sparse vector study with a cutoff of 4.
func (f *Fixture) ImportTrial(study string, noise float64, errors ...float64) *dparetov1.Trial {
	f.T.Helper()
	resp, err := f.Studies.CreateTrial(f.T.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
		Parameters: map[string]*dparetov1.Value{
			"cutoff":      {Kind: &dparetov1.Value_IntValue{IntValue: 4}},
			"noise_scale": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: noise}},
		},
		FinalMeasurement: Measurement(0, errors...),
	}})
	require.NoError(f.T, err)
	return resp.GetTrial()
}

// Front returns a front of a study.
func (f *Fixture) Front(study string, kind dparetov1.FrontKind) *dparetov1.Front {
	f.T.Helper()
	resp, err := f.Fronts.GetFront(f.T.Context(), &dparetov1.GetFrontRequest{Name: study, Kind: kind})
	require.NoError(f.T, err)
	return resp.GetFront()
}

// Ledger returns the cost of a study at a δ, 0 for its own.
func (f *Fixture) Ledger(study string, delta float64) *dparetov1.GetPrivacyLedgerResponse {
	f.T.Helper()
	resp, err := dparetov1.NewPrivacyServiceClient(f.Conn).GetPrivacyLedger(f.T.Context(), &dparetov1.GetPrivacyLedgerRequest{Name: study, Delta: delta})
	require.NoError(f.T, err)
	return resp
}

// Pages reads all pages of trials.
func (f *Fixture) Pages(req *dparetov1.ListTrialsRequest) (trials []*dparetov1.Trial, revision int64) {
	f.T.Helper()
	req.PageToken = ""
	for {
		resp, err := f.Studies.ListTrials(f.T.Context(), req)
		require.NoError(f.T, err)
		if n := len(resp.GetTrials()); n > int(req.GetPageSize()) {
			f.T.Errorf("%d trials on a page of %d", n, req.GetPageSize())
		}
		trials = append(trials, resp.GetTrials()...)
		revision = resp.GetRevision()
		if req.PageToken = resp.GetNextPageToken(); req.GetPageToken() == "" {
			return trials, revision
		}
	}
}

// OpenLedgers creates the ledgers that a study pays when it is created, with budgets that do not end,
// unless they exist.
func (f *Fixture) OpenLedgers(ctx context.Context, spec *dparetov1.StudySpec) {
	f.T.Helper()
	if spec.GetPrivateMode() == nil && spec.GetRandomStopping() == nil {
		return
	}
	for _, l := range []struct {
		name      string
		records   int64
		adjacency dparetov1.Adjacency
	}{
		{spec.GetTestLedger(), testSetSize(spec), dparetov1.Adjacency_ADJACENCY_REPLACE_ONE},
		{spec.GetTrainLedger(), 1, trainAdjacency(spec)},
	} {
		if l.name == "" {
			continue
		}
		_, err := f.Releases().CreateLedger(ctx, &dparetov1.CreateLedgerRequest{
			LedgerId: strings.TrimPrefix(l.name, "ledgers/"),
			Ledger:   &dparetov1.Ledger{Records: l.records, Epsilon: 1e9, Delta: 0.99, Adjacency: l.adjacency},
		})
		if code := status.Code(err); code != codes.OK && code != codes.AlreadyExists {
			f.T.Fatal(err)
		}
	}
}

// Checkpoints reports every step of a trial of WithCheckpoints before its end, and returns how many of
// the measurements are kept.
func (f *Fixture) Checkpoints(trial *dparetov1.Trial) int {
	f.T.Helper()
	kept := 0
	for step := int64(1); step < trial.GetParameters()["epochs"].GetIntValue(); step++ {
		_, err := f.Studies.AddMeasurement(f.T.Context(), &dparetov1.AddMeasurementRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: Measurement(step, 0.5),
		})
		if err == nil {
			kept++
		} else if status.Code(err) != codes.ResourceExhausted {
			f.T.Fatal(err)
		}
	}
	return kept
}

// Exported returns the contents of the export of a study.
func (f *Fixture) Exported(study string) (*dparetov1.ExportedStudy, []*dparetov1.ExportedTrial) {
	f.T.Helper()
	var s *dparetov1.ExportedStudy
	var trials []*dparetov1.ExportedTrial
	for _, r := range f.Export(study) {
		if r.GetStudy() != nil {
			s = r.GetStudy()
		} else {
			trials = append(trials, r.GetTrial())
		}
	}
	return s, trials
}

// TrialsOfSparse imports many runs.
func (f *Fixture) TrialsOfSparse(study string) {
	f.T.Helper()
	for i := range 40 {
		cutoff, epsilon := int64(1+(7*i)%30), math.Pow(10, float64((11*i)%40)/40)
		noise := SparseEpsilon(cutoff, 1) / epsilon
		mean := SparseError(cutoff, noise)
		if _, err := f.Studies.CreateTrial(f.T.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
			Parameters: Sparse(cutoff, noise), FinalMeasurement: Measurement(0, mean-0.003, mean+0.003),
		}}); err != nil {
			f.T.Fatal(err)
		}
	}
}

// RunAll runs a study to its end, with scores by the number of the trial, NaN for
// infeasible ones, and returns the number of trials.
func (f *Fixture) RunAll(study string, score func(trial *dparetov1.Trial) float64) int64 {
	f.T.Helper()
	for n := int64(0); ; n++ {
		resp := f.Ask(study, "worker", 1)
		if len(resp.GetTrials()) == 0 {
			if resp.GetEndReason() != dparetov1.EndReason_END_REASON_BUDGET_SPENT {
				f.T.Fatalf("end reason %v", resp.GetEndReason())
			}
			return n
		}
		trial := resp.GetTrials()[0]
		if x := score(trial); !math.IsNaN(x) {
			f.Tell(trial, x)
			continue
		}
		if _, err := f.Studies.CompleteTrial(f.T.Context(), &dparetov1.CompleteTrialRequest{
			Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
			Outcome: &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: "diverged"}},
		}); err != nil {
			f.T.Fatal(err)
		}
	}
}

// ReleaseBest releases the best of a study.
func (f *Fixture) ReleaseBest(study string) (*dparetov1.Release, error) {
	f.T.Helper()
	resp, err := dparetov1.NewReleaseServiceClient(f.Conn).ReleaseBest(f.T.Context(), &dparetov1.ReleaseBestRequest{Name: study, Metric: "error"})
	return resp.GetRelease(), err
}

// WithTrials creates a study with random stopping and a number of trials that is not drawn.
func (f *Fixture) WithTrials(id string, s *dparetov1.StudySpec, trials int64) string {
	f.T.Helper()
	study := f.Create(id, s)
	f.replace(study, func(r []*dparetov1.ExportedRecord) { r[0].GetStudy().GetRandomStopping().Trials = trials })
	return study
}

// Reaccount computes ε of a study anew with another PrivacySpec.
func (f *Fixture) Reaccount(study string, privacy *dparetov1.PrivacySpec, validateOnly bool) *dparetov1.ReaccountStudyResponse {
	f.T.Helper()
	resp, err := dparetov1.NewPrivacyServiceClient(f.Conn).ReaccountStudy(f.T.Context(), &dparetov1.ReaccountStudyRequest{
		Name: study, Metric: "epsilon", Privacy: privacy, ValidateOnly: validateOnly,
	})
	require.NoError(f.T, err)
	return resp
}

// Releases returns a client of releases and ledgers.
func (f *Fixture) Releases() dparetov1.ReleaseServiceClient {
	return dparetov1.NewReleaseServiceClient(f.Conn)
}

// NewLedger creates a ledger of TestRecords records with δ = 1e-5 and returns its name.
func (f *Fixture) NewLedger(id string, epsilon float64) string {
	f.T.Helper()
	resp, err := f.Releases().CreateLedger(f.T.Context(), &dparetov1.CreateLedgerRequest{LedgerId: id, Ledger: &dparetov1.Ledger{
		Records: TestRecords, Epsilon: epsilon, Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
	}})
	require.NoError(f.T, err)
	return resp.GetLedger().GetName()
}

// GetLedger reads a ledger.
func (f *Fixture) GetLedger(name string) *dparetov1.Ledger {
	f.T.Helper()
	resp, err := f.Releases().GetLedger(context.Background(), &dparetov1.GetLedgerRequest{Name: name})
	require.NoError(f.T, err)
	return resp.GetLedger()
}

// Charges returns the charges of a ledger.
func (f *Fixture) Charges(ledger string) []*dparetov1.Charge {
	f.T.Helper()
	resp, err := f.Releases().ListCharges(f.T.Context(), &dparetov1.ListChargesRequest{Parent: ledger})
	require.NoError(f.T, err)
	return resp.GetCharges()
}

// Fixed creates the complete study studies/s of a random design whose errors are those given.
func (f *Fixture) Fixed(ledger string, errors ...float64) string {
	f.T.Helper()
	study := f.Create("s", FixedSpec(int64(len(errors)), ledger))
	for _, e := range errors {
		f.Tell(f.One(study, "w"), e)
	}
	return study
}

// AllTrials returns the trials of a study.
func (f *Fixture) AllTrials(study string) []*dparetov1.Trial {
	f.T.Helper()
	resp, err := f.Studies.ListTrials(f.T.Context(), &dparetov1.ListTrialsRequest{Parent: study})
	require.NoError(f.T, err)
	return resp.GetTrials()
}

// Call calls a method of StudyService by the type of its request.
func (f *Fixture) Call(ctx context.Context, req proto.Message) (proto.Message, error) {
	name := strings.TrimSuffix(string(req.ProtoReflect().Descriptor().Name()), "Request")
	method := dparetov1.File_dpareto_v1_study_service_proto.Services().Get(0).Methods().ByName(protoreflect.Name(name))
	resp := map[string]proto.Message{
		"CreateStudy": new(dparetov1.CreateStudyResponse), "DeleteStudy": new(dparetov1.DeleteStudyResponse),
		"SuggestTrials": new(dparetov1.SuggestTrialsResponse), "CreateTrial": new(dparetov1.CreateTrialResponse),
		"DeleteTrial": new(dparetov1.DeleteTrialResponse), "AddMeasurement": new(dparetov1.AddMeasurementResponse),
		"RenewLeases": new(dparetov1.RenewLeasesResponse), "CompleteTrial": new(dparetov1.CompleteTrialResponse),
		"ReleaseTrial": new(dparetov1.ReleaseTrialResponse), "StopTrial": new(dparetov1.StopTrialResponse),
		"UpdateStudy": new(dparetov1.UpdateStudyResponse), "PauseStudy": new(dparetov1.PauseStudyResponse),
		"ResumeStudy": new(dparetov1.ResumeStudyResponse), "UpdateTrial": new(dparetov1.UpdateTrialResponse),
	}[name]
	return resp, f.Conn.Invoke(ctx, fmt.Sprintf("/%s/%s", method.Parent().FullName(), name), req, resp)
}

// Revision reads the revision of a study, 0 if there is none.
func (f *Fixture) Revision(study string) int64 {
	resp, err := f.Studies.GetStudy(f.T.Context(), &dparetov1.GetStudyRequest{Name: study})
	if err != nil {
		return 0
	}
	return resp.GetStudy().GetRevision()
}

// Create creates a study, and the ledgers that it pays when it is created, and returns its name.
func (f *Fixture) Create(id string, spec *dparetov1.StudySpec) string {
	f.T.Helper()
	f.OpenLedgers(f.T.Context(), spec)
	resp, err := f.Studies.CreateStudy(f.T.Context(), &dparetov1.CreateStudyRequest{
		StudyId: id, Study: &dparetov1.Study{Spec: spec},
	})
	require.NoError(f.T, err)
	if resp.GetStudy().GetState() == dparetov1.StudyState_STUDY_STATE_PREPARING {
		f.Settled(resp.GetStudy().GetName())
	}
	return resp.GetStudy().GetName()
}

// Ask asks for trials.
func (f *Fixture) Ask(study, worker string, count int32) *dparetov1.SuggestTrialsResponse {
	f.T.Helper()
	resp, err := f.Studies.SuggestTrials(f.T.Context(), &dparetov1.SuggestTrialsRequest{
		Parent: study, WorkerId: worker, Count: count,
	})
	require.NoError(f.T, err)
	return resp
}

// One asks for one trial.
func (f *Fixture) One(study, worker string) *dparetov1.Trial {
	f.T.Helper()
	resp := f.Ask(study, worker, 1)
	if len(resp.GetTrials()) != 1 {
		f.T.Fatalf("%d trials, end reason %s", len(resp.GetTrials()), resp.GetEndReason())
	}
	return resp.GetTrials()[0]
}

// Tell completes a trial.
func (f *Fixture) Tell(trial *dparetov1.Trial, errors ...float64) *dparetov1.Trial {
	f.T.Helper()
	resp, err := f.Studies.CompleteTrial(f.T.Context(), Completion(trial, errors...))
	require.NoError(f.T, err)
	return resp.GetTrial()
}

// Trial reads a trial.
func (f *Fixture) Trial(name string) *dparetov1.Trial {
	f.T.Helper()
	resp, err := f.Studies.GetTrial(f.T.Context(), &dparetov1.GetTrialRequest{Name: name})
	require.NoError(f.T, err)
	return resp.GetTrial()
}

// WantCode checks the code of an error and that its text names something.
func WantCode(t testing.TB, err error, code codes.Code, text string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want code %s and the text %q", err, code, text)
	}
}

// Violated returns the fields named by an INVALID_ARGUMENT error.
func Violated(err error) []string {
	var fields []string
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				fields = append(fields, v.GetField())
			}
		}
	}
	slices.Sort(fields)
	return fields
}

// Study reads a study.
func (f *Fixture) Study(name string) *dparetov1.Study {
	f.T.Helper()
	resp, err := f.Studies.GetStudy(f.T.Context(), &dparetov1.GetStudyRequest{Name: name})
	require.NoError(f.T, err)
	return resp.GetStudy()
}

// Update changes fields of a study.
func (f *Fixture) Update(study *dparetov1.Study, paths ...string) (*dparetov1.Study, error) {
	resp, err := f.Studies.UpdateStudy(f.T.Context(), &dparetov1.UpdateStudyRequest{Study: study, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}})
	return resp.GetStudy(), err
}

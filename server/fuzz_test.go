package server_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/internal/testsize"
	"github.com/dpareto/dpareto/server/servertest"
)

// Placeholders in seeds: the trial that the fuzzing worker holds, its token, and a trial
// that is complete.
const (
	heldTrial  = "studies/full/trials/HELD"
	leaseToken = "TOKEN"
	doneTrial  = "studies/full/trials/DONE"
)

// fuzzer sends requests to a server, and checks what they leave behind.
type fuzzer struct {
	*servertest.Fixture
	held *dparetov1.Trial
	done *dparetov1.Trial
}

// prepare has the study of fullStudy exist, active, with a trial that is held and one
// that is complete.
func (f *fuzzer) prepare(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	full := servertest.FullRequest(t)
	got, err := f.Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: "studies/full"})
	if err == nil && !proto.Equal(got.GetStudy().GetSpec(), full.GetStudy().GetSpec()) {
		err = f.remove(ctx, "studies/full")
		got = nil
	}
	if got == nil {
		_, err = f.Studies.CreateStudy(ctx, full)
		f.done = nil
	}
	require.NoError(t, err)
	if got.GetStudy().GetState() == dparetov1.StudyState_STUDY_STATE_PAUSED {
		require.NoError(t, require.ErrOf(f.Studies.ResumeStudy(ctx, &dparetov1.ResumeStudyRequest{Name: "studies/full"})))
	}
	resp, err := f.Studies.SuggestTrials(ctx, &dparetov1.SuggestTrialsRequest{Parent: "studies/full", WorkerId: "fuzzer"})
	require.NoError(t, err)
	if len(resp.GetTrials()) == 0 { // the budget is spent
		require.NoError(t, f.remove(ctx, "studies/full"))
		f.prepare(t)
		return
	}
	f.held = resp.GetTrials()[0]
	f.prepareReleases(t)
	if f.done != nil {
		_, err := f.Studies.GetTrial(ctx, &dparetov1.GetTrialRequest{Name: f.done.GetName()})
		if status.Code(err) == codes.NotFound {
			f.done = nil
		}
	}
	if f.done == nil {
		value := 0.2
		done, err := f.Studies.CreateTrial(ctx, &dparetov1.CreateTrialRequest{Parent: "studies/full", Trial: &dparetov1.Trial{
			Parameters: servertest.FullParameters(), FinalMeasurement: &dparetov1.Measurement{Metrics: map[string]*dparetov1.MetricValue{
				"error": {Runs: []float64{0.1, 0.3}}, "seconds": {Runs: []float64{value, value}},
			}},
		}})
		require.NoError(t, err)
		f.done = done.GetTrial()
	}
}

// prepareReleases has a ledger exist, and a complete study of a fixed design with a release
// that is charged to it.
func (f *fuzzer) prepareReleases(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	const name = "studies/fixed"
	if _, err := f.Releases().GetRelease(ctx, &dparetov1.GetReleaseRequest{Name: name + "/releases/1"}); err == nil {
		return
	}
	_, err := f.Releases().CreateLedger(ctx, &dparetov1.CreateLedgerRequest{LedgerId: "full", Ledger: &dparetov1.Ledger{
		Records: servertest.TestRecords, Epsilon: 1e6, Delta: 1e-3, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
	}})
	require.NoError(t, err)
	if _, err := f.Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: name}); err == nil {
		require.NoError(t, f.remove(ctx, name))
	}
	_, err = f.Studies.CreateStudy(ctx, &dparetov1.CreateStudyRequest{StudyId: "fixed", Study: &dparetov1.Study{Spec: servertest.FixedSpec(2, "ledgers/full")}})
	require.NoError(t, err)
	asked, err := f.Studies.SuggestTrials(ctx, &dparetov1.SuggestTrialsRequest{Parent: name, WorkerId: "fixed", Count: 2})
	require.NoError(t, err)
	for _, trial := range asked.GetTrials() {
		require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(ctx, servertest.Completion(trial, 0.3))))
	}
	require.NoError(t, require.ErrOf(f.Releases().ReleaseBest(ctx, &dparetov1.ReleaseBestRequest{Name: name, Metric: "error", Epsilon: 1e-3})))
}

func (f *fuzzer) remove(ctx context.Context, name string) error {
	_, err := f.Studies.DeleteStudy(ctx, &dparetov1.DeleteStudyRequest{Name: name})
	return err
}

// fill replaces the placeholders in a message.
func (f *fuzzer) fill(m protoreflect.Message) {
	replacer := strings.NewReplacer(heldTrial, f.held.GetName(), doneTrial, f.done.GetName(), leaseToken, f.held.GetLease().GetToken())
	fillStrings(m, replacer)
}

func fillStrings(m protoreflect.Message, replacer *strings.Replacer) {
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.IsMap():
			entries := m.Mutable(field).Map()
			filled := make(map[string]protoreflect.Value)
			entries.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				if field.MapKey().Kind() == protoreflect.StringKind && field.MapValue().Kind() == protoreflect.StringKind {
					filled[key.String()] = value
				}
				return true
			})
			for key, value := range filled {
				entries.Clear(protoreflect.ValueOfString(key).MapKey())
				entries.Set(protoreflect.ValueOfString(replacer.Replace(key)).MapKey(), protoreflect.ValueOfString(replacer.Replace(value.String())))
			}
		case field.IsList():
			for i := 0; field.Message() != nil && i < v.List().Len(); i++ {
				fillStrings(v.List().Get(i).Message(), replacer)
			}
		case field.Message() != nil:
			fillStrings(v.Message(), replacer)
		case field.Kind() == protoreflect.StringKind:
			m.Set(field, protoreflect.ValueOfString(replacer.Replace(v.String())))
		}
		return true
	})
}

// send sends a request. Whatever it is, the server answers with an error that is meant
// for clients, its store is sound, and every study in it can be worked on.
func (f *fuzzer) send(t testing.TB, method protoreflect.MethodDescriptor, req proto.Message) codes.Code {
	t.Helper()
	f.prepare(t)
	f.fill(req.ProtoReflect())
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if method.Name() == "WatchStudy" { // which does not end by itself
		watch, stop := context.WithTimeout(ctx, 20*time.Millisecond)
		defer stop()
		ctx = watch
	}
	err := call(ctx, t, f.Conn, method, req)
	code := status.Code(err)
	if code == codes.Unimplemented && strings.Contains(err.Error(), "is not supported by this version") {
		code = codes.InvalidArgument // a field from the future
	}
	switch code {
	case codes.Internal, codes.Unknown, codes.DataLoss, codes.Unavailable, codes.Unimplemented:
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("%s: %v\n%v", method.FullName(), err, req)
		}
	default:
	}
	f.check(t)
	return status.Code(err)
}

// check checks the store and its studies, and removes those that a request created.
func (f *fuzzer) check(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	for _, fault := range f.Records.Check(ctx) {
		t.Errorf("store: %v", fault)
	}
	list, err := f.Studies.ListStudies(ctx, &dparetov1.ListStudiesRequest{})
	require.NoError(t, err)
	for _, study := range list.GetStudies() {
		_, err := f.Studies.SuggestTrials(ctx, &dparetov1.SuggestTrialsRequest{Parent: study.GetName(), WorkerId: "checker", Count: 2})
		if err != nil {
			t.Errorf("%s takes no suggestion: %v\n%v", study.GetName(), err, study)
		}
		if study.GetName() == "studies/full" || study.GetName() == "studies/fixed" {
			continue
		}
		if err := f.remove(ctx, study.GetName()); err != nil {
			t.Errorf("remove %s: %v", study.GetName(), err)
		}
	}
}

// seeds returns valid requests to a method, some of them with placeholders.
func seeds(t testing.TB, method protoreflect.MethodDescriptor) []proto.Message {
	t.Helper()
	value := 0.2
	measured := func(step int64) *dparetov1.Measurement {
		return &dparetov1.Measurement{Step: step, Metrics: map[string]*dparetov1.MetricValue{
			"error": {Runs: []float64{0.1, 0.3}}, "seconds": {Runs: []float64{value, value}},
		}}
	}
	switch method.Name() {
	case "CreateStudy":
		svt, sgd := servertest.SVTSpec(), servertest.SGDSpec()
		other := servertest.FullRequest(t)
		other.StudyId = "other"
		return []proto.Message{
			other,
			&dparetov1.CreateStudyRequest{StudyId: "svt", Study: &dparetov1.Study{Spec: svt}},
			&dparetov1.CreateStudyRequest{StudyId: "sgd", Study: &dparetov1.Study{Spec: sgd}, ValidateOnly: true},
		}
	case "CreateTrial":
		return []proto.Message{
			&dparetov1.CreateTrialRequest{Parent: "studies/full", Trial: &dparetov1.Trial{Parameters: servertest.FullParameters(), FinalMeasurement: measured(0)}},
			&dparetov1.CreateTrialRequest{Parent: "studies/full", Trial: &dparetov1.Trial{ReplicateOf: heldTrial}},
		}
	case "SuggestTrials":
		return []proto.Message{&dparetov1.SuggestTrialsRequest{
			Parent: "studies/full", WorkerId: "w", Count: 1, RequestId: "suggest",
			Conditions: []*dparetov1.SuggestionCondition{{
				FixedParameters: map[string]*dparetov1.Value{"optimizer": {Kind: &dparetov1.Value_StringValue{StringValue: "sgd"}}},
				AtMost:          map[string]float64{"epsilon": 5},
			}},
		}}
	case "AddMeasurement":
		return []proto.Message{&dparetov1.AddMeasurementRequest{Name: heldTrial, LeaseToken: leaseToken, Measurement: measured(1), RequestId: "r"}}
	case "RenewLeases":
		return []proto.Message{&dparetov1.RenewLeasesRequest{Parent: "studies/full", LeaseTokens: map[string]string{heldTrial: leaseToken}}}
	case "CompleteTrial":
		return []proto.Message{
			&dparetov1.CompleteTrialRequest{Name: heldTrial, LeaseToken: leaseToken, Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: measured(0)}},
			&dparetov1.CompleteTrialRequest{Name: heldTrial, LeaseToken: leaseToken, Outcome: &dparetov1.CompleteTrialRequest_UseLastMeasurement{}},
			&dparetov1.CompleteTrialRequest{Name: heldTrial, LeaseToken: leaseToken, Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "r", Retryable: true}}},
			&dparetov1.CompleteTrialRequest{Name: heldTrial, LeaseToken: leaseToken, Outcome: &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: "r"}}},
		}
	case "ReleaseTrial":
		return []proto.Message{&dparetov1.ReleaseTrialRequest{Name: heldTrial, LeaseToken: leaseToken, Reason: "r"}}
	case "AnalyzeImportance":
		return []proto.Message{&dparetov1.AnalyzeImportanceRequest{Name: "studies/full"}}
	case "AnalyzeSlices":
		return []proto.Message{&dparetov1.AnalyzeSlicesRequest{Name: "studies/full", Parameters: servertest.FullParameters(), Points: 5}}
	case "AnalyzeContour":
		return []proto.Message{&dparetov1.AnalyzeContourRequest{Name: "studies/full", Metric: "error", XParameter: "rate", YParameter: "noise", Parameters: servertest.FullParameters(), Points: 3}}
	case "CrossValidate":
		return []proto.Message{&dparetov1.CrossValidateRequest{Name: "studies/full"}}
	case "ForecastGain":
		return []proto.Message{&dparetov1.ForecastGainRequest{Name: "studies/full", Runs: 2}}
	case "GetFront":
		return []proto.Message{&dparetov1.GetFrontRequest{Name: "studies/full", Kind: dparetov1.FrontKind_FRONT_KIND_OBSERVED}}
	case "QueryFront":
		return []proto.Message{&dparetov1.QueryFrontRequest{Name: "studies/full", Bounds: map[string]float64{"epsilon": 1}, Confidence: 0.9}}
	case "PredictMetrics":
		return []proto.Message{&dparetov1.PredictMetricsRequest{Name: "studies/full", Configurations: []*dparetov1.Configuration{{Parameters: servertest.FullParameters()}}}}
	case "UpdateStudy":
		study := servertest.FullRequest(t).GetStudy()
		study.Name = "studies/full"
		study.Spec.Parameters[1].GetIntegerDomain().Max = 1024
		req := new(dparetov1.UpdateStudyRequest)
		req.Study = study
		req.UpdateMask = &fieldmaskpb.FieldMask{Paths: []string{"display_name", "labels", "spec.parameters"}}
		return []proto.Message{req}
	case "ReaccountStudy":
		privacy := servertest.FullRequest(t).GetStudy().GetSpec().GetMetrics()[0].GetComputed().GetPrivacy()
		privacy.Delta = 1e-6
		return []proto.Message{&dparetov1.ReaccountStudyRequest{Name: "studies/full", Metric: "epsilon", Privacy: privacy}}
	case "UpdateTrial":
		req := &dparetov1.UpdateTrialRequest{Trial: &dparetov1.Trial{Name: doneTrial, Note: "n", Labels: map[string]string{"k": "v"}}}
		req.UpdateMask = &fieldmaskpb.FieldMask{Paths: []string{"note", "labels"}}
		return []proto.Message{req}
	case "ImportStudy":
		study := servertest.FullRequest(t).GetStudy()
		study.Name, study.Uid, study.Etag = "studies/imported", strings.Repeat("0123", 8), "01230123-1"
		study.Seed, study.Revision, study.State = study.GetSpec().GetSeed(), 1, dparetov1.StudyState_STUDY_STATE_ACTIVE
		study.CreateTime, study.UpdateTime = timestamppb.New(time.Unix(1, 0)), timestamppb.New(time.Unix(2, 0))
		study.TrialCounts = new(dparetov1.TrialCounts)
		return []proto.Message{&dparetov1.ImportStudyRequest{Record: &dparetov1.ExportedRecord{
			Record: &dparetov1.ExportedRecord_Study{Study: &dparetov1.ExportedStudy{Study: study, NextTrialNumber: 1, OwnRevision: 1}},
		}}}
	case "CreateLedger":
		return []proto.Message{&dparetov1.CreateLedgerRequest{LedgerId: "other", RequestId: "ledger", Ledger: &dparetov1.Ledger{
			Records: 10, Epsilon: 1, Delta: 1e-3, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE,
		}}}
	case "GetLedger":
		return []proto.Message{&dparetov1.GetLedgerRequest{Name: "ledgers/full"}}
	case "ListCharges":
		return []proto.Message{&dparetov1.ListChargesRequest{Parent: "ledgers/full", PageSize: 2}}
	case "ListReleases":
		return []proto.Message{&dparetov1.ListReleasesRequest{Parent: "ledgers/full"}, &dparetov1.ListReleasesRequest{Parent: "studies/fixed"}}
	case "GetRelease":
		return []proto.Message{&dparetov1.GetReleaseRequest{Name: "studies/fixed/releases/1"}}
	case "ReleaseBest":
		return []proto.Message{&dparetov1.ReleaseBestRequest{Name: "studies/fixed", Metric: "error", Epsilon: 1e-3, AtMost: map[string]float64{"epsilon": 1e6}, RequestId: "fuzz"}}
	case "ReleaseFront":
		return []proto.Message{&dparetov1.ReleaseFrontRequest{Name: "studies/fixed", Epsilon: 1e-3, Delta: 1e-9, RequestId: "fuzz-front"}}
	case "SelectPrivately":
		return []proto.Message{&dparetov1.SelectPrivatelyRequest{Utilities: []float64{1, 2}, Sensitivity: 0.1, Epsilon: 1e-3, Ledger: "ledgers/full", RequestId: "fuzz"}}
	case "ComputeEpsilon", "CalibrateMechanism", "ComputeTradeoff", "PriceSearch":
		return []proto.Message{privacyRequests(t)["PrivacyService."+string(method.Name())]()}
	default:
		var all []proto.Message
		for _, name := range []string{"studies/full", heldTrial, doneTrial} {
			req := newMessage(t, method.Input())
			for _, fieldName := range []protoreflect.Name{"name", "parent"} {
				if field := method.Input().Fields().ByName(fieldName); field != nil {
					req.ProtoReflect().Set(field, protoreflect.ValueOfString(name))
				}
			}
			all = append(all, req)
		}
		return all
	}
}

// fuzz fuzzes the request message of a method.
func fuzz(f *testing.F, name string) {
	f.Helper()
	if flag.Lookup("test.fuzz").Value.String() == "" {
		f.Skip("TestRandomRequests sends the seeds")
	}
	method := servertest.Methods()[name]
	for _, seed := range seeds(f, method) {
		b, err := proto.Marshal(seed)
		require.NoError(f, err)
		f.Add(b)
	}
	server := &fuzzer{Fixture: servertest.Start(f)}
	f.Fuzz(func(t *testing.T, b []byte) {
		req := newMessage(t, method.Input())
		if proto.Unmarshal(b, req) != nil {
			return
		}
		server.send(t, method, req)
	})
}

func FuzzGetServerInfo(f *testing.F) { fuzz(f, "AdminService.GetServerInfo") }

func FuzzBackupStore(f *testing.F) { fuzz(f, "AdminService.BackupStore") }

func FuzzExportStudy(f *testing.F) { fuzz(f, "AdminService.ExportStudy") }

func FuzzImportStudy(f *testing.F) { fuzz(f, "AdminService.ImportStudy") }

func FuzzAnalyzeImportance(f *testing.F) { fuzz(f, "AnalysisService.AnalyzeImportance") }

func FuzzAnalyzeSlices(f *testing.F) { fuzz(f, "AnalysisService.AnalyzeSlices") }

func FuzzAnalyzeContour(f *testing.F) { fuzz(f, "AnalysisService.AnalyzeContour") }

func FuzzCrossValidate(f *testing.F) { fuzz(f, "AnalysisService.CrossValidate") }

func FuzzForecastGain(f *testing.F) { fuzz(f, "AnalysisService.ForecastGain") }

func FuzzGetFront(f *testing.F) { fuzz(f, "FrontService.GetFront") }

func FuzzQueryFront(f *testing.F) { fuzz(f, "FrontService.QueryFront") }

func FuzzListHypervolumes(f *testing.F) { fuzz(f, "FrontService.ListHypervolumes") }

func FuzzPredictMetrics(f *testing.F) { fuzz(f, "FrontService.PredictMetrics") }

func FuzzComputeEpsilon(f *testing.F) { fuzz(f, "PrivacyService.ComputeEpsilon") }

func FuzzComputeTradeoff(f *testing.F) { fuzz(f, "PrivacyService.ComputeTradeoff") }

func FuzzPriceSearch(f *testing.F) { fuzz(f, "PrivacyService.PriceSearch") }

func FuzzCalibrateMechanism(f *testing.F) { fuzz(f, "PrivacyService.CalibrateMechanism") }

func FuzzCreateLedger(f *testing.F) { fuzz(f, "ReleaseService.CreateLedger") }

func FuzzGetLedger(f *testing.F) { fuzz(f, "ReleaseService.GetLedger") }

func FuzzListLedgers(f *testing.F) { fuzz(f, "ReleaseService.ListLedgers") }

func FuzzListCharges(f *testing.F) { fuzz(f, "ReleaseService.ListCharges") }

func FuzzReleaseBest(f *testing.F) { fuzz(f, "ReleaseService.ReleaseBest") }

func FuzzReleaseFront(f *testing.F) { fuzz(f, "ReleaseService.ReleaseFront") }

func FuzzSelectPrivately(f *testing.F) { fuzz(f, "ReleaseService.SelectPrivately") }

func FuzzGetRelease(f *testing.F) { fuzz(f, "ReleaseService.GetRelease") }

func FuzzListReleases(f *testing.F) { fuzz(f, "ReleaseService.ListReleases") }

func FuzzGetPrivacyLedger(f *testing.F) { fuzz(f, "PrivacyService.GetPrivacyLedger") }

func FuzzReaccountStudy(f *testing.F) { fuzz(f, "PrivacyService.ReaccountStudy") }

func FuzzCreateStudy(f *testing.F) { fuzz(f, "StudyService.CreateStudy") }

func FuzzGetStudy(f *testing.F) { fuzz(f, "StudyService.GetStudy") }

func FuzzListStudies(f *testing.F) { fuzz(f, "StudyService.ListStudies") }

func FuzzUpdateStudy(f *testing.F) { fuzz(f, "StudyService.UpdateStudy") }

func FuzzDeleteStudy(f *testing.F) { fuzz(f, "StudyService.DeleteStudy") }

func FuzzPauseStudy(f *testing.F) { fuzz(f, "StudyService.PauseStudy") }

func FuzzResumeStudy(f *testing.F) { fuzz(f, "StudyService.ResumeStudy") }

func FuzzWatchStudy(f *testing.F) { fuzz(f, "StudyService.WatchStudy") }

func FuzzSuggestTrials(f *testing.F) { fuzz(f, "StudyService.SuggestTrials") }

func FuzzCreateTrial(f *testing.F) { fuzz(f, "StudyService.CreateTrial") }

func FuzzGetTrial(f *testing.F) { fuzz(f, "StudyService.GetTrial") }

func FuzzListTrials(f *testing.F) { fuzz(f, "StudyService.ListTrials") }

func FuzzUpdateTrial(f *testing.F) { fuzz(f, "StudyService.UpdateTrial") }

func FuzzDeleteTrial(f *testing.F) { fuzz(f, "StudyService.DeleteTrial") }

func FuzzAddMeasurement(f *testing.F) { fuzz(f, "StudyService.AddMeasurement") }

func FuzzRenewLeases(f *testing.F) { fuzz(f, "StudyService.RenewLeases") }

func FuzzCompleteTrial(f *testing.F) { fuzz(f, "StudyService.CompleteTrial") }

func FuzzReleaseTrial(f *testing.F) { fuzz(f, "StudyService.ReleaseTrial") }

func FuzzStopTrial(f *testing.F) { fuzz(f, "StudyService.StopTrial") }

// Every method has its fuzz target.
func TestEveryMethodIsFuzzed(t *testing.T) {
	source, err := os.ReadFile("fuzz_test.go")
	require.NoError(t, err)
	for name := range servertest.Methods() {
		if !strings.Contains(string(source), `fuzz(f, "`+name+`")`) {
			t.Errorf("%s has no fuzz target", name)
		}
	}
}

// The seeds of the fuzz targets, changed at random places.
func TestRandomRequests(t *testing.T) {
	requests := testsize.Pick(8, 200) // for each method
	t.Parallel()
	server := &fuzzer{Fixture: servertest.Start(t)}
	rng := rand.New(rand.NewPCG(1, 2))
	all := servertest.Methods()
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		method := all[name]
		accepted := 0
		valid := seeds(t, method)
		for i := range len(valid) + requests {
			req := proto.Clone(valid[i%len(valid)])
			if i >= len(valid) { // the seeds themselves come first
				for range 1 + i%3 {
					mutate(rng, req.ProtoReflect())
				}
			}
			switch server.send(t, method, req) {
			case codes.OK, codes.DeadlineExceeded: // an analysis may be slow
				accepted++
			default:
			}
		}
		if accepted == 0 {
			t.Errorf("%s accepted none of %d requests", name, requests)
		}
	}
}

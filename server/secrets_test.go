package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/limit"
)

// methodOf returns the descriptor of a method, given as /service/method.
func methodOf(t *testing.T, full string) protoreflect.MethodDescriptor {
	t.Helper()
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(full, "/"), "/", "."))
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return d.(protoreflect.MethodDescriptor)
}

// answer calls a method with one request and returns what comes back as text: the code, the
// message, and the answers, of which there may be several.
func answer(ctx context.Context, t *testing.T, conn *grpc.ClientConn, full string, req proto.Message) string {
	t.Helper()
	m := methodOf(t, full)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, full)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.SendMsg(req); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for {
		kind, err := protoregistry.GlobalTypes.FindMessageByName(m.Output().FullName())
		if err != nil {
			t.Fatal(err)
		}
		resp := kind.New().Interface()
		err = stream.RecvMsg(resp)
		if errors.Is(err, io.EOF) {
			return randoms.ReplaceAllString(all.String(), "$1")
		}
		if err != nil {
			fmt.Fprintf(&all, "%v: %s", status.Code(err), status.Convert(err).Message())
			return randoms.ReplaceAllString(all.String(), "$1")
		}
		b, err := prototext.MarshalOptions{Multiline: true}.Marshal(resp)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(strings.ReplaceAll(string(b), ":  ", ": "))
	}
}

// randoms matches what is random and no secret: the last part of the etags of studies that were
// changed, and the uids of ledgers.
var randoms = regexp.MustCompile(`([0-9a-f]{8}-[0-9a-f]+)-[0-9a-f]{8}|\buid: "[0-9a-f]{32}"`)

// questions are requests of a method about a study, or about one of its trials, whether
// there is such a trial or not.
func questions(t *testing.T, full, study string) []proto.Message {
	t.Helper()
	m, _ := auth.Lookup(full)
	kind, err := protoregistry.GlobalTypes.FindMessageByName(methodOf(t, full).Input().FullName())
	if err != nil {
		t.Fatal(err)
	}
	empty := kind.New().Interface()
	trials := []string{study + "/trials/1", study + "/trials/2", study + "/trials/4", study + "/trials/9"}
	switch req := empty.(type) {
	case *dparetov1.CreateStudyRequest:
		return []proto.Message{
			&dparetov1.CreateStudyRequest{StudyId: "a-search", Study: &dparetov1.Study{Spec: searchSpec(10, 1)}},
			&dparetov1.CreateStudyRequest{StudyId: "a-search", Study: &dparetov1.Study{Spec: searchSpec(20, 1)}},
			&dparetov1.CreateStudyRequest{StudyId: "a-search", Study: &dparetov1.Study{Spec: searchSpec(10, 1)}, ValidateOnly: true},
		}
	case *dparetov1.ListStudiesRequest:
		var all []proto.Message
		for _, filter := range []string{"", "trial_counts.succeeded > 1", "trial_counts.active > 0", "revision > 3"} {
			all = append(all, &dparetov1.ListStudiesRequest{Filter: filter, OrderBy: "revision"}, &dparetov1.ListStudiesRequest{Filter: filter, OrderBy: "trial_counts.failed desc"})
		}
		return all
	case *dparetov1.DeleteStudyRequest:
		return []proto.Message{&dparetov1.DeleteStudyRequest{Name: study, Etag: "another"}}
	case *dparetov1.UpdateStudyRequest:
		return []proto.Message{&dparetov1.UpdateStudyRequest{Study: &dparetov1.Study{Name: study, Etag: "another"}}}
	case *dparetov1.ImportStudyRequest:
		return nil // changes what is there, if it is allowed
	case *dparetov1.RenewLeasesRequest:
		tokens := make(map[string]string)
		for _, trial := range trials {
			tokens[trial] = "guessed"
		}
		return []proto.Message{&dparetov1.RenewLeasesRequest{Parent: study, LeaseTokens: tokens}}
	case *dparetov1.AddMeasurementRequest, *dparetov1.CompleteTrialRequest, *dparetov1.ReleaseTrialRequest:
		var all []proto.Message
		for _, trial := range trials {
			for _, token := range []string{"", "guessed"} {
				req := proto.Clone(req).ProtoReflect()
				fields := req.Descriptor().Fields()
				req.Set(fields.ByName("name"), protoreflect.ValueOfString(trial))
				req.Set(fields.ByName("lease_token"), protoreflect.ValueOfString(token))
				if fields.ByName("measurement") != nil {
					req.Set(fields.ByName("measurement"), protoreflect.ValueOfMessage(measurement(0, 0.5).ProtoReflect()))
				}
				all = append(all, req.Interface())
			}
		}
		return all
	}
	if m.Resource == "" {
		return []proto.Message{empty}
	}
	var all []proto.Message
	for _, name := range append(trials, study, study+"/releases/1") {
		req := proto.Clone(empty)
		message := req.ProtoReflect()
		path := strings.Split(m.Resource, ".")
		for _, part := range path[:len(path)-1] {
			message = message.Mutable(message.Descriptor().Fields().ByName(protoreflect.Name(part))).Message()
		}
		message.Set(message.Descriptor().Fields().ByName(protoreflect.Name(path[len(path)-1])), protoreflect.ValueOfString(name))
		all = append(all, req)
	}
	return all
}

// searches are two servers with a study that differs in nothing but the number of its trials,
// and in what they measure.
func searches(t *testing.T, few, many int64) [2]*guarded {
	t.Helper()
	first := start(t)
	records := first.export(first.create("a-search", searchSpec(10, 1)))
	var both [2]*guarded
	for i, trials := range []int64{few, many} {
		both[i] = guard(t, limit.Limits{})
		mine := []*dparetov1.ExportedRecord{proto.CloneOf(records[0])}
		mine[0].GetStudy().GetRandomStopping().Trials = trials
		both[i].openLedgers(both[i].as("admin"), mine[0].GetStudy().GetStudy().GetSpec())
		stream, err := both[i].admin.ImportStudy(both[i].as("admin"))
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&dparetov1.ImportStudyRequest{Record: mine[0]}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.CloseAndRecv(); err != nil {
			t.Fatal(err)
		}
	}
	return both
}

// run hands out trials, one after the other, and completes all but the last of them.
func (g *guarded) run(study string, n int, errors float64) (held *dparetov1.Trial) {
	g.t.Helper()
	for i := range n {
		resp, err := g.studies.SuggestTrials(g.as("worker"), &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "w", Count: 1})
		if err != nil || len(resp.GetTrials()) != 1 {
			g.t.Fatalf("%d trials, want 1: %v", len(resp.GetTrials()), err)
		}
		if held = resp.GetTrials()[0]; i < n-1 {
			g.finish(held, errors)
		}
	}
	return held
}

func (g *guarded) finish(trial *dparetov1.Trial, errors float64) {
	g.t.Helper()
	if _, err := g.studies.CompleteTrial(g.as("worker"), completion(trial, errors)); err != nil {
		g.t.Fatal(err)
	}
}

// Nobody but workers, and those who administer the whole server, gets an answer of any method
// that depends on the number of trials of a study with random stopping, on what they
// measured, or on whether there is a trial.
func TestSecretsOfRandomStopping(t *testing.T) {
	t.Parallel()
	const study = "studies/a-search"
	both := searches(t, 2, 6)
	var methods []string
	both[0].methods(func(full string, _ protoreflect.MethodDescriptor) {
		if m, _ := auth.Lookup(full); m.Scope != auth.Public && strings.HasPrefix(full, "/dpareto.v1.") && full != dparetov1.StudyService_SuggestTrials_FullMethodName {
			methods = append(methods, full)
		}
	})
	if len(methods) < 30 {
		t.Fatalf("%d methods", len(methods))
	}
	slices.Sort(methods)
	refused := make(map[string]bool)
	asked := 0
	compare := func(when string, skip ...string) {
		t.Helper()
		for _, full := range methods {
			if slices.Contains(skip, full) {
				continue
			}
			for _, caller := range []string{"viewer", "owner", "worker"} {
				for _, req := range questions(t, full, study) {
					asked++
					few, many := answer(both[0].as(caller), t, both[0].conn, full, req), answer(both[1].as(caller), t, both[1].conn, full, req)
					if diff := cmp.Diff(few, many); diff != "" {
						t.Errorf("%s: %s of %s, asked %v (-few +many):\n%s", when, full, caller, req, diff)
					}
					refused[full] = refused[full] || strings.Contains(few, "shows only its best trial")
				}
			}
		}
	}
	compare("at the beginning")
	held := [2]*dparetov1.Trial{both[0].run(study, 2, 0.1), both[1].run(study, 5, 0.9)}
	compare("on the way")
	for _, g := range both {
		if _, err := g.studies.PauseStudy(g.as("owner"), &dparetov1.PauseStudyRequest{Name: study}); err != nil {
			t.Fatal(err)
		}
		if _, err := g.studies.ResumeStudy(g.as("owner"), &dparetov1.ResumeStudyRequest{Name: study}); err != nil {
			t.Fatal(err)
		}
	}
	compare("after a pause")
	both[0].finish(held[0], 0.2)
	both[1].finish(held[1], 0.8)
	both[1].finish(both[1].run(study, 1, 0), 0.7)
	compare("at the end", dparetov1.ReleaseService_ReleaseBest_FullMethodName, dparetov1.ReleaseService_GetRelease_FullMethodName, dparetov1.ReleaseService_ListReleases_FullMethodName)
	want := []string{
		dparetov1.AdminService_ExportStudy_FullMethodName,
		dparetov1.AnalysisService_AnalyzeContour_FullMethodName, dparetov1.AnalysisService_AnalyzeImportance_FullMethodName,
		dparetov1.AnalysisService_AnalyzeSlices_FullMethodName, dparetov1.AnalysisService_CrossValidate_FullMethodName,
		dparetov1.AnalysisService_ForecastGain_FullMethodName,
		dparetov1.FrontService_GetFront_FullMethodName, dparetov1.FrontService_ListHypervolumes_FullMethodName,
		dparetov1.FrontService_PredictMetrics_FullMethodName, dparetov1.FrontService_QueryFront_FullMethodName,
		dparetov1.PrivacyService_GetPrivacyLedger_FullMethodName, dparetov1.PrivacyService_ReaccountStudy_FullMethodName,
		dparetov1.StudyService_CreateTrial_FullMethodName, dparetov1.StudyService_DeleteTrial_FullMethodName,
		dparetov1.StudyService_GetTrial_FullMethodName, dparetov1.StudyService_ListTrials_FullMethodName,
		dparetov1.StudyService_StopTrial_FullMethodName, dparetov1.StudyService_UpdateTrial_FullMethodName,
		dparetov1.StudyService_WatchStudy_FullMethodName,
	}
	maps.DeleteFunc(refused, func(_ string, yes bool) bool { return !yes })
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(refused))); diff != "" {
		t.Errorf("methods that are refused (-want +got):\n%s", diff)
	}
	if asked < 500 {
		t.Errorf("%d questions", asked)
	}
	// The comparison is not blind: the same questions about a study without the mode differ.
	for i, g := range both {
		if _, err := g.studies.CreateStudy(g.as("admin"), &dparetov1.CreateStudyRequest{StudyId: "a-open", Study: &dparetov1.Study{Spec: gaussianSpec()}}); err != nil {
			t.Fatal(err)
		}
		g.run("studies/a-open", 2+i, 0.5)
	}
	list := &dparetov1.ListTrialsRequest{Parent: "studies/a-open"}
	if answer(both[0].as("viewer"), t, both[0].conn, dparetov1.StudyService_ListTrials_FullMethodName, list) ==
		answer(both[1].as("viewer"), t, both[1].conn, dparetov1.StudyService_ListTrials_FullMethodName, list) {
		t.Error("studies with other trials are not told apart")
	}
}

// Whoever administers the whole server exports a study with its secrets, and the copy goes on
// as the original would.
func TestExportOfRandomStopping(t *testing.T) {
	f := start(t)
	study := f.create("search", searchSpec(10, 1))
	records := f.export(study)
	records[0].GetStudy().GetRandomStopping().Trials = 4
	if _, err := f.studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.importRecords(records); err != nil {
		t.Fatal(err)
	}
	f.tell(f.one(study, "w"), 0.5)
	held := f.one(study, "w")
	exported := f.export(study)
	copied := start(t)
	if resp, err := copied.importRecords(exported); err != nil || resp.GetStudy().GetTrialCounts() != nil {
		t.Fatalf("%v, %v", resp, err)
	}
	if diff := cmp.Diff(lines(t, exported), lines(t, copied.export(study))); diff != "" {
		t.Errorf("the copy: %s", diff)
	}
	copied.tell(held, 0.5)
	if n := copied.runAll(study, func(*dparetov1.Trial) float64 { return 0.5 }); n != 2 {
		t.Errorf("%d more trials, want 2", n)
	}
	for field, change := range map[string]func(*dparetov1.ExportedStudy){
		"random_stopping":         func(s *dparetov1.ExportedStudy) { s.RandomStopping = nil },
		"random_stopping.trials":  func(s *dparetov1.ExportedStudy) { s.RandomStopping.Trials = 1 },
		"study.publication.train": func(s *dparetov1.ExportedStudy) { s.Study.Publication.Train.Epsilon /= 2 },
		"study.seed":              func(s *dparetov1.ExportedStudy) { s.Study.Seed = 5 },
		"random_stopping.paid":    func(s *dparetov1.ExportedStudy) { s.RandomStopping.Paid = false },
		"random_stopping.listed":  func(s *dparetov1.ExportedStudy) { s.RandomStopping.Listed[3] = 1e9 },
		"study.state":             func(s *dparetov1.ExportedStudy) { s.Study.State = dparetov1.StudyState_STUDY_STATE_PREPARING },
	} {
		changed := []*dparetov1.ExportedRecord{proto.CloneOf(exported[0])}
		change(changed[0].GetStudy())
		if _, err := start(t).importRecords(changed); !slices.Contains(violated(err), "record.study."+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	plain := f.export(f.create("plain", gaussianSpec()))
	plain[0].GetStudy().RandomStopping = records[0].GetStudy().GetRandomStopping()
	_, err := start(t).importRecords(plain)
	wantCode(t, err, codes.InvalidArgument, "record.study.random_stopping")
}

package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/limit"
	"github.com/dpareto/dpareto/server/servertest"
)

// methodOf returns the descriptor of a method, given as /service/method.
func methodOf(t *testing.T, full string) protoreflect.MethodDescriptor {
	t.Helper()
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(full, "/"), "/", "."))
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	require.NoError(t, err)
	return d.(protoreflect.MethodDescriptor)
}

// answer calls a method with one request and returns what comes back as text: the code, the
// message, and the answers, of which there may be several. A watch ends once it has shown all that the
// study had.
func answer(ctx context.Context, t *testing.T, conn *grpc.ClientConn, full string, req proto.Message) string {
	t.Helper()
	m := methodOf(t, full)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	until := int64(0)
	if watch, ok := req.(*dparetov1.WatchStudyRequest); ok {
		if resp, err := dparetov1.NewStudyServiceClient(conn).GetStudy(ctx, &dparetov1.GetStudyRequest{Name: watch.GetName()}); err == nil {
			until = resp.GetStudy().GetRevision()
		}
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, full)
	require.NoError(t, err)
	if err := stream.SendMsg(req); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	require.NoError(t, stream.CloseSend())
	var all strings.Builder
	for {
		kind, err := protoregistry.GlobalTypes.FindMessageByName(m.Output().FullName())
		require.NoError(t, err)
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
		require.NoError(t, err)
		all.WriteString(strings.ReplaceAll(string(b), ":  ", ": "))
		if change, ok := resp.(*dparetov1.WatchStudyResponse); ok && change.GetRevision() >= until {
			return randoms.ReplaceAllString(all.String(), "$1")
		}
	}
}

// randoms matches what is random and no secret: the last part of the etags of studies that were
// changed, and the uids of ledgers.
var randoms = regexp.MustCompile(`([0-9a-f]{8}-[0-9a-f]+)-[0-9a-f]{8}|\buid: "[0-9a-f]{32}"`)

// questions are requests of a method about a study, its ledgers, or one of its trials, whether there
// is such a trial or not. A method without a resource needs a case of its own: the test that asks
// fails for a new one that has none.
func questions(t *testing.T, full, study string) []proto.Message {
	t.Helper()
	m, _ := auth.Lookup(full)
	kind, err := protoregistry.GlobalTypes.FindMessageByName(methodOf(t, full).Input().FullName())
	require.NoError(t, err)
	empty := kind.New().Interface()
	trials := []string{study + "/trials/1", study + "/trials/2", study + "/trials/4", study + "/trials/9"}
	switch req := empty.(type) {
	case *dparetov1.CreateStudyRequest:
		var all []proto.Message
		for _, mean := range []float64{10, 20} {
			id := strings.TrimPrefix(study, "studies/")
			all = append(all, &dparetov1.CreateStudyRequest{StudyId: id, Study: &dparetov1.Study{Spec: servertest.SearchSpec(mean, 1)}},
				&dparetov1.CreateStudyRequest{StudyId: id, Study: &dparetov1.Study{Spec: servertest.SearchSpec(mean, 1)}, ValidateOnly: true})
		}
		prior := servertest.GaussianSpec()
		prior.PriorStudies = []string{study}
		return append(all, &dparetov1.CreateStudyRequest{StudyId: "c-prior", Study: &dparetov1.Study{Spec: prior}, ValidateOnly: true})
	case *dparetov1.ListStudiesRequest:
		return listQuestions()
	case *dparetov1.GetServerInfoRequest:
		return []proto.Message{req, &dparetov1.GetServerInfoRequest{Study: study}}
	case *dparetov1.ListLedgersRequest:
		return []proto.Message{req, &dparetov1.ListLedgersRequest{PageSize: 1}}
	case *dparetov1.GetLedgerRequest:
		return []proto.Message{&dparetov1.GetLedgerRequest{Name: trainLedger}, &dparetov1.GetLedgerRequest{Name: "ledgers/none"}}
	case *dparetov1.ListChargesRequest:
		return []proto.Message{&dparetov1.ListChargesRequest{Parent: trainLedger}}
	case *dparetov1.ComputeEpsilonRequest, *dparetov1.CalibrateMechanismRequest, *dparetov1.ComputeTradeoffRequest, *dparetov1.PriceSearchRequest,
		*dparetov1.BackupStoreRequest, *dparetov1.CreateLedgerRequest, *dparetov1.SelectPrivatelyRequest:
		return []proto.Message{req} // of no study
	case *dparetov1.GetFrontRequest:
		return []proto.Message{
			&dparetov1.GetFrontRequest{Name: study}, &dparetov1.GetFrontRequest{Name: study, Kind: dparetov1.FrontKind_FRONT_KIND_OBSERVED},
		}
	case *dparetov1.PredictMetricsRequest:
		return []proto.Message{&dparetov1.PredictMetricsRequest{Name: study, Configurations: []*dparetov1.Configuration{{Parameters: servertest.Sigma(3)}}}}
	case *dparetov1.ReleaseBestRequest:
		return []proto.Message{&dparetov1.ReleaseBestRequest{Name: study, Metric: "error"}, &dparetov1.ReleaseBestRequest{Name: study}}
	case *dparetov1.ReleaseFrontRequest:
		return []proto.Message{&dparetov1.ReleaseFrontRequest{Name: study}, &dparetov1.ReleaseFrontRequest{Name: study, Epsilon: 1, Delta: 1e-7}}
	case *dparetov1.DeleteStudyRequest:
		return []proto.Message{&dparetov1.DeleteStudyRequest{Name: study, Etag: "another"}}
	case *dparetov1.UpdateStudyRequest:
		return []proto.Message{&dparetov1.UpdateStudyRequest{Study: &dparetov1.Study{Name: study, Etag: "another"}}}
	case *dparetov1.ImportStudyRequest:
		return nil // changes what is there, if it is allowed
	case *dparetov1.ListTrialsRequest:
		return []proto.Message{
			&dparetov1.ListTrialsRequest{Parent: study}, &dparetov1.ListTrialsRequest{Parent: study, PageSize: 1, OrderBy: "number desc"},
			&dparetov1.ListTrialsRequest{Parent: study, PageSize: 2, OrderBy: "metrics.error"}, &dparetov1.ListTrialsRequest{Parent: study, Filter: "metrics.error < 0.5"},
			&dparetov1.ListTrialsRequest{Parent: study, AfterRevision: 1},
		}
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
					req.Set(fields.ByName("measurement"), protoreflect.ValueOfMessage(servertest.Measurement(0, 0.5).ProtoReflect()))
				}
				all = append(all, req.Interface())
			}
		}
		return all
	}
	if m.Resource == "" {
		t.Fatalf("no question for %s, which names no resource: what does it show of a study?", full)
	}
	var all []proto.Message
	for _, name := range append(trials, study, study+"/releases/1", trainLedger, trainLedger+"/releases/1") {
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

// trainLedger is the ledger of searchSpec and the like.
const trainLedger = "ledgers/train-adjacency-replace-one"

// listQuestions are lists of studies by every field that a filter or an order can name, found in the
// contract, and by pages of one.
func listQuestions() []proto.Message {
	all := []proto.Message{&dparetov1.ListStudiesRequest{}, &dparetov1.ListStudiesRequest{PageSize: 1}}
	var visit func(path string, d protoreflect.MessageDescriptor, depth int)
	visit = func(path string, d protoreflect.MessageDescriptor, depth int) {
		for i := range d.Fields().Len() {
			field := d.Fields().Get(i)
			name := path + string(field.Name())
			all = append(all, &dparetov1.ListStudiesRequest{Filter: name + " > 1"}, &dparetov1.ListStudiesRequest{OrderBy: name + " desc", PageSize: 1})
			if depth == 0 {
				for _, filter := range []string{" > 3", ` = "COMPLETED"`, ` > "2026-01-02T03:20:00Z"`} {
					all = append(all, &dparetov1.ListStudiesRequest{Filter: name + filter})
				}
			}
			if field.Message() != nil && depth < 1 {
				visit(name+".", field.Message(), depth+1)
			}
		}
	}
	visit("", new(dparetov1.Study).ProtoReflect().Descriptor(), 0)
	return all
}

// run hands out trials, one after the other, and completes all but the last of them.
func run(g *servertest.Guarded, study string, n int, errors float64) (held *dparetov1.Trial) {
	g.T.Helper()
	for i := range n {
		resp, err := g.Studies.SuggestTrials(g.As("worker"), &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "w", Count: 1})
		if err != nil || len(resp.GetTrials()) != 1 {
			g.T.Fatalf("%d trials, want 1: %v", len(resp.GetTrials()), err)
		}
		if held = resp.GetTrials()[0]; i < n-1 {
			finish(g, held, errors)
		}
	}
	return held
}

func finish(g *servertest.Guarded, trial *dparetov1.Trial, errors float64) {
	g.T.Helper()
	require.NoError(g.T, require.ErrOf(g.Studies.CompleteTrial(g.As("worker"), servertest.Completion(trial, errors))))
}

// Nobody but the workers that train candidates, and those who administer the whole server, sees the
// key of the subset.
func TestSubsetKeyIsSecret(t *testing.T) {
	t.Parallel()
	const study, key = "studies/a-search", "which records are in it is secret"
	first := servertest.Start(t)
	records := first.Export(first.Prepared("a-search", servertest.SubsetSpec(32561, 0.1, 26, 1250)).GetName())[:1]
	records[0].GetStudy().GetRandomStopping().SubsetKey = []byte(key[:32])
	records[0].GetStudy().GetRandomStopping().Trials = 2
	g := servertest.Guard(t, limit.Limits{})
	g.OpenLedgers(g.As("admin"), records[0].GetStudy().GetStudy().GetSpec())
	g.Place(records)
	var methods []string
	g.Methods(func(full string, _ protoreflect.MethodDescriptor) {
		if m, _ := auth.Lookup(full); m.Scope != auth.Public && strings.HasPrefix(full, "/dpareto.v1.") && full != dparetov1.StudyService_SuggestTrials_FullMethodName {
			methods = append(methods, full)
		}
	})
	slices.Sort(methods) // so that a study is resumed after it is paused
	asked := 0
	check := func(when string) {
		t.Helper()
		for _, full := range methods {
			for _, caller := range []string{"viewer", "owner", "worker"} {
				for _, req := range questions(t, full, study) {
					asked++
					if text := answer(g.As(caller), t, g.Conn, full, req); strings.Contains(text, key[:32]) {
						t.Errorf("%s: %s shows the key to %s, asked %v", when, full, caller, req)
					}
				}
			}
		}
	}
	check("at the beginning")
	for range 2 {
		held := run(g, study, 1, 0)
		if string(held.GetTrainingSubset().GetKey()) != key[:32] {
			t.Fatal("the worker has no key")
		}
		check("on the way")
		resp, err := g.Studies.CompleteTrial(g.As("worker"), servertest.Completion(held, 0.5))
		if err != nil || strings.Contains(resp.String(), key[:32]) {
			t.Errorf("the answer to a result: %v, %v", resp, err)
		}
	}
	finish(g, run(g, study, 1, 0), 0.4)
	check("at the end") // it also releases
	if asked < 1000 {
		t.Errorf("%d questions", asked)
	}
	exported, err := g.Admin.ExportStudy(g.As("admin"), &dparetov1.ExportStudyRequest{Name: study})
	require.NoError(t, err)
	if record, err := exported.Recv(); err != nil || string(record.GetRecord().GetStudy().GetRandomStopping().GetSubsetKey()) != key[:32] {
		t.Errorf("the export by an admin lacks the key: %v", err)
	}
}

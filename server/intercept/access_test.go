package intercept_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/audit"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/limit"
	"github.com/dpareto/dpareto/server/servertest"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

// call calls any method with a request and returns the error.
func call(ctx context.Context, g *servertest.Guarded, full string, d protoreflect.MethodDescriptor, request proto.Message) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer := dynamicpb.NewMessage(d.Output())
	if !d.IsStreamingClient() && !d.IsStreamingServer() {
		return g.Conn.Invoke(ctx, full, request, answer)
	}
	stream, err := g.Conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: d.IsStreamingClient(), ServerStreams: true}, full)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(request); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if d.IsStreamingClient() {
		if err := stream.CloseSend(); err != nil {
			return err
		}
	} else if err := stream.CloseSend(); err != nil {
		return err
	}
	if err := stream.RecvMsg(answer); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// Every method that is registered has rules.
func TestEveryMethodHasARule(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{})
	found := 0
	g.Methods(func(full string, _ protoreflect.MethodDescriptor) {
		found++
		if _, ok := auth.Lookup(full); !ok {
			t.Errorf("package auth has no rules for %s: it cannot be called", full)
		}
	})
	if found < 40 {
		t.Errorf("%d methods", found)
	}
}

// Without a valid token there is an answer to health checks only.
func TestUnauthenticated(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{})
	g.Make("a-1")
	g.Methods(func(full string, d protoreflect.MethodDescriptor) {
		public := strings.HasPrefix(full, "/grpc.health.v1.Health/")
		for _, header := range []string{"", "Bearer wrong", "Bearer ", "Basic YWRtaW46", g.Tokens["admin"]} {
			g.Clock.Advance(time.Minute) // not the rate is tested here
			ctx := t.Context()
			if header != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", header)
			}
			err := call(ctx, g, full, d, dynamicpb.NewMessage(d.Input()))
			if (status.Code(err) == codes.Unauthenticated) == public {
				t.Errorf("%s with %.20q: %v", full, header, err)
			}
		}
		g.Clock.Advance(time.Minute)
		twice := metadata.AppendToOutgoingContext(g.As("admin"), "authorization", "Bearer wrong")
		if err := call(twice, g, full, d, dynamicpb.NewMessage(d.Input())); (status.Code(err) == codes.Unauthenticated) == public {
			t.Errorf("%s with two tokens: %v", full, err)
		}
	})
}

// Nobody who is not known makes the server wait for a request, or decode one.
func TestUnauthenticatedIsRefusedByItsHeaders(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// A unary call whose request never comes.
	stream, err := g.Conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, dparetov1.FrontService_PredictMetrics_FullMethodName)
	if err == nil {
		err = stream.RecvMsg(new(dparetov1.PredictMetricsResponse))
	}
	servertest.WantCode(t, err, codes.Unauthenticated, "")
}

// A caller without rights on a study gets the same answer from every method, whether the
// study exists or not.
func TestDenialTellsNothing(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{})
	g.Make("a-1")
	g.Make("secret")
	trial, err := g.Studies.SuggestTrials(g.As("admin"), &dparetov1.SuggestTrialsRequest{Parent: "studies/secret", WorkerId: "w"})
	if err != nil || len(trial.GetTrials()) != 1 {
		t.Fatal(trial, err)
	}
	checked := 0
	g.Methods(func(full string, d protoreflect.MethodDescriptor) {
		m, _ := auth.Lookup(full)
		if m.Scope != auth.Study {
			return
		}
		answer := func(study string) *status.Status {
			request := dynamicpb.NewMessage(d.Input())
			message := protoreflect.Message(request)
			path := strings.Split(m.Resource, ".")
			for _, name := range path[:len(path)-1] {
				message = message.Mutable(message.Descriptor().Fields().ByName(protoreflect.Name(name))).Message()
			}
			name := "studies/" + study
			if path[len(path)-1] == "study_id" {
				name = study
			} else if strings.Contains(full, "Trial") && path[len(path)-1] == "name" || strings.HasSuffix(full, "AddMeasurement") {
				name += "/trials/1"
			}
			field := message.Descriptor().Fields().ByName(protoreflect.Name(path[len(path)-1]))
			message.Set(field, protoreflect.ValueOfString(name))
			return status.Convert(call(g.As("limited"), g, full, d, request))
		}
		there, gone := answer("secret"), answer("absent")
		if there.Code() != codes.PermissionDenied || gone.Code() != codes.PermissionDenied ||
			strings.ReplaceAll(there.Message(), "secret", "absent") != gone.Message() || len(there.Details())+len(gone.Details()) > 0 {
			t.Errorf("%s: %v of a study that exists, %v of one that does not", full, there, gone)
		}
		checked++
	})
	if checked < 25 {
		t.Errorf("%d methods checked", checked)
	}
	// What the caller may see it learns as before.
	if _, err := g.Studies.GetStudy(g.As("limited"), &dparetov1.GetStudyRequest{Name: "studies/a-2"}); status.Code(err) != codes.NotFound {
		t.Errorf("a study of the caller's that does not exist: %v", err)
	}
}

// Other studies in a request are no way round, nor are errors about them a way to look.
func TestReferencesAreChecked(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{})
	g.Make("a-1")
	g.Make("secret")
	spec := servertest.SVTSpec()
	for _, prior := range []string{"studies/secret", "studies/absent"} {
		spec.PriorStudies = []string{prior}
		for _, rehearsal := range []bool{true, false} {
			_, err := g.Studies.CreateStudy(g.As("owner"), &dparetov1.CreateStudyRequest{
				StudyId: "a-2", Study: &dparetov1.Study{Spec: spec}, ValidateOnly: rehearsal,
			})
			servertest.WantCode(t, err, codes.PermissionDenied, `the role viewer on "`+prior+`"`)
		}
	}
	for _, original := range []string{"studies/secret/trials/1", "studies/secret/trials/7", "studies/absent/trials/1"} {
		_, err := g.Studies.CreateTrial(g.As("limited"), &dparetov1.CreateTrialRequest{
			Parent: "studies/a-1", Trial: &dparetov1.Trial{ReplicateOf: original},
		})
		servertest.WantCode(t, err, codes.PermissionDenied, original)
	}
	_, err := g.Studies.RenewLeases(g.As("limited"), &dparetov1.RenewLeasesRequest{
		Parent: "studies/a-1", LeaseTokens: map[string]string{"studies/secret/trials/1": "x"},
	})
	servertest.WantCode(t, err, codes.PermissionDenied, "studies/secret/trials/1")
}

func TestListShowsGrantedStudies(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{})
	for _, id := range []string{"a-1", "a-2", "aa-secret", "b-1", "c-secret", "d-secret"} {
		g.Make(id)
	}
	list := func(who string, size int32, token string) ([]string, string) {
		t.Helper()
		resp, err := g.Studies.ListStudies(g.As(who), &dparetov1.ListStudiesRequest{PageSize: size, PageToken: token})
		require.NoError(t, err)
		var names []string
		for _, s := range resp.GetStudies() {
			names = append(names, s.GetName())
		}
		return names, resp.GetNextPageToken()
	}
	want := []string{"studies/a-1", "studies/a-2", "studies/b-1"}
	if all, next := list("limited", 0, ""); !slices.Equal(all, want) || next != "" {
		t.Errorf("%v, next page %q", all, next)
	}
	// Pages neither end early nor hint at what is left out.
	var paged []string
	for token, pages := "", 0; ; pages++ {
		page, next := list("limited", 1, token)
		paged = append(paged, page...)
		if token = next; token == "" || pages > 3 {
			break
		}
	}
	if !slices.Equal(paged, want) {
		t.Errorf("by pages: %v", paged)
	}
	// The token of somebody who sees more shows no more.
	_, token := list("admin", 2, "")
	if page, _ := list("limited", 10, token); !slices.Equal(page, want[2:]) {
		t.Errorf("with a token of another: %v", page)
	}
	if all, _ := list("viewer", 0, ""); len(all) != 6 {
		t.Errorf("a viewer of everything sees %v", all)
	}
}

// Only the worker that a trial is handed to learns its lease token.
func TestLeaseTokensAreHidden(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{})
	g.Make("a-1")
	resp, err := g.Studies.SuggestTrials(g.As("worker"), &dparetov1.SuggestTrialsRequest{Parent: "studies/a-1", WorkerId: "w"})
	require.NoError(t, err)
	trial := resp.GetTrials()[0]
	token := trial.GetLease().GetToken()
	if token == "" {
		t.Fatal("no token for the worker")
	}
	one, err := g.Studies.GetTrial(g.As("viewer"), &dparetov1.GetTrialRequest{Name: trial.GetName()})
	if err != nil || one.GetTrial().GetLease().GetWorkerId() != "w" || one.GetTrial().GetLease().GetToken() != "" {
		t.Errorf("%v, %v", one, err)
	}
	all, err := g.Studies.ListTrials(g.As("viewer"), &dparetov1.ListTrialsRequest{Parent: "studies/a-1"})
	if err != nil || len(all.GetTrials()) != 1 || strings.Contains(all.String(), token) {
		t.Errorf("%v, %v", all, err)
	}
	stopped, err := g.Studies.StopTrial(g.As("worker"), &dparetov1.StopTrialRequest{Name: trial.GetName()})
	if err != nil || strings.Contains(stopped.String(), token) {
		t.Errorf("%v, %v", stopped, err)
	}
	if got := completeAs(g, "worker", trial); status.Code(got) != codes.OK { // it still counts
		t.Error(got)
	}
}

func completeAs(g *servertest.Guarded, who string, trial *dparetov1.Trial) error {
	_, err := g.Studies.CompleteTrial(g.As(who), servertest.Completion(trial, 0.5))
	return err
}

// A worker id belongs to the principal that first used it in a study: with it another would get the
// first one's trials, and their tokens. Several credentials of one name are one principal.
func TestWorkerIDsBelongToPrincipals(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{})
	second, token, err := auth.NewToken(auth.Credential{Name: "worker", Role: auth.Worker})
	require.NoError(t, err)
	g.Tokens["second"] = token
	g.Change(func(all []*auth.Credential) []*auth.Credential { return append(all, second) })
	ask := func(who, study, worker string) (*dparetov1.SuggestTrialsResponse, error) {
		return g.Studies.SuggestTrials(g.As(who), &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: worker})
	}
	g.Make("a-1")
	g.Make("a-2")
	first, err := ask("worker", "studies/a-1", "w")
	require.NoError(t, err)
	_, err = ask("limited", "studies/a-1", "w")
	servertest.WantCode(t, err, codes.PermissionDenied, `worker_id "w"`)
	if other, err := ask("limited", "studies/a-1", "v"); err != nil || other.GetTrials()[0].GetName() == first.GetTrials()[0].GetName() {
		t.Errorf("another id: %v, %v", other, err)
	}
	if _, err := ask("limited", "studies/a-2", "w"); err != nil {
		t.Errorf("another study: %v", err)
	}
	if again, err := ask("second", "studies/a-1", "w"); err != nil || again.GetTrials()[0].GetName() != first.GetTrials()[0].GetName() {
		t.Errorf("another credential of the principal: %v, %v", again, err)
	}

	// It is forgotten with the study.
	require.NoError(t, require.ErrOf(g.Studies.DeleteStudy(g.As("admin"), &dparetov1.DeleteStudyRequest{Name: "studies/a-1"})))
	g.Make("a-1")
	if _, err := ask("limited", "studies/a-1", "w"); err != nil {
		t.Errorf("a study of the same name: %v", err)
	}
}

// A stream ends when its caller's rights do.
func TestStreamsAreAuthorizedAgain(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{})
	ask := func(stream grpc.BidiStreamingClient[reflectionv1.ServerReflectionRequest, reflectionv1.ServerReflectionResponse]) error {
		err := stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		_, err = stream.Recv()
		return err
	}
	open := func(who string) grpc.BidiStreamingClient[reflectionv1.ServerReflectionRequest, reflectionv1.ServerReflectionResponse] {
		stream, err := reflectionv1.NewServerReflectionClient(g.Conn).ServerReflectionInfo(g.As(who))
		require.NoError(t, err)
		return stream
	}
	stream := open("limited")
	require.NoError(t, ask(stream))
	g.Change(func(all []*auth.Credential) []*auth.Credential {
		return slices.DeleteFunc(all, func(c *auth.Credential) bool { return c.Name == "limited" })
	})
	if err := ask(stream); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a revoked credential: %v", err)
	}
	if err := ask(open("viewer")); err != nil {
		t.Errorf("another: %v", err)
	}
}

// A stream on which nothing happens ends, too, and does not tell that the study has gone.
func TestIdleStreamsEndWithRights(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{})
	g.Make("b-1")
	idle := func(who string) grpc.ServerStreamingClient[dparetov1.WatchStudyResponse] {
		stream, err := g.Studies.WatchStudy(g.As(who), &dparetov1.WatchStudyRequest{Name: "studies/b-1"})
		if err == nil {
			_, err = stream.Recv() // the study
		}
		require.NoError(t, err)
		return stream
	}
	limited, viewer := idle("limited"), idle("viewer")
	g.Change(func(all []*auth.Credential) []*auth.Credential {
		return slices.DeleteFunc(all, func(c *auth.Credential) bool { return c.Name == "limited" })
	})
	_, err := limited.Recv()
	servertest.WantCode(t, err, codes.Unauthenticated, "")
	g.Change(func(all []*auth.Credential) []*auth.Credential {
		return slices.DeleteFunc(all, func(c *auth.Credential) bool { return c.Name == "viewer" })
	})
	require.NoError(t, require.ErrOf(g.Studies.DeleteStudy(g.As("admin"), &dparetov1.DeleteStudyRequest{Name: "studies/b-1"})))
	_, err = viewer.Recv()
	servertest.WantCode(t, err, codes.Unauthenticated, "")
}

// Streams are authorized by each of their requests.
func TestStreamRequestsAreAuthorized(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{})
	for who, want := range map[string]codes.Code{"viewer": codes.PermissionDenied, "worker": codes.PermissionDenied, "owner": codes.PermissionDenied} {
		stream, err := g.Admin.BackupStore(g.As(who), &dparetov1.BackupStoreRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) != want {
			t.Errorf("backup by %s: %v, want %v", who, err, want)
		}
	}
	for who, want := range map[string]bool{"viewer": true, "limited": true, "owner": true, "admin": false} {
		stream, err := g.Admin.ExportStudy(g.As(who), &dparetov1.ExportStudyRequest{Name: "studies/b-1"})
		if err == nil {
			_, err = stream.Recv()
		}
		if (status.Code(err) == codes.PermissionDenied) != want {
			t.Errorf("export by %s: %v", who, err)
		}
		watch, err := g.Studies.WatchStudy(g.As(who), &dparetov1.WatchStudyRequest{Name: "studies/b-1"})
		if err == nil {
			_, err = watch.Recv()
		}
		if (status.Code(err) == codes.PermissionDenied) != (who == "owner") {
			t.Errorf("watch by %s: %v", who, err)
		}
	}
}

// records returns the records of the audit log.
func records(g *servertest.Guarded) []audit.Record {
	g.T.Helper()
	var records []audit.Record
	for line := range strings.Lines(g.Audit.String()) {
		var r audit.Record
		require.NoError(g.T, json.Unmarshal([]byte(line), &r))
		r.Time, r.Peer, r.Credential = time.Time{}, "", ""
		records = append(records, r)
	}
	return records
}

func TestAudit(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{})
	g.Make("a-1")
	created, err := g.Studies.GetStudy(g.As("viewer"), &dparetov1.GetStudyRequest{Name: "studies/a-1"})
	require.NoError(t, err)
	require.NoError(t, require.ErrOf(g.Studies.CreateStudy(g.As("admin"), &dparetov1.CreateStudyRequest{
		StudyId: "a-9", Study: &dparetov1.Study{Spec: servertest.SVTSpec()}, ValidateOnly: true,
	})))
	if _, err := g.Studies.DeleteStudy(g.As("worker"), &dparetov1.DeleteStudyRequest{Name: "studies/a-1"}); status.Code(err) != codes.PermissionDenied {
		t.Fatal(err)
	}
	if _, err := g.Studies.DeleteStudy(g.As("admin"), &dparetov1.DeleteStudyRequest{Name: "studies/none"}); status.Code(err) != codes.NotFound {
		t.Fatal(err)
	}
	resp, err := g.Studies.SuggestTrials(g.As("limited"), &dparetov1.SuggestTrialsRequest{Parent: "studies/a-1", WorkerId: "w"})
	require.NoError(t, err)
	const s = "/dpareto.v1.StudyService/"
	want := []audit.Record{
		{Principal: "admin", Method: s + "CreateStudy", Resource: "studies/a-1", Code: "OK", Changed: []audit.Changed{
			{Name: "studies/a-1", Etag: created.GetStudy().GetEtag(), Revision: 1},
		}},
		{Principal: "worker", Method: s + "DeleteStudy", Resource: "studies/a-1", Code: "PermissionDenied"},
		{Principal: "admin", Method: s + "DeleteStudy", Resource: "studies/none", Code: "NotFound"},
		{Principal: "limited", Method: s + "SuggestTrials", Resource: "studies/a-1", Code: "OK", Changed: []audit.Changed{
			{Name: "studies/a-1/trials/1", Etag: resp.GetTrials()[0].GetEtag(), Revision: resp.GetTrials()[0].GetRevision()},
		}},
	}
	if diff := cmp.Diff(want, records(g)); diff != "" {
		t.Error(diff)
	}
}

// No secret gets into a log: neither the tokens of callers, valid or not, nor those of
// leases, whatever becomes of the calls.
func TestNoSecretsInLogs(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{})
	g.Make("a-1")
	secrets := []string{"MARKED-SECRET"}
	for _, token := range g.Tokens {
		secrets = append(secrets, token, token[len("dpareto_")+13:])
	}
	lease := func() *dparetov1.Trial {
		resp, err := g.Studies.SuggestTrials(g.As("worker"), &dparetov1.SuggestTrialsRequest{Parent: "studies/a-1", WorkerId: "w", Resume: new(false)})
		require.NoError(t, err)
		secrets = append(secrets, resp.GetTrials()[0].GetLease().GetToken())
		return resp.GetTrials()[0]
	}
	first, second := lease(), lease()
	completeAs(g, "worker", first)
	completeAs(g, "viewer", second) // denied
	completeAs(g, "nobody", second) // unknown
	forged := proto.CloneOf(second)
	forged.Lease.Token = "MARKED-SECRET"
	if err := completeAs(g, "worker", forged); status.Code(err) != codes.FailedPrecondition || strings.Contains(err.Error(), "MARKED-SECRET") {
		t.Errorf("forged lease: %v", err)
	}
	g.Tokens["forger"] = "MARKED-SECRET"
	if err := completeAs(g, "forger", second); status.Code(err) != codes.Unauthenticated || strings.Contains(err.Error(), "MARKED-SECRET") {
		t.Errorf("forged token: %v", err)
	}
	for _, header := range []string{"Basic MARKED-SECRET", "MARKED-SECRET"} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", header)
		if _, err := g.Studies.ListStudies(ctx, &dparetov1.ListStudiesRequest{}); strings.Contains(err.Error(), "MARKED") {
			t.Error(err)
		}
	}
	logs := g.Log.String() + g.Audit.String()
	if !strings.Contains(logs, "authentication failed") || !strings.Contains(logs, "CompleteTrial") {
		t.Fatalf("logs %s", logs)
	}
	for _, secret := range secrets {
		if strings.Contains(logs, secret) {
			t.Errorf("%q is in the logs:\n%s", secret, logs)
		}
	}
}

// broken is a disk that is full.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// Where changes cannot be recorded they are refused; reading goes on.
func TestAuditLogThatCannotBeWritten(t *testing.T) {
	db, err := bolt.Open(filepath.Join(t.TempDir(), "dpareto.db"))
	require.NoError(t, err)
	defer db.Close()
	records, err := store.New(t.Context(), db)
	require.NoError(t, err)
	quiet := slog.New(slog.DiscardHandler)
	f := &servertest.Fixture{T: t}
	stop := connect(f, server.New(server.Options{Store: records, Logger: quiet, Audit: audit.New(broken{}, quiet)}))
	defer stop()
	f.Create("a", servertest.SVTSpec()) // finds out
	_, err = f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: "studies/a"})
	servertest.WantCode(t, err, codes.Unavailable, "audit log")
	if _, err := f.Studies.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: "studies/a"}); err != nil {
		t.Error(err)
	}
}

// Refused calls do not fill the memory while the audit log cannot be written.
func TestDenialsWithoutAuditLog(t *testing.T) {
	full := new(disk)
	full.full.Store(true)
	g := servertest.GuardWith(t, limit.Limits{}, full)
	_, err := g.Studies.CreateStudy(g.As("owner"), &dparetov1.CreateStudyRequest{StudyId: "a-1", Study: &dparetov1.Study{Spec: servertest.SVTSpec()}})
	if err != nil { // finds out
		t.Fatal(err)
	}
	for range 100 {
		_, err := g.Studies.DeleteStudy(g.As("viewer"), &dparetov1.DeleteStudyRequest{Name: "studies/a-1"})
		servertest.WantCode(t, err, codes.PermissionDenied, "")
	}
	full.full.Store(false)
	_, err = g.Studies.DeleteStudy(g.As("owner"), &dparetov1.DeleteStudyRequest{Name: "studies/a-1"})
	require.NoError(t, err)
	if n := strings.Count(full.String(), "\n"); n != 2 {
		t.Errorf("%d records, want those of the changes:\n%s", n, full)
	}
}

// disk is one that can be full.
type disk struct {
	servertest.LockedBuffer

	full atomic.Bool
}

func (d *disk) Write(p []byte) (int, error) {
	if d.full.Load() {
		return 0, errors.New("no space left")
	}
	return d.LockedBuffer.Write(p)
}

// connect serves s to the fixture's clients until stop.
func connect(f *servertest.Fixture, s *server.Server, options ...grpc.ServerOption) (stop func()) {
	f.T.Helper()
	g := s.GRPC(options...)
	listener := bufconn.Listen(1 << 20)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := g.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			f.T.Error(err)
		}
	})
	var err error
	f.Conn, err = grpc.NewClient("passthrough:///bufconn",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(f.T, err)
	f.Studies, f.Admin = dparetov1.NewStudyServiceClient(f.Conn), dparetov1.NewAdminServiceClient(f.Conn)
	return func() {
		f.Conn.Close()
		g.Stop()
		serving.Wait()
		s.Close()
	}
}

// A client that fails to authenticate again and again is told to wait, and the log is
// spared; valid tokens from the same address go on.
func TestFailedAuthenticationsAreLimited(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{})
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer wrong")
	var last error
	for range 50 {
		_, last = g.Studies.ListStudies(ctx, &dparetov1.ListStudiesRequest{})
	}
	wantRetry(t, last)
	if n := strings.Count(g.Log.String(), "authentication failed"); n < 10 || n > 25 {
		t.Errorf("%d lines in the log", n)
	}
	if _, err := g.Studies.ListStudies(g.As("viewer"), &dparetov1.ListStudiesRequest{}); err != nil {
		t.Error(err)
	}
}

// wantRetry checks that an error is RESOURCE_EXHAUSTED and says when to come again.
func wantRetry(t *testing.T, err error) {
	t.Helper()
	s := status.Convert(err)
	for _, d := range s.Details() {
		if _, ok := d.(*errdetails.RetryInfo); ok && s.Code() == codes.ResourceExhausted {
			return
		}
	}
	t.Errorf("error %v, want RESOURCE_EXHAUSTED with RetryInfo", err)
}

// One principal that calls too much is held back, others are not, and health is told.
func TestConcurrentCallsAreLimited(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	hold := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if strings.HasSuffix(info.FullMethod, "GetServerInfo") {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > time.Minute {
				t.Errorf("deadline %v, %v", deadline, ok)
			}
			entered <- struct{}{}
			<-release
		}
		return handler(ctx, req)
	}
	g := servertest.Guard(t, limit.Limits{Calls: 3, CallsPerPrincipal: 2, CallTime: time.Minute}, grpc.ChainUnaryInterceptor(hold))
	var calls sync.WaitGroup
	begin := func(who string) {
		calls.Go(func() {
			if _, err := g.Admin.GetServerInfo(g.As(who), &dparetov1.GetServerInfoRequest{}); err != nil {
				t.Error(err)
			}
		})
		<-entered
	}
	list := func(who string) error {
		_, err := g.Studies.ListStudies(g.As(who), &dparetov1.ListStudiesRequest{})
		return err
	}
	begin("viewer")
	begin("viewer")
	wantRetry(t, list("viewer"))
	if err := list("worker"); err != nil {
		t.Error(err)
	}
	begin("worker")
	wantRetry(t, list("admin"))
	if _, err := healthv1.NewHealthClient(g.Conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
	close(release)
	calls.Wait()
	if err := list("viewer"); err != nil {
		t.Error(err)
	}
}

func TestStreamsAreLimited(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{Streams: 10, StreamsPerPrincipal: 1})
	watch := func() (healthv1.Health_WatchClient, error) {
		stream, err := healthv1.NewHealthClient(g.Conn).Watch(t.Context(), &healthv1.HealthCheckRequest{})
		if err != nil {
			return nil, err
		}
		_, err = stream.Recv()
		return stream, err
	}
	stream, err := watch()
	require.NoError(t, err)
	_, err = watch()
	wantRetry(t, err)

	// Draining says so to those who watch, and then ends them.
	g.Server.Drain()
	for {
		resp, err := stream.Recv()
		if err != nil {
			servertest.WantCode(t, err, codes.Unavailable, "")
			break
		}
		if got := resp.GetStatus(); got != healthv1.HealthCheckResponse_NOT_SERVING {
			t.Errorf("status %v", got)
		}
	}
	resp, err := healthv1.NewHealthClient(g.Conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil || resp.GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("%v, %v", resp, err)
	}
	g.Make("a-1") // calls go on
}

// Those who watch the health, for which it takes no token, leave the streams of others
// alone.
func TestHealthStreamsAreCountedApart(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{Streams: 1, StreamsPerPrincipal: 1})
	g.Make("a-1")
	health, err := healthv1.NewHealthClient(g.Conn).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err == nil {
		_, err = health.Recv()
	}
	require.NoError(t, err)
	watch, err := g.Studies.WatchStudy(g.As("viewer"), &dparetov1.WatchStudyRequest{Name: "studies/a-1"})
	if err == nil {
		_, err = watch.Recv()
	}
	if err != nil {
		t.Error(err)
	}
}

func TestStoredThingsAreLimited(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{Studies: 2, TrialsPerStudy: 3, RequestBytes: 10_000})
	g.Make("a-1")
	g.Make("a-2")
	_, err := g.Studies.CreateStudy(g.As("admin"), &dparetov1.CreateStudyRequest{StudyId: "a-3", Study: &dparetov1.Study{Spec: servertest.SVTSpec()}})
	servertest.WantCode(t, err, codes.ResourceExhausted, "2")
	g.Make("a-1") // exists
	ask := func() (int, error) {
		resp, err := g.Studies.SuggestTrials(g.As("worker"), &dparetov1.SuggestTrialsRequest{
			Parent: "studies/a-1", WorkerId: "w", Resume: new(false),
		})
		return len(resp.GetTrials()), err
	}
	for range 3 {
		if n, err := ask(); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	_, err = ask()
	servertest.WantCode(t, err, codes.ResourceExhausted, "3")
	_, err = g.Studies.CreateStudy(g.As("admin"), &dparetov1.CreateStudyRequest{
		StudyId: "a-1", Study: &dparetov1.Study{Description: strings.Repeat("x", 20_000)},
	})
	servertest.WantCode(t, err, codes.ResourceExhausted, "larger than max")
	info, err := g.Admin.GetServerInfo(g.As("viewer"), &dparetov1.GetServerInfoRequest{})
	if err != nil || info.GetMaxRequestBytes() != 10_000 {
		t.Errorf("%s, %v", protojson.Format(info), err)
	}
}

// A server without authentication lets everybody do everything, and reflection can be
// left out.
func TestOpenServer(t *testing.T) {
	f := servertest.Start(t)
	f.Create("svt", servertest.SVTSpec())
	if _, err := f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: "studies/svt"}); err != nil {
		t.Error(err)
	}
	closed := server.New(server.Options{Store: servertest.NewMemory(t), NoReflection: true})
	defer closed.Close()
	silent := closed.GRPC()
	defer silent.Stop()
	for name := range silent.GetServiceInfo() {
		if strings.Contains(name, "reflection") {
			t.Errorf("%s is served", name)
		}
	}
}

// The ids of one caller's requests are nothing to another: neither its answers, nor that
// there are any.
func TestRequestIDsOfCallers(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{})
	g.Make("a-1")
	ask := func(who, study string) string {
		t.Helper()
		resp, err := g.Studies.SuggestTrials(g.As(who), &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: who, RequestId: "1"})
		if err != nil || len(resp.GetTrials()) != 1 {
			t.Fatalf("%s: %v, %v", who, resp, err)
		}
		return resp.GetTrials()[0].GetLease().GetToken()
	}
	first := ask("worker", "studies/a-1")
	if again := ask("worker", "studies/a-1"); again != first {
		t.Error("the same request has another answer")
	}
	if other := ask("limited", "studies/a-1"); other == first {
		t.Error("another caller has got the lease")
	}
}

// A caller cannot fill the log with what it sends.
func TestLogOfRefusedCallsIsBounded(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{})
	g.Make("a-1")
	long := strings.Repeat("ü/", 50_000)
	ctx := g.As("admin")
	requests := []func() error{
		func() error {
			_, err := g.Studies.DeleteStudy(ctx, &dparetov1.DeleteStudyRequest{Name: "studies/" + long})
			return err
		},
		func() error {
			_, err := g.Studies.CreateStudy(ctx, &dparetov1.CreateStudyRequest{StudyId: long, Study: &dparetov1.Study{Name: long, Spec: servertest.SVTSpec()}})
			return err
		},
		func() error {
			_, err := g.Studies.UpdateStudy(ctx, &dparetov1.UpdateStudyRequest{Study: &dparetov1.Study{Name: "studies/a-1", Etag: long}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{long}}})
			return err
		},
		func() error {
			_, err := g.Studies.CreateTrial(ctx, &dparetov1.CreateTrialRequest{Parent: "studies/a-1", Trial: &dparetov1.Trial{Parameters: map[string]*dparetov1.Value{long: servertest.Value(1.0)}}})
			return err
		},
		func() error {
			_, err := g.Studies.CompleteTrial(ctx, &dparetov1.CompleteTrialRequest{Name: "studies/a-1/trials/1", LeaseToken: long, RequestId: long})
			return err
		},
		func() error {
			_, err := g.Studies.SuggestTrials(ctx, &dparetov1.SuggestTrialsRequest{Parent: long, WorkerId: long})
			return err
		},
		func() error {
			return g.Conn.Invoke(ctx, "/"+long[:12_000]+"/Method", new(emptypb.Empty), new(emptypb.Empty))
		},
	}
	for i, request := range requests {
		if request() == nil {
			t.Errorf("request %d was not refused", i)
		}
	}
	for line := range strings.Lines(g.Log.String()) {
		if len(line) > 2000 {
			t.Errorf("a line of %d bytes: %.300s", len(line), line)
		}
	}
}

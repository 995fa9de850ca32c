package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/gen/openapi"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/rest"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves a gRPC server as JSON over HTTP and returns its URL.
func serve(t *testing.T, g *grpc.Server, o rest.Options) string {
	t.Helper()
	conn, err := rest.Connect(g)
	require.NoError(t, err)
	handler, err := rest.Handler(t.Context(), conn, o)
	require.NoError(t, err)
	web := httptest.NewServer(handler)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		web.Close()
		g.Stop()
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return web.URL
}

// start starts a server on an empty store.
func start(t *testing.T) string {
	t.Helper()
	db, err := bolt.Open(filepath.Join(t.TempDir(), "dpareto.db"))
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	records, err := store.New(t.Context(), db)
	require.NoError(t, err)
	s := server.New(server.Options{Store: records, Version: "test"})
	t.Cleanup(s.Close)
	return serve(t, s.GRPC(), rest.Options{})
}

// do sends a request and returns the status and the body of the answer.
func do(t *testing.T, method, url, body string) (code int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// failure reads an error.
func failure(t *testing.T, body string) (s *spb.Status, fields []string) {
	t.Helper()
	s = new(spb.Status)
	if err := protojson.Unmarshal([]byte(body), s); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, detail := range status.FromProto(s).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				fields = append(fields, v.GetField())
			}
		}
	}
	return s, fields
}

func TestErrors(t *testing.T) {
	url := start(t)
	for _, test := range []struct {
		name, method, path, body string
		http                     int
		code                     codes.Code
		text, field              string
	}{
		{"absent", "GET", "/v1/studies/svt", "", 404, codes.NotFound, "studies/svt does not exist", ""},
		{"field violation", "POST", "/v1/studies?study_id=svt", `{"spec": {}}`, 400, codes.InvalidArgument, "", "study.spec.parameters"},
		{"unknown field", "POST", "/v1/studies/svt/trials:suggest", `{"worker": "w"}`, 400, codes.InvalidArgument, `unknown field "worker"`, "worker"},
		{"wrong type", "POST", "/v1/studies/svt/trials:suggest", `{"count": "many"}`, 400, codes.InvalidArgument, "count", "count"},
		{"no JSON", "POST", "/v1/studies/svt/trials:suggest", `count=1`, 400, codes.InvalidArgument, "request body: ", "body"},
		{"half of it", "POST", "/v1/studies/svt/trials:suggest", `{"count": `, 400, codes.InvalidArgument, "request body: unexpected EOF", "body"},
		{"unknown parameter", "GET", "/v1/studies?pagesize=1", "", 400, codes.InvalidArgument, `unknown parameter "pagesize"`, "pagesize"},
		{"wrong parameter", "GET", "/v1/studies?page_size=x", "", 400, codes.InvalidArgument, "page_size", "page_size"},
		{"parameter of the path", "GET", "/v1/studies/svt/trials?parent=studies/other", "", 400, codes.InvalidArgument, "parent", "parent"},
		{"no such URL", "GET", "/v1/experiments", "", 404, codes.NotFound, "/v1/experiments", ""},
		{"not for this method", "PUT", "/v1/studies/svt", "{}", 405, codes.Unimplemented, "PUT", ""},
		{"too large", "POST", "/v1/studies?study_id=svt", `{"description": "` + strings.Repeat("x", rest.DefaultMaxBodyBytes) + `"}`,
			413, codes.ResourceExhausted, "at most 4194304 bytes", ""},
	} {
		code, body := do(t, test.method, url+test.path, test.body)
		s, fields := failure(t, body)
		if code != test.http || codes.Code(s.GetCode()) != test.code || !strings.Contains(s.GetMessage(), test.text) {
			t.Errorf("%s: HTTP status %d, %s", test.name, code, body)
		}
		if got := strings.Join(fields, " "); test.field != "" && !strings.Contains(got, test.field) || test.field == "" && got != "" {
			t.Errorf("%s: violated fields %q, want %q", test.name, got, test.field)
		}
	}
}

// streams is a service with an answer for the methods of streams.
type streams struct {
	dparetov1.UnimplementedStudyServiceServer
	dparetov1.UnimplementedAdminServiceServer

	imported []*dparetov1.ImportStudyRequest
}

func (streams) WatchStudy(req *dparetov1.WatchStudyRequest, stream dparetov1.StudyService_WatchStudyServer) error {
	for revision := req.GetAfterRevision() + 1; revision <= 1<<60+2; revision++ {
		if err := stream.Send(&dparetov1.WatchStudyResponse{Revision: revision}); err != nil {
			return err
		}
	}
	return status.Error(codes.Unavailable, "the server is shutting down")
}

func (s *streams) ImportStudy(stream dparetov1.AdminService_ImportStudyServer) error {
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&dparetov1.ImportStudyResponse{Trials: int64(len(s.imported))})
		}
		if err != nil {
			return err
		}
		s.imported = append(s.imported, req)
	}
}

func (streams) GetStudy(ctx context.Context, _ *dparetov1.GetStudyRequest) (*dparetov1.GetStudyResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	err := grpc.SetHeader(ctx, metadata.Pairs("x-request-id", md.Get("x-request-id")[0], "internal", "secret"))
	return &dparetov1.GetStudyResponse{}, err
}

// Streams of the server are lines of JSON, 64-bit integers strings, and the error at the
// end a line of its own.
func TestServerStream(t *testing.T) {
	g := grpc.NewServer()
	dparetov1.RegisterStudyServiceServer(g, &streams{})
	url := serve(t, g, rest.Options{})
	code, body := do(t, "GET", url+"/v1/studies/svt:watch?after_revision=1152921504606846976", "")
	var lines []string
	scanner := bufio.NewScanner(strings.NewReader(body))
	for scanner.Scan() {
		lines = append(lines, strings.ReplaceAll(scanner.Text(), " ", ""))
	}
	want := []string{
		`{"result":{"revision":"1152921504606846977"}}`,
		`{"result":{"revision":"1152921504606846978"}}`,
		`{"error":{"code":14,"message":"theserverisshuttingdown"}}`,
	}
	if code != http.StatusOK || strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("HTTP status %d\n%s", code, body)
	}
}

// A body of many messages may be larger than any of them.
func TestClientStream(t *testing.T) {
	g := grpc.NewServer()
	service := new(streams)
	dparetov1.RegisterAdminServiceServer(g, service)
	url := serve(t, g, rest.Options{MaxBodyBytes: 100})
	code, body := do(t, "POST", url+"/v1/studies:import", strings.Repeat(`{"record": {"trial": {"trial": {"note": "0123456789"}}}}`+"\n", 10))
	if code != http.StatusOK || len(service.imported) != 10 || !strings.Contains(body, `"10"`) {
		t.Errorf("HTTP status %d, %d messages: %s", code, len(service.imported), body)
	}
}

func TestRequestID(t *testing.T) {
	g := grpc.NewServer()
	dparetov1.RegisterStudyServiceServer(g, &streams{})
	url := serve(t, g, rest.Options{})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/studies/svt", nil)
	require.NoError(t, err)
	r.Header.Set("X-Request-ID", "r1")
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	resp.Body.Close()
	if got := resp.Header.Get("X-Request-ID"); got != "r1" {
		t.Errorf("request id %q", got)
	}
	for name := range resp.Header {
		if strings.Contains(strings.ToLower(name), "internal") {
			t.Errorf("header %s was passed on", name)
		}
	}
}

func TestOpenAPI(t *testing.T) {
	url := start(t)
	code, body := do(t, "GET", url+"/openapi.json", "")
	if code != http.StatusOK || body != string(openapi.Document()) {
		t.Errorf("HTTP status %d, %d bytes", code, len(body))
	}
	var document struct {
		Swagger string                    `json:"swagger"`
		Paths   map[string]map[string]any `json:"paths"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &document))
	operations := 0
	for path, methods := range document.Paths {
		operations += len(methods)
		if strings.Contains(path, "studie}") {
			t.Errorf("path %s", path)
		}
	}
	want := 0
	for _, r := range rules(t) {
		want += 1 + len(r.Additional)
	}
	if operations != want || document.Swagger != "2.0" {
		t.Errorf("%d operations, want %d", operations, want)
	}
}

// peers notes where calls say that they come from.
type peers struct {
	dparetov1.UnimplementedStudyServiceServer
}

func (peers) GetStudy(ctx context.Context, _ *dparetov1.GetStudyRequest) (*dparetov1.GetStudyResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	return &dparetov1.GetStudyResponse{Study: &dparetov1.Study{DisplayName: strings.Join(md.Get("x-forwarded-for"), "|")}}, nil
}

// Nobody can hide where a request comes from, or say that it is elsewhere.
func TestForwardedAddress(t *testing.T) {
	g := grpc.NewServer()
	dparetov1.RegisterStudyServiceServer(g, &peers{})
	url := serve(t, g, rest.Options{})
	for name, said := range map[string][]string{
		"nothing": nil, "another": {"192.0.2.1"}, "several": {"192.0.2.1, 192.0.2.2", "192.0.2.3"}, "no text": {"\xff"}, "long": {strings.Repeat("1", 20_000)},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/studies/svt", nil)
		require.NoError(t, err)
		r.Header["X-Forwarded-For"] = said
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(body), `"127.0.0.1"`) {
			t.Errorf("%s: %s, %v", name, body, err)
		}
	}
}

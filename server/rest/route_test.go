package rest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"sigs.k8s.io/yaml"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/rest"
)

// recorder is a connection that notes calls and fails them.
type recorder struct {
	method   string
	request  proto.Message
	metadata metadata.MD
	err      error
}

func (c *recorder) Invoke(ctx context.Context, method string, args, _ any, _ ...grpc.CallOption) error {
	c.method, c.request = method, args.(proto.Message)
	c.metadata, _ = metadata.FromOutgoingContext(ctx)
	return c.err
}

func (c *recorder) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	c.method = method
	c.metadata, _ = metadata.FromOutgoingContext(ctx)
	return nil, c.err
}

// rule is an HTTP rule of gateway.yaml.
type rule struct {
	Selector, Get, Post, Patch, Delete, Body string

	Additional []rule `json:"additional_bindings"`
}

// request returns the method and the URL of the rule, with ids for its variables.
func (r rule) request() (method, url string) {
	for method, pattern := range map[string]string{
		http.MethodGet: r.Get, http.MethodPost: r.Post, http.MethodPatch: r.Patch, http.MethodDelete: r.Delete,
	} {
		if pattern != "" {
			url = regexp.MustCompile(`\{[a-z.]+=([^}]*)\}`).ReplaceAllString(pattern, "$1")
			for variable, name := range map[string]string{
				"studies/*": "studies/svt", "trials/*": "trials/7", "ledgers/*": "ledgers/adult", "releases/*": "releases/7",
			} {
				url = strings.Replace(url, variable, name, 1)
			}
			return method, url
		}
	}
	return "", ""
}

func rules(t *testing.T) map[protoreflect.FullName]rule {
	t.Helper()
	text, err := os.ReadFile("../../gateway.yaml")
	require.NoError(t, err)
	var config struct{ HTTP struct{ Rules []rule } }
	require.NoError(t, yaml.Unmarshal(text, &config))
	all := make(map[protoreflect.FullName]rule)
	for _, r := range config.HTTP.Rules {
		all[protoreflect.FullName(r.Selector)] = r
	}
	return all
}

// Every method of the contract can be reached, under the URL that gateway.yaml gives it.
func TestEveryMethodHasARoute(t *testing.T) {
	conn := &recorder{err: status.Error(codes.Aborted, "noted")}
	handler, err := rest.Handler(t.Context(), conn, rest.Options{})
	require.NoError(t, err)
	all := rules(t)
	methods := 0
	for _, file := range []protoreflect.FileDescriptor{
		dparetov1.File_dpareto_v1_study_service_proto, dparetov1.File_dpareto_v1_front_service_proto,
		dparetov1.File_dpareto_v1_privacy_service_proto, dparetov1.File_dpareto_v1_release_service_proto,
		dparetov1.File_dpareto_v1_admin_service_proto, dparetov1.File_dpareto_v1_analysis_service_proto,
	} {
		service := file.Services().Get(0)
		for i := range service.Methods().Len() {
			methods++
			method := service.Methods().Get(i)
			r, ok := all[method.FullName()]
			if !ok {
				t.Errorf("%s has no rule", method.FullName())
				continue
			}
			for _, r := range append(r.Additional, r) {
				verb, url := r.request()
				answer := httptest.NewRecorder()
				*conn = recorder{err: conn.err}
				handler.ServeHTTP(answer, httptest.NewRequest(verb, url, strings.NewReader("{}")))
				if want := "/" + string(service.FullName()) + "/" + string(method.Name()); conn.method != want {
					t.Errorf("%s %s calls %q, want %s: %s", verb, url, conn.method, want, answer.Body)
				}
				if answer.Code != http.StatusConflict && !method.IsStreamingServer() && !method.IsStreamingClient() {
					t.Errorf("%s %s: HTTP status %d", verb, url, answer.Code)
				}
				if conn.request != nil {
					checkNames(t, url, conn.request.ProtoReflect())
				}
			}
		}
	}
	if methods != len(all) {
		t.Errorf("%d rules for %d methods", len(all), methods)
	}
}

// checkNames checks that the name in a URL has arrived in the request.
func checkNames(t *testing.T, url string, request protoreflect.Message) {
	t.Helper()
	want := regexp.MustCompile(`(studies/svt|ledgers/adult)(/(trials|releases)/7)?`).FindString(url)
	if want == "" {
		return
	}
	for _, path := range []string{"name", "parent", "study.name", "trial.name", "ledger"} {
		message := request
		parent, leaf, nested := strings.Cut(path, ".")
		if nested {
			if field := message.Descriptor().Fields().ByName(protoreflect.Name(parent)); field != nil && field.Message() != nil {
				message = message.Get(field).Message()
			}
		} else {
			leaf = parent
		}
		if field := message.Descriptor().Fields().ByName(protoreflect.Name(leaf)); field != nil && message.Get(field).String() == want {
			return
		}
	}
	t.Errorf("%s: the request does not name %s: %v", url, want, request.Interface())
}

func TestHeaders(t *testing.T) {
	conn := &recorder{err: status.Error(codes.Unauthenticated, "who are you?")}
	handler, err := rest.Handler(t.Context(), conn, rest.Options{})
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodGet, "/v1/studies", nil)
	for name, value := range map[string]string{
		"Authorization": "Bearer secret", "X-Request-ID": "r1", "Traceparent": "00-1-2-01", "Cookie": "c", "Grpc-Metadata-Role": "admin",
	} {
		r.Header.Set(name, value)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, r)
	for name, want := range map[string]string{"authorization": "Bearer secret", "x-request-id": "r1", "traceparent": "00-1-2-01"} {
		if got := conn.metadata.Get(name); len(got) != 1 || got[0] != want {
			t.Errorf("metadata %s is %q, want %q", name, got, want)
		}
	}
	for name := range conn.metadata {
		if strings.Contains(name, "cookie") || strings.Contains(name, "role") {
			t.Errorf("%s was forwarded", name)
		}
	}
	if answer.Code != http.StatusUnauthorized || answer.Header().Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("HTTP status %d, WWW-Authenticate %q", answer.Code, answer.Header().Get("WWW-Authenticate"))
	}
}

// Pages of other origins may not call the server, unless they are allowed.
func TestOrigins(t *testing.T) {
	const friend, stranger = "https://friend.example", "https://stranger.example"
	conn := &recorder{err: status.Error(codes.Aborted, "noted")}
	for _, test := range []struct {
		name, method, origin string
		allowed              []string
		called               bool
		grant                string
	}{
		{"same", http.MethodPost, "http://example.com", nil, true, ""},
		{"no browser", http.MethodPost, "", nil, true, ""},
		{"stranger", http.MethodPost, stranger, nil, false, ""},
		{"stranger reads", http.MethodGet, stranger, nil, true, ""}, // the browser keeps the answer to itself
		{"friend", http.MethodPost, friend, []string{friend}, true, friend},
		{"stranger of a friend", http.MethodPost, stranger, []string{friend}, false, ""},
	} {
		handler, err := rest.Handler(t.Context(), conn, rest.Options{AllowedOrigins: test.allowed})
		require.NoError(t, err)
		conn.method = ""
		r := httptest.NewRequest(test.method, "/v1/studies", strings.NewReader("{}"))
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		if called := conn.method != ""; called != test.called {
			t.Errorf("%s: called %t, HTTP status %d", test.name, called, answer.Code)
		}
		if grant := answer.Header().Get("Access-Control-Allow-Origin"); grant != test.grant {
			t.Errorf("%s: granted %q", test.name, grant)
		}
	}
	handler, err := rest.Handler(t.Context(), conn, rest.Options{AllowedOrigins: []string{friend}})
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodOptions, "/v1/studies", nil)
	r.Header.Set("Origin", friend)
	r.Header.Set("Access-Control-Request-Method", "POST")
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, r)
	if answer.Code != http.StatusNoContent || !strings.Contains(answer.Header().Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("preflight: HTTP status %d, %v", answer.Code, answer.Header())
	}
	if _, err := rest.Handler(t.Context(), conn, rest.Options{AllowedOrigins: []string{"friend.example/"}}); err == nil {
		t.Error("an origin without a scheme was taken")
	}
}

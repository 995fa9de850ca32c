package contract_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	"github.com/dpareto/dpareto/internal/require"
)

func TestREST(t *testing.T) {
	runScenarios(t, false, newRESTClient)
}

// restClient calls the server as docs/reference/rest.md says, with no knowledge of protobuf but the
// URLs in gateway.yaml.
type restClient struct {
	server *server
	http   *http.Client
	routes map[string][]route // by the full name of the method
}

// route is a rule of gateway.yaml.
type route struct {
	Selector, Get, Post, Patch, Delete, Body string

	Additional []route `json:"additional_bindings"`
}

func newRESTClient(t *testing.T, s *server) client {
	t.Helper()
	text, err := os.ReadFile("../../gateway.yaml")
	require.NoError(t, err)
	var config struct{ HTTP struct{ Rules []route } }
	require.NoError(t, yaml.Unmarshal(text, &config))
	c := &restClient{server: s, http: &http.Client{Transport: &http.Transport{}}, routes: make(map[string][]route)}
	for _, rule := range config.HTTP.Rules {
		c.routes[rule.Selector] = append([]route{rule}, rule.Additional...)
	}
	t.Cleanup(c.restarted)
	return c
}

// restarted implements client. Connections to a server that was killed are of no use.
func (c *restClient) restarted() { c.http.CloseIdleConnections() }

func (c *restClient) call(ctx context.Context, r request) (any, error) {
	var err error
	for _, route := range c.routes[string(r.method.FullName())] {
		var call *http.Request
		if call, err = route.request(ctx, "http://"+c.server.http, r); err == nil {
			if r.credential != "" {
				call.Header.Set("Authorization", "Bearer "+r.credential)
			}
			return c.do(call, r)
		}
	}
	return nil, errors.Join(fmt.Errorf("no rule for %s", r.method.FullName()), err)
}

var variable = regexp.MustCompile(`\{([a-z._]+)=([^}]*)\}`)

// request returns the HTTP request of a call: the variables of the URL, the body, and the rest
// as its query.
func (rule route) request(ctx context.Context, base string, r request) (*http.Request, error) {
	verb, pattern := rule.verb()
	fields := make(map[string]any)
	if !r.method.IsStreamingClient() {
		if message, ok := r.messages[0].(map[string]any); ok {
			fields = clone(message)
		}
	}
	path := pattern
	if match := variable.FindStringSubmatch(pattern); match != nil {
		name, err := take(fields, strings.Split(match[1], "."))
		if err != nil {
			return nil, err
		}
		shape := regexp.MustCompile("^" + strings.ReplaceAll(match[2], "*", "[^/]+") + "$")
		if !shape.MatchString(name) {
			return nil, fmt.Errorf("%s is not %s", name, match[2])
		}
		path = strings.Replace(pattern, match[0], (&url.URL{Path: name}).EscapedPath(), 1)
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	query := make(url.Values)
	switch {
	case r.method.IsStreamingClient():
		for _, message := range r.messages {
			if err := encoder.Encode(message); err != nil {
				return nil, err
			}
		}
	case rule.Body == "*":
		if err := encoder.Encode(fields); err != nil {
			return nil, err
		}
	default:
		if rule.Body != "" {
			if err := encoder.Encode(fields[rule.Body]); err != nil {
				return nil, err
			}
			delete(fields, rule.Body)
		}
		for key, value := range fields {
			addQuery(query, key, value)
		}
	}
	return http.NewRequestWithContext(ctx, verb, base+path+"?"+query.Encode(), &body)
}

func (rule route) verb() (verb, pattern string) {
	switch {
	case rule.Get != "":
		return http.MethodGet, rule.Get
	case rule.Patch != "":
		return http.MethodPatch, rule.Patch
	case rule.Delete != "":
		return http.MethodDelete, rule.Delete
	default:
		return http.MethodPost, rule.Post
	}
}

// clone copies an object and the objects in it.
func clone(fields map[string]any) map[string]any {
	out := make(map[string]any, len(fields))
	for key, value := range fields {
		if object, ok := value.(map[string]any); ok {
			value = clone(object)
		}
		out[key] = value
	}
	return out
}

// take removes a text from an object and returns it.
func take(fields map[string]any, path []string) (string, error) {
	for _, part := range path[:len(path)-1] {
		fields, _ = fields[part].(map[string]any)
	}
	last := path[len(path)-1]
	text, ok := fields[last].(string)
	if !ok {
		return "", fmt.Errorf("the request has no %s", strings.Join(path, "."))
	}
	delete(fields, last)
	return text, nil
}

// addQuery adds a field to a query.
func addQuery(query url.Values, key string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for k, v := range value {
			addQuery(query, key+"."+k, v)
		}
	case []any:
		for _, v := range value {
			addQuery(query, key, v)
		}
	case string:
		if key == "update_mask" { // in JSON its paths are in camel case, in a query as in the contract
			value = snake(value)
		}
		query.Add(key, value)
	default:
		query.Add(key, show(value))
	}
}

func snake(name string) string {
	var out strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

// do makes an HTTP request and returns the answer of the call.
func (c *restClient) do(call *http.Request, r request) (any, error) {
	response, err := c.http.Do(call)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if contentType := response.Header.Get("Content-Type"); contentType != "application/json" {
		return nil, fmt.Errorf("an answer of type %q", contentType)
	}
	decoder := json.NewDecoder(response.Body)
	if response.StatusCode != http.StatusOK {
		return nil, statusOf(decoder)
	}
	if !r.method.IsStreamingServer() {
		var answer any
		if err := decoder.Decode(&answer); err != nil {
			return nil, err
		}
		return answer, nil
	}
	answers := []any{}
	for r.take == 0 || len(answers) < r.take {
		var line struct {
			Result any             `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		err := decoder.Decode(&line)
		switch {
		case errors.Is(err, io.EOF):
			return answers, nil
		case err != nil:
			return nil, err
		case line.Error != nil:
			return nil, statusOf(json.NewDecoder(bytes.NewReader(line.Error)))
		}
		answers = append(answers, line.Result)
	}
	return answers, nil
}

// statusOf returns the error that a google.rpc.Status in JSON is.
func statusOf(decoder *json.Decoder) error {
	var raw json.RawMessage
	if err := decoder.Decode(&raw); err != nil {
		return err
	}
	var line struct { // of a stream that failed before its first message
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(raw, &line); err != nil {
		return err
	}
	if line.Error != nil {
		raw = line.Error
	}
	var s spb.Status
	if err := protojson.Unmarshal(raw, &s); err != nil {
		return err
	}
	return status.ErrorProto(&s)
}

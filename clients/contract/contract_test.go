package contract_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Of a step that is tried until it holds.
const (
	patience = 10 * time.Minute
	pause    = 50 * time.Millisecond
)

// request is a call of the table.
type request struct {
	method     protoreflect.MethodDescriptor
	credential string // the caller's token, or ""
	stub       bool   // not by the idiomatic layer of a client
	messages   []any  // in JSON; one, unless the client streams
	take       int    // messages of a stream after which to end it; 0 for all
}

// client makes calls.
type client interface {
	// call returns the answer in JSON, a list of answers if the server streams, or an
	// error with a status.
	call(ctx context.Context, r request) (any, error)
	// restarted says that the server was.
	restarted()
}

// methods are the contract's methods by service and name: "StudyService.GetStudy".
func methods() map[string]protoreflect.MethodDescriptor {
	out := make(map[string]protoreflect.MethodDescriptor)
	for _, file := range []protoreflect.FileDescriptor{
		dparetov1.File_dpareto_v1_study_service_proto, dparetov1.File_dpareto_v1_front_service_proto,
		dparetov1.File_dpareto_v1_privacy_service_proto, dparetov1.File_dpareto_v1_release_service_proto,
		dparetov1.File_dpareto_v1_admin_service_proto, dparetov1.File_dpareto_v1_analysis_service_proto,
	} {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				method := service.Methods().Get(j)
				out[fmt.Sprintf("%s.%s", service.Name(), method.Name())] = method
			}
		}
	}
	return out
}

// Every method is in a scenario, or the table says why not.
func TestEveryMethodHasAScenario(t *testing.T) {
	table, all := readTable(t), methods()
	called := make(map[string]bool)
	for _, scenario := range table.Scenarios {
		for _, step := range scenario.Steps {
			if step.Call != "" {
				called[step.Call] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		reason, isException := table.Exceptions[name]
		switch {
		case called[name] && isException:
			t.Errorf("%s is in a scenario and in exceptions", name)
		case !called[name] && reason == "":
			t.Errorf("%s is in no scenario, and exceptions do not say why", name)
		}
	}
	for name := range table.Exceptions {
		if all[name] == nil {
			t.Errorf("exceptions: there is no method %s", name)
		}
	}
}

// runScenarios runs the table, one test for each scenario. Scenarios of a kind share a
// server.
func runScenarios(t *testing.T, restartAlways bool, connect func(t *testing.T, s *server) client) {
	t.Helper()
	table := readTable(t)
	type side struct {
		server *server
		client client
	}
	sides := make(map[bool]side)
	for _, authentication := range []bool{false, true} {
		var tokens []token
		if authentication {
			tokens = table.Tokens
		}
		server := startServer(t, tokens)
		sides[authentication] = side{server, connect(t, server)}
	}
	for _, scenario := range table.Scenarios {
		t.Run(strings.ReplaceAll(scenario.Name, " ", "-"), func(t *testing.T) {
			side := sides[scenario.Authentication]
			side.server.t = t
			r := runner{server: side.server, client: side.client, methods: methods(), saved: variables{}}
			for i, step := range scenario.Steps {
				if step.Restart || i > 0 && (scenario.RestartBetweenSteps || restartAlways) {
					side.server.restart()
					side.client.restarted()
				}
				if step.Restart {
					continue
				}
				if err := r.run(t.Context(), step); err != nil {
					t.Fatalf("scenario %q, step %d, %s (%s):\n%v", scenario.Name, i+1, step.Step, step.Call, err)
				}
			}
		})
	}
}

// runner runs the steps of one scenario.
type runner struct {
	server  *server
	client  client
	methods map[string]protoreflect.MethodDescriptor
	saved   variables
}

// run takes a step, and returns what differs from its expectations.
func (r *runner) run(ctx context.Context, s step) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	call, err := r.request(s)
	if err != nil {
		return err
	}
	for {
		answer, callErr := r.client.call(ctx, call)
		err := r.check(s, answer, callErr)
		if err == nil {
			return r.saved.save(s.Save, answer)
		}
		if !s.Eventually {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

func (r *runner) request(s step) (request, error) {
	call := request{method: r.methods[s.Call], stub: s.Stub || s.Request["request_id"] != nil, take: s.Take}
	if call.method == nil {
		return request{}, fmt.Errorf("there is no method %q", s.Call)
	}
	if s.As != "" && s.As != "nobody" {
		call.credential = s.As // a token that no server knows, if it is no name
		if known, ok := r.server.credentials[s.As]; ok {
			call.credential = known
		}
	}
	var messages any = []any{s.Request}
	if s.Requests != nil {
		messages = s.Requests
	}
	expanded, err := r.saved.expand(messages)
	if err != nil {
		return request{}, err
	}
	list, ok := expanded.([]any)
	if !ok {
		return request{}, fmt.Errorf("requests is no list: %s", show(expanded))
	}
	call.messages = list
	return call, nil
}

// check compares an answer with the expectations of a step.
func (r *runner) check(s step, answer any, callErr error) error {
	st, ok := status.FromError(callErr)
	if !ok {
		return fmt.Errorf("an error without a status: %w", callErr)
	}
	want := s.Code
	if want == "" {
		want = code.Code_OK.String()
	}
	if got := code.Code(st.Code()).String(); got != want {
		return fmt.Errorf("code: got %s, want %s: %s", got, want, st.Message())
	}
	if diff := cmp.Diff(violated(s.Violations), violated(fields(st))); diff != "" {
		return fmt.Errorf("violations (-want +got): %s\n%s", st.Message(), diff)
	}
	if s.Answer == nil {
		return nil
	}
	expected, err := r.saved.expand(s.Answer)
	if err != nil {
		return err
	}
	if differences := match("", expected, answer); len(differences) > 0 {
		return fmt.Errorf("%s\nanswer: %s", strings.Join(differences, "\n"), show(answer))
	}
	return nil
}

// fields returns the fields that an error names.
func fields(s *status.Status) []string {
	var out []string
	for _, detail := range s.Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				out = append(out, v.GetField())
			}
		}
	}
	return out
}

// violated returns a sorted set of fields.
func violated(fields []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(fields)))
}

// newMessage returns the message that JSON stands for.
func newMessage(descriptor protoreflect.MessageDescriptor, value any) (proto.Message, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(descriptor.FullName())
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	message := kind.New().Interface()
	if err := protojson.Unmarshal(text, message); err != nil {
		return nil, fmt.Errorf("the request: %w", err)
	}
	return message, nil
}

// inJSON returns a message as decoded JSON, with the contract's names of fields.
func inJSON(message proto.Message) (any, error) {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	if err != nil {
		return nil, err
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	return out, nil
}

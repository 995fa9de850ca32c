package contract_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	dpareto "github.com/dpareto/dpareto/clients/go"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

func TestGoClient(t *testing.T) {
	used := make(map[string]bool)
	runScenarios(t, false, func(t *testing.T, s *server) client {
		t.Helper()
		return newGoClient(t, s, used)
	})
	for _, method := range slices.Sorted(maps.Keys(idiomatic)) {
		if !used[method] && !t.Failed() {
			t.Errorf("no scenario took the client's own way to %s", method)
		}
	}
}

// goClient calls the server by the methods of the Go client, and by its generated clients
// where it has none. It checks that the methods send what the table says, and return what
// the server answered.
type goClient struct {
	t       *testing.T
	server  *server
	used    map[string]bool // methods that were called idiomatically
	clients map[string]*connection
	trials  map[string]*dpareto.Trial // by token
}

// connection is a client with a token, and its last call.
type connection struct {
	*dpareto.Client

	request, reply proto.Message
	waiting        func() // called when a worker would have to wait for its trial
}

func newGoClient(t *testing.T, s *server, used map[string]bool) *goClient {
	t.Helper()
	return &goClient{
		t: t, server: s, used: used,
		clients: make(map[string]*connection), trials: make(map[string]*dpareto.Trial),
	}
}

// restarted implements client. The Go client notices by itself.
func (*goClient) restarted() {}

func (c *goClient) connect(credential string) (*connection, error) {
	if known, ok := c.clients[credential]; ok {
		return known, nil
	}
	conn := new(connection)
	address, options := c.server.target()
	options = append(options, dpareto.WithDialOptions(grpc.WithChainUnaryInterceptor(conn.note)))
	if credential != "" {
		options = append(options, dpareto.WithToken(credential))
	}
	var err error
	if conn.Client, err = dpareto.Dial(address, options...); err != nil {
		return nil, err
	}
	c.t.Cleanup(func() { conn.Close() })
	c.clients[credential] = conn
	return conn, nil
}

// note keeps a call.
func (c *connection) note(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	c.request, _ = req.(proto.Message)
	err := invoke(ctx, method, req, reply, conn, options...)
	c.reply, _ = reply.(proto.Message)
	if resp, ok := reply.(*dparetov1.SuggestTrialsResponse); ok && err == nil && len(resp.GetTrials()) == 0 && c.waiting != nil {
		c.waiting()
	}
	return err
}

// idiomatic are the methods that the Go client wraps. Each makes the call and returns its
// answer, or false if the wrapper cannot express the request.
var idiomatic = map[string]idiom{
	"CreateStudy": way(func(ctx context.Context, c *connection, r *dparetov1.CreateStudyRequest) (proto.Message, error) {
		study, err := c.CreateStudy(ctx, r.GetStudyId(), r.GetStudy())
		if err == nil && study.Name() != "studies/"+r.GetStudyId() {
			err = fmt.Errorf("the study is %s", study.Name())
		}
		return c.reply, err
	}),
	"GetStudy": way(func(ctx context.Context, c *connection, r *dparetov1.GetStudyRequest) (proto.Message, error) {
		study, err := c.studyOf(r.GetName()).Get(ctx)
		return &dparetov1.GetStudyResponse{Study: study}, err
	}),
	"UpdateStudy": way(func(ctx context.Context, c *connection, r *dparetov1.UpdateStudyRequest) (proto.Message, error) {
		study, err := c.studyOf(r.GetStudy().GetName()).Update(ctx, r.GetStudy(), r.GetUpdateMask().GetPaths()...)
		return &dparetov1.UpdateStudyResponse{Study: study}, err
	}),
	"DeleteStudy": way(func(ctx context.Context, c *connection, r *dparetov1.DeleteStudyRequest) (proto.Message, error) {
		return new(dparetov1.DeleteStudyResponse), c.studyOf(r.GetName()).Delete(ctx)
	}),
	"PauseStudy": way(func(ctx context.Context, c *connection, r *dparetov1.PauseStudyRequest) (proto.Message, error) {
		study, err := c.studyOf(r.GetName()).Pause(ctx)
		return &dparetov1.PauseStudyResponse{Study: study}, err
	}),
	"ResumeStudy": way(func(ctx context.Context, c *connection, r *dparetov1.ResumeStudyRequest) (proto.Message, error) {
		study, err := c.studyOf(r.GetName()).Resume(ctx)
		return &dparetov1.ResumeStudyResponse{Study: study}, err
	}),
	"GetTrial": way(func(ctx context.Context, c *connection, r *dparetov1.GetTrialRequest) (proto.Message, error) {
		study, number := c.trialOf(r.GetName())
		trial, err := study.Trial(ctx, number)
		return &dparetov1.GetTrialResponse{Trial: trial}, err
	}),
	"UpdateTrial": way(func(ctx context.Context, c *connection, r *dparetov1.UpdateTrialRequest) (proto.Message, error) {
		study, number := c.trialOf(r.GetTrial().GetName())
		trial, err := study.UpdateTrial(ctx, number, r.GetTrial(), r.GetUpdateMask().GetPaths()...)
		return &dparetov1.UpdateTrialResponse{Trial: trial}, err
	}),
	"DeleteTrial": way(func(ctx context.Context, c *connection, r *dparetov1.DeleteTrialRequest) (proto.Message, error) {
		study, number := c.trialOf(r.GetName())
		return new(dparetov1.DeleteTrialResponse), study.DeleteTrial(ctx, number)
	}),
	"StopTrial": way(func(ctx context.Context, c *connection, r *dparetov1.StopTrialRequest) (proto.Message, error) {
		study, number := c.trialOf(r.GetName())
		trial, err := study.StopTrial(ctx, number, r.GetReason())
		return &dparetov1.StopTrialResponse{Trial: trial}, err
	}),
	"GetFront": way(func(ctx context.Context, c *connection, r *dparetov1.GetFrontRequest) (proto.Message, error) {
		front, err := c.studyOf(r.GetName()).Front(ctx, r.GetKind())
		return &dparetov1.GetFrontResponse{Front: front}, err
	}),
	"QueryFront": way(func(ctx context.Context, c *connection, r *dparetov1.QueryFrontRequest) (proto.Message, error) {
		return c.studyOf(r.GetName()).QueryFront(ctx, r.GetBounds(), r.GetConfidence())
	}),
	"ListHypervolumes": way(func(ctx context.Context, c *connection, r *dparetov1.ListHypervolumesRequest) (proto.Message, error) {
		return c.studyOf(r.GetName()).Hypervolumes(ctx, r.GetKind())
	}),
	"PredictMetrics": way(func(ctx context.Context, c *connection, r *dparetov1.PredictMetricsRequest) (proto.Message, error) {
		configurations := make([]map[string]*dparetov1.Value, len(r.GetConfigurations()))
		for i, x := range r.GetConfigurations() {
			configurations[i] = x.GetParameters()
		}
		_, err := c.studyOf(r.GetName()).Predict(ctx, configurations...)
		return c.reply, err
	}),
	"GetPrivacyLedger": way(func(ctx context.Context, c *connection, r *dparetov1.GetPrivacyLedgerRequest) (proto.Message, error) {
		return c.studyOf(r.GetName()).PrivacyLedger(ctx, r.GetDelta())
	}),
	"ReaccountStudy": way(func(ctx context.Context, c *connection, r *dparetov1.ReaccountStudyRequest) (proto.Message, error) {
		return c.studyOf(r.GetName()).Reaccount(ctx, r.GetMetric(), r.GetPrivacy(), r.GetValidateOnly())
	}),
	"ListStudies": func(ctx context.Context, _ *goClient, conn *connection, request proto.Message) (proto.Message, bool, error) {
		r, _ := request.(*dparetov1.ListStudiesRequest)
		if r.GetPageSize() != 0 || r.GetPageToken() != "" {
			return nil, false, nil
		}
		studies, err := collect(conn.FindStudies(ctx, dpareto.Query{Filter: r.GetFilter(), OrderBy: r.GetOrderBy()}))
		return &dparetov1.ListStudiesResponse{Studies: studies}, true, err
	},
	"ListTrials": func(ctx context.Context, _ *goClient, conn *connection, request proto.Message) (proto.Message, bool, error) {
		r, _ := request.(*dparetov1.ListTrialsRequest)
		if r.GetPageSize() != 0 || r.GetPageToken() != "" || r.GetAfterRevision() != 0 {
			return nil, false, nil
		}
		trials, err := collect(conn.studyOf(r.GetParent()).FindTrials(ctx, dpareto.Query{Filter: r.GetFilter(), OrderBy: r.GetOrderBy()}))
		answer, _ := conn.reply.(*dparetov1.ListTrialsResponse)
		return &dparetov1.ListTrialsResponse{Trials: trials, Revision: answer.GetRevision()}, true, err
	},
	"SuggestTrials": suggest,
	"AddMeasurement": held(func(ctx context.Context, trial *dpareto.Trial, c *connection, r *dparetov1.AddMeasurementRequest) error {
		err := trial.ReportMeasurement(ctx, r.GetMeasurement())
		reply, _ := c.reply.(*dparetov1.AddMeasurementResponse)
		if stop := errors.Is(err, dpareto.ErrStop); stop != reply.GetShouldStop() {
			return fmt.Errorf("should_stop is %t, but the client says %w", reply.GetShouldStop(), err)
		} else if stop {
			return nil
		}
		return err
	}),
	"CompleteTrial": held(func(ctx context.Context, trial *dpareto.Trial, _ *connection, r *dparetov1.CompleteTrialRequest) error {
		switch outcome := r.GetOutcome().(type) {
		case *dparetov1.CompleteTrialRequest_UseLastMeasurement:
			return trial.CompleteWithLast(ctx)
		case *dparetov1.CompleteTrialRequest_Infeasible:
			return trial.Infeasible(ctx, outcome.Infeasible.GetReason())
		case *dparetov1.CompleteTrialRequest_Failure:
			return trial.Fail(ctx, outcome.Failure.GetReason(), outcome.Failure.GetRetryable())
		default:
			return trial.CompleteMeasurement(ctx, r.GetMeasurement())
		}
	}),
	"ReleaseTrial": held(func(ctx context.Context, trial *dpareto.Trial, _ *connection, r *dparetov1.ReleaseTrialRequest) error {
		return trial.Release(ctx, r.GetReason())
	}),
}

// collect returns what a sequence has before its error.
func collect[T any](all iter.Seq2[T, error]) ([]T, error) {
	var out []T
	for x, err := range all {
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// idiom is an idiomatic way to a method.
type idiom = func(ctx context.Context, c *goClient, conn *connection, request proto.Message) (proto.Message, bool, error)

// way returns the idiomatic way to a method.
func way[R proto.Message](call func(ctx context.Context, c *connection, r R) (proto.Message, error)) idiom {
	return func(ctx context.Context, _ *goClient, conn *connection, request proto.Message) (proto.Message, bool, error) {
		r, _ := request.(R)
		answer, err := call(ctx, conn, r)
		return answer, true, err
	}
}

// held returns the idiomatic way to a method about a trial that a worker has asked for.
func held[R interface {
	proto.Message
	GetName() string
	GetLeaseToken() string
}](call func(ctx context.Context, trial *dpareto.Trial, c *connection, r R) error) idiom {
	return func(ctx context.Context, c *goClient, conn *connection, request proto.Message) (proto.Message, bool, error) {
		r, _ := request.(R)
		trial, ok := c.trials[r.GetLeaseToken()]
		if !ok || trial.Name() != r.GetName() {
			return nil, false, nil
		}
		err := call(ctx, trial, conn, r)
		lost := status.Code(err) == codes.FailedPrecondition || status.Code(err) == codes.NotFound
		if errors.Is(err, dpareto.ErrLeaseLost) != lost {
			return nil, true, fmt.Errorf("a lost lease is %t: %w", lost, err)
		}
		return conn.reply, true, err
	}
}

// suggest asks for one trial, or for trials under conditions.
func suggest(ctx context.Context, c *goClient, conn *connection, request proto.Message) (proto.Message, bool, error) {
	r, _ := request.(*dparetov1.SuggestTrialsRequest)
	study := conn.studyOf(r.GetParent())
	if len(r.GetConditions()) > 0 {
		trials, reason, err := study.AskWithin(ctx, r.GetWorkerId(), r.GetConditions()...)
		if err != nil {
			return nil, true, err
		}
		answer, _ := conn.reply.(*dparetov1.SuggestTrialsResponse)
		if reason != answer.GetEndReason() {
			return nil, true, fmt.Errorf("the reason of the end is %v", reason)
		}
		return answer, true, c.keep(answer, trials...)
	}
	if r.GetCount() > 1 || r.Resume != nil && !r.GetResume() {
		return nil, false, nil
	}
	ctx, conn.waiting = context.WithCancel(ctx)
	defer func() {
		conn.waiting()
		conn.waiting = nil
	}()
	trial, err := study.Ask(ctx, r.GetWorkerId())
	answer, _ := conn.reply.(*dparetov1.SuggestTrialsResponse)
	switch {
	case err == nil:
		return answer, true, c.keep(answer, trial)
	case errors.Is(err, dpareto.ErrDone):
		if answer.GetRetryAfter() != nil || answer.GetEndReason() == 0 {
			return nil, true, fmt.Errorf("there may be trials yet: %w", err)
		}
		return answer, true, nil
	case errors.Is(err, context.Canceled) && answer != nil:
		return answer, true, nil // it would wait
	default:
		return nil, true, err
	}
}

// keep remembers trials that a worker holds.
func (c *goClient) keep(answer *dparetov1.SuggestTrialsResponse, trials ...*dpareto.Trial) error {
	if len(trials) != len(answer.GetTrials()) {
		return fmt.Errorf("%d trials of %d", len(trials), len(answer.GetTrials()))
	}
	for i, trial := range trials {
		if diff := cmp.Diff(answer.GetTrials()[i], trial.Message(), protocmp.Transform()); diff != "" {
			return fmt.Errorf("another trial (-answer +client): %s", diff)
		}
		c.trials[trial.Message().GetLease().GetToken()] = trial
	}
	return nil
}

// studyOf returns the handle of a study by its resource name.
func (c *connection) studyOf(name string) *dpareto.Study { return c.Study(name[len("studies/"):]) }

// trialOf returns the study and the number of a trial by its resource name.
func (c *connection) trialOf(name string) (*dpareto.Study, int64) {
	study, id, _ := strings.Cut(name, "/trials/")
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		panic(err)
	}
	return c.studyOf(study), number
}

func (c *goClient) call(ctx context.Context, r request) (any, error) {
	conn, err := c.connect(r.credential)
	if err != nil {
		return nil, err
	}
	messages := make([]proto.Message, len(r.messages))
	for i, m := range r.messages {
		if messages[i], err = newMessage(r.method.Input(), m); err != nil {
			return nil, err
		}
	}
	if r.method.IsStreamingClient() || r.method.IsStreamingServer() {
		return c.stream(ctx, conn, r, messages)
	}
	request, name := messages[0], string(r.method.Name())
	conn.request, conn.reply = nil, nil
	if own := idiomatic[name]; own != nil && !r.stub {
		answer, ok, err := own(ctx, c, conn, request)
		if ok {
			c.used[name] = true
			if diff := cmp.Diff(plain(request), plain(conn.request), protocmp.Transform(), cmpopts.EquateNaNs()); diff != "" {
				return nil, fmt.Errorf("the client sends another request (-table +client): %s", diff)
			}
			if err != nil {
				return nil, err
			}
			if diff := cmp.Diff(conn.reply, answer, protocmp.Transform()); diff != "" {
				return nil, fmt.Errorf("the client returns another answer (-server +client): %s", diff)
			}
			return inJSON(answer)
		}
	}
	out := c.method(conn, r).Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(request)})
	if err, _ := reflect.TypeAssert[error](out[1]); err != nil {
		return nil, err
	}
	answer, _ := reflect.TypeAssert[proto.Message](out[0])
	return inJSON(answer)
}

// plain returns a request without what clients add to it: the id of the request, and
// defaults that are written out or chosen by the client.
func plain(request proto.Message) proto.Message {
	request = proto.Clone(request)
	m := request.ProtoReflect()
	if id := m.Descriptor().Fields().ByName("request_id"); id != nil {
		m.Clear(id)
	}
	switch r := request.(type) {
	case *dparetov1.SuggestTrialsRequest:
		if r.GetCount() == 1 {
			r.Count = 0
		}
		if r.GetResume() {
			r.Resume = nil
		}
	case *dparetov1.ListStudiesRequest:
		r.PageSize = 0
	case *dparetov1.ListTrialsRequest:
		r.PageSize = 0
	}
	return request
}

// method returns the method of a generated client.
func (c *goClient) method(conn *connection, r request) reflect.Value {
	stubs := map[string]any{
		"StudyService": conn.Studies, "FrontService": conn.Fronts, "AnalysisService": conn.Analyses, "PrivacyService": conn.Privacy,
		"ReleaseService": conn.Releases, "AdminService": conn.Admin,
	}
	return reflect.ValueOf(stubs[string(r.method.Parent().Name())]).MethodByName(string(r.method.Name()))
}

// stream makes a call in which one side streams.
func (c *goClient) stream(ctx context.Context, conn *connection, r request, messages []proto.Message) (any, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	arguments := []reflect.Value{reflect.ValueOf(ctx)}
	if !r.method.IsStreamingClient() {
		arguments = append(arguments, reflect.ValueOf(messages[0]))
	}
	out := c.method(conn, r).Call(arguments)
	if err, _ := reflect.TypeAssert[error](out[1]); err != nil {
		return nil, err
	}
	stream, _ := reflect.TypeAssert[grpc.ClientStream](out[0])
	if r.method.IsStreamingClient() {
		return send(stream, r, messages)
	}
	return receive(stream, r)
}

// send sends messages and returns the answer.
func send(stream grpc.ClientStream, r request, messages []proto.Message) (any, error) {
	for _, m := range messages {
		if err := stream.SendMsg(m); err != nil {
			break // the answer says why
		}
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	answer, err := newMessage(r.method.Output(), struct{}{})
	if err != nil {
		return nil, err
	}
	if err := stream.RecvMsg(answer); err != nil {
		return nil, err
	}
	return inJSON(answer)
}

// receive returns the messages of a stream.
func receive(stream grpc.ClientStream, r request) (any, error) {
	answers := []any{}
	for r.take == 0 || len(answers) < r.take {
		answer, err := newMessage(r.method.Output(), struct{}{})
		if err != nil {
			return nil, err
		}
		err = stream.RecvMsg(answer)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		decoded, err := inJSON(answer)
		if err != nil {
			return nil, err
		}
		answers = append(answers, decoded)
	}
	return answers, nil
}

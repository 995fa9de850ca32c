package dpareto

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call is a request that the fake server got.
type call struct {
	req any
	at  time.Duration // since the start of the server
}

// fake is a server that answers every call by a script.
type fake struct {
	script func(ctx context.Context, n int, req any) (any, error) // n counts calls from 0

	mu    sync.Mutex
	calls []call
	start time.Time
}

func (f *fake) intercept(ctx context.Context, req any, _ *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
	f.mu.Lock()
	n := len(f.calls)
	f.calls = append(f.calls, call{req, time.Since(f.start)})
	f.mu.Unlock()
	return f.script(ctx, n, req)
}

// times returns when the calls came in.
func (f *fake) times() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []time.Duration
	for _, c := range f.calls {
		out = append(out, c.at)
	}
	return out
}

// requests returns the requests so far.
func (f *fake) requests() []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []any
	for _, c := range f.calls {
		out = append(out, c.req)
	}
	return slices.Clone(out)
}

// serve starts a fake server and returns it with a client. Both end with the test.
func serve(t *testing.T, script func(ctx context.Context, n int, req any) (any, error), options ...Option) (*fake, *Client) {
	t.Helper()
	f := &fake{script: script, start: time.Now()}
	listener := bufconn.Listen(1 << 16)
	g := grpc.NewServer(grpc.UnaryInterceptor(f.intercept))
	dparetov1.RegisterStudyServiceServer(g, dparetov1.UnimplementedStudyServiceServer{})
	dparetov1.RegisterFrontServiceServer(g, dparetov1.UnimplementedFrontServiceServer{})
	dparetov1.RegisterReleaseServiceServer(g, dparetov1.UnimplementedReleaseServiceServer{})
	dparetov1.RegisterAdminServiceServer(g, dparetov1.UnimplementedAdminServiceServer{})
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := g.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	client, err := Dial("passthrough:///fake", append(options, WithDialOptions(
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials())))...)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		g.Stop()
		serving.Wait()
	})
	return f, client
}

// leaseTime is the duration of the leases of the fake server.
const leaseTime = 30 * time.Second

// trialMessage is a trial as a server hands it out.
func trialMessage() *dparetov1.Trial {
	// The server's clock is far from ours.
	start := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	return &dparetov1.Trial{
		Name:       "studies/s/trials/3",
		Number:     3,
		State:      dparetov1.TrialState_TRIAL_STATE_ACTIVE,
		Attempt:    2,
		Replicates: 4,
		Parameters: map[string]*dparetov1.Value{
			"rate": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 0.5}},
			"lot":  {Kind: &dparetov1.Value_IntValue{IntValue: 1 << 60}},
			"kind": {Kind: &dparetov1.Value_StringValue{StringValue: "huber"}},
		},
		Lease: &dparetov1.Lease{
			WorkerId: "w", Token: "token", ExpireTime: timestamppb.New(start.Add(leaseTime)),
		},
		StartTime: timestamppb.New(start),
	}
}

// held returns a trial that the client holds.
func held(c *Client) *Trial { return newTrial(c.Study("s"), trialMessage()) }

// handOut is the answer that hands out a trial.
func handOut() *dparetov1.SuggestTrialsResponse {
	return &dparetov1.SuggestTrialsResponse{
		Trials: []*dparetov1.Trial{trialMessage()}, StudyState: dparetov1.StudyState_STUDY_STATE_ACTIVE,
	}
}

// nothing is an answer without a trial.
func nothing(reason dparetov1.EndReason, state dparetov1.StudyState, retryAfter time.Duration) *dparetov1.SuggestTrialsResponse {
	resp := &dparetov1.SuggestTrialsResponse{EndReason: reason, StudyState: state}
	if retryAfter > 0 {
		resp.RetryAfter = durationpb.New(retryAfter)
	}
	return resp
}

package server_test

import (
	"context"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/limit"
	"github.com/dpareto/dpareto/server/servertest"
)

const (
	// http2Preface begins a connection: the preface and empty settings (RFC 9113).
	http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	framePing    = 6
	frameGoAway  = 7
)

// answerPings reads frames, and answers pings, until the connection ends. It returns the types of
// the frames.
func answerPings(t *testing.T, conn net.Conn) (types []byte) {
	t.Helper()
	for {
		header := make([]byte, 9)
		if _, err := io.ReadFull(conn, header); err != nil {
			return types
		}
		types = append(types, header[3])
		payload := make([]byte, int(header[0])<<16|int(header[1])<<8|int(header[2]))
		if _, err := io.ReadFull(conn, payload); err != nil {
			return types
		}
		if header[3] == framePing && header[4] == 0 {
			header[4] = 1 // acknowledged
			if _, err := conn.Write(slices.Concat(header, payload)); err != nil {
				return types
			}
		}
	}
}

// listen serves the gRPC server on a port, too.
func listen(g *servertest.Guarded) (address string) {
	g.T.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(g.T, err)
	go g.GRPC.Serve(listener) // it ends with the server
	return listener.Addr().String()
}

// A connection that makes no call is closed, although it answers pings; one with a stream stays.
func TestIdleConnection(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{IdleTime: 50 * time.Millisecond})
	g.Make("a-1")
	address := listen(g)
	client, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer client.Close()
	watch, err := dparetov1.NewStudyServiceClient(client).WatchStudy(g.As("viewer"), &dparetov1.WatchStudyRequest{Name: "studies/a-1"})
	if err == nil {
		_, err = watch.Recv()
	}
	require.NoError(t, err)
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, require.ErrOf(conn.Write([]byte(http2Preface))))
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	if types := answerPings(t, conn); len(types) == 0 || types[len(types)-1] != frameGoAway {
		t.Errorf("frames %v, want the server to say goodbye", types)
	}
	require.NoError(t, require.ErrOf(g.Studies.PauseStudy(g.As("admin"), &dparetov1.PauseStudyRequest{Name: "studies/a-1"})))
	if change, err := watch.Recv(); err != nil {
		t.Errorf("the stream has ended: %v, %v", change, err)
	}
}

// beginCheck begins a health check whose request does not come.
func beginCheck(ctx context.Context, g *servertest.Guarded) grpc.ClientStream {
	g.T.Helper()
	stream, err := g.Conn.NewStream(ctx, &grpc.StreamDesc{}, healthv1.Health_Check_FullMethodName)
	require.NoError(g.T, err)
	return stream
}

// There are not many health checks whose requests never come.
func TestUnfinishedHealthChecks(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{StreamsPerPrincipal: 2})
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		beginCheck(ctx, g)
	}
	servertest.WantCode(t, beginCheck(ctx, g).RecvMsg(new(healthv1.HealthCheckResponse)), codes.ResourceExhausted, "already has 2 concurrent health checks")
	cancel()
	for { // until the server has noticed
		_, err := healthv1.NewHealthClient(g.Conn).Check(t.Context(), new(healthv1.HealthCheckRequest))
		if err == nil {
			break
		}
		if status.Code(err) != codes.ResourceExhausted {
			t.Fatal(err)
		}
	}
}

// A health check whose request never comes ends, and leaves its place to others.
func TestHealthChecksEnd(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{IdleTime: 100 * time.Millisecond, StreamsPerPrincipal: 1})
	for ended := 0; ended < 2; {
		err := beginCheck(t.Context(), g).RecvMsg(new(healthv1.HealthCheckResponse))
		if err == nil {
			t.Fatal("a check without a request has an answer")
		}
		if status.Code(err) != codes.ResourceExhausted { // else the server has not noticed the end of the one before
			ended++
		}
	}
}

// Streams of health checks, which anyone may open and never end, do not use up the checks.
func TestHealthStreamsLeaveTheChecks(t *testing.T) {
	g := servertest.Guard(t, limit.Limits{StreamsPerPrincipal: 2})
	health := healthv1.NewHealthClient(g.Conn)
	for range 2 {
		stream, err := health.Watch(t.Context(), new(healthv1.HealthCheckRequest))
		if err == nil {
			_, err = stream.Recv()
		}
		require.NoError(t, err)
	}
	if _, err := health.Check(t.Context(), new(healthv1.HealthCheckRequest)); err != nil {
		t.Error(err)
	}
}

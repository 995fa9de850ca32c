package rest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// bufferBytes is the size of a Local connection's buffer in each direction.
const bufferBytes = 1 << 20

// Local is a connection to a gRPC server in the same process.
type Local struct {
	*grpc.ClientConn

	serving sync.WaitGroup
	err     error // result of Serve
}

// Connect makes a gRPC server, which must have no transport credentials, serve a connection within
// the process. Stop the server before closing the connection.
func Connect(g *grpc.Server) (*Local, error) {
	listener := bufconn.Listen(bufferBytes)
	conn, err := grpc.NewClient("passthrough:///local",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
	)
	if err != nil {
		return nil, fmt.Errorf("rest: %w", err)
	}
	local := &Local{ClientConn: conn}
	local.serving.Go(func() { local.err = g.Serve(listener) })
	return local, nil
}

// Close closes the connection and waits until the server has stopped serving it.
func (l *Local) Close() error {
	err := l.ClientConn.Close()
	l.serving.Wait()
	if l.err != nil && !errors.Is(l.err, grpc.ErrServerStopped) {
		err = errors.Join(err, l.err)
	}
	return err
}

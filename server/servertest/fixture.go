package servertest

import (
	"context"
	"errors"
	"math"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/clock/clocktest"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/fault"
	"github.com/dpareto/dpareto/server/store/opentest"
)

// Fixture is a server on a store in a file, with clients. Restart stops it, as a
// crash after the last acknowledged write would, and starts another on the file.
type Fixture struct {
	T       testing.TB
	Clock   *clocktest.Manual
	Path    string
	Studies dparetov1.StudyServiceClient
	Fronts  dparetov1.FrontServiceClient
	Admin   dparetov1.AdminServiceClient
	Records *store.Store
	Conn    *grpc.ClientConn
	Server  *server.Server
	Stop    func()

	Shared    bool                  // one of several servers on a store
	Unlocked  bool                  // on one whose locks everybody gets at once
	Gate      *gate                 // nil for none
	Configure func(*server.Options) // nil for nothing
	dial      []grpc.DialOption
}

// Start starts a server on a new store.
func Start(t testing.TB) *Fixture {
	t.Helper()
	return StartWith(t, nil)
}

// StartWith starts a server with other options, and connects with further ones.
func StartWith(t testing.TB, configure func(*server.Options), dial ...grpc.DialOption) *Fixture {
	t.Helper()
	f := &Fixture{
		T:         t,
		Clock:     clocktest.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		Path:      filepath.Join(t.TempDir(), "dpareto.db"),
		Configure: configure,
		dial:      dial,
	}
	f.Serve()
	t.Cleanup(func() { f.Stop() })
	return f
}

// StartSeeded starts a server whose entropy repeats itself.
func StartSeeded(t testing.TB, seed uint64) *Fixture {
	t.Helper()
	return StartWith(t, func(o *server.Options) { o.Entropy = noise.Seeded(seed) })
}

// Serve starts the server again after Stop.
func (f *Fixture) Serve() {
	f.T.Helper()
	db := opentest.Open(f.T, f.Path)
	// Every function of an update runs twice: it must be able to bear that.
	kv := fault.Twice(db)
	switch {
	case f.Shared: // the clock of the database counts
		kv = replica{db.(store.Shared), db, f.Gate, f.Unlocked}
	case f.Gate != nil:
		kv = gated{kv, f.Gate}
	}
	records, err := store.New(context.Background(), kv)
	require.NoError(f.T, err)
	f.Records = records
	o := server.Options{Store: records, Version: "test", Clock: f.Clock}
	if f.Configure != nil {
		f.Configure(&o)
	}
	s := server.New(o)
	f.Server = s
	g := s.GRPC()
	listener := bufconn.Listen(1 << 20)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := g.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) { // before it began
			f.T.Error(err)
		}
	})
	f.Conn, err = grpc.NewClient("passthrough:///bufconn", append(f.dial,
		grpc.WithChainUnaryInterceptor(f.checkAssumptions),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)), // as clients/go
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(f.T, err)
	f.Studies = dparetov1.NewStudyServiceClient(f.Conn)
	f.Fronts = dparetov1.NewFrontServiceClient(f.Conn)
	f.Admin = dparetov1.NewAdminServiceClient(f.Conn)
	f.Stop = sync.OnceFunc(func() {
		if err := f.Conn.Close(); err != nil {
			f.T.Error(err)
		}
		g.Stop()
		serving.Wait()
		s.Close()
		for _, fault := range records.Check(context.Background()) {
			f.T.Errorf("store: %v", fault)
		}
		if err := db.Close(); err != nil {
			f.T.Error(err)
		}
	})
}

// gate holds the writes of a server to a study outside of calls: the end of a preparation.
type gate struct {
	scope   store.Scope
	once    sync.Once
	Reached chan struct{} // closed when something waits
	opened  chan struct{} // to be closed by the test
}

func newGate(study string) *gate {
	return &gate{scope: store.StudyScope(study), Reached: make(chan struct{}), opened: make(chan struct{})}
}

// pass waits at the gate, if there is one, until it is open or ctx ends.
func (g *gate) pass(ctx context.Context, scopes store.Scopes) error {
	if g == nil || grpc.ServerTransportStreamFromContext(ctx) != nil || !slices.Contains(scopes, g.scope) {
		return nil
	}
	g.once.Do(func() { close(g.Reached) })
	select {
	case <-g.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// gated is a store in a file with a gate.
type gated struct {
	fault.FileKV

	gate *gate
}

// Update implements store.KV.
func (g gated) Update(ctx context.Context, scopes store.Scopes, fn func(store.ReadWriter) error) error {
	if err := g.gate.pass(ctx, scopes); err != nil {
		return err
	}
	return g.FileKV.Update(ctx, scopes, fn)
}

// Hold restarts the server with a gate before a study.
func (f *Fixture) Hold(study string) {
	f.T.Helper()
	f.Gate = newGate(study)
	f.Restart()
}

// Restart stops the server and starts another on its store.
func (f *Fixture) Restart() {
	f.T.Helper()
	f.Stop()
	f.Serve()
}

// replica is the store of one of several servers.
type replica struct {
	store.Shared
	store.Files

	gate     *gate // nil for none
	unlocked bool  // everybody gets a lock at once: locks save work, and what must hold does without
}

// TryLock implements store.Shared.
func (r replica) TryLock(ctx context.Context, name string) (unlock func(), taken bool, err error) {
	if r.unlocked {
		return func() {}, true, nil
	}
	return r.Shared.TryLock(ctx, name)
}

// Update implements store.KV.
func (r replica) Update(ctx context.Context, scopes store.Scopes, fn func(store.ReadWriter) error) error {
	if err := r.gate.pass(ctx, scopes); err != nil {
		return err
	}
	return r.Shared.Update(ctx, scopes, fn)
}

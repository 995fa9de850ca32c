package servertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/audit"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/clock/clocktest"
	"github.com/dpareto/dpareto/server/limit"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

// LockedBuffer is a buffer that goroutines share.
type LockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *LockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *LockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Guarded is a server that knows its callers.
type Guarded struct {
	*Fixture

	Server     *server.Server
	GRPC       *grpc.Server
	file       string
	Tokens     map[string]string // by name
	Log, Audit LockedBuffer
}

// Guard starts a server that knows some callers. The credentials "admin", "worker" and
// "viewer" have that role on everything; "limited" is a worker of studies a-* and reads
// studies b-*; "owner" is an administrator of studies a-*.
func Guard(t *testing.T, limits limit.Limits, options ...grpc.ServerOption) *Guarded {
	t.Helper()
	return GuardWith(t, limits, nil, options...)
}

// GuardWith is Guard with an audit log elsewhere than in Audit, unless that is nil.
func GuardWith(t *testing.T, limits limit.Limits, changes io.Writer, options ...grpc.ServerOption) *Guarded {
	t.Helper()
	return GuardAs(t, func(o *server.Options) {
		o.Limits = limits
		if changes != nil {
			o.Audit = audit.New(changes, o.Logger)
		}
	}, options...)
}

// GuardAs is Guard with other options of the server.
func GuardAs(t *testing.T, configure func(*server.Options), options ...grpc.ServerOption) *Guarded {
	t.Helper()
	g := &Guarded{
		Fixture: &Fixture{T: t, Clock: clocktest.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))},
		file:    filepath.Join(t.TempDir(), "auth.yaml"), Tokens: make(map[string]string),
	}
	for _, c := range []auth.Credential{
		{Name: "admin", Role: auth.Admin}, {Name: "worker", Role: auth.Worker}, {Name: "viewer", Role: auth.Viewer},
		{Name: "limited", Grants: []auth.Grant{{Studies: "a-*", Role: auth.Worker}, {Studies: "b-*", Role: auth.Viewer}}},
		{Name: "owner", Grants: []auth.Grant{{Studies: "a-*", Role: auth.Admin}}},
	} {
		made, token, err := auth.NewToken(c)
		require.NoError(t, err)
		g.Tokens[c.Name] = token
		g.Change(func(all []*auth.Credential) []*auth.Credential { return append(all, made) })
	}
	logger := slog.New(slog.NewTextHandler(&g.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	known, err := auth.Open(g.file, auth.Options{Logger: logger, Now: g.Clock.Now})
	require.NoError(t, err)
	db, err := bolt.Open(filepath.Join(t.TempDir(), "dpareto.db"))
	require.NoError(t, err)
	records, err := store.New(t.Context(), db)
	require.NoError(t, err)
	g.Records = records
	o := server.Options{
		Store: records, Version: "test", Clock: g.Clock, Logger: logger,
		Auth: known, Audit: audit.New(&g.Audit, logger),
	}
	configure(&o)
	g.Server = server.New(o)
	g.GRPC = g.Server.GRPC(options...)
	listener := bufconn.Listen(1 << 20)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := g.GRPC.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	g.Conn, err = grpc.NewClient("passthrough:///bufconn",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	g.Studies, g.Admin = dparetov1.NewStudyServiceClient(g.Conn), dparetov1.NewAdminServiceClient(g.Conn)
	t.Cleanup(func() {
		g.Conn.Close()
		g.GRPC.Stop()
		serving.Wait()
		g.Server.Close()
		for _, fault := range records.Check(context.Background()) {
			t.Errorf("store: %v", fault)
		}
		db.Close()
	})
	return g
}

// Change changes the file of credentials, and lets the server find out.
func (g *Guarded) Change(change func([]*auth.Credential) []*auth.Credential) {
	g.T.Helper()
	require.NoError(g.T, auth.Change(g.file, func(all []*auth.Credential) ([]*auth.Credential, error) { return change(all), nil }))
	g.Clock.Advance(time.Minute)
}

// As returns a context whose calls are made by somebody.
func (g *Guarded) As(name string) context.Context {
	return metadata.AppendToOutgoingContext(g.T.Context(), "authorization", "Bearer "+g.Tokens[name])
}

// Make creates a study.
func (g *Guarded) Make(id string) {
	g.T.Helper()
	_, err := g.Studies.CreateStudy(g.As("admin"), &dparetov1.CreateStudyRequest{StudyId: id, Study: &dparetov1.Study{Spec: SVTSpec()}})
	require.NoError(g.T, err)
}

// Methods calls fn for every method that the server has.
func (g *Guarded) Methods(fn func(full string, d protoreflect.MethodDescriptor)) {
	for service, info := range g.GRPC.GetServiceInfo() {
		for _, m := range info.Methods {
			d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service + "." + m.Name))
			require.NoError(g.T, err)
			fn("/"+service+"/"+m.Name, d.(protoreflect.MethodDescriptor))
		}
	}
}

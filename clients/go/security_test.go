package dpareto

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/certs"
	"github.com/dpareto/dpareto/server/certs/certstest"
)

// What would show a token to others is refused before anything is sent.
func TestTokensStayPrivate(t *testing.T) {
	token := WithToken("secret")
	for name, tt := range map[string]struct {
		address string
		options []Option
		want    string // of the error; "" for none
	}{
		"another machine, plain text":         {"example.org:1", []Option{token, WithPlaintext()}, "plain text"},
		"another machine, plain text, forced": {"example.org:1", []Option{token, WithPlaintext(), WithTokenInPlaintext()}, ""},
		"another machine, TLS":                {"example.org:1", []Option{token}, ""},
		"another machine, other credentials": {"example.org:1", []Option{token, WithDialOptions(
			grpc.WithTransportCredentials(insecure.NewCredentials()))}, "transport level security"},
		"this machine": {"127.0.0.1:1", []Option{token}, ""},
		"a socket":     {"unix:///run/dpareto.sock", []Option{token}, ""},
		"no token":     {"example.org:1", []Option{WithPlaintext()}, ""},
		"not a token":  {"127.0.0.1:1", []Option{WithToken("a\nb")}, "token: must be printable ASCII without spaces"},
		"no file":      {"127.0.0.1:1", []Option{WithTokenFile("/nonexistent/token")}, "/nonexistent/token"},
		"both":         {"127.0.0.1:1", []Option{WithTLS(), WithPlaintext()}, "exclude"},
	} {
		client, err := Dial(tt.address, tt.options...)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the token: %v", name, err)
		}
		if client != nil {
			client.Close()
		}
	}
}

// listen runs a server with TLS on an address of this machine that tells what it gets.
func listen(t *testing.T, folder string, heard func(token, certificate string)) string {
	t.Helper()
	config, err := certs.Server(certs.Files{
		Cert: filepath.Join(folder, "tls.crt"), Key: filepath.Join(folder, "tls.key"), ClientCA: filepath.Join(folder, "ca.crt"),
	}, nil)
	require.NoError(t, err)
	g := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)), grpc.UnaryInterceptor(
		func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo, _ grpc.UnaryHandler) (any, error) {
			headers, _ := metadata.FromIncomingContext(ctx)
			p, _ := peer.FromContext(ctx)
			certificate := ""
			if chains := p.AuthInfo.(credentials.TLSInfo).State.VerifiedChains; len(chains) > 0 {
				certificate = chains[0][0].Subject.CommonName
			}
			heard(strings.Join(headers.Get("authorization"), ","), certificate)
			return &dparetov1.GetServerInfoResponse{}, nil
		}))
	dparetov1.RegisterAdminServiceServer(g, dparetov1.UnimplementedAdminServiceServer{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := g.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	t.Cleanup(func() { g.Stop(); serving.Wait() })
	return listener.Addr().String()
}

// Token, certificate and authority come from files that are read again.
func TestCredentialsFromFiles(t *testing.T) {
	folder := t.TempDir()
	authority := certstest.New(t, "authority")
	cert, key := authority.Server()
	mine, mineKey := authority.Client("agent-7", time.Now().Add(time.Hour))
	paths := certstest.Write(t, folder, map[string][]byte{
		"tls.crt": cert, "tls.key": key, "ca.crt": authority.PEM, "client.crt": mine, "client.key": mineKey, "token": []byte("\ufeff first\n"),
	})
	var token, certificate string
	address := listen(t, folder, func(t, c string) { token, certificate = t, c })
	client, err := Dial(address, WithCA(paths["ca.crt"]), WithServerName("localhost"),
		WithClientCertificate(paths["client.crt"], paths["client.key"]), WithTokenFile(paths["token"]))
	require.NoError(t, err)
	defer client.Close()
	call := func() {
		t.Helper()
		require.NoError(t, require.ErrOf(client.Admin.GetServerInfo(t.Context(), &dparetov1.GetServerInfoRequest{})))
	}
	call()
	if token != "Bearer first" || certificate != "agent-7" {
		t.Errorf("the server heard %q and %q", token, certificate)
	}
	certstest.Write(t, folder, map[string][]byte{"token": []byte("second")})
	call()
	if token != "Bearer second" {
		t.Errorf("the server heard %q", token)
	}

	// A server of another authority is not trusted, until the file says so.
	other := certstest.New(t, "other")
	cert, key = other.Server()
	folder = t.TempDir()
	certstest.Write(t, folder, map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": other.PEM})
	notices := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	address = listen(t, folder, func(string, string) {})
	client, err = Dial(address, WithCA(paths["ca.crt"]), WithRetryNotice(func(err error) {
		if notices++; !strings.Contains(err.Error(), "certificate signed by unknown authority") {
			t.Errorf("notice %v", err)
			cancel()
		}
		certstest.Write(t, filepath.Dir(paths["ca.crt"]), map[string][]byte{"ca.crt": other.PEM})
	}))
	require.NoError(t, err)
	defer client.Close()
	if _, err := client.Admin.GetServerInfo(ctx, &dparetov1.GetServerInfoRequest{}); err != nil || notices == 0 {
		t.Errorf("after %d notices: %v", notices, err)
	}
}

// A server that has too much to do says when to come again, and the client does; one
// whose limit will not go away is not asked again.
func TestExhausted(t *testing.T) {
	busy, err := status.New(codes.ResourceExhausted, "busy").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(5 * time.Second)})
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		f, client := serve(t, func(_ context.Context, n int, _ any) (any, error) {
			if n < 2 {
				return nil, busy.Err()
			}
			return &dparetov1.GetStudyResponse{}, nil
		})
		require.NoError(t, require.ErrOf(client.Study("s").Get(t.Context())))
		times := f.times()
		if len(times) != 3 || times[1]-times[0] < 5*time.Second || times[2]-times[1] < 5*time.Second || times[2] > 15*time.Second {
			t.Errorf("calls at %v", times)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f, client := serve(t, func(context.Context, int, any) (any, error) {
			return nil, status.Error(codes.ResourceExhausted, "full")
		})
		if _, err := client.Study("s").Get(t.Context()); status.Code(err) != codes.ResourceExhausted || len(f.times()) != 1 {
			t.Errorf("after %d calls: %v", len(f.times()), err)
		}
	})
}

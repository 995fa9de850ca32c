package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/limit"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/rest"
	"github.com/dpareto/dpareto/server/web"
)

const (
	// headerPatience is how long a client may take to send the header of a request, or a body that the
	// request's handler does not read.
	headerPatience = 10 * time.Second
	// maxHeaderBytes bounds the header of a request.
	maxHeaderBytes = 64 << 10

	// PageOn begins the second line that a server with an HTTP port prints; the URL of the page follows.
	PageOn = "page on "

	// noHTTP in place of an address leaves the HTTP port closed.
	noHTTP = "none"
)

// httpFlags are the flags of the HTTP port.
type httpFlags struct {
	listen string
	// isDefault says that no one has set listen: another port will do as well.
	isDefault bool
	hosts     []string
	origins   []string
	pprof     bool
}

// addHTTPFlags adds the flags of the HTTP port.
func addHTTPFlags(flags *pflag.FlagSet, f *httpFlags) {
	flags.StringVar(&f.listen, "http-listen", remote.DefaultHTTPAddress, "address for the page, JSON over HTTP, metrics and health; port 0 takes a free one, as does "+
		"the default if its port is taken or listen has port 0; \""+noHTTP+"\" for no HTTP")
	flags.StringSliceVar(&f.hosts, "http-allow-host", nil, "host names, such as dpareto.example.org, under which browsers may call the HTTP port, besides localhost and IP addresses")
	flags.StringSliceVar(&f.origins, "http-allow-origin", nil, "origins, such as https://example.org, whose pages may call the server from a browser")
	flags.BoolVar(&f.pprof, "pprof", false, "serve profiles of the program under /debug/pprof/ on the HTTP port")
}

// validate refuses invalid settings, and settings of a port that is not open.
func (f *httpFlags) validate() error {
	if f.listen == noHTTP && (f.pprof || len(f.origins) > 0 || len(f.hosts) > 0) {
		return errors.New("pprof, http-allow-host and http-allow-origin require http-listen")
	}
	if err := checkHosts(f.hosts); err != nil {
		return err
	}
	for _, origin := range f.origins {
		if err := http.NewCrossOriginProtection().AddTrustedOrigin(origin); err != nil {
			return fmt.Errorf("http-allow-origin: %w", err)
		}
	}
	return nil
}

// httpOptions holds the inputs of the HTTP port besides its flags.
type httpOptions struct {
	server  *server.Server
	metrics *metrics.Metrics
	// tls is the transport security, nil for none.
	tls *tls.Config
	// auth identifies callers. If it is nil everyone may call, but only this machine may read
	// metrics and profiles.
	auth *auth.Authenticator
	// limits bound the size of requests and how long connections may be idle.
	limits limit.Limits
	// door is the connection limit.
	door *limit.Door
}

// httpPort is the server's HTTP port.
type httpPort struct {
	web    *http.Server
	g      *grpc.Server // within the process
	local  *rest.Local
	failed chan error // receives the error of serving
}

// open opens the HTTP port, or returns nil if there is to be none. Only an address that was set must be
// free: many servers can run on a machine without settings.
func (f *httpFlags) open(ctx context.Context, grpcListen string) (net.Listener, error) {
	if f.listen == noHTTP {
		return nil, nil
	}
	address := f.listen
	if _, port, err := net.SplitHostPort(grpcListen); f.isDefault && err == nil && port == "0" {
		address = freeLoopback
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil && f.isDefault {
		listener, err = new(net.ListenConfig).Listen(ctx, "tcp", freeLoopback)
	}
	if err != nil {
		return nil, fmt.Errorf("http-listen: %w", err)
	}
	return listener, nil
}

// freeLoopback is a free port that only this machine can reach.
const freeLoopback = "127.0.0.1:0"

// pageURL returns the URL of the page on a listener, "" for none.
func pageURL(listener net.Listener, encrypted bool) string {
	switch {
	case listener == nil:
		return ""
	case encrypted:
		return "https://" + listener.Addr().String() + "/"
	default:
		return "http://" + listener.Addr().String() + "/"
	}
}

// startHTTP serves on the listener of the HTTP port until it is stopped. A nil listener is served by
// nothing, which can be stopped.
func startHTTP(ctx context.Context, env *command.Env, f httpFlags, listener net.Listener, o httpOptions) (*httpPort, error) {
	if listener == nil {
		return new(httpPort), nil
	}
	// All requests share one connection: only the server's limits bound them.
	p := &httpPort{g: o.server.GRPC(grpc.MaxConcurrentStreams(math.MaxUint32)), failed: make(chan error, 1)}
	local, err := rest.Connect(p.g)
	if err != nil {
		p.g.Stop()
		return nil, err
	}
	p.local = local
	api, err := rest.Handler(context.WithoutCancel(ctx), local, rest.Options{AllowedOrigins: f.origins, MaxBodyBytes: int64(o.limits.RequestBytes)})
	if err != nil {
		return nil, errors.Join(command.Usage(err), p.close())
	}
	shown := web.Options{SignIn: o.auth != nil, Secure: o.tls != nil}
	if o.auth != nil {
		api, shown.Authenticate = o.auth.PassOnCertificates(api), o.auth.PassOnCertificates
	}
	page, err := web.Handler(local, shown)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.web = &http.Server{
		Handler:           hurry(allowHosts(httpMux(api, page, f, o), listener.Addr(), o.auth != nil, f.hosts)),
		TLSConfig:         o.tls.Clone(), // which HTTP/2 changes
		ReadHeaderTimeout: headerPatience,
		IdleTimeout:       o.limits.IdleTime,
		MaxHeaderBytes:    maxHeaderBytes,
	}
	closeUnread(p.web)
	env.Logger.Info("serving HTTP", "address", listener.Addr().String(), "pprof", f.pprof)
	listener = o.door.Listen("http", listener)
	if o.tls != nil {
		listener = tls.NewListener(listener, withHTTP2(o.tls))
	}
	go func() {
		err := p.web.Serve(listener)
		if !errors.Is(err, http.ErrServerClosed) {
			env.Logger.Error("the HTTP port is lost", "error", err)
		}
		p.failed <- err
	}()
	return p, nil
}

// unread are the connections on which nothing was read yet. Browsers open such ahead of requests, and
// [http.Server.Shutdown] waits five seconds for them.
type unread struct {
	mu   sync.Mutex
	open map[net.Conn]bool
}

// closeUnread has a server close such connections when it shuts down.
func closeUnread(server *http.Server) {
	ahead := &unread{open: make(map[net.Conn]bool)}
	server.ConnState = ahead.note
	server.RegisterOnShutdown(ahead.close)
}

// note keeps track of a connection.
func (u *unread) note(conn net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if state == http.StateNew {
		u.open[conn] = true
	} else {
		delete(u.open, conn)
	}
}

// close closes the connections.
func (u *unread) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for conn := range u.open {
		_ = conn.Close() // the client notices
	}
}

// withHTTP2 returns the configuration of a listener for HTTP/2 and HTTP/1.1.
func withHTTP2(config *tls.Config) *tls.Config {
	config = config.Clone()
	for _, protocol := range []string{"h2", "http/1.1"} {
		if !slices.Contains(config.NextProtos, protocol) {
			config.NextProtos = append(config.NextProtos, protocol)
		}
	}
	return config
}

// stop ends serving after the requests in progress, but not later than after the grace. It
// does nothing if the port is not open.
func (p *httpPort) stop(ctx context.Context, grace time.Duration) error {
	if p.web == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	_ = p.web.Shutdown(ctx) // what has not ended by then is cut off
	return p.close()
}

// close ends everything at once.
func (p *httpPort) close() error {
	var err error
	if p.web != nil {
		err = p.web.Close()
		if failure := <-p.failed; !errors.Is(failure, http.ErrServerClosed) {
			err = errors.Join(err, failure)
		}
	}
	p.g.Stop()
	return errors.Join(err, p.local.Close())
}

// httpMux returns the handlers of the HTTP port: the API, which lets pages of allowed origins call it,
// and besides it what changes for requests of its own pages alone.
func httpMux(api, page http.Handler, f httpFlags, o httpOptions) http.Handler {
	guarded := func(permit func(*http.Request) error, handler http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if code, err := refusal(permit(r)); err != nil {
				http.Error(w, err.Error(), code)
				return
			}
			handler.ServeHTTP(w, r)
		})
	}
	permitMetrics, permitProfiles := fromThisMachine, fromThisMachine
	if o.auth != nil {
		permitMetrics = o.auth.PermitMetrics
		permitProfiles = func(r *http.Request) error { return o.auth.Permit(r, auth.Admin) }
	}
	mux := http.NewServeMux()
	mux.Handle("/", page)
	mux.Handle("GET /metrics", guarded(permitMetrics, o.metrics.Handler()))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeLine(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := o.server.Ready(); err != nil {
			writeLine(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		writeLine(w, http.StatusOK, "ready")
	})
	if f.pprof {
		mux.Handle("/debug/pprof/", guarded(permitProfiles, http.HandlerFunc(pprof.Index)))
		mux.Handle("/debug/pprof/cmdline", guarded(permitProfiles, http.HandlerFunc(pprof.Cmdline)))
		mux.Handle("/debug/pprof/profile", guarded(permitProfiles, http.HandlerFunc(pprof.Profile)))
		mux.Handle("/debug/pprof/symbol", guarded(permitProfiles, http.HandlerFunc(pprof.Symbol)))
		mux.Handle("/debug/pprof/trace", guarded(permitProfiles, http.HandlerFunc(pprof.Trace)))
	}
	all := http.NewServeMux()
	all.Handle("/v1/", api)
	all.Handle("GET /openapi.json", api)
	all.Handle("/", http.NewCrossOriginProtection().Handler(mux))
	return all
}

// refusal returns the HTTP status of an error of a request beside the API.
func refusal(err error) (int, error) {
	if _, denied := errors.AsType[*auth.DeniedError](err); denied || errors.Is(err, errElsewhere) {
		return http.StatusForbidden, err
	}
	return http.StatusUnauthorized, err
}

// writeLine answers with a line of text.
func writeLine(w http.ResponseWriter, code int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, line) // the client may have gone
}

// errElsewhere refuses a request from another machine.
var errElsewhere = errors.New("only for this machine")

// fromThisMachine refuses requests from other machines, also through a proxy on this one.
func fromThisMachine(r *http.Request) error {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	isPassedOn := slices.ContainsFunc([]string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"}, func(header string) bool {
		return len(r.Header[header]) > 0
	})
	if err != nil || isPassedOn || !net.ParseIP(host).IsLoopback() {
		return errElsewhere
	}
	return nil
}

// hurry bounds the time that a client takes to send a body that no handler reads, for which the
// server waits before it answers: of a request that is refused, or has none. Handlers that read a
// body set the time for it.
func hurry(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The page's time to write must not end the next answer of the same connection.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		// Not every ResponseWriter supports deadlines; net/http's does.
		limit := func() { _ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(headerPatience)) }
		limit()
		defer limit()
		next.ServeHTTP(w, r)
	})
}

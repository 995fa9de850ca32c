package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/storefile"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/tracing"
	"github.com/dpareto/dpareto/cmd/internal/child"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/limit"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/store/postgres"
)

// Listening begins the first line that a server prints; its address follows.
const Listening = "listening on "

// defaultGrace is how long calls in progress may take when the server stops.
const defaultGrace = 5 * time.Second

// settings are the settings of the server.
type settings struct {
	listen   string
	store    string
	create   bool
	database postgres.Options

	http   httpFlags
	traces string // endpoint

	security securityFlags
	limits   limit.Limits

	connections           int
	connectionsPerAddress int

	shutdownDelay time.Duration
	shutdownGrace time.Duration

	config      string
	checkConfig bool
	supervised  bool
}

// Command returns the command serve.
func Command(env *command.Env) *cobra.Command {
	var f settings
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Run the server",
		Long: `Runs the server that keeps studies and suggests configurations.

It prints the address that it listens on, and the URL of its page, which shows studies live
in a browser of this machine. Everything that it has acknowledged is in the store, also after
kill -9. SIGTERM or Ctrl-C stops it after the calls in progress.

On an address that only this machine can reach anyone may do everything, unless --auth-file
says who may do what. On an address that other machines can reach the server requires
--auth-file and --tls-cert, or to be told that it needs neither.

A setting comes from its flag, else from the environment variable that the help names, else
from the file --config, whose keys are the names of flags.`,
		Example: `  dpareto serve
  dpareto serve --listen 127.0.0.1:0 --store studies.db --create
  dpareto serve --listen 0.0.0.0:8321 --auth-file auth.yaml --tls-cert tls.crt --tls-key tls.key`,
		Args: command.Args(command.NoArgs),
	}
	cmd.DisableFlagsInUseLine = true
	var groups flagGroups
	f.add(&groups)
	groups.addTo(cmd)
	command.SupervisedFlag(cmd, &f.supervised)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if f.config != "" {
			if err := ReadConfiguration(cmd.Flags(), f.config); err != nil {
				return err
			}
			if err := env.OpenLog(); err != nil { // as the file says
				return err
			}
		}
		f.http.isDefault = !cmd.Flags().Changed("http-listen")
		if f.checkConfig {
			return check(env, cmd.Flags(), &f)
		}
		return serve(cmd.Context(), env, &f)
	}
	return cmd
}

func (f *settings) add(groups *flagGroups) {
	storage := groups.of("Storage")
	storage.StringVar(&f.store, "store", "", "file that keeps all state, or URL of a PostgreSQL database (postgres://USER@HOST/DATABASE); "+
		"default dpareto/dpareto.db in the user's configuration folder, which is made if it does not exist")
	storage.BoolVar(&f.create, "create", false, "start a new store if the file is missing or empty, or the database has none; "+
		"without it, that is an error, since a volume may not be mounted")
	storefile.AddDatabaseFlags(storage, &f.database)

	network := groups.of("Network")
	network.StringVar(&f.listen, "listen", remote.DefaultAddress, "address to listen on; port 0 takes a free one")
	network.DurationVar(&f.shutdownDelay, "shutdown-delay", 0, "time between answering health checks with NOT_SERVING and refusing calls when the server stops")
	network.DurationVar(&f.shutdownGrace, "shutdown-grace", defaultGrace, "time that calls in progress may take when the server stops")

	f.security.add(groups.of("Security"))

	observability := groups.of("HTTP and observability")
	addHTTPFlags(observability, &f.http)
	tracing.AddFlag(observability, &f.traces)

	limits, d := groups.of("Limits"), limit.Default()
	limits.IntVar(&f.limits.RequestBytes, "max-request-bytes", d.RequestBytes, "largest size of a request")
	limits.Int64Var(&f.limits.Studies, "max-studies", d.Studies, "studies in the store")
	limits.Int64Var(&f.limits.TrialsPerStudy, "max-trials-per-study", d.TrialsPerStudy, "trials that a study creates in its life")
	limits.Int64Var(&f.limits.OpenTrialsPerStudy, "max-open-trials-per-study", d.OpenTrialsPerStudy, "trials of a study that are queued or with workers")
	limits.Int64Var(&f.limits.StudyBytes, "max-study-bytes", d.StudyBytes, "size from which on a study takes no more trials and measurements; open trials can be completed")
	limits.IntVar(&f.limits.Calls, "max-calls", d.Calls, "calls at a time")
	limits.IntVar(&f.limits.CallsPerPrincipal, "max-calls-per-principal", d.CallsPerPrincipal, "calls at a time of one principal")
	limits.IntVar(&f.limits.Streams, "max-streams", d.Streams, "streams at a time")
	limits.IntVar(&f.limits.StreamsPerPrincipal, "max-streams-per-principal", d.StreamsPerPrincipal, "streams at a time of one principal")
	limits.DurationVar(&f.limits.CallTime, "max-call-time", d.CallTime, "longest time that a call may take, whatever its deadline")
	limits.IntVar(&f.connections, "max-connections", limit.DefaultConnections, "open connections, over all ports; fewer if the process may not open as many files")
	limits.IntVar(&f.connectionsPerAddress, "max-connections-per-address", limit.DefaultConnectionsPerAddress,
		"open connections of one client address, for IPv6 of one /64; 0 for no limit, where a proxy stands before the server")
	limits.DurationVar(&f.limits.IdleTime, "max-idle-time", d.IdleTime, "time after which a connection without a call is closed; clients connect again")

	configuration := groups.of("Configuration")
	configuration.StringVar(&f.config, "config", "", "YAML file of settings; its keys are the names of flags")
	configuration.BoolVar(&f.checkConfig, "check-config", false, "check all settings and the files that they name, print the settings, and end")
}

// validate refuses invalid settings, and warns of unsafe ones.
func (f *settings) validate(logger *slog.Logger) error {
	if err := f.checkLimits(); err != nil {
		return command.Usage(err)
	}
	if f.shutdownDelay < 0 || f.shutdownGrace < 0 {
		return command.Usagef("shutdown-delay and shutdown-grace must not be negative, are %v and %v", f.shutdownDelay, f.shutdownGrace)
	}
	if err := f.security.validate(); err != nil {
		return err
	}
	if err := errors.Join(f.http.validate(), tracing.Check(f.traces)); err != nil {
		return command.Usage(err)
	}
	if postgres.IsURL(f.store) {
		if err := postgres.Check(f.store, f.database); err != nil {
			return command.Usagef("store: %w", err)
		}
	}
	if f.http.listen != noHTTP {
		if err := checkListen(logger, "http-listen", f.http.listen, &f.security); err != nil {
			return err
		}
	}
	return checkListen(logger, "listen", f.listen, &f.security)
}

// checkLimits refuses limits that are not positive.
func (f *settings) checkLimits() error {
	for _, l := range []struct {
		name  string
		value int64
	}{
		{"max-request-bytes", int64(f.limits.RequestBytes)},
		{"max-studies", f.limits.Studies},
		{"max-trials-per-study", f.limits.TrialsPerStudy},
		{"max-open-trials-per-study", f.limits.OpenTrialsPerStudy},
		{"max-study-bytes", f.limits.StudyBytes},
		{"max-calls", int64(f.limits.Calls)},
		{"max-calls-per-principal", int64(f.limits.CallsPerPrincipal)},
		{"max-streams", int64(f.limits.Streams)},
		{"max-streams-per-principal", int64(f.limits.StreamsPerPrincipal)},
		{"max-call-time", int64(f.limits.CallTime)},
		{"max-connections", int64(f.connections)},
		{"max-idle-time", int64(f.limits.IdleTime)},
	} {
		if l.value <= 0 {
			return fmt.Errorf("%s must be positive, is %d", l.name, l.value)
		}
	}
	if f.connectionsPerAddress < 0 {
		return fmt.Errorf("max-connections-per-address must not be negative, is %d", f.connectionsPerAddress)
	}
	return nil
}

// check checks the settings of a server and prints them.
func check(env *command.Env, flags *pflag.FlagSet, f *settings) error {
	if err := f.validate(env.Logger); err != nil {
		return err
	}
	s, err := f.security.open(env, f.listen)
	if err != nil {
		return err
	}
	return errors.Join(writeConfiguration(env.Stdout, flags), s.close())
}

// serve runs the server until ctx is done.
func serve(ctx context.Context, env *command.Env, f *settings) (err error) {
	if f.supervised {
		ctx = child.Supervised(ctx, env.Stdin)
	}
	server.SetCollector()
	setProcessors()
	if err := f.validate(env.Logger); err != nil {
		return err
	}
	secured, err := f.security.open(env, f.listen)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, secured.close()) }()
	opened, err := f.openStore(ctx, env.Logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.db.Close()) }() // it says why the store has failed
	if f.create && !opened.isNew {
		env.Logger.Warn("--create has no effect on a store that exists; drop it, so that a missing one is noticed", "store", opened.name)
	}
	ctx, stop := untilFailed(ctx, env.Logger, opened.db)
	defer stop()
	ports, err := f.openPorts(ctx)
	if err != nil {
		return err
	}
	defer ports.close()
	traces, stopTracing, err := tracing.Start(ctx, env.Logger, f.traces, "dpareto")
	if err != nil {
		return err
	}
	defer stopTracing()
	door := limit.NewDoor(f.affordable(env.Logger, openFiles()), f.connectionsPerAddress, env.Logger)
	counted, page := newMetrics(opened.stats, door), pageURL(ports.http, secured.tls != nil)
	srv := server.New(server.Options{
		Store: opened.records, Version: command.Version(), Logger: env.Logger, Metrics: counted, TracerProvider: traces,
		Auth: secured.auth, Limits: f.limits, Audit: secured.audit, NoReflection: !secured.reflection, PageURL: page,
	})
	defer srv.Close()
	env.Logger.Info("serving", "address", ports.grpc.Addr().String(), "store", opened.name, "new_store", opened.isNew, "version", command.Version(),
		"tls", secured.tls != nil, "authentication", secured.auth != nil)
	web, err := startHTTP(ctx, env, f.http, ports.http, httpOptions{
		server: srv, metrics: counted, tls: secured.tls, auth: secured.auth, limits: f.limits, door: door,
	})
	if err != nil {
		return err
	}
	if err := ports.announce(env.Stdout, page); err != nil {
		return errors.Join(err, web.stop(ctx, 0))
	}
	return f.answer(ctx, env.Logger, srv, secured.tls, door.Listen("grpc", ports.grpc), web)
}

// ports are the listeners of a server.
type ports struct {
	grpc net.Listener
	http net.Listener // nil for none
}

// openPorts opens the ports that the settings name.
func (f *settings) openPorts(ctx context.Context) (*ports, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return nil, err
	}
	web, err := f.http.open(ctx, f.listen)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return &ports{listener, web}, nil
}

// announce prints where the server listens, in one write: readers of the first line need not read on.
func (p *ports) announce(out io.Writer, page string) error {
	lines := Listening + p.grpc.Addr().String() + "\n"
	if page != "" {
		lines += PageOn + reachable(page) + "\n"
	}
	_, err := io.WriteString(out, lines)
	return err
}

// reachable returns a URL with a name of this machine where it has the address that stands for all.
func reachable(page string) string {
	u, err := url.Parse(page)
	if err != nil || !net.ParseIP(u.Hostname()).IsUnspecified() {
		return page
	}
	u.Host = net.JoinHostPort(localhost, u.Port())
	return u.String()
}

// close closes the listeners, which those who serve on them have closed before if all went well.
func (p *ports) close() {
	_ = p.grpc.Close()
	if p.http != nil {
		_ = p.http.Close()
	}
}

// setProcessors lets Go run two goroutines at once even on one processor, unless the environment
// variable GOMAXPROCS is set.
func setProcessors() {
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2) // with one, the median of suggestions beside a fit rises from 26 to 62-109 ms
	}
}

// pause is [time.Sleep]. Tests replace it.
var pause = time.Sleep

// answer answers calls until ctx is done, and then stops the server and its HTTP port.
func (f *settings) answer(ctx context.Context, logger *slog.Logger, srv *server.Server, security *tls.Config, listener net.Listener, web *httpPort) error {
	var options []grpc.ServerOption
	if security != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(security)))
	}
	g := srv.GRPC(options...)
	defer g.Stop()
	stopped := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(stopped)
		logger.Info("stopping")
		srv.Drain()
		pause(f.shutdownDelay) // for load balancers to notice
		var both sync.WaitGroup
		both.Go(func() {
			if err := web.stop(ctx, f.shutdownGrace); err != nil {
				logger.Warn("HTTP", "error", err)
			}
		})
		both.Go(func() { stopGracefully(g, f.shutdownGrace) })
		both.Wait()
	})()
	if err := g.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return errors.Join(fmt.Errorf("serve %s: %w", f.listen, err), web.stop(ctx, f.shutdownGrace))
	}
	<-stopped // Serve returns when the stop begins
	logger.Info("stopped")
	return nil
}

// affordable returns how many connections the server may have if the process may have a number of
// files open, 0 for unknown. An eighth of them, and at least 64, are left to the store, its copies
// and logs.
func (f *settings) affordable(logger *slog.Logger, files int) int {
	if files == 0 {
		return f.connections
	}
	most := max(1, files-max(64, files/8))
	if most < f.connections {
		logger.Warn("the limit of open files allows fewer connections than max-connections", "open_files", files, "connections", most)
	}
	return min(f.connections, most)
}

// newMetrics returns the metrics of a server with the counts of a store and a connection limit.
func newMetrics(counts func() metrics.StoreStats, door *limit.Door) *metrics.Metrics {
	counted := metrics.New(command.Version())
	counted.CountStore(counts)
	counted.CountConnections(func() []metrics.ConnectionStats {
		var all []metrics.ConnectionStats
		for _, st := range door.Stats() {
			all = append(all, metrics.ConnectionStats(st))
		}
		return all
	})
	return counted
}

// untilFailed returns a context that also ends when the store has failed.
func untilFailed(ctx context.Context, logger *slog.Logger, db database) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		select {
		case <-db.Failed():
			logger.Error("the store has failed: the server stops; start it again")
			stop()
		case <-ctx.Done():
		}
	}()
	return ctx, stop
}

// stopGracefully waits for the calls in progress, at most for the grace.
func stopGracefully(g *grpc.Server, grace time.Duration) {
	timer := time.AfterFunc(grace, g.Stop)
	defer timer.Stop()
	g.GracefulStop()
}

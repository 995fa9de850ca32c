package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/child"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/heap"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

const (
	// stopGrace is how long calls in progress may take when the server stops.
	stopGrace = 5 * time.Second
	// listening begins the line that a server prints; its address follows.
	listening = "listening on "
)

type serveFlags struct {
	listen     string
	store      string
	insecure   bool
	supervised bool
	http       httpFlags
	traces     string // endpoint
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Runs the server that keeps studies and suggests configurations.

It prints one line with the address that it listens on. Everything that it has
acknowledged is in the store, also after kill -9. SIGTERM or Ctrl-C stops it after the
calls in progress.

The server does not know who calls it. It therefore listens only on this machine, unless
--insecure-listen is given.`,
		Example: `  dpareto serve
  dpareto serve --listen 127.0.0.1:0 --store studies.db`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", DefaultAddress, "address to listen on; port 0 takes a free one")
	fromEnvironment(flags, "listen")
	flags.StringVar(&f.store, "store", "", "file that keeps all state, made if it does not exist; default "+
		"dpareto/dpareto.db in the user's configuration folder")
	fromEnvironment(flags, "store")
	flags.BoolVar(&f.insecure, "insecure-listen", false,
		"allow an address that other machines can reach: everybody there can read and change everything")
	addHTTPFlags(flags, &f.http)
	addTraceFlag(flags, &f.traces)
	addSupervisedFlag(cmd, &f.supervised)
	return cmd
}

// addSupervisedFlag adds the flag of commands that run as a child (see package child).
func addSupervisedFlag(cmd *cobra.Command, supervised *bool) {
	const name = "supervised"
	cmd.Flags().BoolVar(supervised, name, false, "stop at the end of standard input, and not at Ctrl-C")
	if err := cmd.Flags().MarkHidden(name); err != nil {
		panic(err) // the flag was just added
	}
}

// serve runs the server until ctx is done.
func (a *app) serve(ctx context.Context, f serveFlags) (err error) {
	if f.supervised {
		ctx = child.Supervised(ctx, a.stdin)
	}
	heap.Relax()
	if err := a.checkListen(f); err != nil {
		return err
	}
	if f.http.listen != "" {
		web := f
		web.listen = f.http.listen
		if err := a.checkListen(web); err != nil {
			return err
		}
	}
	path, err := storePath(f.store)
	if err != nil {
		return err
	}
	db, err := bolt.Open(path)
	if errors.Is(err, store.ErrLocked) {
		return fmt.Errorf("%w: is another server running?", err)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	records, err := store.New(ctx, db)
	if err != nil {
		return fmt.Errorf("store %s: %w", path, err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return err
	}
	traces, stopTracing, err := a.startTracing(ctx, f.traces, "dpareto")
	if err != nil {
		return err
	}
	defer stopTracing()
	counted := metrics.New(version())
	srv := server.New(server.Options{Store: records, Version: version(), Logger: a.logger, Metrics: counted, TracerProvider: traces})
	defer srv.Close()
	g := srv.GRPC()
	a.logger.Info("serving", "address", listener.Addr().String(), "store", path, "version", version())
	if _, err := fmt.Fprintln(a.stdout, listening+listener.Addr().String()); err != nil {
		return errors.Join(err, listener.Close())
	}
	web := new(httpPort)
	if f.http.listen != "" {
		if web, err = a.startHTTP(ctx, f.http, httpOptions{server: srv, metrics: counted}); err != nil {
			return errors.Join(err, listener.Close())
		}
	}

	stopped := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(stopped)
		a.logger.Info("stopping")
		srv.Drain()
		if err := web.stop(ctx); err != nil {
			a.logger.Warn("HTTP", "error", err)
		}
		stopGracefully(g)
	})()
	if err := g.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return errors.Join(fmt.Errorf("serve %s: %w", f.listen, err), web.stop(ctx))
	}
	<-stopped // Serve returns when the stop begins
	a.logger.Info("stopped")
	return nil
}

// stopGracefully waits for the calls in progress, but not for long.
func stopGracefully(g *grpc.Server) {
	timer := time.AfterFunc(stopGrace, g.Stop)
	defer timer.Stop()
	g.GracefulStop()
}

// checkListen refuses an address that other machines can reach, unless it is asked for.
func (a *app) checkListen(f serveFlags) error {
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return &usageError{fmt.Errorf("listen: %w", err)}
	}
	if host == "localhost" || net.ParseIP(host).IsLoopback() {
		return nil
	}
	if !f.insecure {
		return &usageError{fmt.Errorf("listen: %s is not an address of this machine alone, and the server cannot tell "+
			"who calls it; use 127.0.0.1, or --insecure-listen where everybody who can reach it may read and change everything", f.listen)}
	}
	a.logger.Warn("ANYBODY WHO CAN REACH THIS ADDRESS CAN READ AND CHANGE ALL STUDIES: there is neither authentication nor encryption",
		"address", f.listen)
	return nil
}

// storePath returns the file of the store, whose folder it makes.
func storePath(path string) (string, error) {
	if path == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return "", fmt.Errorf("no folder for the store (%w); name one with --store", err)
		}
		path = filepath.Join(dir, "dpareto", "dpareto.db")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("store: %w", err)
	}
	return path, nil
}

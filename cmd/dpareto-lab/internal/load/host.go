package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/bench"
	"github.com/dpareto/dpareto/cmd/internal/child"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

const (
	// hosting begins the line that a host prints; the addresses of its server and of its
	// usage follow.
	hosting = "hosting "
	// patience is how long a server may take to start.
	patience = time.Minute
	// grace is how long a server may take to stop.
	grace = 10 * time.Second

	usagePath   = "/usage"
	profilePath = "/profile"
)

// Usage is what a server has used since it started.
type Usage struct {
	Store      bolt.Stats    `json:"store"`
	Processor  time.Duration `json:"processor"`
	Resident   int64         `json:"resident"`    // bytes of memory now, with the pages of the store's file
	Anonymous  int64         `json:"anonymous"`   // bytes of memory now, without them
	StoreBytes int64         `json:"store_bytes"` // size of the store's file
}

// Serve runs a server on a store until ctx is done, and beside it one that reports its
// usage. It prints one line with both addresses.
func Serve(ctx context.Context, stdout io.Writer, storeFile, version string) (err error) {
	server.SetCollector()
	db, err := bolt.Open(storeFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	records, err := store.New(ctx, db)
	if err != nil {
		return err
	}
	srv := server.New(server.Options{Store: records, Version: version})
	defer srv.Close()
	var listen net.ListenConfig
	calls, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	queries, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, calls.Close())
	}
	h := &http.Server{Handler: usageHandler(db, storeFile), ReadHeaderTimeout: patience}
	defer func() { err = errors.Join(err, h.Close()) }()
	go func() { _ = h.Serve(queries) }() // it ends with the host
	g := srv.GRPC()
	stopped := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(stopped)
		g.Stop()
	})()
	if _, err := fmt.Fprintf(stdout, "%s%s %s\n", hosting, calls.Addr(), queries.Addr()); err != nil {
		return errors.Join(err, calls.Close())
	}
	if err := g.Serve(calls); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	<-stopped
	return nil
}

// usageHandler answers with the usage, and with processor profiles.
func usageHandler(db *bolt.DB, storeFile string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(usagePath, func(w http.ResponseWriter, _ *http.Request) {
		usage := Usage{Store: db.Stats(), Processor: bench.ProcessorTime()}
		usage.Resident, usage.Anonymous = residentMemory()
		if info, err := os.Stat(storeFile); err == nil {
			usage.StoreBytes = info.Size()
		}
		if err := json.NewEncoder(w).Encode(usage); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc(profilePath, pprof.Profile)
	return mux
}

// Host is a server in a separate process.
type Host struct {
	Address string        // of the server
	Start   time.Duration // that it took until it listened

	queries string
	process *child.Process
}

// StartHost starts a program that calls Serve, and waits until it listens. Its log goes to
// stderr.
func StartHost(ctx context.Context, stderr io.Writer, program string, args ...string) (*Host, error) {
	start := time.Now()
	process, err := child.Start("server", stderr, nil, program, args...)
	if err != nil {
		return nil, err
	}
	h := &Host{process: process}
	select {
	case line := <-process.Line():
		h.Start = time.Since(start)
		var found bool
		h.Address, h.queries, found = strings.Cut(strings.TrimPrefix(line, hosting), " ")
		if !found {
			return nil, errors.Join(fmt.Errorf("the server printed %q", line), h.Stop())
		}
		return h, nil
	case <-process.Done():
		return nil, fmt.Errorf("the server ended at once: %w", process.Err())
	case <-time.After(patience):
		return nil, errors.Join(fmt.Errorf("the server does not listen after %v", patience), h.Stop())
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), h.Stop())
	}
}

// Usage asks the server for its usage.
func (h *Host) Usage(ctx context.Context) (*Usage, error) {
	usage := new(Usage)
	return usage, h.get(ctx, usagePath, func(body io.Reader) error { return json.NewDecoder(body).Decode(usage) })
}

// Profile writes a profile of the server's processor time over the coming seconds.
func (h *Host) Profile(ctx context.Context, w io.Writer, duration time.Duration) error {
	return h.get(ctx, fmt.Sprintf("%s?seconds=%d", profilePath, max(1, int(duration.Seconds()))), func(body io.Reader) error {
		_, err := io.Copy(w, body)
		return err
	})
}

// get passes an answer to read.
func (h *Host) get(ctx context.Context, path string, read func(io.Reader) error) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.queries+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server's usage: %s", response.Status)
	}
	return read(response.Body)
}

// Stop stops the server.
func (h *Host) Stop() error { return h.process.Stop(grace) }

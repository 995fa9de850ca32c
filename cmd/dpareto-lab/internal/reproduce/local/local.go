// Package local serves studies to an experiment in its own process.
package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

// Serve starts a server on a store, a file that is made if it does not exist, and connects to it.
// Without a path the store is temporary. entropy, unless it is nil, replaces the operating system's
// in what the server releases: for experiments on public data only. stop ends both. Serve fails if the
// file cannot be opened: no two processes can use one store.
func Serve(ctx context.Context, path string, entropy *noise.Source) (client *dpareto.Client, stop func() error, err error) {
	var stops []func() error
	stopAll := func() error {
		var all error
		for _, end := range slices.Backward(stops) {
			all = errors.Join(all, end())
		}
		return all
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stopAll())
		}
	}()
	if path == "" {
		folder, err := os.MkdirTemp("", "dpareto-reproduce-")
		if err != nil {
			return nil, nil, err
		}
		stops = append(stops, func() error { return os.RemoveAll(folder) })
		path = filepath.Join(folder, "store.db")
	}
	db, err := bolt.Open(path)
	if err != nil {
		// Not wrapped: callers take fs.ErrNotExist for data that are not here.
		return nil, nil, fmt.Errorf("the store cannot be opened: %v", err) //nolint:errorlint // see above
	}
	stops = append(stops, db.Close)
	records, err := store.New(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	s := server.New(server.Options{Store: records, Logger: slog.New(slog.DiscardHandler), Entropy: entropy})
	g := s.GRPC()
	served := make(chan error, 1)
	go func() { served <- g.Serve(listener) }()
	stops = append(stops, func() error {
		g.Stop()
		err := <-served
		s.Close()
		return err
	})
	client, err = dpareto.Dial(listener.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	stops = append(stops, client.Close)
	return client, stopAll, nil
}

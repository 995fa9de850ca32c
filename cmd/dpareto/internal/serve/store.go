package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/storefile"
	"github.com/dpareto/dpareto/server/filemode"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
	"github.com/dpareto/dpareto/server/store/postgres"
)

// database is an open store of any kind.
type database interface {
	store.KV
	// Failed returns a channel that is closed when the server must stop.
	Failed() <-chan struct{}
}

// opened is an open store, its name for the log, and its counts.
type opened struct {
	db      database
	records *store.Store
	name    string
	isNew   bool
	stats   func() metrics.StoreStats
}

// openStore opens the store.
func (f *settings) openStore(ctx context.Context, logger *slog.Logger) (o *opened, err error) {
	if postgres.IsURL(f.store) {
		o, err = f.openDatabase(ctx)
	} else {
		o, err = f.openFile(logger)
	}
	if errors.Is(err, store.ErrLocked) {
		who := "is another server running?"
		if postgres.IsURL(f.store) {
			who = "is it being copied, filled or compacted?" // servers share it
		}
		return nil, fmt.Errorf("%w: %s", err, who)
	}
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if o.records, err = store.New(ctx, o.db); err != nil {
		return nil, errors.Join(fmt.Errorf("store %s: %w", o.name, err), o.db.Close())
	}
	return o, nil
}

// openDatabase opens a store in a database.
func (f *settings) openDatabase(ctx context.Context) (*opened, error) {
	options := f.database
	options.Create = f.create
	db, err := postgres.Open(ctx, f.store, options)
	if err != nil {
		return nil, err
	}
	return &opened{db: db, name: db.Name(), isNew: db.IsNew(), stats: func() metrics.StoreStats {
		st := db.Stats(context.WithoutCancel(ctx))
		return metrics.StoreStats{
			Commits: st.Commits, Updates: st.Updates, Failures: st.Failures, Bytes: st.Size,
			Database: &metrics.DatabaseStats{
				Conflicts: st.Conflicts, Retries: st.Retries, Waits: st.Waits, WaitTime: st.WaitTime, Connections: st.Connections,
			},
		}
	}}, nil
}

// openFile opens a store in a file.
func (f *settings) openFile(logger *slog.Logger) (*opened, error) {
	path, isNew, err := f.storePath()
	if err != nil {
		return nil, err
	}
	db, err := bolt.Open(path)
	if err != nil {
		return nil, err
	}
	if notice := db.Notice(); notice != "" {
		logger.Warn("harmless damage", "store", path, "damage", notice)
	}
	return &opened{db: db, name: path, isNew: isNew, stats: func() metrics.StoreStats {
		st := db.Stats()
		return metrics.StoreStats{Commits: st.Commits, Updates: st.Updates, Syncs: st.Syncs, Failures: st.Failures, Bytes: st.Size}
	}}, nil
}

// storeModes are the permissions that a store may give the group: the owner of a volume in Kubernetes
// is one.
const storeModes = 0o660

// storePath returns the file of the store. It refuses one that is missing or empty unless it should
// be made: the volume may not be mounted, and a new store would hide the old one. Only the default
// file is made without being told. It also refuses a file that everybody may read or write.
func (f *settings) storePath() (path string, isNew bool, err error) {
	path, err = storefile.Path(f.store)
	if err != nil {
		return "", false, err
	}
	info, err := os.Stat(path)
	isMissing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !isMissing:
		return "", false, err
	case !isMissing && info.IsDir():
		return "", false, fmt.Errorf("%s is a folder, must be a file", path)
	case isMissing && f.store != "" && !f.create:
		return "", false, fmt.Errorf("%s does not exist: start a new store with --create, or mount its volume, or restore a backup (dpareto restore)", path)
	case !isMissing && info.Size() == 0 && !f.create:
		return "", false, fmt.Errorf("%s is empty: start a new store in it with --create, or restore a backup (dpareto restore --force)", path)
	case isMissing:
		return path, true, storefile.MakeFolder(path)
	}
	if err := filemode.Check(path, info, storeModes, "others can read or change all studies and lease tokens"); err != nil {
		return "", false, err
	}
	return path, info.Size() == 0, nil
}

package operate

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/storefile"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
	"github.com/dpareto/dpareto/server/store/postgres"
)

// StoreCommand returns the command store.
func StoreCommand(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "store", Short: "Move a store between a file and a database"}
	cmd.AddCommand(copyCommand(env))
	return cmd
}

// copyCommand returns the command store copy.
func copyCommand(env *command.Env) *cobra.Command {
	var from, to string
	var database postgres.Options
	cmd := &cobra.Command{
		Use:   "copy --from STORE --to STORE",
		Short: "Copy a store to another of any kind",
		Long: `Copies all records of a store to a new one. Each is a file, or the URL of a PostgreSQL
database (postgres://USER@HOST/DATABASE). No server may use either. A file must not exist, and
a database must hold no store; a copy that fails leaves neither.

The copy is read again: its number of records and their SHA-256 must equal the original's,
and everything that "dpareto check" checks must agree.`,
		Example: `  dpareto store copy --from dpareto.db --to postgres://dpareto@db.example.org/dpareto
  dpareto store copy --from postgres://dpareto@db.example.org/dpareto --to dpareto.db`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from == "" || to == "" {
				return command.Usagef("--from and --to are required: the store, and the new one")
			}
			done, err := copyStore(cmd.Context(), from, to, false, database)
			if err != nil {
				return withAdvice(fmt.Errorf("copy: %w", err))
			}
			env.Logger.Info("copied", "to", done.name, "records", done.records, "sha256", done.sum,
				"studies", done.counts["study"].Keys, "trials", done.counts["trial"].Keys)
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "store to copy")
	cmd.Flags().StringVar(&to, "to", "", "new store")
	storefile.AddDatabaseFlags(cmd.Flags(), &database)
	return cmd
}

// copied is the result of a copy.
type copied struct {
	name    string // of the new store
	records int64
	sum     string
	counts  map[string]store.Count
}

// copyStore copies a store, or a dump of one, to a new store, and checks the copy. A file that exists is
// replaced with force.
func copyStore(ctx context.Context, from, to string, force bool, o postgres.Options) (done *copied, err error) {
	source, records, err := openSource(ctx, from, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	n, sum, err := records.Sum()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	done = &copied{name: to, records: n, sum: hex.EncodeToString(sum[:])}
	compare := func(copied store.KV) error {
		m, again, err := store.All(ctx, copied).Sum()
		if err == nil && (m != n || again != sum) {
			err = fmt.Errorf("the copy has %d records with SHA-256 %x, must have %d with %x", m, again, n, sum)
		}
		if err == nil {
			done.counts, err = checkCopy(ctx, copied)
		}
		return err
	}
	if postgres.IsURL(to) {
		if force {
			return nil, errors.New("--force cannot replace a store in a database: drop its tables, or name another search_path")
		}
		return done, fillDatabase(ctx, to, records, o, compare)
	}
	_, err = bolt.Fill(ctx, to, force, records, compare)
	return done, err
}

// fillDatabase makes a new store in a database. What compare refuses, or is interrupted in, is removed again.
func fillDatabase(ctx context.Context, url string, records store.Records, o postgres.Options, compare func(store.KV) error) (err error) {
	o.Create, o.Alone = true, true
	db, err := postgres.Open(ctx, url, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Fill(ctx, records); err != nil {
		return err
	}
	if err := compare(db); err != nil {
		still, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearing)
		defer cancel()
		return errors.Join(err, db.Clear(still))
	}
	return nil
}

// clearing bounds the removal of a copy from a database.
const clearing = time.Minute

// checkCopy checks the contents of a store, and counts them.
func checkCopy(ctx context.Context, kv store.KV) (map[string]store.Count, error) {
	records, err := store.NewReader(ctx, kv)
	if err != nil {
		return nil, err
	}
	if faults := records.Check(ctx); len(faults) > 0 {
		return nil, fmt.Errorf("the copy is not sound: %w", errors.Join(faults...))
	}
	return records.Counts(ctx)
}

// openSource opens a store that no server uses, or a dump, for reading.
func openSource(ctx context.Context, name string, o postgres.Options) (io.Closer, store.Records, error) {
	if postgres.IsURL(name) {
		o.Alone = true
		db, err := postgres.Open(ctx, name, o)
		if err != nil {
			return nil, nil, err
		}
		return db, store.All(ctx, db), nil
	}
	if isDump(name) {
		file, err := os.Open(name)
		return file, func(put func(string, []byte) error) error {
			if _, err := file.Seek(0, io.SeekStart); err != nil {
				return err
			}
			return store.ParseDump(file)(put)
		}, err
	}
	db, err := bolt.OpenReadOnly(name)
	if err != nil {
		return nil, nil, err
	}
	return db, store.All(ctx, db), nil
}

// isDump reports whether a file is the dump of a store.
func isDump(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }() // it was only read
	begin, _ := bufio.NewReader(file).Peek(len(store.DumpHeader))
	return string(begin) == store.DumpHeader
}

// verifyDump checks a dump like a store that is made of it, in a temporary folder.
func verifyDump(ctx context.Context, path string) (report *bolt.Report, err error) {
	folder, err := os.MkdirTemp("", "dpareto-check-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	report, err = bolt.Fill(ctx, filepath.Join(folder, "store.db"), false, store.ParseDump(file), nil)
	if report != nil && len(report.Faults) > 0 {
		return report, nil
	}
	return report, err
}

// verifyDatabase checks the contents of the store in a database. The database itself has its own means.
func verifyDatabase(ctx context.Context, url string, o postgres.Options) (report *bolt.Report, err error) {
	db, err := postgres.OpenReadOnly(ctx, url, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	records, err := store.NewReader(ctx, db)
	if err != nil {
		return nil, err
	}
	report = &bolt.Report{Bytes: db.Stats(ctx).Size, Faults: records.Check(ctx)}
	if len(report.Faults) == 0 {
		report.Counts, err = records.Counts(ctx)
	}
	return report, errors.Join(err, ctx.Err())
}

// writeBackup writes a backup with the content that fill writes, and checks it.
func writeBackup(ctx context.Context, to string, force bool, fill func(*os.File) error) (report *bolt.Report, err error) {
	err = bolt.WriteChecked(to, force, fill, func(name string) (err error) {
		if report, err = verify(ctx, name, postgres.Options{}); err == nil && len(report.Faults) > 0 {
			err = fmt.Errorf("the copy is not sound: %w", errors.Join(report.Faults...))
		}
		return err
	})
	return report, err
}

// backupDatabase writes a dump of the store in a database.
func backupDatabase(ctx context.Context, url string, o postgres.Options, to string, force bool) (_ *bolt.Report, err error) {
	db, err := postgres.OpenReadOnly(ctx, url, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return writeBackup(ctx, to, force, func(file *os.File) error { return store.WriteDump(file, store.All(ctx, db)) })
}

// compactDatabase compacts the store in a database.
func compactDatabase(ctx context.Context, url string, o postgres.Options) (before, after int64, err error) {
	o.Alone = true
	db, err := postgres.Open(ctx, url, o)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Compact(ctx)
}

// verify checks a store or a dump.
func verify(ctx context.Context, name string, o postgres.Options) (*bolt.Report, error) {
	switch {
	case postgres.IsURL(name):
		return verifyDatabase(ctx, name, o)
	case isDump(name):
		return verifyDump(ctx, name)
	default:
		return bolt.Verify(ctx, name)
	}
}

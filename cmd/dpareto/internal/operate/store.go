package operate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/storefile"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
	"github.com/dpareto/dpareto/server/store/postgres"
)

// withAdvice adds to an error what to do about a store that is open, or a file that exists.
func withAdvice(err error) error {
	switch {
	case errors.Is(err, store.ErrLocked):
		return fmt.Errorf("%w: stop every server that uses it first", err)
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("%w; --force replaces it", err)
	default:
		return err
	}
}

// BackupCommand returns the command backup.
func BackupCommand(env *command.Env) *cobra.Command {
	server := remote.New(env)
	var to, file string
	var force bool
	var database postgres.Options
	cmd := &cobra.Command{
		Use:   "backup --to FILE",
		Short: "Copy the store of a running server to a file",
		Long: `Copies the whole store to a file, as of one moment, while the server runs. With
--store the copy is made from a file that no server uses, or from a PostgreSQL database.

The file appears when it is complete, on disk, and checked: its digest is the server's, and its
structure and records are sound. The command "dpareto restore" makes it a store again. The backup
of a store in a file is such a file: "dpareto serve --store FILE" can use it as it is. The backup
of a database is a text that no database is needed to read, with a line for each record.`,
		Example: `  dpareto backup --to dpareto-backup.db
  dpareto backup --store dpareto.db --to dpareto-backup.db`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to == "" {
				return command.Usagef("--to is required: the file to write")
			}
			var report *bolt.Report
			var err error
			switch {
			case file == "":
				report, err = backup(cmd.Context(), server, to, force)
			case postgres.IsURL(file):
				report, err = backupDatabase(cmd.Context(), file, database, to, force)
			default:
				report, err = bolt.Restore(cmd.Context(), file, to, force)
			}
			if err != nil && file != "" {
				err = fmt.Errorf("backup: %w", err)
			}
			if err != nil {
				return withAdvice(err)
			}
			env.Logger.Info("backed up", "file", to, "bytes", report.Bytes, "studies", report.Counts["study"].Keys, "trials", report.Counts["trial"].Keys)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&to, "to", "", "file to write")
	flags.StringVar(&file, "store", "", "file of a store that no server uses, or URL of a database, in place of the server's")
	storefile.AddDatabaseFlags(flags, &database)
	flags.BoolVar(&force, "force", false, "replace a file that exists; it is kept as FILE"+bolt.Backup)
	server.AddFlags(cmd)
	return cmd
}

// backup copies the store of a server to a file.
func backup(ctx context.Context, server *remote.Server, to string, force bool) (report *bolt.Report, err error) {
	err = server.Session(ctx, func(ctx context.Context, client *dpareto.Client) error {
		if err := probe(ctx, client); err != nil {
			return &remote.CallError{Action: backupAction, Err: err}
		}
		report, err = writeBackup(ctx, to, force, func(file *os.File) error { return receiveBackup(ctx, client, file) })
		return err
	})
	return report, err
}

// backupAction names the backup in errors.
const backupAction = "back up the store"

// receiveBackup writes the server's store to a file and compares it with its digest.
func receiveBackup(ctx context.Context, client *dpareto.Client, file io.Writer) error {
	stream, err := client.Admin.BackupStore(ctx, &dparetov1.BackupStoreRequest{})
	if err != nil {
		return &remote.CallError{Action: backupAction, Err: err}
	}
	digest := sha256.New()
	to := io.MultiWriter(file, digest)
	var total int64
	var last *dparetov1.BackupStoreResponse
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return &remote.CallError{Action: backupAction, Err: err}
		}
		n, err := to.Write(resp.GetData())
		if err != nil {
			return err
		}
		total += int64(n)
		last = resp
	}
	if last.GetTotalBytes() != total || !bytes.Equal(last.GetSha256(), digest.Sum(nil)) {
		return fmt.Errorf("backup: received %d of %d bytes, or another digest than the server sent; try again", total, last.GetTotalBytes())
	}
	return nil
}

// RestoreCommand returns the command restore.
func RestoreCommand(env *command.Env) *cobra.Command {
	var from, to string
	var force, salvage bool
	var database postgres.Options
	cmd := &cobra.Command{
		Use:   "restore --from FILE",
		Short: "Replace a store with a backup",
		Long: `Checks a backup and makes a copy of it the store. No server may use the store. A store that
exists is replaced only with --force, and kept under the same name with ` + bolt.Backup + `; if that
file also exists, the command fails. A backup can be of another kind than the store; a database
must hold no store.

With --salvage the file may be a damaged store. The command writes every record that it can
reach and whose checksum holds to a new file, which must not exist. It leaves the damaged file
as it is, and prints what was lost, and which studies and ledgers miss records. It also checks
the new file; if that is not sound the file stays and the exit code is 1. Prefer a recent
backup; docs/explanation/durability.md says what to do before publishing anything from a
salvaged store.`,
		Example: `  dpareto restore --from dpareto-backup.db --store dpareto.db
  dpareto restore --salvage --from dpareto.db --store salvaged.db`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from == "" {
				return command.Usagef("--from is required: the backup")
			}
			if salvage && force {
				return command.Usagef("--force cannot be given with --salvage, which replaces no file")
			}
			path, err := storefile.Path(to)
			if err != nil {
				return err
			}
			if postgres.IsURL(path) && salvage {
				return command.Usagef("--salvage writes a file, which --store must name")
			}
			if !postgres.IsURL(path) {
				if err := errors.Join(storefile.MakeFolder(path), keepsBoth(path, force)); err != nil {
					return err
				}
			}
			if salvage {
				return salvageStore(cmd.Context(), env.Logger, from, path)
			}
			counts, err := restore(cmd.Context(), from, path, force, database)
			if err != nil {
				return withAdvice(fmt.Errorf("restore: %w", err))
			}
			env.Logger.Info("restored", "store", path, "studies", counts["study"].Keys, "trials", counts["trial"].Keys)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "backup to restore")
	storefile.AddFlags(cmd, &to, &database)
	flags.BoolVar(&force, "force", false, "replace a store that exists; it is kept as FILE"+bolt.Backup)
	flags.BoolVar(&salvage, "salvage", false, "write the undamaged records of a damaged store to a new file")
	return cmd
}

// restore makes a store of a backup, which may be of another kind, and counts its records.
func restore(ctx context.Context, from, to string, force bool, o postgres.Options) (map[string]store.Count, error) {
	if postgres.IsURL(to) || isDump(from) {
		done, err := copyStore(ctx, from, to, force, o)
		if err != nil {
			return nil, err
		}
		return done.counts, nil
	}
	report, err := bolt.Restore(ctx, from, to, force)
	if err != nil {
		return nil, err
	}
	return report.Counts, nil
}

// salvageStore writes the undamaged records of a store to a new file.
func salvageStore(ctx context.Context, logger *slog.Logger, from, to string) error {
	s, err := bolt.Salvage(ctx, from, to)
	switch {
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("restore: %w; --store must name a new file", err)
	case err != nil:
		return withAdvice(fmt.Errorf("restore: %w", err))
	}
	for _, lost := range s.Lost {
		logger.Warn("not kept", "damage", lost)
	}
	logger.Warn("salvaged", "store", to, "records", s.Kept, "studies", s.Counts["study"].Keys, "trials", s.Counts["trial"].Keys)
	for _, fault := range s.Faults {
		logger.Error("not sound", "fault", fault)
	}
	if n := len(s.Faults); n > 0 {
		return fmt.Errorf("restore: %s was written but is not sound (%d faults): records refer to others that are lost", to, n)
	}
	return nil
}

// keepsBoth refuses to replace a store if an earlier one is kept: a second attempt with
// another backup would lose the store that the first one replaced.
func keepsBoth(path string, force bool) error {
	if !force {
		return nil
	}
	for _, file := range []string{path, path + bolt.Backup} {
		if _, err := os.Lstat(file); err != nil {
			return nil //nolint:nilerr // what else is wrong shows when it is replaced
		}
	}
	return fmt.Errorf("restore: %s would replace %s, which an earlier command kept: move that away first", path, path+bolt.Backup)
}

// CheckCommand returns the command check.
func CheckCommand(env *command.Env) *cobra.Command {
	out := command.NewPrinter(env)
	var path string
	var database postgres.Options
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check a store",
		Long: `Checks that every record has the right checksum and none is missing, that every page of the
file has one owner, and that records, indexes and counts agree. Prints the number and size of
the records of every kind. The exit code is 1 if anything is wrong. No server may use the
file; for the store of a running server make a backup, which is also checked.

In a PostgreSQL database the records are checked, also while a server uses it; pg_amcheck and
pg_checksums check the database's own files. The text that is the backup of a database is checked
like a store.`,
		Example: `  dpareto check --store dpareto.db
  dpareto check --store postgres://dpareto@db.example.org/dpareto`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := storefile.Path(path)
			if err != nil {
				return err
			}
			return check(cmd.Context(), env.Logger, out, file, database)
		},
	}
	storefile.AddFlags(cmd, &path, &database)
	out.AddFlag(cmd)
	return cmd
}

// kindCount is one line of the report of a check.
type kindCount struct {
	Kind  string `json:"kind"`
	Keys  int64  `json:"keys"`
	Bytes int64  `json:"bytes"`
}

// check checks a file and prints its contents.
func check(ctx context.Context, logger *slog.Logger, out *command.Printer, path string, o postgres.Options) error {
	report, err := verify(ctx, path, o)
	if err != nil {
		return withAdvice(fmt.Errorf("check: %w", err))
	}
	counts := []kindCount{{"file", 1, report.Bytes}, {"free", 0, report.FreeBytes}}
	for _, kind := range slices.Sorted(maps.Keys(report.Counts)) {
		counts = append(counts, kindCount{kind, report.Counts[kind].Keys, report.Counts[kind].Bytes})
	}
	if report.Notice != "" {
		logger.Warn("harmless damage", "file", path, "damage", report.Notice)
	}
	for _, fault := range report.Faults {
		logger.Error("not sound", "fault", fault)
	}
	if err := printCounts(out, counts, report.Faults); err != nil {
		return err
	}
	if n := len(report.Faults); n > 0 {
		return fmt.Errorf("check: %s is not sound (%d faults); restore it from a backup with dpareto restore", path, n)
	}
	return nil
}

func printCounts(out *command.Printer, counts []kindCount, faults []error) error {
	if out.Format == output.JSON {
		texts := make([]string, len(faults))
		for i, fault := range faults {
			texts[i] = fault.Error()
		}
		return output.WriteJSON(out, map[string]any{"contents": counts, "faults": texts})
	}
	table := &output.Table{Columns: []string{"kind", "keys", "bytes"}}
	for _, c := range counts {
		table.Rows = append(table.Rows, []any{c.Kind, c.Keys, c.Bytes})
	}
	return out.Table(table)
}

// CompactCommand returns the command compact.
func CompactCommand(env *command.Env) *cobra.Command {
	var path string
	var discard bool
	var database postgres.Options
	cmd := &cobra.Command{
		Use:   "compact",
		Short: "Shrink a store file",
		Long: `Rewrites the file of a store without its free pages, because the file never shrinks by itself. The
store is checked before and after. The old file is kept under the same name with ` + bolt.Backup + `,
in place of an earlier one, unless --discard is given. No server may use the store. The tables in a
PostgreSQL database are rewritten by VACUUM FULL; ordinarily its autovacuum is enough.`,
		Example: "  dpareto compact --store dpareto.db",
		Args:    command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := storefile.Path(path)
			if err != nil {
				return err
			}
			var before, after int64
			if postgres.IsURL(file) {
				before, after, err = compactDatabase(cmd.Context(), file, database)
			} else {
				before, after, err = bolt.Compact(cmd.Context(), file, discard)
			}
			if err != nil {
				return withAdvice(fmt.Errorf("compact: %w", err))
			}
			env.Logger.Info("compacted", "store", file, "bytes_before", before, "bytes_after", after)
			return nil
		},
	}
	storefile.AddFlags(cmd, &path, &database)
	cmd.Flags().BoolVar(&discard, "discard", false, "do not keep the old file")
	return cmd
}

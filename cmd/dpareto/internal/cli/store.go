package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

// withAdvice says what to do about a store that a server has open, and a file that exists.
func withAdvice(err error) error {
	switch {
	case errors.Is(err, store.ErrLocked):
		return fmt.Errorf("%w: stop the server first", err)
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("%w; --force replaces it", err)
	default:
		return err
	}
}

func (a *app) backupCommand() *cobra.Command {
	var to, file string
	var force bool
	cmd := &cobra.Command{
		Use:   "backup --to FILE",
		Short: "Copy the store of a running server to a file",
		Long: `Copies the whole store to a file, as it is at one moment. The server goes on meanwhile. With
--store the copy is made from a file that no server uses.

The file appears when it is complete, on disk, and checked: its digest is that of what the
server sent, and its structure and records are sound. "dpareto restore" makes it a store
again; "dpareto serve --store FILE" can also use it as it is.`,
		Example: `  dpareto backup --to dpareto-backup.db
  dpareto backup --store dpareto.db --to dpareto-backup.db`,
		Args: command.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to == "" {
				return command.Usage(errors.New("--to must name the file to write"))
			}
			return a.backup(cmd.Context(), file, to, force)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&to, "to", "", "file to write")
	flags.StringVar(&file, "store", "", "file of a store that no server uses, in place of the server's")
	flags.BoolVar(&force, "force", false, "replace a file that exists; it is kept as FILE"+bolt.Backup)
	a.addClientFlags(cmd)
	return cmd
}

func (a *app) backup(ctx context.Context, from, to string, force bool) error {
	var report *bolt.Report
	var err error
	if from != "" {
		report, err = bolt.Restore(ctx, from, to, force)
		if err != nil {
			return withAdvice(fmt.Errorf("backup: %w", err))
		}
	} else {
		err = a.session(ctx, func(ctx context.Context, client *dpareto.Client) error {
			// Finds out whether there is a server: streams do not try again.
			if _, err := client.Admin.GetServerInfo(ctx, &dparetov1.GetServerInfoRequest{}); err != nil {
				return &callError{backupAction, err}
			}
			report, err = bolt.WriteFile(ctx, to, force, func(file *os.File) error { return receiveBackup(ctx, client, file) })
			return err
		})
		if err != nil {
			return withAdvice(err)
		}
	}
	a.Logger.Info("backed up", "file", to, "bytes", report.Bytes, "studies", report.Counts["study"].Keys, "trials", report.Counts["trial"].Keys)
	return nil
}

// backupAction is what fails when a backup does, for errors.
const backupAction = "back up the store"

// receiveBackup writes the server's store to a file and compares it with its digest.
func receiveBackup(ctx context.Context, client *dpareto.Client, file io.Writer) error {
	stream, err := client.Admin.BackupStore(ctx, &dparetov1.BackupStoreRequest{})
	if err != nil {
		return &callError{backupAction, err}
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
			return &callError{backupAction, err}
		}
		n, err := to.Write(resp.GetData())
		if err != nil {
			return err
		}
		total += int64(n)
		last = resp
	}
	if last.GetTotalBytes() != total || !bytes.Equal(last.GetSha256(), digest.Sum(nil)) {
		return fmt.Errorf("backup: %d bytes came, with another digest than that of the %d that the server sent", total, last.GetTotalBytes())
	}
	return nil
}

func (a *app) restoreCommand() *cobra.Command {
	var from, to string
	var force, salvage bool
	cmd := &cobra.Command{
		Use:   "restore --from FILE",
		Short: "Make a backup the store",
		Long: `Makes a copy of a backup the store, after checking it. No server may use the store. One that
exists is replaced only with --force, and kept under the same name with ` + bolt.Backup + `; if there
is such a file, too, nothing is done.

With --salvage the file may be a damaged store. Every record that can be reached and whose
checksum holds is written to a new file, which must not exist; the damaged file stays as it
is. Prints what was not kept, and which studies and ledgers miss records. The new file is
checked; if it is not sound the exit code is 1, and the file is there. A backup of a later
time is better; see docs/durability.md for what to do before anything is published from a
salvaged store.`,
		Example: `  dpareto restore --from dpareto-backup.db --store dpareto.db
  dpareto restore --salvage --from dpareto.db --store salvaged.db`,
		Args: command.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from == "" {
				return command.Usage(errors.New("--from must name the backup"))
			}
			if salvage && force {
				return command.Usage(errors.New("--salvage replaces no file: --force cannot be given"))
			}
			path, err := storePath(to)
			if err != nil {
				return err
			}
			if salvage {
				return a.salvage(cmd.Context(), from, path)
			}
			if err := keepsBoth(path, force); err != nil {
				return err
			}
			report, err := bolt.Restore(cmd.Context(), from, path, force)
			if err != nil {
				return withAdvice(fmt.Errorf("restore: %w", err))
			}
			a.Logger.Info("restored", "store", path, "studies", report.Counts["study"].Keys, "trials", report.Counts["trial"].Keys)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "backup to restore")
	addStoreFlag(cmd, &to)
	flags.BoolVar(&force, "force", false, "replace a store that exists; it is kept as FILE"+bolt.Backup)
	flags.BoolVar(&salvage, "salvage", false, "take what is whole from a damaged store, and write a new file")
	return cmd
}

// salvage makes a new file of what is whole in a damaged one.
func (a *app) salvage(ctx context.Context, from, to string) error {
	s, err := bolt.Salvage(ctx, from, to)
	switch {
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("restore: %w; --store must name a new file", err)
	case err != nil:
		return withAdvice(fmt.Errorf("restore: %w", err))
	}
	for _, lost := range s.Lost {
		a.Logger.Warn("not kept", "damage", lost)
	}
	a.Logger.Warn("salvaged", "store", to, "records", s.Kept, "studies", s.Counts["study"].Keys, "trials", s.Counts["trial"].Keys)
	for _, fault := range s.Faults {
		a.Logger.Error("not sound", "fault", fault)
	}
	if n := len(s.Faults); n > 0 {
		return fmt.Errorf("restore: %s was written and is not sound (faults: %d): what was lost is missing where the rest refers to it", to, n)
	}
	return nil
}

// keepsBoth refuses to replace a store where an earlier one is kept: a second attempt, with
// another backup, would throw away the store that the first one replaced.
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

// addStoreFlag adds the flag of commands that work on the file of a store.
func addStoreFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "store", "", "file of the store; default that of dpareto serve")
	command.FromEnvironment(cmd.Flags(), "store")
}

func (a *app) checkCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the file of a store",
		Long: `Checks that every record has the right checksum and none is missing, that every page of the
file belongs to one thing, and that all records, indexes and counts agree. Prints how much
there is of what. The exit code is 1 if
anything is wrong. No server may use the store; to check that of a running server, make a
backup, which is checked, too.`,
		Example: "  dpareto check --store dpareto.db",
		Args:    command.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := storePath(path)
			if err != nil {
				return err
			}
			return a.check(cmd.Context(), file)
		},
	}
	addStoreFlag(cmd, &path)
	command.OutputFlag(cmd, &a.output)
	return cmd
}

// kindCount is one line of the report of a check.
type kindCount struct {
	Kind  string `json:"kind"`
	Keys  int64  `json:"keys"`
	Bytes int64  `json:"bytes"`
}

func (a *app) check(ctx context.Context, path string) error {
	report, err := bolt.Verify(ctx, path)
	if err != nil {
		return withAdvice(fmt.Errorf("check: %w", err))
	}
	counts := []kindCount{{"file", 1, report.Bytes}, {"free", 0, report.FreeBytes}}
	for _, kind := range slices.Sorted(maps.Keys(report.Counts)) {
		counts = append(counts, kindCount{kind, report.Counts[kind].Keys, report.Counts[kind].Bytes})
	}
	if report.Notice != "" {
		a.Logger.Warn("harmless damage", "file", path, "damage", report.Notice)
	}
	for _, fault := range report.Faults {
		a.Logger.Error("not sound", "fault", fault)
	}
	if err := a.printCounts(counts, report.Faults); err != nil {
		return err
	}
	if n := len(report.Faults); n > 0 {
		return fmt.Errorf("check: %s is not sound (faults: %d); restore it from a backup (dpareto restore)", path, n)
	}
	return nil
}

func (a *app) printCounts(counts []kindCount, faults []error) error {
	if a.output == output.JSON {
		texts := make([]string, len(faults))
		for i, fault := range faults {
			texts[i] = fault.Error()
		}
		encoder := json.NewEncoder(a.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string]any{"contents": counts, "faults": texts})
	}
	table := &output.Table{Columns: []string{"kind", "keys", "bytes"}}
	for _, c := range counts {
		table.Rows = append(table.Rows, []any{c.Kind, c.Keys, c.Bytes})
	}
	return a.printTable(table)
}

func (a *app) compactCommand() *cobra.Command {
	var path string
	var discard bool
	cmd := &cobra.Command{
		Use:   "compact",
		Short: "Give the free space of a store back to the file system",
		Long: `Rewrites the file of a store without what holds nothing: the file of a store never shrinks by
itself. The store is checked before and after, and the old file kept under the same name
with ` + bolt.Backup + `, in place of an earlier one, unless --discard is given. No server may use
the store.`,
		Example: "  dpareto compact --store dpareto.db",
		Args:    command.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := storePath(path)
			if err != nil {
				return err
			}
			before, after, err := bolt.Compact(cmd.Context(), file, discard)
			if err != nil {
				return withAdvice(fmt.Errorf("compact: %w", err))
			}
			a.Logger.Info("compacted", "store", file, "bytes_before", before, "bytes_after", after)
			return nil
		},
	}
	addStoreFlag(cmd, &path)
	cmd.Flags().BoolVar(&discard, "discard", false, "do not keep the old file")
	return cmd
}

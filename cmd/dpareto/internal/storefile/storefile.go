// Package storefile finds the file of the store.
package storefile

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/server/store/postgres"
)

// AddFlags adds the flags of commands that work on a store.
func AddFlags(cmd *cobra.Command, name *string, o *postgres.Options) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.StringVar(name, "store", "", "file of the store, or URL of its database; default: the store of dpareto serve")
	AddDatabaseFlags(flags, o)
	cmd.Flags().AddFlagSet(flags)
	flags.VisitAll(func(flag *pflag.Flag) { command.FromEnvironment(cmd.Flags(), flag.Name) })
}

// AddDatabaseFlags adds the flags for stores in a database.
func AddDatabaseFlags(flags *pflag.FlagSet, o *postgres.Options) {
	flags.StringVar(&o.PasswordFile, "store-password-file", "", "file with the password of the database alone, read for every connection; "+
		"PGPASSFILE, PGSERVICEFILE and other variables of PostgreSQL also work")
	flags.BoolVar(&o.Unsafe, "store-unsafe", false, "accept a database server with fsync or full_page_writes off, which can lose acknowledged writes")
}

// Path returns the file of the store or the URL of its database, by default dpareto/dpareto.db in the user's
// configuration folder.
func Path(path string) (string, error) {
	if path == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return "", fmt.Errorf("no folder for the store (%w); name one with --store", err)
		}
		path = filepath.Join(dir, "dpareto", "dpareto.db")
	}
	return path, nil
}

// MakeFolder makes the folder of a store's file, for its owner only.
func MakeFolder(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

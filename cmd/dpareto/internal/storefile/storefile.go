// Package storefile finds the file of the store.
package storefile

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/internal/command"
)

// AddFlag adds the flag of commands that work on the file of a store.
func AddFlag(cmd *cobra.Command, path *string) {
	const name = "store"
	cmd.Flags().StringVar(path, name, "", "file of the store; default: the store of dpareto serve")
	command.FromEnvironment(cmd.Flags(), name)
}

// Path returns the file of the store, by default dpareto/dpareto.db in the user's
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

package command

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dpareto/dpareto/cmd/internal/output"
)

const (
	// environmentKey marks flags that are read from the environment.
	environmentKey = "dpareto_environment"
	// foundKey marks flags whose values came from there.
	foundKey = "dpareto_environment_found"
)

// FromEnvironment has flags take their values from the environment where they are not
// given: --data-dir from DPARETO_DATA_DIR.
func FromEnvironment(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		flag := flags.Lookup(name)
		variable := "DPARETO_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		flag.Usage += " (env " + variable + ")"
		flag.Annotations = map[string][]string{environmentKey: {variable}}
	}
}

// ReadEnvironment sets the flags that the environment sets and the arguments do not.
func ReadEnvironment(flags *pflag.FlagSet) error {
	var failed error
	flags.VisitAll(func(flag *pflag.Flag) {
		variable := flag.Annotations[environmentKey]
		if len(variable) == 0 || flag.Changed || failed != nil {
			return
		}
		if value := os.Getenv(variable[0]); value != "" {
			if err := SetFlag(flags, flag.Name, value); err != nil {
				failed = Usagef("environment variable %s: %w", variable[0], err)
			}
			flag.Annotations[foundKey] = variable
		}
	})
	return failed
}

// SetFlag sets a flag to a value that does not come from the arguments. The error says what the value must be.
func SetFlag(flags *pflag.FlagSet, name, value string) error {
	err := flags.Set(name, value)
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return badValue(bad.GetFlag().Value.Type(), value, bad.Unwrap())
	}
	return err
}

// IsArgument reports whether a flag is among the arguments: its value is neither the default nor from the
// environment.
func IsArgument(flag *pflag.Flag) bool { return flag.Changed && flag.Annotations[foundKey] == nil }

// OutputFlag adds the flag for the format of the data on standard output.
func OutputFlag(cmd *cobra.Command, format *output.Format) {
	const name = "output"
	*format = output.Text
	cmd.Flags().VarP(format, name, "o", "format of the data on standard output: "+output.Names(output.Text, output.JSON, output.CSV))
	FromEnvironment(cmd.Flags(), name)
}

// SupervisedFlag adds the hidden flag of commands that run as a child (see package child).
func SupervisedFlag(cmd *cobra.Command, supervised *bool) {
	const name = "supervised"
	cmd.Flags().BoolVar(supervised, name, false, "stop at the end of standard input, and not at Ctrl-C")
	if err := cmd.Flags().MarkHidden(name); err != nil {
		panic(err) // the flag was just added
	}
}

// DataDirFlag adds the flag of commands that load data.
func DataDirFlag(cmd *cobra.Command, dataDir *string) {
	const name = "data-dir"
	cmd.Flags().StringVar(dataDir, name, "", "folder with data files, searched before the cache and the network")
	FromEnvironment(cmd.Flags(), name)
}

// CheckDataDir returns an error if the folder is given and does not exist.
func CheckDataDir(dataDir string) error {
	if dataDir == "" {
		return nil
	}
	info, err := os.Stat(dataDir)
	if err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("--data-dir: %s is not a folder", dataDir)
	}
	return nil
}

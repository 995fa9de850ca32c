package command

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/internal/output"
)

// version is set by make build: -ldflags "-X github.com/dpareto/dpareto/cmd/internal/command.version=...".
var version string

// Version returns the version of the program: set by make build, else recorded by Go.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
}

func versionCommand(env *Env, program string) *cobra.Command {
	out := NewPrinter(env)
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program",
		Args:  Args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if out.Format == output.Text {
				_, err := fmt.Fprintf(out, "%s %s %s %s/%s\n", program, Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
				return err
			}
			return out.Table(&output.Table{
				Columns: []string{"program", "version", "go", "system", "architecture"},
				Rows:    [][]any{{program, Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH}},
			})
		},
	}
	out.AddFlag(cmd)
	return cmd
}

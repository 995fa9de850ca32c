package command

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/internal/output"
)

// release is the semantic version of all that the repository publishes. The Python package reads it
// from the same file.
//
//go:embed VERSION
var release string

// commit is set by make build: -ldflags "-X github.com/dpareto/dpareto/cmd/internal/command.commit=...".
var commit string

// Version returns the semantic version of the program with the commit that it was built from, where
// that is known, such as "0.2.0+1d80cff".
func Version() string {
	version := strings.TrimSpace(release)
	if commit != "" {
		return version + "+" + commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return version + recorded(info.Settings)
	}
	return version
}

// recorded returns what Go has recorded about the commit, as build metadata of a semantic version.
func recorded(settings []debug.BuildSetting) string {
	const digits = 12 // as in Go's own versions of commits
	revision, modified := "", ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			revision = "+" + s.Value[:min(digits, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = ".dirty"
		}
	}
	if revision == "" {
		return ""
	}
	return revision + modified
}

func versionCommand(env *Env, program string) *cobra.Command {
	out := NewPrinter(env)
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of the program",
		Example: fmt.Sprintf("  %s version --output json", program),
		Args:    Args(NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if out.Format == output.Text {
				_, err := fmt.Fprintf(out, "%s %s %s %s/%s\n", program, Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
				return err
			}
			if out.Format == output.JSON {
				encoder := json.NewEncoder(out)
				encoder.SetIndent("", "  ")
				return encoder.Encode(struct {
					Program      string `json:"program"`
					Version      string `json:"version"`
					Go           string `json:"go"`
					System       string `json:"system"`
					Architecture string `json:"architecture"`
				}{program, Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH})
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

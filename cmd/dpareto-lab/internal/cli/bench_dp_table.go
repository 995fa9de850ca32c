package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/surface"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

// tableFlags are the flags of dpareto-lab bench dp-table.
type tableFlags struct {
	surface.MakeOptions

	surface string
}

func dpTableCommand(env *command.Env) *cobra.Command {
	var f tableFlags
	cmd := &cobra.Command{
		Use:   "dp-table --surface SURFACE --tables DIR",
		Short: "Make a table of DP training for bench dp",
		Long: `Trains configurations of a surface, spread evenly on the scales of its parameters, and
writes the test error after every epoch of every run to DIR/SURFACE.csv. A table that is
there is continued: interrupt the command at any time and give it again, also with more
configurations. The SHA-256 of a complete table is written beside it.

Surfaces: ` + strings.Join(surface.Names(), ", ") + `.

The digits are those of scikit-learn: --data-dir names the folder of its file
digits.csv.gz, which is sklearn/datasets/data of an installed package.`,
		Example: `  dpareto-lab bench dp-table --surface adult-logistic-sgd --tables ~/dp-tables
  dpareto-lab bench dp-table --surface digits-softmax-sgd --tables ~/dp-tables --data-dir digits --configurations 2000`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return makeTable(cmd.Context(), env, f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.surface, "surface", "", "surface to tabulate")
	flags.StringVar(&f.Folder, "tables", "", "folder of the tables")
	flags.IntVar(&f.Configurations, "configurations", 1000, "number of configurations of the complete table")
	flags.IntVar(&f.Replicates, "replicates", 2, "number of trainings of each configuration")
	command.DataDirFlag(cmd, &f.DataDir)
	return cmd
}

// makeTable makes the table of a surface.
func makeTable(ctx context.Context, env *command.Env, f tableFlags) error {
	s, err := surface.ByName(f.surface)
	if err != nil {
		return command.Usage(err)
	}
	if err := f.Validate(); err != nil {
		return command.Usage(err)
	}
	if err := command.CheckDataDir(f.DataDir); err != nil {
		return err
	}
	download := env.Download("downloading data")
	f.Download = download.Set
	progress := env.Console.Start(s.Name, int64(f.Configurations), "configurations")
	begin, first := time.Now(), -1
	f.Progress = func(done int) {
		download.Finish()
		if first < 0 {
			begin, first = time.Now(), done
		}
		note := ""
		if !env.Console.IsTerminal() { // a bar says itself how much is left
			note = remaining(time.Since(begin), done-first, f.Configurations-done)
		}
		progress.Set(int64(done), note)
	}
	err = surface.Make(ctx, s, f.MakeOptions)
	progress.Finish()
	return interrupted(ctx, env, err, kept{"--tables", f.Folder, ""})
}

// remaining returns an estimate of the time that the rest of equal pieces of work takes.
func remaining(elapsed time.Duration, done, left int) string {
	if done < 1 || left < 1 {
		return ""
	}
	rest := elapsed * time.Duration(left) / time.Duration(done)
	return fmt.Sprintf("about %v left", rest.Round(time.Second))
}

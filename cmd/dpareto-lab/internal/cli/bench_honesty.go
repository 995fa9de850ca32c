package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/bench"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/honesty"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
)

func honestyCommand(env *command.Env) *cobra.Command {
	var o honesty.Options
	format := benchFormat(output.Text)
	cmd := &cobra.Command{
		Use:   "honesty",
		Short: "Measure whether what studies report is true",
		Long: `Draws studies of 15 runs from recorded runs of DP training, of which 0, 1 or 3 diverge, and
compares what a study reports with fresh runs of the same configurations. Prints a row for each
surface, for each number of diverged runs, and for all:

  claimed_within_10_percent   studies whose front has the hypervolume that it claims, to 10 %
  front_covered               90 % intervals on the front that hold the mean of fresh runs
  held_out_covered            the same of configurations that the study has not run
  recommended_held            recommendations at 90 % confidence that hold when they are run
  refused                     recommendations that were refused
  impossible                  reported values that no run can have
  no_model                    studies whose model contradicts the measurements

With --folder DIR the runs of trainings and the results are kept in the folder: interrupt the command at any
time and give it again. Runs take a few minutes, a study about a second.

Surfaces: ` + strings.Join(honesty.Names(), ", ") + `.`,
		Example: `  dpareto-lab bench honesty --folder ~/honesty --output markdown
  dpareto-lab bench honesty --folder ~/honesty --surface regression-2000-loss-log --seeds 3`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return benchHonesty(cmd.Context(), env, o, format) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&o.Surfaces, "surface", nil, "surfaces, with commas between them; default: all")
	flags.IntVar(&o.Seeds, "seeds", 10, "number of seeds: 1, 2, and so on")
	flags.StringVar(&o.Folder, "folder", "", "folder that keeps runs and results")
	flags.StringVar(&o.Results, "results", "", "file of results in place of the folder's results.jsonl")
	command.DataDirFlag(cmd, &o.DataDir)
	flags.VarP(&format, "output", "o", "format of the table: "+output.Names(output.Text, output.JSON, output.CSV)+", "+markdown)
	command.FromEnvironment(flags, "output")
	return cmd
}

// benchHonesty makes the studies and prints the table.
func benchHonesty(ctx context.Context, env *command.Env, o honesty.Options, format benchFormat) error {
	if o.Seeds < 1 {
		return command.Usagef("--seeds must be at least 1, is %d", o.Seeds)
	}
	studies, err := o.Studies()
	if err != nil {
		return command.Usage(err)
	}
	if err := command.CheckDataDir(o.DataDir); err != nil {
		return err
	}
	if o.Folder != "" {
		if err := os.MkdirAll(o.Folder, 0o750); err != nil {
			return err
		}
		if o.Results == "" {
			o.Results = filepath.Join(o.Folder, "results.jsonl")
		}
	}
	progress := env.Console.Start("honesty", studies, "studies")
	o.Progress = func(done int64) { progress.Set(done, "") }
	records, err := honesty.Run(ctx, o)
	progress.Finish()
	if err != nil {
		return interrupted(ctx, env, err, kept{"--folder", o.Folder, "honesty"})
	}
	table := honesty.Table(records)
	if format == markdown {
		return bench.WriteMarkdown(env.Stdout, table)
	}
	return table.Write(env.Stdout, output.Format(format))
}

package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/console"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
)

// reproduceFlags are the flags of every experiment.
type reproduceFlags struct {
	picture string
	format  output.Format
}

func (f *reproduceFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.picture, "plot", "", "also draw the figures, to a folder or to a file ("+plot.Formats+")")
	command.OutputFlag(cmd, &f.format)
}

// run runs an experiment, draws its figures if there is a path for them, and prints its
// tables.
func (f *reproduceFlags) run(ctx context.Context, env *command.Env, e reproduce.Experiment, dataDir string) error {
	if err := command.CheckDataDir(dataDir); err != nil {
		return err
	}
	if err := e.Validate(); err != nil {
		return command.Usage(err)
	}
	if f.picture != "" {
		if err := reproduce.CheckPath(f.picture); err != nil {
			return command.Usage(err)
		}
	}
	var bar *console.Progress
	result, err := e.Run(ctx, func(done, total int) {
		if bar == nil {
			bar = env.Console.Start(e.Name(), int64(total), "runs")
		}
		bar.Set(int64(done), "")
	})
	bar.Finish()
	if err != nil {
		return err
	}
	if f.picture != "" {
		files, err := result.Draw(f.picture)
		if err != nil {
			return err
		}
		for _, file := range files {
			env.Logger.Info("drew a figure", "file", file)
		}
	}
	return result.Report.Write(env.Stdout, f.format)
}

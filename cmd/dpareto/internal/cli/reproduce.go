package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/console"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/plot"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/reproduce"
)

func (a *app) reproduceCommand() *cobra.Command {
	group := a.group("reproduce", "Compute tables and figures of papers anew",
		`Computes tables and figures of published papers anew: with what is wrong in them put right,
beside what they print. Results are functions of the flags and of --seed.`)
	group.AddCommand(a.reproduceFastEstimationCommand())
	return group
}

func (a *app) reproduceFastEstimationCommand() *cobra.Command {
	var e reproduce.FastEstimation
	var picture string
	cmd := &cobra.Command{
		Use:   "fast-estimation",
		Short: "Estimates of the loss at any ε from few trainings",
		Args:  args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.reproduce(cmd.Context(), &e, picture) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Uint64Var(&e.Seed, "seed", 1, "seed of everything random")
	addDataDirFlag(cmd, &e.DataDir)
	a.addReproduceFlags(cmd, &picture)
	return cmd
}

// addReproduceFlags adds the flags of every experiment.
func (a *app) addReproduceFlags(cmd *cobra.Command, picture *string) {
	cmd.Flags().StringVar(picture, "plot", "", "also draw the figures, to a folder or to a file ("+plot.Formats+")")
	a.addOutputFlag(cmd)
}

// reproduce runs an experiment, draws its figures if there is a path for them, and prints
// its tables.
func (a *app) reproduce(ctx context.Context, e reproduce.Experiment, picture string) error {
	if err := e.Validate(); err != nil {
		return &usageError{err}
	}
	if picture != "" {
		if err := reproduce.CheckPath(picture); err != nil {
			return &usageError{err}
		}
	}
	var bar *console.Progress
	result, err := e.Run(ctx, func(done, total int) {
		if bar == nil {
			bar = a.console.Start(e.Name(), int64(total), "runs")
		}
		bar.Set(int64(done), "")
	})
	bar.Finish()
	if err != nil {
		return err
	}
	if picture != "" {
		files, err := result.Draw(picture)
		if err != nil {
			return err
		}
		for _, file := range files {
			a.logger.Info("drew a figure", "file", file)
		}
	}
	return result.Report.Write(a.stdout, a.output)
}

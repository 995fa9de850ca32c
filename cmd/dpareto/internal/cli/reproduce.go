package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/console"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/plot"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/reproduce/fastestimation"
)

func (a *app) reproduceCommand() *cobra.Command {
	group := a.group("reproduce", "Compute tables and figures of papers anew",
		`Computes tables and figures of published papers anew: with what is wrong in them put right,
beside what they print. Results are functions of the flags and of --seed.`)
	group.AddCommand(a.reproduceFastEstimationCommand(), a.reproduceProposeTestCommand(), a.reproduceBayesianOptimizationCommand(),
		a.reproducePrivateFrontCommand())
	return group
}

func (a *app) reproduceFastEstimationCommand() *cobra.Command {
	var e fastestimation.Experiment
	var picture string
	cmd := &cobra.Command{
		Use:   "fast-estimation",
		Short: "Estimates of the loss at any ε from one model, and from three",
		Long: `Repeats Table 1 and Figure 2 of "Fast Estimation for Privacy and Utility in Differentially
Private Machine Learning" (anonymous authors, submitted to ICLR 2021) on Adult and KDD Cup
99: the error of a line in ε through the loss of one private model, with the mechanism that
the paper proves private and with the one that it describes, beside cubic interpolation
between three or four models. The figures include its Figure 1.

All numbers are functions of the raw records, and none may be released. It takes a few
minutes.`,
		Example: `  dpareto reproduce fast-estimation --plot figures
  dpareto reproduce fast-estimation --dataset adult --loss lr --rows 1000 --draws 3 --output csv`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkDataDir(e.DataDir); err != nil {
				return err
			}
			return a.reproduce(cmd.Context(), &e, picture)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	datasets, losses := fastestimation.DatasetNames(), fastestimation.LossNames()
	flags.StringSliceVar(&e.Datasets, "dataset", datasets, "datasets, with commas between them")
	flags.StringSliceVar(&e.Losses, "loss", losses, "losses, with commas between them: lr is the logistic loss, svm the Huber loss")
	flags.IntVar(&e.Rows, "rows", 10000, "number of training records of Table 1")
	flags.IntVar(&e.Draws, "draws", 10, "number of draws of the noise over which means are taken")
	flags.Uint64Var(&e.Seed, "seed", 1, "seed of the division of the data and of the noise")
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

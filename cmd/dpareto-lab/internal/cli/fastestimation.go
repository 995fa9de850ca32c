package cli

import (
	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce/fastestimation"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

func fastEstimationCommand(env *command.Env) *cobra.Command {
	var e fastestimation.Experiment
	var f reproduceFlags
	cmd := &cobra.Command{
		Use:   "fast-estimation",
		Short: "Estimates of the loss at any ε from one model, and from three",
		Long: `Repeats Table 1, Figures 1 and 2 and Theorem 3 of "Fast Estimation for Privacy and Utility in Differentially
Private Machine Learning" (anonymous authors, submitted to ICLR 2021) on Adult, KDD Cup 99
and Gisette, and on Covertype besides: the error of a line in ε through the loss of one private model, with the mechanism that
the paper proves private and with the one that it describes, beside cubic interpolation
between three or four models. Theorem 3 becomes a number that is proved. A dataset without
files is named, and its rows are left empty: the files of Gisette and Covertype have to be in
--data-dir, since they cannot be downloaded.

All numbers are functions of the raw records, and none may be released. It takes a few
minutes; with the 5,000 features of Gisette, many hours.`,
		Example: `  dpareto-lab reproduce fast-estimation --plot figures
  dpareto-lab reproduce fast-estimation --dataset adult --loss lr --rows 1000 --draws 3 --output csv`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), env, &e, e.DataDir, kept{}) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	datasets, losses := fastestimation.DatasetNames(), fastestimation.LossNames()
	flags.StringSliceVar(&e.Datasets, "dataset", datasets, "datasets, with commas between them")
	flags.StringSliceVar(&e.Losses, "loss", losses, "losses, with commas between them: lr is the logistic loss, svm the Huber loss")
	flags.IntVar(&e.Rows, "rows", 10000, "number of training records of Table 1")
	flags.IntVar(&e.Draws, "draws", 10, "number of draws of the noise over which means are taken")
	flags.Uint64Var(&e.Seed, "seed", 1, "seed of the division of the data and of the noise")
	command.DataDirFlag(cmd, &e.DataDir)
	f.add(cmd)
	return cmd
}

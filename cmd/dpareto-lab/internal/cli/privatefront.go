package cli

import (
	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce/privatefront"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

func privateFrontCommand(env *command.Env) *cobra.Command {
	var e privatefront.Experiment
	var f reproduceFlags
	cmd := &cobra.Command{
		Use:   "private-front",
		Short: "All ways to search on Adult and to publish what was found",
		Long: `Runs the bundled studies adult-private, adult-curve and adult-subset on temporary servers: with
private_mode and each of its filters, and with random_stopping, of which the best value, the best curve,
the best portfolio or a final run is published. A study without any guarantee for the search is beside
them. Then the published configurations are trained again, to see how good they really are.

The noise is drawn from the seeds, so that the experiment can be repeated: nothing that it
prints may be released. --store keeps what was run: the same command goes on where it was stopped.`,
		Example: `  dpareto-lab reproduce private-front --quick
  dpareto-lab reproduce private-front --seeds 10 --store ways.jsonl --plot figures`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), env, &e, e.DataDir, kept{storeFlag, e.Store, "ways.jsonl"})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&e.Seeds, "seeds", 3, "number of studies of each way: seeds 1, 2, and so on")
	flags.Int64Var(&e.Trials, "trials", 64, "number of trials of each study that shows a front, at most")
	flags.Float64Var(&e.Mean, "mean-runs", 32, "mean of the secret number of runs with random_stopping")
	flags.Int32Var(&e.Listed, "listed", 200, "number of configurations that random_stopping draws from")
	flags.Float64Var(&e.TestEpsilon, "test-epsilon", 1, "ε declared for the test records")
	flags.Float64SliceVar(&e.TrainEpsilons, "train-epsilon", []float64{1, 2, 4, 8}, "ε declared for the training records with private_mode, each in turn")
	flags.StringArrayVar(&e.Ways, "way", nil, "name of a way to run beside the one without a guarantee, can be repeated; default: all")
	flags.IntVar(&e.Runs, "runs", 10, "number of fresh runs of every published configuration")
	flags.StringVar(&e.Store, "store", "", "file that keeps what was run, made if it does not exist; default: nothing is kept")
	flags.BoolVar(&e.Quick, "quick", false, "run small studies, with the first --train-epsilon alone")
	flags.IntVar(&e.Workers, "workers", 0, "number of studies that run at the same time; default: number of processors")
	command.DataDirFlag(cmd, &e.DataDir)
	f.add(cmd)
	return cmd
}

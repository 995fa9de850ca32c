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
		Short: "A front on Adult that may be published, beside one that may not",
		Long: `Runs the bundled study adult-private on a temporary server, once as it is, with noise on
every measured error and a budget for the training records, and once without private_mode;
then trains the configurations that both report again, to see how good they really are.

The noise is drawn from --seed, so that the experiment can be repeated: nothing that it
prints may be released. It takes about twenty seconds.`,
		Example: `  dpareto-lab reproduce private-front
  dpareto-lab reproduce private-front --train-epsilon 2 --plot figures`,
		Args: command.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), env, &e, e.DataDir) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Int64Var(&e.Trials, "trials", 64, "number of trials of each study, at most")
	flags.Float64Var(&e.TestEpsilon, "test-epsilon", 1, "ε declared for the test records")
	flags.Float64Var(&e.TrainEpsilon, "train-epsilon", 4, "ε declared for the training records")
	flags.StringVar(&e.TrainFilter, "train-filter", "", "filter of the training records: gaussian, renyi, or slots that are declared beforehand (default: the one that admits more runs)")
	flags.IntVar(&e.Runs, "runs", 10, "number of fresh runs of every reported configuration")
	flags.Uint64Var(&e.Seed, "seed", 1, "seed of suggestions, of the training and of all noise")
	command.DataDirFlag(cmd, &e.DataDir)
	f.add(cmd)
	return cmd
}

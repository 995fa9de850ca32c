package cli

import (
	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce/bayesopt"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

func bayesianOptimizationCommand(env *command.Env) *cobra.Command {
	var e bayesopt.Experiment
	var f reproduceFlags
	cmd := &cobra.Command{
		Use:   "dp-bayesian-optimization",
		Short: "Private Bayesian optimisation: how alike neighbouring sets are, and what noise that takes",
		Long: `Repeats the experiment of "Differentially Private Bayesian Optimization" (Kusner, Gardner,
Garnett and Weinberger 2015), Figure 1, on Adult: estimates k1, the correlation of the
utilities of all hyperparameters on two validation sets that differ in one record. Beside
it stands what the noise of the paper's algorithms does on one validation set, and what
permute-and-flip among the same candidates does, which were fixed beforehand.`,
		Example: `  dpareto-lab reproduce dp-bayesian-optimization --plot figure.svg
  dpareto-lab reproduce dp-bayesian-optimization --generated --side 4 --train-rows 1000 --sizes 1000 --pairs 20`,
		Args: command.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), env, &e, e.DataDir) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&e.TrainRows, "train-rows", 10000, "number of training records")
	flags.IntVar(&e.Side, "side", 8, "number of values of each of the two hyperparameters")
	flags.IntSliceVar(&e.Sizes, "sizes", []int{1000, 2000, 3000, 5000, 15000}, "numbers of validation records, with commas between them")
	flags.IntVar(&e.Pairs, "pairs", 100, "number of pairs of validation sets of every size")
	flags.IntVar(&e.Records, "records", 16281, "number of validation records of the comparison")
	flags.BoolVar(&e.Generated, "generated", false, "use generated data in the shape of Adult")
	flags.Uint64Var(&e.Seed, "seed", 1, "seed of the division of the data and of the validation sets")
	command.DataDirFlag(cmd, &e.DataDir)
	f.add(cmd)
	return cmd
}

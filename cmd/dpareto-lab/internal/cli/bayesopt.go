package cli

import (
	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
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
Garnett and Weinberger 2015), Figure 1: estimates k1, the correlation of the utilities of all
hyperparameters on two validation sets that differ in one record, for support vector machines
with an RBF kernel at the points of a Sobol sequence. The paper trains on 36,603 records of
Forest; the default is 2,000 of Adult, since memory and time grow with the square.
Beside it stands what the noise of the paper's algorithms does on one validation set, what
permute-and-flip among the same candidates does, which were fixed beforehand, and Algorithm 1
run as a whole. Without data the noise of the releases is shown alone. --linear has a grid of linear machines, for which Algorithm 3 is shown.`,
		Example: `  dpareto-lab reproduce dp-bayesian-optimization --plot figure.svg
  dpareto-lab reproduce dp-bayesian-optimization --linear --train-rows 10000
  dpareto-lab reproduce dp-bayesian-optimization --generated --machines 16 --train-rows 500 --sizes 1000 --pairs 20`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), env, &e, e.DataDir, kept{}) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&e.Dataset, "dataset", dataset.NameAdult, "dataset with two classes")
	flags.IntVar(&e.TrainRows, "train-rows", 2000, "number of training records")
	flags.IntVar(&e.Machines, "machines", 100, "number of machines with an RBF kernel")
	flags.BoolVar(&e.Linear, "linear", false, "train a grid of linear machines instead")
	flags.IntVar(&e.Side, "side", 8, "number of values of each of the two hyperparameters, with --linear")
	flags.IntSliceVar(&e.Sizes, "sizes", []int{1000, 2000, 3000, 5000, 15000}, "numbers of validation records, with commas between them")
	flags.IntVar(&e.Pairs, "pairs", 100, "number of pairs of validation sets of every size")
	flags.IntVar(&e.Records, "records", 16281, "number of validation records of the comparison")
	flags.IntVar(&e.Runs, "runs", 100, "number of runs of Algorithm 1")
	flags.BoolVar(&e.Generated, "generated", false, "use generated data in the shape of Adult")
	flags.Uint64Var(&e.Seed, "seed", 1, "seed of the division of the data and of the validation sets")
	command.DataDirFlag(cmd, &e.DataDir)
	f.add(cmd)
	return cmd
}

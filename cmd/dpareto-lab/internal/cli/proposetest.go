package cli

import (
	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce/proposetest"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

func proposeTestCommand(env *command.Env) *cobra.Command {
	var e proposetest.Experiment
	var f reproduceFlags
	cmd := &cobra.Command{
		Use:   "propose-test",
		Short: "Propose-test tuning: its rounds, what they cost, and what they select",
		Long: `Repeats Figures 1 and 2 of "Revisiting Hyperparameter Tuning with Differential Privacy" (Ding
and Wu 2022), a simulation, with the paper's noise, with less and with none; beside it what
the search selects, what its rounds cost as a guarantee, and what one private maximum
selects for the same ε.

With --adult the last is also done on Adult: linear machines with 64 settings of two
hyperparameters are trained on each of 100 parts of the training records. That takes half
a minute of processor time.`,
		Example: `  dpareto-lab reproduce propose-test --plot figures
  dpareto-lab reproduce propose-test --adult
  dpareto-lab reproduce propose-test --runs 100 --output csv`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), env, &e, e.DataDir, kept{}) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&e.Runs, "runs", 1000, "number of searches of every setting")
	flags.BoolVar(&e.Adult, "adult", false, "select on Adult as well")
	flags.IntVar(&e.Parts, "parts", 100, "number of parts of Adult's training records")
	flags.IntVar(&e.Side, "side", 8, "number of values of each of the two hyperparameters on Adult")
	flags.BoolVar(&e.Generated, "generated", false, "use generated data in the shape of Adult")
	flags.Uint64Var(&e.Seed, "seed", 1, "seed of the utilities and of the noise")
	command.DataDirFlag(cmd, &e.DataDir)
	f.add(cmd)
	return cmd
}

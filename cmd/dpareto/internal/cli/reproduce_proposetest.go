package cli

import (
	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/reproduce/proposetest"
)

func (a *app) reproduceProposeTestCommand() *cobra.Command {
	var e proposetest.Experiment
	var picture string
	cmd := &cobra.Command{
		Use:   "propose-test",
		Short: "Propose-test tuning: its rounds, what they cost, and what they select",
		Long: `Repeats Figures 1 and 2 of "Revisiting Hyperparameter Tuning with Differential Privacy" (Ding
and Wu 2022), a simulation, with the paper's noise, with less and with none; beside it what
the search selects, what its rounds cost as a guarantee, and what one private maximum
selects for the same ε.`,
		Example: `  dpareto reproduce propose-test --plot figures
  dpareto reproduce propose-test --runs 100 --output csv`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.reproduce(cmd.Context(), &e, picture) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&e.Runs, "runs", 1000, "number of searches of every setting")
	flags.Uint64Var(&e.Seed, "seed", 1, "seed of the utilities and of the noise")
	a.addReproduceFlags(cmd, &picture)
	return cmd
}

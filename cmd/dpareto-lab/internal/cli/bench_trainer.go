package cli

import (
	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/trainers"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

// trainerCommand measures the time of DP-SGD.
func trainerCommand(env *command.Env) *cobra.Command {
	var rows, rounds int
	cmd := &cobra.Command{
		Use:   "trainer",
		Short: "Measure the time of one example by model and lot",
		Long: `Trains on made-up examples by DP-SGD, with clipping alone, and without privacy, on one processor, and
prints a row of CSV for each model and lot size, with the processor nanoseconds of one example and
epoch. cmd/dpareto-lab/trainers.py takes the rows and adds the times of Opacus and JAX.`,
		Example: `  taskset -c 0 dpareto-lab bench trainer | taskset -c 0 python cmd/dpareto-lab/trainers.py`,
		Args:    command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if least := trainers.Lots[len(trainers.Lots)-1]; int64(rows) < least {
				return command.Usagef("--rows must be at least %d, the largest lot, is %d", least, rows)
			}
			if rounds < 1 {
				return command.Usagef("--rounds must be at least 1, is %d", rounds)
			}
			progress := env.Console.Start("trainer", int64(trainers.Count()), "rows")
			table, err := trainers.Measure(cmd.Context(), rows, rounds, func(done int) { progress.Set(int64(done), "") })
			progress.Finish()
			if err != nil {
				return err
			}
			return table.WriteCSV(env.Stdout)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&rows, "rows", 4800, "number of examples")
	flags.IntVar(&rounds, "rounds", 3, "number of trainings of each kind, of which the fastest epoch counts")
	return cmd
}

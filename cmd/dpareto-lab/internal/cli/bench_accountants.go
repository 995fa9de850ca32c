package cli

import (
	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/accountants"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

// accountantsCommand measures ε of the samplers.
func accountantsCommand(env *command.Env) *cobra.Command {
	var settings int
	var seed uint64
	cmd := &cobra.Command{
		Use:   "accountants",
		Short: "Measure the time of one ε of each sampler",
		Long: `Computes ε at random settings of each sampler, and prints a row of CSV for each, with the
processor milliseconds of the call. cmd/dpareto-lab/accountants.py takes the rows and adds what
other libraries compute.`,
		Example: `  dpareto-lab bench accountants --settings 8 | python cmd/dpareto-lab/accountants.py`,
		Args:    command.Args(command.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if settings < 1 {
				return command.Usagef("--settings must be at least 1, is %d", settings)
			}
			table, err := accountants.Measure(settings, seed)
			if err != nil {
				return err
			}
			return table.WriteCSV(env.Stdout)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&settings, "settings", 100, "number of settings of each sampler")
	flags.Uint64Var(&seed, "seed", 42, "seed of the settings")
	return cmd
}

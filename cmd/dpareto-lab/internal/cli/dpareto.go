package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce/fronts"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

func dparetoCommand(env *command.Env) *cobra.Command {
	var e fronts.Experiment
	var f reproduceFlags
	cmd := &cobra.Command{
		Use:   "dpareto [PART...]",
		Short: "Privacy-utility Pareto fronts: every figure and table",
		Long: `Repeats the figures and tables of "Automatic Discovery of Privacy-Utility Pareto Fronts" (Avent,
González, Diethe, Paleyes and Balle 2020). The parts are

  ` + strings.Join(fronts.Parts(), ", ") + `

By default all are made. Those of section 4 run the bundled studies paper-*.yaml beside random
sampling and grids: on Adult the paper's whole protocol, on MNIST a part of it (MLP2, one run of
a configuration, at most 40 epochs, 64 runs beside 300 random ones). --quick takes minutes.

--store keeps what was run: the same command goes on where it was stopped, and "dpareto serve
--store FILE" shows the studies.`,
		Example: `  dpareto-lab reproduce dpareto --quick --plot figures
  dpareto-lab reproduce dpareto table2 fig5 --store dpareto.db --plot figures`,
		ValidArgs: fronts.Parts(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if e.Parts = args; len(args) == 0 {
				e.Parts = fronts.Parts()
			}
			return f.run(cmd.Context(), env, &e, e.DataDir)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&e.Store, "store", "", "file that keeps what was run, made if it does not exist; default: nothing is kept")
	flags.BoolVar(&e.Quick, "quick", false, "run a small part of everything: minutes")
	flags.IntVar(&e.Seeds, "seeds", 5, "number of studies of each method with a model: seeds 1, 2, and so on")
	flags.BoolVar(&e.WholeMNIST, "whole-mnist", false, "run the whole protocol on MNIST: hundreds of hours of processor time")
	flags.IntVar(&e.Workers, "workers", 0, "number of studies that run at the same time; default: number of processors")
	command.DataDirFlag(cmd, &e.DataDir)
	f.add(cmd)
	return cmd
}

package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce/examples"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce/fronts"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

// exampleParts are the figures of the paper's two examples, in order.
var exampleParts = []string{"fig1", "fig2", "fig3", "fig4"}

// The default numbers of studies of each method with a model. Three with --quick fit ten minutes on two processors.
const usualSeeds, quickSeeds = 10, 3

func dparetoCommand(env *command.Env) *cobra.Command {
	illustrated := examples.Experiment{Runs: examples.DefaultRuns, Side: examples.DefaultSide}
	e := fronts.Experiment{Version: command.Version()}
	var f reproduceFlags
	parts := slices.Concat(exampleParts, fronts.Parts())
	cmd := &cobra.Command{
		Use:   "dpareto [PART...]",
		Short: "Privacy-utility Pareto fronts: every figure and table",
		Long: `Repeats the figures and tables of "Automatic Discovery of Privacy-Utility Pareto Fronts" (Avent,
González, Diethe, Paleyes and Balle 2020). The parts, all by default, are

  ` + strings.Join(parts, ", ") + `

Figures 1 to 4 are of two examples with exact fronts: private logistic regression on Adult and the
sparse vector technique. They take minutes.

The others run the bundled studies paper-*.yaml beside random sampling and grids: on Adult the paper's
protocol, with 1,500 random samples in place of 5,000, some five hours of processor time; on
MNIST a part of it, at most 20 epochs: MLP2 with three runs of a configuration, three studies of 48
configurations beside 200 random ones, and MLP1 with one run of 24 beside 60. The part methods, which is
not in the paper, compares DPareto with the published acquisition and the default engine. --store keeps
what was run: the same command, of the same version, goes on where it was stopped, and trains again
what was interrupted, with other random numbers. "dpareto serve --store FILE" shows the studies.

--quick does a small part of everything in minutes: to see that it works, not for its numbers.`,
		Example: `  dpareto-lab reproduce dpareto --quick --plot figures
  dpareto-lab reproduce dpareto fig2 fig4
  dpareto-lab reproduce dpareto table2 fig5 --store dpareto.db --plot figures`,
		ValidArgs: parts,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = parts
			}
			var all []reproduce.Experiment
			for _, part := range args {
				if i := slices.Index(exampleParts, part); i >= 0 {
					illustrated.Figures = append(illustrated.Figures, i+1)
				} else {
					e.Parts = append(e.Parts, part)
				}
			}
			illustrated.DataDir, illustrated.Quick = e.DataDir, e.Quick
			if e.Quick && !cmd.Flags().Changed("seeds") {
				e.Seeds = quickSeeds
			}
			if len(illustrated.Figures) > 0 {
				all = append(all, &illustrated)
			}
			if len(e.Parts) > 0 {
				all = append(all, &e)
			}
			whole := reproduce.Join("dpareto", "Automatic Discovery of Privacy-Utility Pareto Fronts (Avent et al. 2020)", all...)
			if e.WholeMNIST {
				if err := whole.Validate(); err != nil {
					return command.Usage(err)
				}
				took, err := e.EstimateMNIST(cmd.Context())
				if err != nil {
					return interrupted(cmd.Context(), env, err, kept{storeFlag, e.Store, ""})
				}
				env.Logger.Warn("all of the protocol on MNIST is run", "processor_hours", fmt.Sprintf("%.0f", took.Round(time.Hour).Hours()))
			}
			var k kept // Figures 1 to 4 are computed again
			if len(e.Parts) > 0 {
				k = kept{storeFlag, e.Store, "dpareto.db"}
			}
			return f.run(cmd.Context(), env, whole, e.DataDir, k)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&e.Store, "store", "", "file that keeps what was run, made if it does not exist; default: nothing is kept")
	flags.StringVar(&e.Records, "records", "", "folder that keeps the outcomes of finished studies as CSV, and gives them back without their store; made if it does not exist")
	flags.BoolVar(&e.Quick, "quick", false, "do a small part of everything")
	flags.IntVar(&e.Seeds, "seeds", usualSeeds, fmt.Sprintf("number of studies of each method with a model: seeds 1, 2, and so on; %d by default with --quick", quickSeeds))
	flags.Uint64Var(&illustrated.Seed, "seed", 1, "seed of Figures 1 to 4")
	flags.BoolVar(&e.WholeMNIST, "whole-mnist", false, "run the whole protocol on MNIST, with --store; prints how long it takes")
	flags.IntVar(&e.Workers, "workers", 0, "number of studies that run at the same time; default: number of processors")
	command.DataDirFlag(cmd, &e.DataDir)
	f.add(cmd)
	return cmd
}

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/samplers"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	"github.com/dpareto/dpareto/internal/show"
)

// samplersCommand compares the utility of samplers.
func samplersCommand(env *command.Env) *cobra.Command {
	var dataDir, picture string
	var seeds int
	var format output.Format
	cmd := &cobra.Command{
		Use:   "samplers",
		Short: "Compare samplers by error at the same ε",
		Long: `Trains logistic regression on Adult and softmax regression on a subset of MNIST by DP-SGD under
each sampler and by DP-MF. All have the same ε, δ = 1e-5, adjacency (zero-out), lot size and number of
epochs. The learning rate is one of four, the one with the least mean error on the validation
part; what is printed is the mean error on the test part over the seeds, with the 95 % interval of
that mean. The choice of the rate is not in ε. A last table has the noise in sums of gradients by matrix.`,
		Example: `  dpareto-lab bench samplers --data-dir ~/data --seeds 3 --plot samplers.svg`,
		Args:    command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if seeds < 2 {
				return command.Usagef("--seeds must be at least 2, is %d", seeds)
			}
			if err := command.CheckDataDir(dataDir); err != nil {
				return err
			}
			if picture != "" {
				if err := plot.CheckPath(picture); err != nil {
					return command.Usage(err)
				}
			}
			report := output.Report{Title: "Samplers at the same ε"}
			drawn := &plot.Panels{
				Title: "Test error of samplers at the same ε",
				Subtitle: []string{
					fmt.Sprintf("δ = %s, zero-out adjacency; means of %d seeds at %d values of ε", show.Delta(samplers.Delta), seeds, len(samplers.Epsilons)),
					"The rate is chosen on the validation part. Fixed-size lots stand for shuffled ones",
				},
				Columns: 2,
			}
			for _, d := range samplers.All {
				progress := env.Console.Start(d.Title, d.Runs(seeds), "runs")
				points, err := samplers.Compare(cmd.Context(), d, dataDir, seeds, func(done int) { progress.Set(int64(done), "") })
				progress.Finish()
				if err != nil {
					return err
				}
				table := &output.Table{Columns: []string{"sampler", "epsilon", "noise", "rate", "test_error", "margin"}, Rows: samplers.Rows(points)}
				report.Sections = append(report.Sections, output.Section{Name: d.Settings["dataset"], Title: d.Title, Table: table})
				panel := &plot.Curves{Title: d.Title, X: "ε of one run", Y: "test error", LogX: true}
				for _, p := range points {
					if n := len(panel.Curves); n == 0 || panel.Curves[n-1].Name != p.Sampler {
						panel.Curves = append(panel.Curves, plot.Series{Name: p.Sampler})
					}
					last := &panel.Curves[len(panel.Curves)-1]
					last.X, last.Y = append(last.X, p.Epsilon), append(last.Y, p.Error)
				}
				drawn.Panels = append(drawn.Panels, panel)
			}
			rows, err := samplers.Sums(cmd.Context())
			if err != nil {
				return err
			}
			report.Sections = append(report.Sections, output.Section{
				Name: "sums", Title: "Noise in sums of gradients, without sampling, at μ = 1",
				Table: &output.Table{Columns: []string{"run", "independent", "8_bands", "band_per_lot", "blt", "tree"}, Rows: rows},
			})
			if picture != "" {
				if err := drawn.Save(picture); err != nil {
					return err
				}
			}
			return report.Write(env.Stdout, format)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	command.DataDirFlag(cmd, &dataDir)
	flags.IntVar(&seeds, "seeds", 3, "number of seeds")
	flags.StringVar(&picture, "plot", "", "also draw the fronts, to a file ("+plot.Formats+")")
	command.OutputFlag(cmd, &format)
	return cmd
}

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/bench"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/suggest/designers"
)

// markdown is the format of a table for documents.
const markdown = "markdown"

// benchFormat is a flag: the format of a table.
type benchFormat string

// String implements pflag.Value.
func (f *benchFormat) String() string { return string(*f) }

// Set implements pflag.Value.
func (f *benchFormat) Set(name string) error {
	var known output.Format
	if name != markdown && known.Set(name) != nil {
		return fmt.Errorf("must be %s or %s", output.Names(output.Text, output.JSON, output.CSV), markdown)
	}
	*f = benchFormat(name)
	return nil
}

// Type implements pflag.Value.
func (f *benchFormat) Type() string { return "format" }

// engineFlags are the flags of dpareto-lab bench engine.
type engineFlags struct {
	bench.Options

	problem   string
	dataDir   string
	settings  map[string]string
	epochCost bool
	finalOnly bool
	bySeed    bool
	noise     float64
	format    benchFormat
}

func engineCommand(env *command.Env) *cobra.Command {
	var f engineFlags
	cmd := &cobra.Command{
		Use:   "engine --problem PROBLEM --designer DESIGNER,...",
		Short: "Compare designers on a problem",
		Long: `Runs designers in this process, without a server, on one problem and under several seeds,
and prints one row for each designer and budget. All designers get the same initial points
and the same random streams of training.

Problems: ` + strings.Join(bench.Names(), ", ") + `.

Designers: ` + strings.Join(designers.Names(), ", ") + `.

--tool NAME=COMMAND, which can be repeated, takes another program into the comparison:
clients/python/benchmarks/peers.py runs Ax, BoTorch and Optuna. It is told the space, the
objectives with their references, the constraints and values without standard errors, and
answers lines of JSON; cmd/dpareto-lab/notes/benchmarks.md says which. Words of the command are separated by spaces.

Hypervolumes, as means over the seeds with standard deviations:

  observed    of all measurements, noise included: the luckiest of many
  true        of the exact values of the configurations on the reported front, or of all
              configurations where there is no noise
  claimed     of what the model says of the reported front
  remeasured  of the means of fresh runs (--remeasure) of at most 12 configurations of the
              reported front

Configurations that do not meet the problem's constraints have no hypervolume.
log10_difference is the logarithm of the distance of the true hypervolume to the best possible one.
repetitions is the number of suggestions to run a configuration again.
cpu_seconds_per_suggestion is the processor time of the whole process while it waits for
suggestions, without the initial points: leave --parallel at 1 if it matters. Of a tool it is
what the tool says.`,
		Example: `  dpareto-lab bench engine --problem zdt1 --designer dpareto,random
  dpareto-lab bench engine --problem noisy_branin_currin --designer dpareto --initial 6 --batch 4 --budget 86
  dpareto-lab bench engine --problem zdt1 --designer default --unknown-noise --tool "ax=python clients/python/benchmarks/peers.py ax"
  dpareto-lab bench engine --problem adult --designer dpareto --budget 80 --at 32 --remeasure 10 --output csv`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for i, name := range f.Designers {
				f.Designers[i] = strings.ReplaceAll(strings.ToLower(name), "-", "_")
			}
			for i := range f.Tools {
				f.Designers = append(f.Designers, f.Tools[i].Name)
			}
			return benchEngine(cmd.Context(), env, f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.problem, "problem", "", "problem to solve")
	flags.StringSliceVar(&f.Designers, "designer", nil, "designers to compare, with commas between them")
	addTools(flags, &f.Tools)
	flags.IntVar(&f.Seeds, "seeds", 5, "number of seeds: 1, 2, and so on")
	flags.IntVar(&f.Budget, "budget", 50, "number of runs, with the initial points")
	flags.IntSliceVar(&f.At, "at", nil, "smaller budgets at which fronts are also measured, with commas between them")
	flags.BoolVar(&f.OwnInitial, "own-initial", false, "let every designer draw its own initial points instead of sharing them")
	flags.IntVar(&f.Initial, "initial", 0, "number of initial points; default: twice the dimension plus 2, or the study's own number")
	flags.IntVar(&f.Batch, "batch", 1, "number of suggestions that are asked for at once")
	flags.Float64Var(&f.noise, "noise", 0, "noise to add to a test problem, as a share of each value's standard deviation over the space")
	flags.BoolVar(&f.UnknownNoise, "unknown-noise", false, "leave out the standard errors of measurements, so that designers learn the noise")
	flags.BoolVar(&f.InferReference, "infer-reference", false, "keep the references of measured objectives from designers, which infer them from the results")
	flags.IntVar(&f.Remeasure, "remeasure", 0, "number of fresh runs of each configuration of the reported front")
	flags.Float64Var(&f.Target, "target", 0, "hypervolume of the observed front; the run that first reaches it is reported")
	flags.BoolVar(&f.finalOnly, "final-only", false, "count only the ends of runs, not their checkpoints")
	flags.BoolVar(&f.epochCost, "epoch-cost", false, "measure the cost of a run by its epochs instead of counting runs")
	flags.IntVar(&f.Parallel, "parallel", 1, "number of studies that run at the same time")
	flags.BoolVar(&f.bySeed, "by-seed", false, "print a row for each seed instead of means, for comparisons seed by seed")
	flags.StringToStringVar(&f.settings, "set", nil, "setting of the problem's trainer to replace, as NAME=VALUE")
	command.DataDirFlag(cmd, &f.dataDir)
	f.format = benchFormat(output.Text)
	flags.VarP(&f.format, "output", "o", "format of the table: "+output.Names(output.Text, output.JSON, output.CSV)+", "+markdown)
	command.FromEnvironment(flags, "output")
	return cmd
}

// toolsFlag is a flag that is given once for each tool.
type toolsFlag []bench.Tool

func addTools(flags *pflag.FlagSet, tools *[]bench.Tool) {
	flags.Var((*toolsFlag)(tools), "tool", "another program to compare")
}

// String implements pflag.Value.
func (f *toolsFlag) String() string { return "" }

// Set implements pflag.Value.
func (f *toolsFlag) Set(text string) error {
	t, err := bench.ParseTool(text)
	if err != nil {
		return err
	}
	*f = append(*f, t)
	return nil
}

// Type implements pflag.Value.
func (f *toolsFlag) Type() string { return "NAME=COMMAND" }

// benchEngine compares designers and prints the table.
func benchEngine(ctx context.Context, env *command.Env, f engineFlags) error {
	if f.problem == "" {
		return command.Usagef("--problem is required; see dpareto-lab bench engine --help")
	}
	options := bench.ProblemOptions{DataDir: f.dataDir, FinalOnly: f.finalOnly, EpochCost: f.epochCost, Noise: f.noise, Settings: f.settings}
	if err := bench.Check(f.problem, options); err != nil {
		return command.Usage(err)
	}
	if err := command.CheckDataDir(f.dataDir); err != nil {
		return err
	}
	download := env.Download("downloading data")
	options.Progress = download.Set
	problem, err := bench.Open(ctx, f.problem, options)
	download.Finish()
	if err != nil {
		return err
	}
	if err := f.Validate(problem); err != nil {
		return command.Usage(err)
	}
	progress := env.Console.Start(problem.Name, int64(f.Seeds)*int64(len(f.Designers))*int64(f.Budget), "runs")
	f.Progress = func(runs int) { progress.Set(int64(runs), "") }
	result, err := bench.Run(ctx, problem, f.Options)
	progress.Finish()
	if err != nil {
		return interrupted(ctx, env, err, kept{})
	}
	for _, line := range result.Remarks() {
		env.Sayf("%s\n", line)
	}
	table := result.Table()
	if f.bySeed {
		table = result.SeedTable()
	}
	if f.format == markdown {
		return bench.WriteMarkdown(env.Stdout, table)
	}
	return table.Write(env.Stdout, output.Format(f.format))
}

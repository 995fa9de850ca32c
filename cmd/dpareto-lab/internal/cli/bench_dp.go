package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/bench"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/lines"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/surface"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
)

// dpFlags are the flags of dpareto-lab bench dp.
type dpFlags struct {
	bench.Variant
	bench.CompareOptions

	name    string
	tables  string
	at      []int
	epochs  []int
	results string
	against string
	format  benchFormat
}

// open reads the table of the surface, says how well the model predicts it, and returns the surface.
func (f *dpFlags) open(ctx context.Context, env *command.Env) (*bench.Surface, error) {
	chosen, err := surface.ByName(f.name)
	if err != nil {
		return nil, command.Usage(err)
	}
	if f.tables == "" {
		return nil, command.Usagef("--tables is required: the folder of the tables, see dpareto-lab bench dp-table")
	}
	table, err := surface.Read(chosen, f.tables)
	if err != nil {
		return nil, err
	}
	if !table.Checked {
		env.Sayf("%s: the table has no digest beside it: it is not complete, or from elsewhere\n", chosen.Name)
	}
	s, err := bench.OpenSurface(ctx, table, f.Variant)
	if err != nil {
		return nil, err
	}
	v, err := s.Model().Validate(ctx)
	if err != nil {
		return nil, err
	}
	env.Sayf("%s: %d runs in the table; of %d configurations, each predicted from the others, the logit of the error is off by %.3f "+
		"(root mean square; noise of a run %.3f, standard deviation %.3f), the error by %.4f on average\n",
		chosen.Name, len(table.Runs), v.Configurations, v.Residual, v.Noise, v.Spread, v.Error)
	return s, nil
}

func dpCommand(env *command.Env) *cobra.Command {
	var f dpFlags
	cmd := &cobra.Command{
		Use:   "dp --surface SURFACE --tables DIR --designer DESIGNER,...",
		Short: "Compare designers on tabulated DP training",
		Long: `Runs designers in this process on a surface: a model of a table of real DP training, which
answers in milliseconds. Prints one row for each method and budget, of medians or means over the
seeds.

Designers: default, ehvi and ehvi_exact, which are shown every epoch of a run, or with the
suffix _final its end, or with the suffix _epochs that a run costs its epochs, and then with _raw the
parameters in place of features of DP-SGD, or with _alone no public runs; and the others of
dpareto-lab bench engine, which are shown the end of a run. The front is always of all epochs: those that a method did not ask for count afterwards.

  reported        hypervolume of the front that the lab's model of all measurements reports, by
                  the surface's exact values
  observed        the same of the front of the measurements
  log10_missing   logarithm of what the reported front lacks to the best one known
  runs_to_99      number of runs from which on the reported front has 99 % of its hypervolume at
                  the budget, and epochs_to_99 the number of epochs trained until then
  stand_ins       suggestions that another designer had to make
  difference      with --against: in log10_missing to the studies of that method with the same
                  seeds, their mean with a 95 % interval; negative where the method is ahead

With --results FILE every study is also appended to the file, a line of JSON each, studies
that are there are not run again, and the table is of all records of the surface's variant in
it with the same --initial.

--tool takes another program into the comparison, which is shown the ends of runs; see
dpareto-lab bench engine.

Surfaces: ` + strings.Join(surface.Names(), ", ") + `.`,
		Example: `  dpareto-lab bench dp --surface adult-logistic-sgd --tables ~/dp-tables --designer default,random
  dpareto-lab bench dp --surface digits-softmax-sgd --tables ~/dp-tables --results results.jsonl --output markdown`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for i, name := range f.Methods {
				f.Methods[i] = strings.ReplaceAll(strings.ToLower(name), "-", "_")
			}
			return benchDP(cmd.Context(), env, f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.name, "surface", "", "surface to search")
	flags.StringVar(&f.tables, "tables", "", "folder of the tables, see dpareto-lab bench dp-table")
	flags.BoolVar(&f.Noiseless, "noiseless", false, "leave out the noise of a run")
	flags.BoolVar(&f.Smooth, "smooth", false, "make ε smooth: steps that need not be whole, and an interpolated accountant")
	flags.BoolVar(&f.Reported, "reported", false, "let designers model ε as they do the error, instead of computing it")
	flags.StringSliceVar(&f.Methods, "designer", nil, "designers to compare, with commas between them")
	addTools(flags, &f.Tools)
	flags.IntVar(&f.Seeds, "seeds", 10, "number of seeds: 1, 2, and so on")
	flags.IntVar(&f.Budget, "budget", 30, "number of runs of a study")
	flags.IntSliceVar(&f.at, "at", nil, "smaller budgets at which fronts are also measured, with commas between them")
	flags.IntSliceVar(&f.epochs, "at-epochs", nil, "numbers of trained epochs at which fronts are also measured, with commas between them")
	flags.IntVar(&f.Initial, "initial", 0, "number of quasi-random points that all methods begin with; default: each method's own")
	flags.StringVar(&f.results, "results", "", "file of results to continue and to report")
	flags.StringVar(&f.against, "against", "", "method that the others are compared with, seed by seed")
	f.format = benchFormat(output.Text)
	flags.VarP(&f.format, "output", "o", "format of the table: "+output.Names(output.Text, output.JSON, output.CSV)+", "+markdown)
	command.FromEnvironment(flags, "output")
	return cmd
}

// benchDP compares designers on a surface and prints the table.
func benchDP(ctx context.Context, env *command.Env, f dpFlags) error {
	methods := len(f.Methods) + len(f.Tools)
	if methods == 0 && f.results == "" {
		return command.Usagef("--designer or --tool is required, or --results with a file of results to report")
	}
	if err := f.Validate(); err != nil {
		return command.Usage(err)
	}
	for _, at := range f.at {
		if at < 1 || at > f.Budget {
			return command.Usagef("--at must be 1 to %d, the budget, is %d", f.Budget, at)
		}
	}
	for _, at := range f.epochs {
		if at < 1 {
			return command.Usagef("--at-epochs must be at least 1, is %d", at)
		}
	}
	s, err := f.open(ctx, env)
	if err != nil {
		return err
	}
	records, err := f.records(s)
	if err != nil {
		return err
	}
	progress := env.Console.Start(f.name, int64(f.Seeds)*int64(methods), "studies")
	done := 0
	err = bench.Compare(ctx, s, f.CompareOptions, records, func(r *bench.Record) error {
		records = append(records, r)
		done++
		progress.Set(int64(done), "")
		if f.results == "" {
			return nil
		}
		return lines.Append(f.results, r)
	})
	progress.Finish()
	if err != nil {
		return interrupted(ctx, env, err, kept{"--results", f.results, "results.jsonl"})
	}
	if f.against != "" && !slices.ContainsFunc(records, func(r *bench.Record) bool { return r.Method == f.against }) {
		return command.Usagef("--against must be a method among --designer, --tool or the results, is %q", f.against)
	}
	best, err := s.Best(ctx)
	if err != nil {
		return interrupted(ctx, env, err, kept{"--results", f.results, "results.jsonl"})
	}
	env.Sayf("%s: the best front known has the hypervolume %.5g\n", f.name, best)
	budgets := append(slices.Clone(f.at), f.Budget)
	slices.Sort(budgets)
	table := bench.Report(records, slices.Compact(budgets), f.epochs, best, f.against)
	if f.format == markdown {
		return bench.WriteMarkdown(env.Stdout, table)
	}
	return table.Write(env.Stdout, output.Format(f.format))
}

// records returns the records of the surface's variant among the results.
func (f *dpFlags) records(s *bench.Surface) ([]*bench.Record, error) {
	if f.results == "" {
		return nil, nil
	}
	all, err := bench.ReadRecords(f.results)
	if err != nil {
		return nil, err
	}
	return s.Own(all, f.Initial)
}

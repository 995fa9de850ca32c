package privacy

import (
	"errors"
	"math"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/privacy/mechanism"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/accounting"
)

// searchFlags are the flags of dpareto privacy search.
type searchFlags struct {
	run         mechanism.Flags
	runs        int64
	budget      float64
	subsetShare float64
	subsetBatch int64
}

// mostSearchRuns bounds --runs, and the runs that a budget is said to pay for.
const mostSearchRuns = 1_000_000

func searchCommand(env *command.Env) *cobra.Command {
	out := command.NewPrinter(env)
	var f searchFlags
	cmd := &cobra.Command{
		Use:   "search --runs RUNS --mechanism NAME",
		Short: "Compare what every way to search costs, before anything is run",
		Long: `Compares the ways to search with a number of runs: what each of them may release, and its ε. One run is
given by the flags of its mechanism. All ways are for candidates that cost as much as this run. With
--budget it also prints how many runs each way affords, up to a million and rounded down by 2 % at
most.

  all shown       every model and score; with a filter, configurations may depend on earlier results
  best of K       the best of a secret random number K of runs, drawn from a distribution with the mean
                  --runs. The best run may be released with all its checkpoints and their scores: the
                  search must then compare whole learning curves
  portfolio of k  the best of K groups of k runs, all of whose runs are released
  subset          the best of K (geometric) on a secret random subset of the records, then one run on
                  all. On the subset lots shrink by as much, or have --subset-batch-size. For DP-SGD with
                  lots of a fixed size

` + "See docs/publishing.md." + mechanismHelp(),
		Example: `  dpareto privacy search --runs 32 --mechanism dp-sgd --sampling fixed-size --dataset-size 32561 \
      --batch-size 256 --noise-multiplier 4 --epochs 10 --delta 1e-6
  dpareto privacy search --runs 64 --mechanism gaussian --sensitivity 1 --standard-deviation 8 --delta 1e-6 --budget 2`,
		Args: command.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := f.search(cmd.Flags().Changed)
			if err != nil {
				return err
			}
			report, err := s.Report(cmd.Context(), out.Format)
			if err != nil {
				return err
			}
			return report.Write(out, out.Format)
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&f.runs, "runs", 32, "number of runs of the search, the mean where it is random")
	flags.Float64Var(&f.budget, "budget", 0, "ε for which to print how many runs each way affords")
	flags.Float64Var(&f.subsetShare, "subset-share", 0.1, "share of the records to search on before a final run on all")
	flags.Int64Var(&f.subsetBatch, "subset-batch-size", 0, "records per lot on the subset (default: the share of --batch-size)")
	f.run.RegisterRun(flags)
	flags.SortFlags = false
	out.AddFlag(cmd)
	return cmd
}

// search returns the search that the flags describe.
func (f *searchFlags) search(changed func(string) bool) (*Search, error) {
	switch {
	case f.runs < 1 || f.runs > mostSearchRuns:
		return nil, command.Usagef("--runs must be in [1, %d], is %d", mostSearchRuns, f.runs)
	case changed("budget") && !(f.budget > 0 && !math.IsInf(f.budget, 1)):
		return nil, command.Usagef("--budget must be positive and finite, is %g", f.budget)
	case !(f.subsetShare > 0 && f.subsetShare <= 1):
		return nil, command.Usagef("--subset-share must be in (0, 1], is %g", f.subsetShare)
	case changed("subset-batch-size") && f.subsetBatch < 1:
		return nil, command.Usagef("--subset-batch-size must be at least 1, is %d", f.subsetBatch)
	}
	m, err := f.run.Run()
	if err != nil {
		return nil, command.Usage(err)
	}
	if delta := m.Spec.GetDelta(); !(delta > 0 && delta < 1) {
		return nil, command.Usagef("--delta must be in (0, 1), is %g", delta)
	}
	run, err := accounting.Part(m.Spec)
	if err != nil {
		return nil, flagError(err)
	}
	s := &Search{Mechanism: m.Name, Run: run, Delta: m.Spec.GetDelta(), Runs: f.runs, Budget: f.budget}
	if s.Subset, err = f.subset(run); err != nil {
		return nil, err
	}
	if s.Subset.Base == nil && (changed("subset-share") || changed("subset-batch-size")) {
		return nil, command.Usage(errors.New("--subset-share and --subset-batch-size are for dp-sgd with lots of a fixed size"))
	}
	return s, nil
}

// subset returns one run on the subset, without a Base for mechanisms that do not say how a run changes
// with the number of records.
func (f *searchFlags) subset(run privacy.Part) (privacy.SubsetSampled, error) {
	all, ok := run.Mechanism.(privacy.FixedSizeGaussian)
	if !ok {
		return privacy.SubsetSampled{}, nil
	}
	size := max(1, int64(f.subsetShare*float64(all.DatasetSize)))
	one := privacy.FixedSizeGaussian{
		DatasetSize: size, BatchSize: max(1, int64(math.Round(f.subsetShare*float64(all.BatchSize)))), NoiseMultiplier: all.NoiseMultiplier,
	}
	if f.subsetBatch > 0 {
		if one.BatchSize = f.subsetBatch; f.subsetBatch > size {
			return privacy.SubsetSampled{}, command.Usagef("--subset-batch-size must be at most %d, the records of the subset, is %d", size, f.subsetBatch)
		}
	}
	steps := run.Count
	if unit, epochs := f.run.Length(); unit == lengthEpochs {
		var err error
		if steps, err = privacy.Steps(size, one.BatchSize, epochs); err != nil {
			return privacy.SubsetSampled{}, fieldsAsFlags(err, nil)
		}
	}
	return privacy.SubsetSampled{
		Base: privacy.Composition{{Mechanism: one, Count: steps}}, SubsetSize: size, DatasetSize: all.DatasetSize,
	}, nil
}

package privacy

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/privacy/mechanism"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/accounting"
)

// searchFlags are the flags of dpareto privacy search.
type searchFlags struct {
	run         mechanism.Flags
	request     dparetov1.PriceSearchRequest
	finalRun    string
	testNoise   float64
	testEpsilon float64
}

func searchCommand(env *command.Env) *cobra.Command {
	out := command.NewPrinter(env)
	var f searchFlags
	cmd := &cobra.Command{
		Use:   "search --runs RUNS --mechanism NAME",
		Short: "Compare the costs of all ways to search, before the first run",
		Long: `Compares the ways to search with a number of runs: what each of them may release, and its ε. One run is
given by the flags of its mechanism. All ways are for candidates that cost as much as this run. With
--budget it also prints how many runs each way affords, up to a million and rounded down by 2 % at
most. With --test-records and --test-noise it also prints ε of the test records, and with --test-epsilon
the noise on every score that gives this ε.

  all shown       every model and score; with a filter, configurations may depend on earlier results
  noisy trials    runs with ten times the noise of the one that follows them, for DP-SGD; configurations
                  may depend on earlier results. The best configuration with so much
                  noise need not be the best for the run
  best of K       the best of a secret random number K of runs, drawn from a distribution with the mean
                  --runs; capped: drawn again while it exceeds --max-runs. The best run may be released
                  with all its checkpoints and their scores: the search must then compare whole
                  learning curves
  portfolio of k  the best of K groups of k runs, all of whose runs are released
  subset          the best of K on a secret random subset of the records, then one run on all. On the
                  subset lots shrink by as much, or have --subset-batch-size. For DP-SGD with lots of a
                  fixed size

--distribution is for the last three and for the cap.

` + "See docs/reference/publishing.md." + mechanismHelp(),
		Example: `  dpareto privacy search --runs 32 --mechanism dp-sgd --sampling fixed-size --dataset-size 32561 \
      --batch-size 256 --noise-multiplier 4 --epochs 10 --delta 1e-6 --test-records 16281 --test-noise 0.005 --checkpoints 10
  dpareto privacy search --runs 64 --mechanism gaussian --sensitivity 1 --standard-deviation 8 --delta 1e-6 --budget 2`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := f.fill(cmd.Flags().Changed)
			if err != nil {
				return err
			}
			response, err := accounting.Service{}.PriceSearch(cmd.Context(), &f.request)
			if err != nil {
				return flagError(err)
			}
			prices := SearchPrices{Mechanism: name, Request: &f.request, Response: response}
			return prices.Report(out.Format).Write(out, out.Format)
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&f.request.Runs, "runs", 32, "number of runs of the search, the mean where it is random")
	flags.Int64Var(&f.request.MaxRuns, "max-runs", 0, "hard cap of the number of runs, where there is one (default 4 times --runs)")
	flags.Float64Var(&f.request.Budget, "budget", 0, "ε for which to print how many runs each way affords")
	flags.Int64SliceVar(&f.request.Portfolios, "portfolios", []int64{2, 4, 8}, "numbers of runs that are released together, with commas between them")
	flags.Float64Var(&f.request.SubsetShare, "subset-share", 0, "share of the records to search on before a final run on all (default 0.1)")
	flags.Int64Var(&f.request.SubsetBatchSize, "subset-batch-size", 0, "records per lot on the subset (default: the share of --batch-size)")
	flags.StringVar(&f.finalRun, "final-run", "", "the run on all after a subset, in place of one run: name=value,... as a part of dpareto privacy compose")
	flags.Int64Var(&f.request.TestRecords, "test-records", 0, "test records that scores, of values in [0, 1], are averages over")
	flags.Float64Var(&f.testNoise, "test-noise", 0, "standard deviation of the Gaussian noise on every score")
	flags.Float64Var(&f.testEpsilon, "test-epsilon", 0, "ε of the test records for which to print the noise, in place of --test-noise")
	flags.Int64Var(&f.request.Checkpoints, "checkpoints", 0, "scores of a run that are released with all its checkpoints (default 1)")
	f.run.RegisterRun(flags)
	flags.SortFlags = false
	out.AddFlag(cmd)
	return cmd
}

// fill completes the request, and returns the name of the mechanism.
func (f *searchFlags) fill(changed func(string) bool) (name string, err error) {
	for flag, zero := range map[string]bool{ // which would stand for the default
		"max-runs": f.request.GetMaxRuns() == 0, "budget": f.request.GetBudget() == 0, "portfolios": len(f.request.GetPortfolios()) == 0,
		"subset-share": f.request.GetSubsetShare() == 0, "subset-batch-size": f.request.GetSubsetBatchSize() == 0,
		"test-records": f.request.GetTestRecords() == 0, "checkpoints": f.request.GetCheckpoints() == 0,
	} {
		if changed(flag) && zero {
			return "", command.Usagef("--%s must be positive", flag)
		}
	}
	m, err := f.run.Run()
	if err != nil {
		return "", command.Usage(err)
	}
	f.request.Privacy = m.Spec
	eta, poisson, err := f.run.Distribution()
	if err != nil {
		return "", command.Usage(err)
	}
	f.request.Distribution = &dparetov1.PriceSearchRequest_Eta{Eta: eta}
	if poisson {
		f.request.Distribution = &dparetov1.PriceSearchRequest_Poisson{Poisson: new(dparetov1.PoissonDistribution)}
	}
	if changed("final-run") {
		part, err := mechanism.Part(f.finalRun)
		if err != nil {
			return "", command.Usagef("--final-run: %w", err)
		}
		if part.GetCount() != "" {
			return "", command.Usagef("--final-run: count must be unset: it is one run")
		}
		f.request.FinalRun = part.GetMechanism()
		f.request.FinalRun.Adjacency = dparetov1.Adjacency_ADJACENCY_UNSPECIFIED // as of one run
	}
	switch noise, epsilon := changed("test-noise"), changed("test-epsilon"); {
	case noise && epsilon:
		return "", command.Usage(errors.New("--test-noise and --test-epsilon cannot be used together"))
	case noise:
		f.request.Test = &dparetov1.PriceSearchRequest_TestNoise{TestNoise: f.testNoise}
	case epsilon:
		f.request.Test = &dparetov1.PriceSearchRequest_TestEpsilon{TestEpsilon: f.testEpsilon}
	}
	return m.Name, nil
}

package publish

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/enumflag"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// ReleaseCommand returns the command release.
func ReleaseCommand(env *command.Env) *cobra.Command {
	return command.Group("release", "Publish results with a privacy guarantee",
		`Publishes results with a privacy guarantee for the records that they were measured on: the
test or validation set. Every release also has its cost for the training records.

Not every study can be released. If results influenced its configurations, as in all methods
with a model, they depend on the test records, and no mechanism over its trials has a
guarantee. These can be published:

  - a study with private_mode: its best trial and its front, at no further cost, since it
    never held anything but noisy values;
  - a study with random_stopping: its best trial, or the learning curves of its best candidate,
    paid when the study was created;
  - a complete study of a random, quasi-random or grid design: its best trial for ε, its front
    for (ε, δ), charged to the study's test_ledger, unless its budget or a domain was changed
    after its first trial;
  - the choice among candidates that were fixed before the data were seen: for ε;
  - of any other study, by best --method kusner-1 or kusner-3, hardly more than noise.

A release is charged to a ledger before it is handed out. Asking again with the same
--request-id returns the same release and costs nothing: if an answer is lost, repeat the
command with the id that was printed.

The guarantee covers the release. Readers of the study see exact values; if they tell
others, no guarantee covers that.`,
		bestCommand(env), frontCommand(env), selectCommand(env), getCommand(env), listCommand(env))
}

// addRequestID adds the flag of requests that can be repeated.
func addRequestID(cmd *cobra.Command, id *string) {
	cmd.Flags().StringVar(id, "request-id", "", "id by which a repetition is recognised; default: a random one, which is printed")
}

// repeatable makes the call of a request that has an id, a random one unless one was given. It prints a
// random one after a second without an answer, and at the end, unless the request was refused: the release
// may exist then, and be charged.
func repeatable[Request, Response any](ctx context.Context, env *command.Env, id *string, req Request,
	call func(context.Context, Request, ...grpc.CallOption) (Response, error),
) (Response, error) {
	say := func() {}
	if *id == "" {
		*id = "release-" + rand.Text()
		say = sync.OnceFunc(func() { env.Sayf("if no answer comes, or to see it again, repeat with --request-id %s\n", *id) })
	}
	waiting := time.AfterFunc(time.Second, say)
	defer waiting.Stop()
	resp, err := call(ctx, req)
	switch status.Code(err) {
	case codes.OK, codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Unknown:
		say()
	default: // a refusal: there is nothing to repeat
	}
	return resp, err
}

// specOf reads the spec of the study that a release is of, nil for a selection with a ledger: what the ε
// in its table means. Releases are read after it, since they cost something.
func specOf(ctx context.Context, call *remote.Call, name string) (*dparetov1.StudySpec, error) {
	parts := strings.Split(name, "/")
	if parts[0] != "studies" || len(parts) < 2 {
		return nil, nil
	}
	study, err := call.Study(parts[1]).Get(ctx)
	return study.GetSpec(), err
}

// printRelease prints a release with its guarantee. People see a row for each run, unless they want all
// points; programs always get all.
func printRelease(out *command.Printer, r *dparetov1.Release, spec *dparetov1.StudySpec, all bool) error {
	heading, table := view.ReleaseHeading(r, spec), view.Release(r)
	if out.Format == output.CSV {
		table = view.ReleaseCSV(r)
	} else if runs := view.ReleaseByRun(r, spec); !all && len(runs.Rows) < len(table.Rows) {
		table = runs
		heading = append(heading, fmt.Sprintf("one row for each run, from its first point to its last: %d rows for %d points; --all shows each point", len(runs.Rows), len(r.GetPoints())))
	}
	if err := out.Heading(heading); err != nil {
		return err
	}
	return view.Print(out, table, r)
}

// addAll adds the flag of tables that have a row for each run.
func addAll(cmd *cobra.Command, all *bool) {
	cmd.Flags().BoolVar(all, "all", false, "show every point in the table, and not one row for each run")
}

func bestCommand(env *command.Env) *cobra.Command {
	req := new(dparetov1.ReleaseBestRequest)
	kusner := new(dparetov1.KusnerMethod)
	var atMost map[string]string
	var method string
	cmd := remote.Command(env, &cobra.Command{
		Use:   "best STUDY",
		Short: "Release the best configuration under a bound",
		Long: `Releases one configuration: the best by a metric among those whose computed metrics, such as the ε
of training, are within bounds. In a study of a fixed design permute-and-flip chooses it: the
smaller --epsilon and the test set are, the more often it is not the best one. Its value is not
published. The flag --epsilon is the cost of the choice for the test records. It has nothing to do
with the ε of training, which is a metric of the study.

A study with random_stopping may release a whole learning curve, or the curves of a portfolio of
runs. Then it has a front from the ε of a short run to the ε of the longest. The table has a row
for every scored state, in rising order of ε; on_front says which are better than all others
somewhere.

--method kusner-1 and kusner-3 are Algorithms 1 and 3 of "Differentially private Bayesian
optimization" (Kusner et al. 2015), for studies that chose configurations by results. --epsilon
is then what holds in the worst case, with noise for the whole range of the metric, and is
charged. The paper's result under its model is printed as its claim: it is no differential
privacy. The method kusner-1 draws one of --candidates configurations by a Gaussian process whose
parameters must be known without the data. At ε = 1 the draw is nearly a random one. The method
kusner-3 publishes the best value with Laplace noise. With --lipschitz, for a study of a ridge
penalty alone, the noise is for less than the whole range.`,
		Example: `  dpareto release best adult --metric error --at-most epsilon=1 --epsilon 0.1
  dpareto release best adult --method kusner-1 --epsilon 1 --prior-mean 0.2 --prior-deviation 0.05 \
      --observation-noise 0.005 --length-scale 0.2`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, call *remote.Call) error {
		if err := call.NotZero("epsilon", req.GetEpsilon()); err != nil {
			return err
		}
		req.Name = call.Handle(call.Args[0]).Name()
		req.AtMost = make(map[string]float64)
		for id, text := range atMost {
			bound, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return command.Usagef("--at-most %s: must be a number, is %q", id, text)
			}
			req.AtMost[id] = bound
		}
		if kusner.Algorithm = kusnerMethods[method]; method != permuteAndFlip {
			if kusner.GetAlgorithm() == 0 {
				return command.Usagef("--method must be %s, kusner-1 or kusner-3, is %q", permuteAndFlip, method)
			}
			req.Kusner = kusner
		}
		spec, err := specOf(ctx, call, req.GetName())
		if err != nil {
			return err
		}
		resp, err := repeatable(ctx, env, &req.RequestId, req, call.Releases.ReleaseBest)
		if err != nil {
			return &remote.CallError{Action: "release the best of " + req.GetName(), Err: err}
		}
		return printRelease(call.Out, resp.GetRelease(), spec, true)
	})
	flags := cmd.Flags()
	flags.StringVar(&req.Metric, "metric", "error", "reported objective by which the best configuration is chosen")
	flags.StringToStringVar(&atMost, "at-most", nil, "largest value of a computed metric, as METRIC=VALUE")
	flags.Float64Var(&req.Epsilon, "epsilon", 0, "ε of the release; required for studies of a fixed design, refused for others")
	flags.StringVar(&method, "method", permuteAndFlip, "method of the choice: "+permuteAndFlip+", kusner-1 or kusner-3")
	flags.Int32Var(&kusner.Candidates, "candidates", 100, "number of configurations that are drawn, of kusner-1")
	flags.Float64Var(&kusner.PriorMean, "prior-mean", 0, "mean of the prior, of kusner-1")
	flags.Float64Var(&kusner.PriorStandardDeviation, "prior-deviation", 0, "standard deviation of the prior, of kusner-1")
	flags.Float64Var(&kusner.NoiseStandardDeviation, "observation-noise", 0, "standard deviation of the observation noise, of kusner-1")
	flags.Float64Var(&kusner.LengthScale, "length-scale", 0, "length scale in the unit cube of the parameters, of kusner-1")
	flags.Float64Var(&kusner.Delta, "claim-delta", 1e-6, "δ of the paper's claim, of kusner-1")
	flags.Float64Var(&kusner.Lipschitz, "lipschitz", 0, "Lipschitz constant of one record's score in the weights, of kusner-3; 0 if unknown")
	addRequestID(cmd, &req.RequestId)
	return cmd
}

// permuteAndFlip is the method of release best for fixed designs.
const permuteAndFlip = "permute-and-flip"

// kusnerMethods are the algorithms of the other methods.
var kusnerMethods = map[string]int32{"kusner-1": 1, "kusner-3": 3}

func frontCommand(env *command.Env) *cobra.Command {
	req := new(dparetov1.ReleaseFrontRequest)
	var all bool
	cmd := remote.Command(env, &cobra.Command{
		Use:   "front STUDY",
		Short: "Release a front: configurations with their values",
		Long: `Releases a front. In a study of a fixed design every value gets Gaussian noise. It is
calibrated so that all values together have the guarantee, whether they end up on the front
or not. A model of the noisy values then decides which configurations are on the front, and
estimates their values. The noise grows with the number N of configurations: √N / (records ·
μ).

In a study with a checkpoint parameter the states of a run are separate points. The table
has one row for each run, from its first point on the front to its last, or with --all one for
each point. JSON and CSV have all points.`,
		Example: "  dpareto release front adult --epsilon 1 --delta 1e-7",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, call *remote.Call) error {
		if err := errors.Join(call.NotZero("epsilon", req.GetEpsilon()), call.NotZero("delta", req.GetDelta())); err != nil {
			return err
		}
		req.Name = call.Handle(call.Args[0]).Name()
		spec, err := specOf(ctx, call, req.GetName())
		if err != nil {
			return err
		}
		resp, err := repeatable(ctx, env, &req.RequestId, req, call.Releases.ReleaseFront)
		if err != nil {
			return &remote.CallError{Action: "release the front of " + req.GetName(), Err: err}
		}
		return printRelease(call.Out, resp.GetRelease(), spec, all)
	})
	flags := cmd.Flags()
	flags.Float64Var(&req.Epsilon, "epsilon", 0, "ε of the release; required for studies of a fixed design, refused for others")
	flags.Float64Var(&req.Delta, "delta", 0, "δ of the release, with --epsilon")
	addAll(cmd, &all)
	addRequestID(cmd, &req.RequestId)
	return cmd
}

func selectCommand(env *command.Env) *cobra.Command {
	req := &dparetov1.SelectPrivatelyRequest{Method: dparetov1.SelectionMethod_SELECTION_METHOD_PERMUTE_AND_FLIP}
	var file string
	cmd := remote.Command(env, &cobra.Command{
		Use:   "select LEDGER",
		Short: "Select the best of fixed candidates, by your utilities",
		Long: `Selects the best of candidates that were fixed before the data were seen, by utilities in a
file: one number per line, larger is better; - is standard input. Only the index of the
selected candidate, from 0, is published. The server stores neither the utilities nor a digest
of them: a repetition with the same --request-id returns the same index for any utilities.

--sensitivity is the largest change of a utility between neighbouring datasets: 1/m for an
accuracy on m records, one of which is replaced.`,
		Example: "  dpareto release select adult-test --utilities accuracies.txt --sensitivity 6.2e-5 --epsilon 0.1",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, call *remote.Call) error {
		req.Ledger = ledgerName(call.Args[0])
		var err error
		if req.Utilities, err = readNumbers(env, file); err != nil {
			return err
		}
		resp, err := repeatable(ctx, env, &req.RequestId, req, call.Releases.SelectPrivately)
		if err != nil {
			return &remote.CallError{Action: "select with " + req.GetLedger(), Err: err}
		}
		return printRelease(call.Out, resp.GetRelease(), nil, true)
	})
	flags := cmd.Flags()
	flags.StringVar(&file, "utilities", "", "file with a utility per line (required)")
	flags.Float64Var(&req.Sensitivity, "sensitivity", 0, "largest change of a utility between neighbouring datasets (required)")
	flags.Float64Var(&req.Epsilon, "epsilon", 0, "ε of the selection (required)")
	enumflag.Var(flags, &req.Method, "method", "mechanism of the choice")
	addRequestID(cmd, &req.RequestId)
	return cmd
}

// readNumbers reads a file of numbers, one per line, or standard input.
func readNumbers(env *command.Env, path string) (numbers []float64, err error) {
	if path == "" {
		return nil, command.Usagef("release select: --utilities is required")
	}
	in, err := env.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		x, err := strconv.ParseFloat(text, 64)
		if err != nil { // the message leaves out the text, which is private
			return nil, command.Usagef("%s:%d: must be a number", command.SourceName(path), n)
		}
		numbers = append(numbers, x)
	}
	return numbers, lines.Err()
}

func getCommand(env *command.Env) *cobra.Command {
	var all bool
	cmd := remote.Command(env, &cobra.Command{
		Use:     "get RELEASE",
		Short:   "Show a release",
		Long:    "Shows a release by its name. The name of a study's release may begin with the id of the study.",
		Example: "  dpareto release get adult/releases/1\n  dpareto release get ledgers/adult-test/releases/1",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, call *remote.Call) error {
		name := parentName(call, call.Args[0])
		spec, err := specOf(ctx, call, name)
		if err != nil {
			return err
		}
		resp, err := call.Releases.GetRelease(ctx, &dparetov1.GetReleaseRequest{Name: name})
		if err != nil {
			return &remote.CallError{Action: "read " + name, Err: err}
		}
		return printRelease(call.Out, resp.GetRelease(), spec, all)
	})
	addAll(cmd, &all)
	return cmd
}

// parentName returns a name that begins with a ledger or a study, which may lack "studies/".
func parentName(call *remote.Call, arg string) string {
	if strings.HasPrefix(arg, "ledgers/") {
		return arg
	}
	return call.Handle(arg).Name()
}

func listCommand(env *command.Env) *cobra.Command {
	return remote.Command(env, &cobra.Command{
		Use:   "list STUDY|ledgers/LEDGER",
		Short: "List the releases of a study, or the selections of a ledger",
		Long: `Lists the releases of a study or, if the name begins with ledgers/, the selections charged to a
ledger.`,
		Example: "  dpareto release list adult\n  dpareto release list ledgers/adult-test",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, call *remote.Call) error {
		parent := parentName(call, call.Args[0])
		all, err := remote.Pages(func(token string) ([]*dparetov1.Release, string, error) {
			resp, err := call.Releases.ListReleases(ctx, &dparetov1.ListReleasesRequest{Parent: parent, PageToken: token})
			return resp.GetReleases(), resp.GetNextPageToken(), err
		})
		if err != nil {
			return &remote.CallError{Action: "list the releases of " + parent, Err: err}
		}
		return view.PrintAll(call.Out, view.Releases(all), all)
	})
}

package cli

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

func (a *app) releaseCommand() *cobra.Command {
	cmd := command.Group("release", "Publish results with a privacy guarantee",
		`Publishes results with a privacy guarantee for the records that they were measured on: the
test or validation set. What it cost the records that configurations were trained on is said
beside it.

Not every study can be released. One that chose its configurations by looking at results, as
all methods with a model do, has looked at the test records all along: no mechanism over its
trials has a guarantee. What can be published, and at what price:

  - a study with private_mode: its best and its front, for nothing more, since it never held
    anything but noisy values;
  - a study with random_stopping: its best trial, paid when it was created;
  - a complete study of a random, quasi-random or grid design: its best for ε, its front for
    (ε, δ), charged to the study's test_ledger;
  - the choice among candidates that were fixed before the data were seen: for ε.

What a release costs is charged to a ledger before it is handed out. A release that is asked for again
with the same --request-id is the same, and costs nothing: after a lost answer repeat the
command with the id that was printed.

The guarantee is for what is released. Whoever can read the study sees exact values, and
whatever is told of them otherwise has no guarantee.`)
	cmd.AddCommand(a.releaseBestCommand(), a.releaseFrontCommand(), a.releaseSelectCommand(), a.releaseGetCommand(), a.releaseListCommand())
	return cmd
}

// newRequestID returns an id that nobody else has.
func newRequestID() string { return "release-" + rand.Text() }

// addRequestID adds the flag of requests that can be repeated.
func addRequestID(cmd *cobra.Command, id *string) {
	cmd.Flags().StringVar(id, "request-id", "", "id by which a repetition is recognised; default: a random one, which is printed")
}

// identified returns the id of a request, and says it where it was made up, before it is
// needed: the answer may never come.
func (a *app) identified(id string) string {
	if id == "" {
		id = newRequestID()
		a.Sayf("if no answer comes, repeat with --request-id %s\n", id)
	}
	return id
}

// printRelease prints a release with all that has to be said beside it.
func (a *app) printRelease(r *dparetov1.Release) error {
	if a.output == output.Text {
		if err := a.printHeading(view.ReleaseHeading(r)); err != nil {
			return err
		}
	}
	table := view.Release(r)
	if a.output == output.CSV {
		table = view.ReleaseCSV(r)
	}
	return a.print(table, r)
}

func (a *app) releaseBestCommand() *cobra.Command {
	req := new(dparetov1.ReleaseBestRequest)
	var atMost map[string]string
	cmd := a.dataCommandOf("best STUDY", "Release the best configuration under a bound",
		`Releases one configuration: the best by a metric among those whose computed metrics, such as ε
of training, are within bounds. Of a study of a fixed design it is chosen by permute-and-flip:
it may be a worse one, the more often the smaller --epsilon and the test set are; its value is
not published. --epsilon is what the choice costs the test records, and has nothing to do with
the ε of training that is a metric of the study.`,
		"  dpareto release best adult --metric error --at-most epsilon=1 --epsilon 0.1", cobra.ExactArgs(1),
		func(ctx context.Context, client *dpareto.Client, args []string) error {
			req.Name = client.Study(studyID(args[0])).Name()
			req.AtMost = make(map[string]float64)
			for id, text := range atMost {
				bound, err := strconv.ParseFloat(text, 64)
				if err != nil {
					return command.Usagef("--at-most %s=%s: want a number", id, text)
				}
				req.AtMost[id] = bound
			}
			req.RequestId = a.identified(req.GetRequestId())
			resp, err := client.Releases.ReleaseBest(ctx, req)
			if err != nil {
				return &callError{"release the best of " + req.GetName(), err}
			}
			return a.printRelease(resp.GetRelease())
		})
	flags := cmd.Flags()
	flags.StringVar(&req.Metric, "metric", "error", "the reported objective that is to be as good as possible")
	flags.StringToStringVar(&atMost, "at-most", nil, "largest value of a computed metric, as METRIC=VALUE")
	flags.Float64Var(&req.Epsilon, "epsilon", 0, "ε of the release; required for studies of a fixed design, refused for others")
	addRequestID(cmd, &req.RequestId)
	return cmd
}

func (a *app) releaseFrontCommand() *cobra.Command {
	req := new(dparetov1.ReleaseFrontRequest)
	cmd := a.dataCommandOf("front STUDY", "Release a front: configurations with their values",
		`Releases a front. Of a study of a fixed design every value gets Gaussian noise, calibrated so
that all of them together have the guarantee, whether they end up on the front or not; then a
model of the noisy values tells which configurations are on the front, and what their values
are. The more configurations, the more noise: √N / (records · μ).`,
		"  dpareto release front adult --epsilon 1 --delta 1e-7", cobra.ExactArgs(1),
		func(ctx context.Context, client *dpareto.Client, args []string) error {
			req.Name = client.Study(studyID(args[0])).Name()
			req.RequestId = a.identified(req.GetRequestId())
			resp, err := client.Releases.ReleaseFront(ctx, req)
			if err != nil {
				return &callError{"release the front of " + req.GetName(), err}
			}
			return a.printRelease(resp.GetRelease())
		})
	flags := cmd.Flags()
	flags.Float64Var(&req.Epsilon, "epsilon", 0, "ε of the release; required for studies of a fixed design, refused for others")
	flags.Float64Var(&req.Delta, "delta", 0, "δ of the release, with --epsilon")
	addRequestID(cmd, &req.RequestId)
	return cmd
}

func (a *app) releaseSelectCommand() *cobra.Command {
	req := new(dparetov1.SelectPrivatelyRequest)
	var file, method string
	cmd := a.dataCommandOf("select LEDGER", "Select the best of fixed candidates, by utilities of your own",
		`Selects the best of candidates that were fixed before the data were seen, by utilities in a
file: one number per line, larger is better; - is standard input. Only the index of the
selected candidate, from 0, is published. The server keeps no utility, nor a digest of them: a
repetition with the same --request-id gives the same index, whatever the utilities are then.

--sensitivity is by how much a utility can change between neighbouring datasets: for an
accuracy on m records, one of which is replaced, 1/m.`,
		"  dpareto release select adult-test --utilities accuracies.txt --sensitivity 6.2e-5 --epsilon 0.1", cobra.ExactArgs(1),
		func(ctx context.Context, client *dpareto.Client, args []string) error {
			value, ok := dparetov1.SelectionMethod_value["SELECTION_METHOD_"+strings.ToUpper(strings.ReplaceAll(method, "-", "_"))]
			if !ok || value == 0 {
				return command.Usagef("--method %s, want permute-and-flip, exponential or report-noisy-max", method)
			}
			req.Method, req.Ledger = dparetov1.SelectionMethod(value), ledgerName(args[0])
			var err error
			if req.Utilities, err = a.readNumbers(file); err != nil {
				return err
			}
			req.RequestId = a.identified(req.GetRequestId())
			resp, err := client.Releases.SelectPrivately(ctx, req)
			if err != nil {
				return &callError{"select with " + req.GetLedger(), err}
			}
			return a.printRelease(resp.GetRelease())
		})
	flags := cmd.Flags()
	flags.StringVar(&file, "utilities", "", "file with a utility per line (required)")
	flags.Float64Var(&req.Sensitivity, "sensitivity", 0, "largest change of a utility between neighbouring datasets (required)")
	flags.Float64Var(&req.Epsilon, "epsilon", 0, "ε of the selection (required)")
	flags.StringVar(&method, "method", "permute-and-flip", "mechanism: permute-and-flip, exponential or report-noisy-max")
	addRequestID(cmd, &req.RequestId)
	return cmd
}

// readNumbers reads a file of numbers, one per line, or standard input.
func (a *app) readNumbers(path string) (numbers []float64, err error) {
	if path == "" {
		return nil, command.Usage(errors.New("release select: --utilities is required"))
	}
	in := a.Stdin
	if path != standardInput {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		in = file
	}
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		x, err := strconv.ParseFloat(text, 64)
		if err != nil { // without the text, which nobody else is to see
			return nil, command.Usagef("%s:%d: want a number", sourceName(path), n)
		}
		numbers = append(numbers, x)
	}
	return numbers, lines.Err()
}

func (a *app) releaseGetCommand() *cobra.Command {
	return a.dataCommandOf("get RELEASE", "Show a release", "Shows a release again, by the name that it was given.",
		"  dpareto release get studies/adult/releases/1", cobra.ExactArgs(1),
		func(ctx context.Context, client *dpareto.Client, args []string) error {
			resp, err := client.Releases.GetRelease(ctx, &dparetov1.GetReleaseRequest{Name: args[0]})
			if err != nil {
				return &callError{"read " + args[0], err}
			}
			return a.printRelease(resp.GetRelease())
		})
}

func (a *app) releaseListCommand() *cobra.Command {
	return a.dataCommandOf("list STUDY|ledgers/LEDGER", "List the releases of a study, or the selections of a ledger",
		"Lists the releases of a study or, where the name begins with ledgers/, the selections that were\ncharged to a ledger.",
		"  dpareto release list adult\n  dpareto release list ledgers/adult-test", cobra.ExactArgs(1),
		func(ctx context.Context, client *dpareto.Client, args []string) error {
			parent := args[0]
			if !strings.HasPrefix(parent, "ledgers/") {
				parent = client.Study(studyID(parent)).Name()
			}
			var all []*dparetov1.Release
			err := pages(func(token string) (string, error) {
				resp, err := client.Releases.ListReleases(ctx, &dparetov1.ListReleasesRequest{Parent: parent, PageToken: token})
				all = append(all, resp.GetReleases()...)
				return resp.GetNextPageToken(), err
			})
			if err != nil {
				return &callError{"list the releases of " + parent, err}
			}
			return printAll(a, view.Releases(all), all)
		})
}

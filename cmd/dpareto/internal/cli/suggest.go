package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// suggestFlags say which trials are wanted.
type suggestFlags struct {
	study, worker string
	count         int32
	fixed, atMost map[string]string
}

func (a *app) trialSuggestCommand() *cobra.Command {
	var f suggestFlags
	cmd := &cobra.Command{
		Use:   "suggest STUDY --worker NAME",
		Short: "Ask for trials to run, also under conditions",
		Long: `Asks for trials as a worker does, for trainers of any kind: the worker holds them from then
on, under leases that JSON shows, and must report before these run out.

--fix and --at-most restrict what is suggested: parameters with the given values, computed
metrics such as ε, of the whole run, that do not exceed a bound.`,
		Example: `  dpareto trial suggest svt --worker laptop --output json
  dpareto trial suggest svt --worker laptop --fix cutoff=10 --at-most epsilon=1`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.suggest(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	takeStudy(cmd, &f.study)
	flags.StringVar(&f.worker, "worker", "", "name of the worker, unique in the study")
	flags.Int32Var(&f.count, "count", 1, "number of trials")
	flags.StringToStringVar(&f.fixed, "fix", nil, "value of a parameter, as PARAMETER=VALUE")
	flags.StringToStringVar(&f.atMost, "at-most", nil, "largest value of a computed metric, as METRIC=VALUE")
	a.addClientFlags(cmd)
	command.OutputFlag(cmd, &a.output)
	return cmd
}

func (a *app) suggest(ctx context.Context, f suggestFlags) error {
	if f.worker == "" {
		return command.Usage(errors.New("trial suggest: --worker is required"))
	}
	return a.session(ctx, func(ctx context.Context, client *dpareto.Client) error {
		handle := client.Study(studyID(f.study))
		study, err := handle.Get(ctx)
		if err != nil {
			return err
		}
		condition, err := f.condition(study.GetSpec())
		if err != nil {
			return command.Usage(err)
		}
		request := &dparetov1.SuggestTrialsRequest{Parent: handle.Name(), WorkerId: f.worker, Count: f.count}
		if condition != nil {
			for range max(1, f.count) {
				request.Conditions = append(request.Conditions, condition)
			}
		}
		resp, err := client.Studies.SuggestTrials(ctx, request)
		if err != nil {
			return &callError{"ask for trials of " + handle.Name(), err}
		}
		if err := printAll(a, view.Trials(study.GetSpec(), resp.GetTrials()), resp.GetTrials()); err != nil {
			return err
		}
		if reason := resp.GetEndReason(); reason != dparetov1.EndReason_END_REASON_UNSPECIFIED {
			return fmt.Errorf("%d of %d trials: %s", len(resp.GetTrials()), max(1, f.count), view.EndReason(reason))
		}
		return nil
	})
}

// condition returns the condition on each trial, nil if there is none.
func (f *suggestFlags) condition(spec *dparetov1.StudySpec) (*dparetov1.SuggestionCondition, error) {
	if len(f.fixed) == 0 && len(f.atMost) == 0 {
		return nil, nil //nolint:nilnil // none is a condition, too
	}
	c := &dparetov1.SuggestionCondition{FixedParameters: make(map[string]*dparetov1.Value), AtMost: make(map[string]float64)}
	for id, text := range f.fixed {
		value, err := namedValue(spec, id, text)
		if err != nil {
			return nil, fmt.Errorf("--fix: %w", err)
		}
		c.FixedParameters[id] = value
	}
	for id, text := range f.atMost {
		bound, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("--at-most %s=%s: want a number", id, text)
		}
		c.AtMost[id] = bound
	}
	return c, nil
}

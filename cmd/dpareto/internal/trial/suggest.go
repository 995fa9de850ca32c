package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// suggestFlags say which trials to ask for.
type suggestFlags struct {
	study, workerID string
	count           int32
	fixed, atMost   map[string]string
}

func suggestCommand(env *command.Env) *cobra.Command {
	var f suggestFlags
	cmd := remote.Command(env, &cobra.Command{
		Use:   "suggest STUDY --worker-id NAME",
		Short: "Ask for trials to run, also under conditions",
		Long: `Asks for trials as a worker does, for trainers of any kind. The worker holds them from then
on, under leases that JSON shows, and must report before these run out.

--fix and --at-most restrict the suggestions: parameters with the given values, and
computed metrics of the whole run, such as ε, that do not exceed a bound.`,
		Example: `  dpareto trial suggest svt --worker-id laptop --output json
  dpareto trial suggest svt --worker-id laptop --fix cutoff=10 --at-most epsilon=1`,
	}, func(ctx context.Context, call *remote.Call) error { return suggest(ctx, call, f) })
	flags := cmd.Flags()
	remote.TakeStudy(cmd, &f.study)
	flags.StringVar(&f.workerID, "worker-id", "", "id of the worker, unique in the study")
	flags.Int32Var(&f.count, "count", 1, "number of trials")
	flags.StringToStringVar(&f.fixed, "fix", nil, "value of a parameter, as PARAMETER=VALUE")
	flags.StringToStringVar(&f.atMost, "at-most", nil, "largest value of a computed metric, as METRIC=VALUE")
	return cmd
}

func suggest(ctx context.Context, call *remote.Call, f suggestFlags) error {
	if f.workerID == "" {
		return command.Usage(errors.New("trial suggest: --worker-id is required"))
	}
	handle := call.Handle(f.study)
	study, err := handle.Get(ctx)
	if err != nil {
		return err
	}
	condition, err := f.condition(study.GetSpec())
	if err != nil {
		return command.Usage(err)
	}
	request := &dparetov1.SuggestTrialsRequest{Parent: handle.Name(), WorkerId: f.workerID, Count: f.count}
	if condition != nil {
		request.Conditions = slices.Repeat([]*dparetov1.SuggestionCondition{condition}, int(max(1, f.count)))
	}
	resp, err := call.Studies.SuggestTrials(ctx, request)
	if err != nil {
		return &remote.CallError{Action: "ask for trials of " + handle.Name(), Err: err}
	}
	if call.Out.Format == output.JSON {
		call.Env.WarnIfReadable("the answer", "set umask 077 before, since it holds the tokens of leases")
	}
	if err := view.PrintAll(call.Out, view.Trials(study.GetSpec(), resp.GetTrials()), resp.GetTrials()); err != nil {
		return err
	}
	if reason := resp.GetEndReason(); reason != dparetov1.EndReason_END_REASON_UNSPECIFIED {
		return fmt.Errorf("%d of %d trials: %s", len(resp.GetTrials()), max(1, f.count), view.EndReason(reason))
	}
	return nil
}

// condition returns the condition on each trial, or nil.
func (f *suggestFlags) condition(spec *dparetov1.StudySpec) (*dparetov1.SuggestionCondition, error) {
	if len(f.fixed) == 0 && len(f.atMost) == 0 {
		return nil, nil //nolint:nilnil // no condition is also valid
	}
	c := &dparetov1.SuggestionCondition{FixedParameters: make(map[string]*dparetov1.Value), AtMost: make(map[string]float64)}
	for id, text := range f.fixed {
		value, err := view.NamedValue(spec, id, text)
		if err != nil {
			return nil, fmt.Errorf("--fix: %w", err)
		}
		c.FixedParameters[id] = value
	}
	for id, text := range f.atMost {
		bound, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("--at-most %s: must be a number, is %q", id, text)
		}
		c.AtMost[id] = bound
	}
	return c, nil
}

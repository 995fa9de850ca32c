package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

func (a *app) trialCommand() *cobra.Command {
	group := a.group("trial", "Show, take and import trials", "A trial is one configuration of a study, with everything that was measured of it.")
	group.AddCommand(a.trialListCommand(), a.trialGetCommand(), a.trialImportCommand(), a.trialSuggestCommand())
	return group
}

func (a *app) trialListCommand() *cobra.Command {
	list := &cobra.Command{
		Use:   "list STUDY",
		Short: "List the trials of a study",
		Long: `Lists the trials of a study: state, origin, configuration, and the metrics at the end of the
run. Computed metrics, such as ε, are known before it. In a study with a checkpoint
parameter the step is how far the run came: less than the configuration says if it was
stopped early, and the metrics are those of the step. JSON shows the measurements on the
way, too.`,
		Example: "  dpareto trial list svt --output csv > trials.csv",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
				handle := client.Study(output.ID(args[0]))
				study, err := handle.Get(ctx)
				if err != nil {
					return err
				}
				trials, err := listTrials(ctx, handle)
				if err != nil {
					return err
				}
				return printAll(a, output.Trials(study.GetSpec(), trials), trials)
			})
		},
	}
	a.addClientFlags(list)
	a.addOutputFlag(list)
	return list
}

func (a *app) trialGetCommand() *cobra.Command {
	get := &cobra.Command{
		Use:   "get STUDY TRIAL",
		Short: "Show a trial",
		Long: `Shows a trial, given by its number: its configuration, what was measured of it, and what
the model had expected. JSON shows the measurements on the way, too.`,
		Example: "  dpareto trial get svt 3",
		Args:    args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := strconv.ParseInt(output.ID(args[1]), 10, 64)
			if err != nil || number < 1 {
				return &usageError{fmt.Errorf("trial %q, want its number", args[1])}
			}
			return a.session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
				handle := client.Study(output.ID(args[0]))
				study, err := handle.Get(ctx)
				if err != nil {
					return err
				}
				trial, err := handle.Trial(ctx, number)
				if err != nil {
					return err
				}
				return a.print(output.Trial(study.GetSpec(), trial), trial)
			})
		},
	}
	a.addClientFlags(get)
	a.addOutputFlag(get)
	return get
}

// listTrials reads all trials of a study.
func listTrials(ctx context.Context, study *dpareto.Study) ([]*dparetov1.Trial, error) {
	var trials []*dparetov1.Trial
	for trial, err := range study.Trials(ctx) {
		if err != nil {
			return nil, err
		}
		trials = append(trials, trial)
	}
	return trials, nil
}

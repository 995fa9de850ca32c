package cli

import (
	"context"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

func (a *app) trialCommand() *cobra.Command {
	group := a.group("trial", "Show trials", "A trial is one configuration of a study, with everything that was measured of it.")
	list := &cobra.Command{
		Use:   "list STUDY",
		Short: "List the trials of a study",
		Long: `Lists the trials of a study: state, configuration, and the metrics at the end of the run.
Computed metrics, such as ε, are known before it. JSON shows the measurements on the way,
too.`,
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
	group.AddCommand(list)
	return group
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

package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

func (a *app) trialCommand() *cobra.Command {
	group := command.Group("trial", "Show, take, change and import trials", "A trial is one configuration of a study, with everything that was measured of it.")
	group.AddCommand(
		a.trialListCommand(), a.trialGetCommand(), a.trialImportCommand(), a.trialSuggestCommand(),
		a.trialUpdateCommand(), a.trialStopCommand(), a.trialDeleteCommand(),
	)
	return group
}

func (a *app) trialListCommand() *cobra.Command {
	var query dpareto.Query
	const sinceFlag = "after-revision"
	var since int64
	list := &cobra.Command{
		Use:   "list STUDY",
		Short: "List the trials of a study",
		Long: `Lists the trials of a study: state, origin, configuration, and the metrics at the end of the
run. Computed metrics, such as ε, are known before it. In a study with a checkpoint
parameter the step is how far the run came: less than the configuration says if it was
stopped early, and the metrics are those of the step. JSON shows the measurements on the
way, too.

A filter has the syntax of AIP-160. Fields are number, state, state_reason, origin,
parameters.ID, metrics.ID, labels.KEY, note, replicate_of, replicates, worker, attempt,
algorithm, revision, create_time, start_time and end_time.

With --after-revision only what changed after that revision of the study is listed, deleted
trials included, and the log tells the revision to go on from; JSON is an object then, with
trials, deleted_trials and revision. It is 0 at the beginning.`,
		Example: `  dpareto trial list svt --output csv > trials.csv
  dpareto trial list svt --filter 'metrics.epsilon <= 1' --order-by metrics.error
  dpareto trial list svt --after-revision 120`,
		Args: command.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			changes := cmd.Flags().Changed(sinceFlag)
			if changes && query.OrderBy != "" {
				return command.Usagef("--order-by cannot be used with --%s: changes have an order of their own", sinceFlag)
			}
			return a.session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
				handle := client.Study(studyID(args[0]))
				study, err := handle.Get(ctx)
				if err != nil {
					return err
				}
				if changes {
					return a.printChanges(ctx, handle, study.GetSpec(), since, query.Filter)
				}
				trials, err := collect(handle.FindTrials(ctx, query))
				if err != nil {
					return err
				}
				return printAll(a, view.Trials(study.GetSpec(), trials), trials)
			})
		},
	}
	addQueryFlags(list, &query)
	list.Flags().Int64Var(&since, sinceFlag, 0, "list what changed after this revision of the study")
	a.addClientFlags(list)
	command.OutputFlag(list, &a.output)
	return list
}

// printChanges prints the trials of a study that changed after a revision.
func (a *app) printChanges(ctx context.Context, study *dpareto.Study, spec *dparetov1.StudySpec, after int64, filter string) error {
	changes, err := study.Changes(ctx, after, filter)
	if err != nil {
		return err
	}
	a.Logger.Info("listed", "study", study.Name(), "revision", changes.Revision)
	table := view.Trials(spec, changes.Trials)
	view.DeletedTrials(table, changes.Deleted)
	return a.print(table, &dparetov1.ListTrialsResponse{Trials: changes.Trials, DeletedTrials: changes.Deleted, Revision: changes.Revision})
}

func (a *app) trialGetCommand() *cobra.Command {
	get := &cobra.Command{
		Use:   "get STUDY TRIAL",
		Short: "Show a trial",
		Long: `Shows a trial, given by its number: its configuration, what was measured of it, and what
the model had expected. JSON shows the measurements on the way, too.`,
		Example: "  dpareto trial get svt 3",
		Args:    command.Args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := trialNumber(args[1])
			if err != nil {
				return err
			}
			return a.session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
				handle := client.Study(studyID(args[0]))
				study, err := handle.Get(ctx)
				if err != nil {
					return err
				}
				trial, err := handle.Trial(ctx, number)
				if err != nil {
					return err
				}
				return a.print(view.Trial(study.GetSpec(), trial), trial)
			})
		},
	}
	a.addClientFlags(get)
	command.OutputFlag(get, &a.output)
	return get
}

// trialNumber returns the number of a trial that an argument names.
func trialNumber(arg string) (int64, error) {
	number, err := strconv.ParseInt(view.ID(arg), 10, 64)
	if err != nil || number < 1 {
		return 0, command.Usagef("trial %q, want its number", arg)
	}
	return number, nil
}

package trial

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Command returns the command trial.
func Command(env *command.Env) *cobra.Command {
	return command.Group("trial", "Show, create, take, change and import trials",
		"A trial is one configuration of a study, with everything that was measured of it.",
		listCommand(env), getCommand(env), createCommand(env), importCommand(env), suggestCommand(env),
		updateCommand(env), stopCommand(env), deleteCommand(env))
}

func listCommand(env *command.Env) *cobra.Command {
	const sinceFlag = "after-revision"
	var query dpareto.Query
	var since int64
	cmd := remote.Command(env, &cobra.Command{
		Use:   "list STUDY",
		Short: "List the trials of a study",
		Long: `Lists the trials of a study: state, origin, configuration, and the metrics at the end of the
run. Computed metrics, such as ε, are known before it. In a study with a checkpoint
parameter the step is how far the run came. It is less than the configuration says if the
run was stopped early. The metrics belong to that step. CSV also has the values of several
runs, and JSON the intermediate measurements; "dpareto trial import" reads both.

A filter has the syntax of AIP-160. Fields are number, state, state_reason, origin,
parameters.ID, metrics.ID, labels.KEY, note, replicate_of, replicates, worker, attempt,
algorithm, revision, create_time, start_time and end_time.

With --after-revision only what changed after that revision of the study is listed, deleted
trials included, and the log names the revision to continue from. JSON is then an object
with trials, deleted_trials and revision. A study begins at revision 0.`,
		Example: `  dpareto trial list svt --output csv > trials.csv
  dpareto trial list svt --filter 'metrics.epsilon <= 1' --order-by metrics.error
  dpareto trial list svt --after-revision 120`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, call *remote.Call) error {
		changes := call.Changed(sinceFlag)
		if changes && query.OrderBy != "" {
			return command.Usagef("--order-by cannot be used with --%s: changes come in the order of their revisions", sinceFlag)
		}
		handle := call.Handle(call.Args[0])
		study, err := handle.Get(ctx)
		if err != nil {
			return err
		}
		if changes {
			return printChanges(ctx, call, handle, study.GetSpec(), since, query.Filter)
		}
		trials, err := remote.Collect(handle.FindTrials(ctx, query))
		if err != nil {
			return err
		}
		table := view.Trials(study.GetSpec(), trials)
		if call.Out.Format == output.CSV {
			table = view.TrialsInFull(study.GetSpec(), trials)
		}
		return view.PrintAll(call.Out, table, trials)
	})
	remote.AddQueryFlags(cmd, &query)
	cmd.Flags().Int64Var(&since, sinceFlag, 0, "list what changed after this revision of the study")
	return cmd
}

// printChanges prints the trials of a study that changed after a revision.
func printChanges(ctx context.Context, call *remote.Call, study *dpareto.Study, spec *dparetov1.StudySpec, after int64, filter string) error {
	changes, err := study.Changes(ctx, after, filter)
	if err != nil {
		return err
	}
	call.Env.Logger.Info("listed", "study", study.Name(), "revision", changes.Revision)
	table := view.Trials(spec, changes.Trials)
	view.DeletedTrials(table, changes.Deleted)
	return view.Print(call.Out, table, &dparetov1.ListTrialsResponse{Trials: changes.Trials, DeletedTrials: changes.Deleted, Revision: changes.Revision})
}

func getCommand(env *command.Env) *cobra.Command {
	return remote.Command(env, &cobra.Command{
		Use:   "get STUDY TRIAL",
		Short: "Show a trial",
		Long: `Shows a trial, given by its number: its configuration, its measurements, and the model's
prediction. JSON also has the intermediate measurements.`,
		Example: "  dpareto trial get svt 3",
		Args:    cobra.ExactArgs(2),
	}, func(ctx context.Context, call *remote.Call) error {
		number, err := parseNumber(call.Args[1])
		if err != nil {
			return err
		}
		handle := call.Handle(call.Args[0])
		study, err := handle.Get(ctx)
		if err != nil {
			return err
		}
		trial, err := handle.Trial(ctx, number)
		if err != nil {
			return err
		}
		return view.Print(call.Out, view.Trial(study.GetSpec(), trial), trial)
	})
}

// parseNumber returns the number of the trial that an argument names.
func parseNumber(arg string) (int64, error) {
	number, err := strconv.ParseInt(view.ID(arg), 10, 64)
	if err != nil || number < 1 {
		return 0, command.Usagef("trial: must be its number, is %q", arg)
	}
	return number, nil
}

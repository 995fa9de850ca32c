package cli

import (
	"context"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

func (a *app) trialUpdateCommand() *cobra.Command {
	const noteFlag = "note"
	var labels labelFlags
	var note string
	cmd := &cobra.Command{
		Use:     "update STUDY TRIAL",
		Short:   "Change the labels and the note of a trial",
		Long:    "Changes the labels and the note of a trial, given by its number, in any state, and shows it.",
		Example: `  dpareto trial update svt 3 --note "the machine was busy" --label gpu=a100`,
		Args:    command.Args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := trialNumber(args[1])
			if err != nil {
				return err
			}
			change := &dparetov1.Trial{Note: note}
			var fields []string
			if cmd.Flags().Changed(noteFlag) {
				fields = append(fields, noteFlag)
			}
			if len(fields) == 0 && labels.isEmpty() {
				return command.Usage(errNoChange)
			}
			return a.session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
				handle := client.Study(studyID(args[0]))
				study, err := handle.Get(ctx)
				if err != nil {
					return err
				}
				if !labels.isEmpty() {
					before, err := handle.Trial(ctx, number)
					if err != nil {
						return err
					}
					change.Labels, change.Etag = labels.apply(before.GetLabels()), before.GetEtag()
					fields = append(fields, labelsField)
				}
				trial, err := handle.UpdateTrial(ctx, number, change, fields...)
				if err != nil {
					return err
				}
				return a.print(view.Trial(study.GetSpec(), trial), trial)
			})
		},
	}
	cmd.Flags().StringVar(&note, noteFlag, "", "new note")
	labels.add(cmd)
	a.addClientFlags(cmd)
	command.OutputFlag(cmd, &a.output)
	return cmd
}

func (a *app) trialStopCommand() *cobra.Command {
	var reason string
	cmd := a.trialActionCommand("stop", "asked to stop", "Ask the worker of a trial to stop",
		"Asks the worker that holds a trial to complete it with what it has. A queued trial fails.",
		func(ctx context.Context, study *dpareto.Study, number int64) error {
			_, err := study.StopTrial(ctx, number, reason)
			return err
		})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the worker and for the list of trials")
	return cmd
}

func (a *app) trialDeleteCommand() *cobra.Command {
	return a.trialActionCommand("delete", "deleted", "Delete a trial",
		`Deletes a trial that no worker holds. It is gone from the front and from the model; what its
runs spent of the privacy of the data stays in the study's ledger.`,
		func(ctx context.Context, study *dpareto.Study, number int64) error {
			return study.DeleteTrial(ctx, number)
		})
}

// trialActionCommand returns a command that does something to a trial and then says so.
func (a *app) trialActionCommand(name, done, summary, text string, act func(context.Context, *dpareto.Study, int64) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:     name + " STUDY TRIAL",
		Short:   summary,
		Long:    text,
		Example: "  dpareto trial " + name + " svt 3",
		Args:    command.Args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := trialNumber(args[1])
			if err != nil {
				return err
			}
			return a.session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
				study := client.Study(studyID(args[0]))
				if err := act(ctx, study, number); err != nil {
					return err
				}
				a.Logger.Info(done, "study", study.Name(), "trial", number)
				return nil
			})
		},
	}
	a.addClientFlags(cmd)
	return cmd
}

package trial

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

func updateCommand(env *command.Env) *cobra.Command {
	const noteFlag = "note"
	var labels remote.LabelFlags
	var note string
	cmd := remote.Command(env, &cobra.Command{
		Use:     "update STUDY TRIAL",
		Short:   "Change the labels and the note of a trial",
		Long:    "Changes the labels and the note of a trial, given by its number, in any state, and shows it.",
		Example: `  dpareto trial update svt 3 --note "the machine was busy" --label gpu=a100`,
		Args:    cobra.ExactArgs(2),
	}, func(ctx context.Context, call *remote.Call) error {
		number, err := parseNumber(call.Args[1])
		if err != nil {
			return err
		}
		change := &dparetov1.Trial{Note: note}
		var fields []string
		if call.Changed(noteFlag) {
			fields = append(fields, noteFlag)
		}
		if len(fields) == 0 && labels.IsEmpty() {
			return command.Usage(remote.ErrNoChange)
		}
		handle := call.Handle(call.Args[0])
		study, err := handle.Get(ctx)
		if err != nil {
			return err
		}
		if !labels.IsEmpty() {
			before, err := handle.Trial(ctx, number)
			if err != nil {
				return err
			}
			change.Labels, change.Etag = labels.Apply(before.GetLabels()), before.GetEtag()
			fields = append(fields, remote.LabelsField)
		}
		trial, err := handle.UpdateTrial(ctx, number, change, fields...)
		if err != nil {
			return err
		}
		return view.Print(call.Out, view.Trial(study.GetSpec(), trial), trial)
	})
	cmd.Flags().StringVar(&note, noteFlag, "", "new note")
	labels.Add(cmd)
	return cmd
}

func stopCommand(env *command.Env) *cobra.Command {
	var reason string
	cmd := actionCommand(env, "stop", "asked to stop", "Ask the worker of a trial to stop",
		"Asks the worker that holds a trial to complete it with what it has. A queued trial fails.",
		func(ctx context.Context, study *dpareto.Study, number int64) error {
			_, err := study.StopTrial(ctx, number, reason)
			return err
		})
	cmd.Flags().StringVar(&reason, "reason", "", "reason, for the worker and for the list of trials")
	return cmd
}

func deleteCommand(env *command.Env) *cobra.Command {
	var yes bool
	cmd := actionCommand(env, "delete", "deleted", "Delete a trial",
		`Deletes a trial that no worker holds. It leaves the front and the model; the privacy that its
runs spent stays in the study's ledger. On a terminal it asks for the number of the trial;
elsewhere --yes is required.`,
		func(ctx context.Context, study *dpareto.Study, number int64) error {
			if !yes {
				text := strconv.FormatInt(number, 10)
				if err := env.Confirm(ctx, study.Name()+"/trials/"+text, text); err != nil {
					return err
				}
			}
			return study.DeleteTrial(ctx, number)
		})
	command.YesFlag(cmd, &yes)
	return cmd
}

// actionCommand returns a command that acts on a trial and logs that it did.
func actionCommand(env *command.Env, name, done, summary, text string, act func(context.Context, *dpareto.Study, int64) error) *cobra.Command {
	return remote.Action(env, &cobra.Command{
		Use:     name + " STUDY TRIAL",
		Short:   summary,
		Long:    text,
		Example: "  dpareto trial " + name + " svt 3",
		Args:    cobra.ExactArgs(2),
	}, func(ctx context.Context, call *remote.Call) error {
		number, err := parseNumber(call.Args[1])
		if err != nil {
			return err
		}
		study := call.Handle(call.Args[0])
		if err := act(ctx, study, number); err != nil {
			return err
		}
		env.Logger.Info(done, "study", study.Name(), "trial", number)
		return nil
	})
}

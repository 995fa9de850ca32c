package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
)

func (a *app) studyWatchCommand() *cobra.Command {
	var after int64
	cmd := &cobra.Command{
		Use:   "watch STUDY",
		Short: "Follow the changes of a study as they come",
		Long: `Prints every change of a study and its trials when it is on disk, a line each, until the study
is deleted or the command is interrupted. What there is already comes first: the study, and its
trials in the order of their last changes. JSON has an object per line.

The command goes on over restarts of the server. Of changes that come faster than they can be
printed, the last of each trial is shown.`,
		Example: `  dpareto study watch svt
  dpareto study watch svt --after-revision 120 --output json`,
		Args: command.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.output == output.CSV {
				return command.Usagef("output %s, want %s", a.output, output.Names(output.Text, output.JSON))
			}
			return a.watchStudy(cmd.Context(), studyID(args[0]), after)
		},
	}
	cmd.Flags().Int64Var(&after, "after-revision", 0, "leave out what is not newer than this revision of the study")
	a.addClientFlags(cmd)
	command.OutputFlag(cmd, &a.output)
	return cmd
}

func (a *app) watchStudy(ctx context.Context, id string, after int64) error {
	client, err := a.dial(dpareto.WithRetryNotice(a.notice()))
	if err != nil {
		return err
	}
	defer closeClient(client)
	handle := client.Study(id)
	study, err := handle.Get(ctx)
	if err != nil {
		return err
	}
	spec := study.GetSpec()
	for change, err := range handle.Watch(ctx, after) {
		if err != nil {
			return err
		}
		if changed := change.GetStudy().GetSpec(); changed != nil {
			spec = changed
		}
		if a.output == output.JSON {
			err = view.WriteLine(a.Stdout, change)
		} else {
			_, err = fmt.Fprintln(a.Stdout, view.Change(spec, change))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

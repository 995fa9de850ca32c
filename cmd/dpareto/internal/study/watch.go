package study

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
)

func watchCommand(env *command.Env) *cobra.Command {
	var after int64
	server, out := remote.New(env), command.NewPrinter(env)
	cmd := &cobra.Command{
		Use:   "watch STUDY",
		Short: "Follow the changes of a study",
		Long: `Prints every change of a study and its trials once it is on disk, one line each, until the
study is deleted or the command is interrupted. It begins with what exists: the study, and
its trials in the order of their last changes. JSON has an object per line.

The command survives restarts of the server. When changes come faster than they can be
printed, it shows the last one of each trial.`,
		Example: `  dpareto study watch svt
  dpareto study watch svt --after-revision 120 --output json`,
		Args: command.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out.Format == output.CSV {
				return command.Usagef("output: must be %s, is %s", output.Names(output.Text, output.JSON), out.Format)
			}
			client, err := server.DialPatiently()
			if err != nil {
				return err
			}
			defer remote.Close(client)
			handle := client.Study(remote.StudyID(args[0]))
			study, err := handle.Get(cmd.Context())
			if err != nil {
				return err
			}
			spec := study.GetSpec()
			for change, err := range handle.Watch(cmd.Context(), after) {
				if err != nil {
					return err
				}
				if changed := change.GetStudy().GetSpec(); changed != nil {
					spec = changed
				}
				if out.Format == output.JSON {
					err = view.WriteLine(out, change)
				} else {
					_, err = fmt.Fprintln(out, view.Change(spec, change))
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().Int64Var(&after, "after-revision", 0, "leave out changes up to this revision of the study")
	server.AddFlags(cmd)
	out.AddFlag(cmd)
	return cmd
}

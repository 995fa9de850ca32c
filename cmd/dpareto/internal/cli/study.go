package cli

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
)

func (a *app) studyCommand() *cobra.Command {
	group := command.Group("study", "Create, show, change and delete studies", `A study is one question about a trade-off: parameters, metrics, and all trials that were
spent on it.`)
	group.AddCommand(
		a.studyInitCommand(), a.studyCreateCommand(), a.studyGetCommand(), a.studyListCommand(), a.studyWatchCommand(),
		a.studyUpdateCommand(), a.studyPauseCommand(), a.studyResumeCommand(), a.studyReaccountCommand(), a.studyDeleteCommand(),
	)
	return group
}

func (a *app) studyCreateCommand() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "create FILE",
		Short: "Create a study from a YAML or JSON file",
		Long: `Creates a study from a YAML or JSON file, or from standard input if FILE is "-".

The fields are those of the message dpareto.v1.Study, plus study_id. Values of enums may
be written short: "scale: LOG" for SCALE_LOG. Creating the same study again changes
nothing; the same id with another spec is an error that names the differences.

"dpareto study get ID --output json" prints a study as a file that can be created again
under another id.`,
		Example: `  dpareto study create cmd/dpareto/studies/svt.yaml
  dpareto study get svt --output json | dpareto study create --id svt-again -`,
		Args: command.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.createStudy(cmd.Context(), args[0], id) },
	}
	cmd.Flags().StringVar(&id, "id", "", "id of the study, in place of the file's study_id")
	a.addClientFlags(cmd)
	command.OutputFlag(cmd, &a.output)
	return cmd
}

func (a *app) createStudy(ctx context.Context, path, id string) error {
	file, err := a.readStudy(path)
	if err != nil {
		return err
	}
	if id != "" {
		file.ID = id
	}
	if file.ID == "" {
		return fmt.Errorf("%s: has no study_id; add one, or give --id", sourceName(path))
	}
	return a.session(ctx, func(ctx context.Context, client *dpareto.Client) error {
		study, err := client.CreateStudy(ctx, file.ID, file.Study)
		if err != nil {
			return err
		}
		return a.showStudy(ctx, study)
	})
}

// readStudy reads a study from a file, or from standard input.
func (a *app) readStudy(path string) (*studyfile.File, error) {
	var content []byte
	var err error
	if path == standardInput {
		content, err = io.ReadAll(a.Stdin)
	} else {
		content, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	file, err := studyfile.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sourceName(path), err)
	}
	return file, nil
}

// standardInput stands for it in place of the path of a file.
const standardInput = "-"

// sourceName returns the name of a file for errors.
func sourceName(path string) string {
	if path == standardInput {
		return "standard input"
	}
	return path
}

// showStudy prints a study.
func (a *app) showStudy(ctx context.Context, handle *dpareto.Study) error {
	study, err := handle.Get(ctx)
	if err != nil {
		return err
	}
	return a.print(view.Study(study), study)
}

func (a *app) studyGetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "get STUDY",
		Short:   "Show a study",
		Example: "  dpareto study get svt --output json",
		Args:    command.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
				return a.showStudy(ctx, client.Study(studyID(args[0])))
			})
		},
	}
	a.addClientFlags(cmd)
	command.OutputFlag(cmd, &a.output)
	return cmd
}

func (a *app) studyListCommand() *cobra.Command {
	var query dpareto.Query
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List studies",
		Long: `Lists studies: all of them, or those that a filter in the syntax of AIP-160 lets pass. Fields
are name, uid, display_name, description, labels.KEY, state, algorithm, trainer, create_time,
update_time, revision and trial_counts.STATE.`,
		Example: `  dpareto study list --output csv
  dpareto study list --filter 'state = ACTIVE AND labels.team = "vision"' --order-by 'update_time desc'`,
		Args: command.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
				studies, err := collect(client.FindStudies(ctx, query))
				if err != nil {
					return err
				}
				return printAll(a, view.Studies(studies), studies)
			})
		},
	}
	addQueryFlags(cmd, &query)
	a.addClientFlags(cmd)
	command.OutputFlag(cmd, &a.output)
	return cmd
}

// addQueryFlags adds the flags that restrict and order a list.
func addQueryFlags(cmd *cobra.Command, query *dpareto.Query) {
	cmd.Flags().StringVar(&query.Filter, "filter", "", "condition that all meet, such as 'create_time > \"2026-11-01T00:00:00Z\"'")
	cmd.Flags().StringVar(&query.OrderBy, "order-by", "", "fields that decide the order, such as 'create_time desc'")
}

// collect reads a list to its end.
func collect[T any](list iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for element, err := range list {
		if err != nil {
			return nil, err
		}
		all = append(all, element)
	}
	return all, nil
}

func (a *app) studyDeleteCommand() *cobra.Command {
	return a.studyActionCommand("delete", "deleted", "Delete a study with all its trials", "Deletes a study with all its trials, for good.",
		func(ctx context.Context, study *dpareto.Study) error { return study.Delete(ctx) })
}

func (a *app) studyPauseCommand() *cobra.Command {
	return a.studyActionCommand("pause", "paused", "Stop handing out trials of a study",
		`Has a study hand out no trials until "dpareto study resume". Workers go on with those that
they hold, and then wait.`,
		func(ctx context.Context, study *dpareto.Study) error {
			_, err := study.Pause(ctx)
			return err
		})
}

func (a *app) studyResumeCommand() *cobra.Command {
	return a.studyActionCommand("resume", "resumed", "Hand out trials of a paused study again", "Has a paused study hand out trials again.",
		func(ctx context.Context, study *dpareto.Study) error {
			_, err := study.Resume(ctx)
			return err
		})
}

// studyActionCommand returns a command that does something to a study and then says so.
func (a *app) studyActionCommand(name, done, summary, text string, act func(context.Context, *dpareto.Study) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:     name + " STUDY",
		Short:   summary,
		Long:    text,
		Example: "  dpareto study " + name + " svt",
		Args:    command.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
				study := client.Study(studyID(args[0]))
				if err := act(ctx, study); err != nil {
					return err
				}
				a.Logger.Info(done, "study", study.Name())
				return nil
			})
		},
	}
	a.addClientFlags(cmd)
	return cmd
}

// print prints a message: as a table or as itself.
func (a *app) print(table *output.Table, message proto.Message) error {
	if a.output == output.JSON {
		return view.WriteMessage(a.Stdout, message)
	}
	return a.printTable(table)
}

// printAll prints messages: as a table or as themselves.
func printAll[M proto.Message](a *app, table *output.Table, messages []M) error {
	if a.output == output.JSON {
		return view.WriteMessages(a.Stdout, messages)
	}
	return a.printTable(table)
}

func (a *app) printTable(table *output.Table) error {
	if a.output == output.CSV {
		return table.WriteCSV(a.Stdout)
	}
	return table.WriteText(a.Stdout)
}

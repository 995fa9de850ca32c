package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/output"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

func (a *app) studyCommand() *cobra.Command {
	group := a.group("study", "Create, show and delete studies", `A study is one question about a trade-off: parameters, metrics, and all trials that were
spent on it.`)
	group.AddCommand(a.studyInitCommand(), a.studyCreateCommand(), a.studyGetCommand(), a.studyListCommand(), a.studyDeleteCommand(), a.studyReaccountCommand())
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
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.createStudy(cmd.Context(), args[0], id) },
	}
	cmd.Flags().StringVar(&id, "id", "", "id of the study, in place of the file's study_id")
	a.addClientFlags(cmd)
	a.addOutputFlag(cmd)
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
		content, err = io.ReadAll(a.stdin)
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
	return a.print(output.Study(study), study)
}

func (a *app) studyGetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "get STUDY",
		Short:   "Show a study",
		Example: "  dpareto study get svt --output json",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
				return a.showStudy(ctx, client.Study(output.ID(args[0])))
			})
		},
	}
	a.addClientFlags(cmd)
	a.addOutputFlag(cmd)
	return cmd
}

func (a *app) studyListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List all studies",
		Example: "  dpareto study list --output csv",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
				studies, err := listStudies(ctx, client)
				if err != nil {
					return err
				}
				return printAll(a, output.Studies(studies), studies)
			})
		},
	}
	a.addClientFlags(cmd)
	a.addOutputFlag(cmd)
	return cmd
}

// listStudies reads all pages.
func listStudies(ctx context.Context, client *dpareto.Client) ([]*dparetov1.Study, error) {
	var studies []*dparetov1.Study
	request := new(dparetov1.ListStudiesRequest)
	for {
		resp, err := client.Studies.ListStudies(ctx, request)
		if err != nil {
			return nil, &callError{"list the studies", err}
		}
		studies = append(studies, resp.GetStudies()...)
		if request.PageToken = resp.GetNextPageToken(); request.GetPageToken() == "" {
			return studies, nil
		}
	}
}

func (a *app) studyDeleteCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "delete STUDY",
		Short:   "Delete a study with all its trials",
		Long:    "Deletes a study with all its trials, for good.",
		Example: "  dpareto study delete svt",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
				name := client.Study(output.ID(args[0])).Name()
				if _, err := client.Studies.DeleteStudy(ctx, &dparetov1.DeleteStudyRequest{Name: name}); err != nil {
					return &callError{"delete " + name, err}
				}
				a.logger.Info("deleted", "study", name)
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
		return output.WriteMessage(a.stdout, message)
	}
	return a.printTable(table)
}

// printAll prints messages: as a table or as themselves.
func printAll[M proto.Message](a *app, table *output.Table, messages []M) error {
	if a.output == output.JSON {
		return output.WriteMessages(a.stdout, messages)
	}
	return a.printTable(table)
}

func (a *app) printTable(table *output.Table) error {
	if a.output == output.CSV {
		return table.WriteCSV(a.stdout)
	}
	return table.WriteText(a.stdout)
}

package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

func (a *app) exportCommand() *cobra.Command {
	var ids []string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write studies as JSON lines",
		Long: `Writes studies with all that belongs to them to standard output: one line of JSON for a study,
one for each of its trials, deleted ones included. "dpareto import" creates the studies on
another server, or on another version, without any difference: every study is as it was at
one moment, but not all of them at the same; for that see "dpareto backup".

The lines hold the tokens of leases, with which anybody can report results: keep them from
strangers.`,
		Example: `  dpareto export > studies.jsonl
  dpareto export --study svt --study adult > two.jsonl`,
		Args: command.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
				return a.exportStudies(ctx, client, ids)
			})
		},
	}
	cmd.Flags().StringArrayVar(&ids, "study", nil, "study to export; can be repeated; default all")
	a.addClientFlags(cmd)
	return cmd
}

func (a *app) exportStudies(ctx context.Context, client *dpareto.Client, ids []string) error {
	var names []string
	for _, id := range ids {
		names = append(names, client.Study(studyID(id)).Name())
	}
	if len(ids) == 0 {
		studies, err := collect(client.FindStudies(ctx, dpareto.Query{}))
		if err != nil {
			return err
		}
		for _, study := range studies {
			names = append(names, study.GetName())
		}
	}
	out := bufio.NewWriter(a.Stdout)
	for _, name := range names {
		if err := exportStudy(ctx, client, name, out); err != nil {
			return err
		}
	}
	return out.Flush()
}

// exportStudy writes the lines of one study.
func exportStudy(ctx context.Context, client *dpareto.Client, name string, out *bufio.Writer) error {
	stream, err := client.Admin.ExportStudy(ctx, &dparetov1.ExportStudyRequest{Name: name})
	if err != nil {
		return &callError{"export " + name, err}
	}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &callError{"export " + name, err}
		}
		if err := view.WriteLine(out, resp.GetRecord()); err != nil {
			return err
		}
	}
}

func (a *app) importCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Create studies from JSON lines",
		Long: `Creates the studies of a file that "dpareto export" wrote, or of standard input if FILE is "-".
Every study is created wholly or not at all. One that exists and is equal is passed over, so
that the command can be repeated; one that exists and differs is an error. The first error
ends the command; the studies before it are there.

For trials that other tools have finished see "dpareto trial import".`,
		Example: "  dpareto import studies.jsonl",
		Args:    command.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
				return a.importStudies(ctx, client, args[0])
			})
		},
	}
	a.addClientFlags(cmd)
	return cmd
}

func (a *app) importStudies(ctx context.Context, client *dpareto.Client, path string) (err error) {
	in := a.Stdin
	if path != standardInput {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		in = file
	}
	// Finds out whether there is a server: streams do not try again.
	if _, err := client.Admin.GetServerInfo(ctx, &dparetov1.GetServerInfoRequest{}); err != nil {
		return &callError{importAction, err}
	}
	i := &studyImport{app: a, client: client, source: sourceName(path)}
	lines := bufio.NewReaderSize(in, 1<<20)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		atEnd := err != nil
		if len(bytes.TrimSpace(line)) > 0 {
			if err := i.line(ctx, n, line); err != nil {
				return err
			}
		}
		if atEnd {
			return i.finish()
		}
	}
}

// importAction is what fails when an import does, for errors.
const importAction = "import studies"

// studyImport sends the lines of a file, every study in a stream of its own.
type studyImport struct {
	app    *app
	client *dpareto.Client
	source string
	stream grpc.ClientStreamingClient[dparetov1.ImportStudyRequest, dparetov1.ImportStudyResponse]
	first  int // line of the study
}

// line sends a line.
func (i *studyImport) line(ctx context.Context, n int, line []byte) error {
	record := new(dparetov1.ExportedRecord)
	if err := protojson.Unmarshal(line, record); err != nil {
		return fmt.Errorf("%s:%d: %w", i.source, n, err)
	}
	if record.GetStudy() != nil {
		if err := i.finish(); err != nil {
			return err
		}
		stream, err := i.client.Admin.ImportStudy(ctx)
		if err != nil {
			return &callError{importAction, err}
		}
		i.stream, i.first = stream, n
	}
	if i.stream == nil {
		return fmt.Errorf("%s:%d: a trial comes before its study", i.source, n)
	}
	err := i.stream.Send(&dparetov1.ImportStudyRequest{Record: record})
	if errors.Is(err, io.EOF) { // the server has answered already
		return i.finish()
	}
	if err != nil {
		return &callError{importAction, err}
	}
	return nil
}

// finish waits for the answer to the study under way.
func (i *studyImport) finish() error {
	if i.stream == nil {
		return nil
	}
	resp, err := i.stream.CloseAndRecv()
	i.stream = nil
	if err != nil {
		// The message names the line; the details name the fields only.
		refused := status.Convert(err)
		return &callError{fmt.Sprintf("import the study at line %d of %s", i.first, i.source), status.Error(refused.Code(), refused.Message())}
	}
	if resp.GetExisted() {
		i.app.Logger.Info("exists already", "study", resp.GetStudy().GetName())
		return nil
	}
	i.app.Logger.Info("imported", "study", resp.GetStudy().GetName(), "trials", resp.GetTrials())
	return nil
}

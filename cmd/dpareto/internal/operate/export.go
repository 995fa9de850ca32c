package operate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/text"
)

// ExportCommand returns the command export.
func ExportCommand(env *command.Env) *cobra.Command {
	var ids []string
	cmd := remote.Action(env, &cobra.Command{
		Use:   "export",
		Short: "Write studies as JSON lines",
		Long: `Writes studies with everything that belongs to them to standard output: one line of JSON for
a study, and one for each of its trials, deleted ones included. The command "dpareto import"
creates identical studies on another server, or another version. Every study is written as
it was at one moment, but not all studies at the same one; for that see "dpareto backup".

The lines hold the tokens of leases, with which anyone can report results: keep them secret.`,
		Example: `  dpareto export > studies.jsonl
  dpareto export --study svt --study adult > two.jsonl`,
		Args: command.NoArgs,
	}, func(ctx context.Context, call *remote.Call) error { return exportStudies(ctx, call, ids) })
	cmd.Flags().StringArrayVar(&ids, "study", nil, "study to export; can be repeated; default all")
	return cmd
}

func exportStudies(ctx context.Context, call *remote.Call, ids []string) error {
	var names []string
	for _, id := range ids {
		names = append(names, call.Handle(id).Name())
	}
	if len(ids) == 0 {
		studies, err := remote.Collect(call.FindStudies(ctx, dpareto.Query{}))
		if err != nil {
			return err
		}
		for _, study := range studies {
			names = append(names, study.GetName())
		}
	}
	call.Env.WarnIfReadable("the export", "set umask 077 before, since it holds the tokens of leases")
	out := bufio.NewWriter(call.Env.Stdout)
	for _, name := range names {
		if err := exportStudy(ctx, call.Client, name, out); err != nil {
			return err
		}
	}
	return out.Flush()
}

// exportStudy writes the lines of one study.
func exportStudy(ctx context.Context, client *dpareto.Client, name string, out *bufio.Writer) error {
	stream, err := client.Admin.ExportStudy(ctx, &dparetov1.ExportStudyRequest{Name: name})
	if err != nil {
		return &remote.CallError{Action: "export " + name, Err: err}
	}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &remote.CallError{Action: "export " + name, Err: err}
		}
		if err := writeRecord(out, resp.GetRecord()); err != nil {
			return err
		}
	}
}

// writeRecord writes a record as a line in protobuf's JSON mapping, which keeps every type.
func writeRecord(out *bufio.Writer, record *dparetov1.ExportedRecord) error {
	encoded, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(record)
	if err != nil {
		return err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, encoded); err != nil { // the white space of protojson is random
		return err
	}
	line.WriteByte('\n')
	_, err = line.WriteTo(out)
	return err
}

// ImportCommand returns the command import.
func ImportCommand(env *command.Env) *cobra.Command {
	return remote.Action(env, &cobra.Command{
		Use:   "import FILE",
		Short: "Create studies from JSON lines",
		Long: `Creates the studies of a file that "dpareto export" wrote, or of standard input if FILE is "-".
A study is created completely or not at all. A study that exists and is equal is skipped, so
the command can be repeated; one that exists and differs is an error. The first error ends the
command; the studies before it remain.

For trials that other tools have finished see "dpareto trial import".`,
		Example: "  dpareto import studies.jsonl",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, call *remote.Call) error { return importStudies(ctx, call, call.Args[0]) })
}

func importStudies(ctx context.Context, call *remote.Call, path string) (err error) {
	in, err := call.Env.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if err := probe(ctx, call.Client); err != nil {
		return &remote.CallError{Action: importAction, Err: err}
	}
	i := &studyImport{logger: call.Env.Logger, client: call.Client, source: command.SourceName(path)}
	lines := bufio.NewReaderSize(text.NewReader(in), 1<<20)
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

// probe waits for the server, which calls repeat until it answers and streams do not.
func probe(ctx context.Context, client *dpareto.Client) error {
	_, err := client.Admin.GetServerInfo(ctx, &dparetov1.GetServerInfoRequest{})
	return err
}

// importAction names the import in errors.
const importAction = "import studies"

// studyImport sends the lines of a file, each study in its own stream.
type studyImport struct {
	logger *slog.Logger
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
			return &remote.CallError{Action: importAction, Err: err}
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
		return &remote.CallError{Action: importAction, Err: err}
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
		return &remote.CallError{Action: fmt.Sprintf("import the study at line %d of %s", i.first, i.source), Err: status.Error(refused.Code(), refused.Message())}
	}
	if resp.GetExisted() {
		i.logger.Info("exists already", "study", resp.GetStudy().GetName())
		return nil
	}
	i.logger.Info("imported", "study", resp.GetStudy().GetName(), "trials", resp.GetTrials())
	return nil
}

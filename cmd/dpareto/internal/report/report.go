package report

import (
	"bytes"
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/server/web/report"
)

// Command returns the command report.
func Command(env *command.Env) *cobra.Command {
	var id, out string
	var epsilons []float64
	cmd := remote.Action(env, &cobra.Command{
		Use:   "report STUDY",
		Short: "Write the report of a study as one printable file",
		Long: `Writes the report of a study as one HTML file that can be printed. It has the question, the
front, the configurations recommended at a few ε, the guarantee, the cost of the whole search,
the runs, and the way to repeat it. The file needs no network and has no scripts. The page of
the server shows the same.`,
		Example: "  dpareto report svt --out report.html\n  dpareto report svt --epsilon 1,3 > report.html",
	}, func(ctx context.Context, call *remote.Call) error {
		name := call.Handle(id).Name()
		made, err := report.New(ctx, &report.Clients{
			Studies: call.Studies, Fronts: call.Fronts, Privacy: call.Privacy, Releases: call.Releases, Admin: call.Admin,
		}, name, report.Options{Epsilons: epsilons, Now: time.Now()})
		if _, isCall := status.FromError(err); !isCall {
			return command.Usage(err)
		}
		if err != nil {
			return &remote.CallError{Action: "report on " + name, Err: err}
		}
		if out == "" {
			return made.Write(env.Stdout)
		}
		var content bytes.Buffer
		if err := made.Write(&content); err != nil {
			return err
		}
		if err := os.WriteFile(out, content.Bytes(), 0o666); err != nil { //nolint:gosec // like any file that the user writes; the umask decides
			return err
		}
		env.Logger.Info("wrote the report", "file", out)
		return nil
	})
	flags := cmd.Flags()
	remote.TakeStudy(cmd, &id)
	flags.StringVar(&out, "out", "", "file to write; default: standard output")
	flags.Float64SliceVar(&epsilons, "epsilon", nil, "ε to recommend a configuration for, at most 20; default: 0.5, 1, 2, 4 and 8 as far as the front spans them")
	return cmd
}

package operate

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
)

// HealthCommand returns the command health.
func HealthCommand(env *command.Env) *cobra.Command {
	return remote.Command(env, &cobra.Command{
		Use:   "health",
		Short: "Check that a server is ready",
		Long: `Prints the server's answer to a health check, and fails unless it is SERVING. It needs no
token. deploy/compose uses it as a health check.`,
		Example: "  dpareto health",
		Args:    command.NoArgs,
	}, func(ctx context.Context, call *remote.Call) error {
		resp, err := call.Health.Check(ctx, &healthv1.HealthCheckRequest{})
		if status.Code(err) == codes.Unavailable {
			return &remote.UnreachableError{Address: call.Address, Err: err}
		}
		if err != nil {
			return &remote.CallError{Action: "ask for the health", Err: err}
		}
		if resp.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			return &remote.UnreachableError{Address: call.Address, Err: status.Error(codes.Unavailable, "it is "+resp.GetStatus().String())}
		}
		if call.Out.Format == output.Text { // for probes and people
			_, err = fmt.Fprintln(call.Out, resp.GetStatus())
			return err
		}
		return call.Out.Table(&output.Table{Columns: []string{"server", "status"}, Rows: [][]any{{call.Address, strings.ToLower(resp.GetStatus().String())}}})
	})
}

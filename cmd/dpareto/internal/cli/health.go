package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

func (a *app) healthCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a server whether it serves",
		Long: `Prints the server's answer to a health check, and fails unless it is SERVING. It takes no
token. It is the probe of deploy/kubernetes.`,
		Example: "  dpareto health",
		Args:    command.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
				resp, err := client.Health.Check(ctx, &healthv1.HealthCheckRequest{})
				if status.Code(err) == codes.Unavailable {
					return &unreachableError{a.client.address, err}
				}
				if err != nil {
					return &callError{"ask for the health", err}
				}
				if resp.GetStatus() != healthv1.HealthCheckResponse_SERVING {
					return fmt.Errorf("the server is %s", resp.GetStatus())
				}
				_, err = fmt.Fprintln(a.Stdout, resp.GetStatus())
				return err
			})
		},
	}
	a.addClientFlags(cmd)
	return cmd
}

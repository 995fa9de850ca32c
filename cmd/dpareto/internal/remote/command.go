package remote

import (
	"context"
	"iter"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

// Call is what a command that calls a server works with.
type Call struct {
	*dpareto.Client

	Env     *command.Env
	Address string // of the server
	Args    []string
	Out     *command.Printer
	// Changed reports whether a flag was given.
	Changed func(flag string) bool
}

// NotZero refuses a flag that is given as 0, which would stand for one that is not given.
func (c *Call) NotZero(flag string, value float64) error {
	if c.Changed(flag) && value == 0 {
		return command.Usagef("--%s must be positive, is 0", flag)
	}
	return nil
}

// Handle returns the study that an argument names.
func (c *Call) Handle(study string) *dpareto.Study { return c.Study(StudyID(study)) }

// Command completes a command that calls a server and prints data: it adds the flags of
// both, and runs it with a client.
func Command(env *command.Env, cmd *cobra.Command, run func(context.Context, *Call) error) *cobra.Command {
	out := command.NewPrinter(env)
	action(env, cmd, out, run)
	out.AddFlag(cmd)
	return cmd
}

// Action completes a command that calls a server and prints no data.
func Action(env *command.Env, cmd *cobra.Command, run func(context.Context, *Call) error) *cobra.Command {
	action(env, cmd, nil, run)
	return cmd
}

func action(env *command.Env, cmd *cobra.Command, out *command.Printer, run func(context.Context, *Call) error) {
	server := New(env)
	server.AddFlags(cmd)
	if cmd.Args != nil {
		cmd.Args = command.Args(cmd.Args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return server.Session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
			return run(ctx, &Call{client, env, server.Address(), args, out, cmd.Flags().Changed})
		})
	}
}

// Collect reads a list to its end.
func Collect[T any](list iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for element, err := range list {
		if err != nil {
			return nil, err
		}
		all = append(all, element)
	}
	return all, nil
}

// Pages reads a list to its end, page by page.
func Pages[T any](read func(token string) (page []T, next string, err error)) ([]T, error) {
	var all []T
	for token := ""; ; {
		page, next, err := read(token)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if token = next; token == "" {
			return all, nil
		}
	}
}

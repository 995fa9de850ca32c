package study

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

func pageCommand(env *command.Env) *cobra.Command {
	var open bool
	cmd := remote.Action(env, &cobra.Command{
		Use:   "page STUDY",
		Short: "Print the URL of the page that shows a study live",
		Long: `Prints the URL of a study on the server's page, or opens it in a browser. The address comes
from the server (see http-listen of "dpareto serve").`,
		Example: `  dpareto study page svt
  dpareto study page svt --open`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, call *remote.Call) error {
		study := call.Handle(call.Args[0])
		if _, err := study.Get(ctx); err != nil {
			return err
		}
		url, err := remote.PageURL(ctx, call.Client, study)
		if err != nil {
			return err
		}
		if url == "" {
			return fmt.Errorf("the server at %s has no page that this machine can reach; see http-listen in dpareto serve --help", call.Address)
		}
		if _, err := fmt.Fprintln(env.Stdout, url); err != nil || !open {
			return err
		}
		return openBrowser(ctx, url)
	})
	cmd.Flags().BoolVar(&open, "open", false, "also open the URL in a browser")
	return cmd
}

// openBrowser opens a URL in the user's browser.
func openBrowser(ctx context.Context, url string) error {
	program := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		program = []string{"open"}
	case "windows":
		program = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	if err := exec.CommandContext(ctx, program[0], append(program[1:], url)...).Run(); err != nil { //nolint:gosec // the server's own URL, as one argument
		return fmt.Errorf("open a browser with %s: %w", program[0], err)
	}
	return nil
}

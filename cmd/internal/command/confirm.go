package command

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// YesFlag adds the flag of commands that cannot be undone, which ask on a terminal.
func YesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask; required where there is no terminal")
}

// Confirm asks for the name of what is about to be lost. Without a terminal it refuses: --yes is then
// required, and Confirm not called.
func (e *Env) Confirm(ctx context.Context, what, name string) error {
	if !e.Interactive {
		return Usagef("--yes: required to delete %s, since there is no terminal to ask on", what)
	}
	e.Sayf("Type %s to delete %s: ", name, what)
	answer := make(chan string, 1)
	go func() { // a read cannot be interrupted
		line, _ := bufio.NewReader(e.Stdin).ReadString('\n') // an end of the input is no answer
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case line := <-answer:
		if line != name {
			return Usagef("nothing was deleted: the answer was %q, not %q", line, name)
		}
		return nil
	}
}

// isTerminal reports whether a user types what is read.
func isTerminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

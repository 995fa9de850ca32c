package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Exit codes.
const (
	ExitOK          = 0
	ExitFailure     = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitRefused     = 4
	ExitUnavailable = 5
	ExitDenied      = 6
	ExitInterrupted = 130 // as shells report a program that an interrupt ended
)

// exits are all exit codes: what they say, and the codes of a server's answers that they stand for.
var exits = []struct {
	code    int
	meaning string
	answers []codes.Code
}{
	{ExitOK, "done", nil},
	{ExitFailure, "failed for another reason; see the message", nil},
	{ExitUsage, "the arguments, or a study file or request that they describe, are not valid", []codes.Code{codes.InvalidArgument, codes.OutOfRange}},
	{ExitNotFound, "the study, trial, ledger or release does not exist", []codes.Code{codes.NotFound}},
	{ExitRefused, "the state of the server does not allow it: it exists already, is paused or complete, or a limit is reached", []codes.Code{codes.AlreadyExists, codes.FailedPrecondition, codes.Aborted, codes.ResourceExhausted}},
	{ExitUnavailable, "no server answers, or not in time: try again later", []codes.Code{codes.Unavailable, codes.DeadlineExceeded}},
	{ExitDenied, "the server wants a token or a certificate, or another one", []codes.Code{codes.Unauthenticated, codes.PermissionDenied}},
	{ExitInterrupted, "interrupted (Ctrl-C)", []codes.Code{codes.Canceled}},
}

// ExitCode returns the exit code of a command that ended with err.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return ExitOK
	case IsUsage(err):
		return ExitUsage
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	}
	answer := status.Code(err)
	for _, exit := range exits {
		if slices.Contains(exit.answers, answer) {
			return exit.code
		}
	}
	return ExitFailure
}

// ExitCodesTopic returns the page of the help that lists the exit codes.
func ExitCodesTopic() *cobra.Command {
	var text strings.Builder
	text.WriteString("The exit code tells a script how a command ended. The message is on standard error, in one line.\n\n")
	for _, exit := range exits {
		names := make([]string, len(exit.answers))
		for i, answer := range exit.answers {
			names[i] = answer.String()
		}
		answers := ""
		if len(names) > 0 {
			answers = " (" + strings.Join(names, ", ") + ")"
		}
		fmt.Fprintf(&text, "  %3d  %s%s\n", exit.code, exit.meaning, answers)
	}
	return &cobra.Command{Use: "exit-codes", Short: "Meaning of the exit codes", Long: strings.TrimSpace(text.String())}
}

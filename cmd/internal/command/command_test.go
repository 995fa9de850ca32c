package command_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/cmd/internal/command"
)

func TestExitCode(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, command.ExitOK},
		{errors.New("broken"), command.ExitFailure},
		{command.Usage(errors.New("wrong flag")), command.ExitUsage},
		{fmt.Errorf("read: %w", context.Canceled), command.ExitInterrupted},
		{context.DeadlineExceeded, command.ExitFailure},
		{fmt.Errorf("get: %w", status.Error(codes.NotFound, "gone")), command.ExitNotFound},
		{status.Error(codes.InvalidArgument, ""), command.ExitUsage},
		{status.Error(codes.AlreadyExists, ""), command.ExitRefused},
		{status.Error(codes.FailedPrecondition, ""), command.ExitRefused},
		{status.Error(codes.ResourceExhausted, ""), command.ExitRefused},
		{status.Error(codes.Unavailable, ""), command.ExitUnavailable},
		{status.Error(codes.DeadlineExceeded, ""), command.ExitUnavailable},
		{status.Error(codes.Unauthenticated, ""), command.ExitDenied},
		{status.Error(codes.PermissionDenied, ""), command.ExitDenied},
		{status.Error(codes.Canceled, ""), command.ExitInterrupted},
		{status.Error(codes.DataLoss, ""), command.ExitFailure},
	} {
		if got := command.ExitCode(tt.err); got != tt.want {
			t.Errorf("exit code of %v is %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestOneLine(t *testing.T) {
	if got := command.OneLine(errors.New("two\nlines  here")); got != "two lines here" {
		t.Errorf("one line: %q", got)
	}
}

// A version is a semantic version, with or without the commit.
func TestVersion(t *testing.T) {
	pattern := regexp.MustCompile(`^\d+\.\d+\.\d+(\+[0-9a-f]{7,40}(\.dirty)?)?$`)
	if got := command.Version(); !pattern.MatchString(got) {
		t.Errorf("version %q", got)
	}
}

package cli

import (
	"context"
	"errors"

	"github.com/dpareto/dpareto/cmd/internal/command"
)

// storeFlag is the flag of a file that keeps what an experiment has run.
const storeFlag = "--store"

// kept says what a command has kept when it is interrupted.
type kept struct {
	flag    string // that names the place where it keeps what is done; empty if there is none
	path    string // its value, empty if it was not given
	example string // a value for it
}

// interrupted returns the error of a command. If ctx ended the command, it says on standard error how to go on, and
// the program exits as interrupted.
func interrupted(ctx context.Context, env *command.Env, err error, k kept) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	switch {
	case k.flag == "":
		env.Sayf("interrupted; no table is printed, and nothing was kept for the next time. This begins again:\n  %s\n", env.CommandLine())
	case k.path == "":
		env.Sayf("interrupted; no table is printed, and nothing was kept, since no %s was given. This can be interrupted, and given again to go on:\n  %s\n",
			k.flag, env.CommandLine(k.flag, k.example))
	default:
		env.Sayf("interrupted; no table is printed. %s keeps what is done, and this goes on:\n  %s\n", k.path, env.CommandLine())
	}
	return errors.Join(ctx.Err(), err)
}

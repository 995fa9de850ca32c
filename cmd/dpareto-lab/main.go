// Command dpareto-lab measures dpareto and recomputes the experiments of papers: it
// compares designers on test problems, puts a server under load, and draws the figures
// that the documentation quotes. "dpareto-lab help" explains it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/cli"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(command.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, cli.New))
}

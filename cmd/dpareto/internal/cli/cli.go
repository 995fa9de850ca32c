package cli

import (
	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
)

// DefaultAddress is where a server listens and where clients look for one.
const DefaultAddress = "127.0.0.1:8321"

// app is what the subcommands share.
type app struct {
	*command.Env

	client clientFlags
	output output.Format
}

// New returns the root command of dpareto.
func New(env *command.Env) *cobra.Command {
	a := &app{Env: env}
	return command.Group("dpareto", "Find the privacy-utility Pareto front of private training",
		`dpareto finds the privacy-utility Pareto front of differentially private training
with few training runs. A server keeps studies and suggests configurations, agents
train them and report, and the front shows which ε and which error go together.

Try it:

    dpareto demo

Or run a study of your own:

    dpareto serve                      # in one terminal
    dpareto study create study.yaml    # in another
    dpareto agent --study my-study
    dpareto front my-study --plot front.svg`,
		a.serveCommand(), a.agentCommand(), a.studyCommand(), a.trialCommand(), a.frontCommand(), a.recommendCommand(),
		a.privacyCommand(), a.estimateCommand(), a.ledgerCommand(), a.releaseCommand(), a.dataCommand(), a.demoCommand(),
		a.tokenCommand(), a.healthCommand(),
		a.backupCommand(), a.restoreCommand(), a.exportCommand(), a.importCommand(), a.checkCommand(), a.compactCommand(),
	)
}

// addClientFlags adds the flags of commands that call a server.
func (a *app) addClientFlags(cmd *cobra.Command) {
	a.client.add(cmd.Flags())
}

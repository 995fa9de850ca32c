package cli

import (
	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/agent"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/data"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/demo"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/estimate"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/front"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/operate"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/privacy"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/publish"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/serve"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/study"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/trial"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

// New returns the root command of dpareto.
func New(env *command.Env) *cobra.Command {
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
		serve.Command(env), agent.Command(env), demo.Command(env),
		study.Command(env), trial.Command(env), front.Command(env), front.RecommendCommand(env),
		privacy.Command(env), estimate.Command(env), publish.LedgerCommand(env), publish.ReleaseCommand(env), data.Command(env),
		operate.TokenCommand(env), operate.HealthCommand(env), operate.BackupCommand(env), operate.RestoreCommand(env),
		operate.ExportCommand(env), operate.ImportCommand(env), operate.CheckCommand(env), operate.CompactCommand(env),
	)
}

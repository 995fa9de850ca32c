package cli

import (
	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/agent"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/analyze"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/data"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/demo"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/estimate"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/fit"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/front"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/operate"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/papers"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/privacy"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/publish"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/report"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/serve"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/statement"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/study"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/trial"
	"github.com/dpareto/dpareto/cmd/internal/command"
)

// New returns the root command of dpareto, whose commands are in groups.
func New(env *command.Env) *cobra.Command {
	root := command.Group("dpareto", "Find the privacy-utility Pareto front of private training",
		`dpareto finds the privacy-utility Pareto front of differentially private training
with few training runs. A server keeps studies and suggests configurations, agents
train them and report, and the front shows the error that each ε allows.

Try it:

    dpareto demo

Or run your own study:

    dpareto serve                      # in one terminal
    dpareto study create study.yaml    # in another
    dpareto agent --study my-study
    dpareto front my-study --plot front.svg`)
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Studies", []*cobra.Command{demo.Command(env), study.Command(env, analyze.Command(env)), trial.Command(env), agent.Command(env)}},
		{"Results", []*cobra.Command{front.Command(env), front.RecommendCommand(env), fit.TrainCommand(env), fit.PredictCommand(env), report.Command(env), statement.Command(env)}},
		{"Privacy", []*cobra.Command{privacy.Command(env, papers.ProposeTestCommand(env), papers.BayesianOptimizationCommand(env)), estimate.Command(env)}},
		{"Publishing", []*cobra.Command{publish.ReleaseCommand(env), publish.LedgerCommand(env)}},
		{"Data", []*cobra.Command{data.Command(env)}},
		{"Server", []*cobra.Command{
			serve.Command(env), operate.HealthCommand(env), remote.ContextCommand(env), operate.TokenCommand(env),
			operate.BackupCommand(env), operate.RestoreCommand(env), operate.CheckCommand(env), operate.CompactCommand(env),
			operate.StoreCommand(env),
			operate.ExportCommand(env), operate.ImportCommand(env),
		}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, cmd := range g.commands {
			cmd.GroupID = g.title
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(command.ExitCodesTopic(), remote.ConnectionTopic())
	addCompletion(root, env)
	return root
}

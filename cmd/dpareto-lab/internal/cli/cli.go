package cli

import (
	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/internal/command"
)

// New returns the root command of dpareto-lab.
func New(env *command.Env) *cobra.Command {
	return command.Group("dpareto-lab", "Measure dpareto, and recompute the experiments of papers",
		`dpareto-lab is the laboratory of dpareto: it compares designers, measures the server, and
recomputes the experiments of papers. The documentation quotes its output. Running studies
takes only the program dpareto.`,
		command.Group("bench", "Measure the engine and the server",
			`Measures the engine and the server.`,
			engineCommand(env), dpCommand(env), dpTableCommand(env), publicCommand(env), accountantsCommand(env), samplersCommand(env), trainerCommand(env), honestyCommand(env), serverCommand(env), hostCommand(env)),
		command.Group("reproduce", "Recompute the tables and figures of papers",
			`Recomputes tables and figures of published papers: with their mistakes corrected, beside
what they print. Results are functions of the flags and of --seed.`,
			dparetoCommand(env), fastEstimationCommand(env), proposeTestCommand(env), bayesianOptimizationCommand(env), privateFrontCommand(env)),
	)
}

package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/console"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/output"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130 // as shells report a program that an interrupt ended
)

// DefaultAddress is where a server listens and where clients look for one.
const DefaultAddress = "127.0.0.1:8321"

// Main runs the command with the given arguments, without the program's name, until it
// is done or ctx is, and returns the exit code.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, console: console.New(stderr)}
	root := a.root() //nolint:contextcheck // commands get ctx when they run
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(a.console)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	code := exitCode(err)
	if code != exitInterrupted {
		a.sayf("dpareto: %s\n", explain(err))
	}
	return code
}

// app is what the subcommands share.
type app struct {
	stdin   io.Reader
	stdout  io.Writer
	console *console.Console // on standard error
	logger  *slog.Logger

	logLevel  slog.Level
	logFormat string
	client    clientFlags
	output    output.Format
}

// sayf tells something to people, beside the data.
func (a *app) sayf(format string, args ...any) {
	_, _ = fmt.Fprintf(a.console, format, args...) // a failure could not be told either
}

// root returns the whole command.
func (a *app) root() *cobra.Command {
	root := a.group("dpareto", "Find the privacy-utility Pareto front of private training",
		`dpareto finds the privacy-utility Pareto front of differentially private training
with few training runs. A server keeps studies and suggests configurations, agents
train them and report, and the front shows which ε and which error go together.

Try it:

    dpareto demo

Or run a study of your own:

    dpareto serve                      # in one terminal
    dpareto study create study.yaml    # in another
    dpareto agent --study my-study
    dpareto front my-study --plot front.svg`)
	root.Version = version()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := readEnvironment(cmd.Flags()); err != nil {
			return err
		}
		return a.openLog()
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.PersistentFlags().TextVar(&a.logLevel, "log-level", slog.LevelInfo, "least level of the log: debug, info, warn or error")
	fromEnvironment(root.PersistentFlags(), "log-level")
	root.PersistentFlags().StringVar(&a.logFormat, "log-format", logText, "form of the log: "+logText+" or "+logJSON)
	fromEnvironment(root.PersistentFlags(), "log-format")
	root.AddCommand(
		a.serveCommand(), a.agentCommand(), a.studyCommand(), a.trialCommand(), a.frontCommand(), a.recommendCommand(),
		a.privacyCommand(), a.estimateCommand(), a.ledgerCommand(), a.releaseCommand(), a.dataCommand(), a.demoCommand(), a.benchCommand(), a.reproduceCommand(),
		a.tokenCommand(), a.healthCommand(), a.versionCommand(),
		a.backupCommand(), a.restoreCommand(), a.exportCommand(), a.importCommand(), a.checkCommand(), a.compactCommand(),
	)
	return root
}

// group returns a command that only has subcommands.
func (a *app) group(name, summary, text string) *cobra.Command {
	return &cobra.Command{
		Use:   name,
		Short: summary,
		Long:  text,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("unknown command %q for %q; see %s --help", args[0], cmd.CommandPath(), cmd.CommandPath())}
			}
			return cmd.Help()
		},
	}
}

// args makes the errors of a check of arguments usage errors.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &usageError{fmt.Errorf("%w; usage: %s", err, cmd.UseLine())}
		}
		return nil
	}
}

// addClientFlags adds the flags of commands that call a server.
func (a *app) addClientFlags(cmd *cobra.Command) {
	a.client.add(cmd.Flags())
}

// addOutputFlag adds the flag of commands that print data.
func (a *app) addOutputFlag(cmd *cobra.Command) {
	a.output = output.Text
	cmd.Flags().VarP(&a.output, "output", "o", "form of the data on standard output: "+output.Names(output.Text, output.JSON, output.CSV))
	fromEnvironment(cmd.Flags(), "output")
}

// environmentKey marks flags that are read from the environment.
const environmentKey = "dpareto_environment"

// fromEnvironment has a flag take its value from the environment where it is not given:
// --data-dir from DPARETO_DATA_DIR.
func fromEnvironment(flags *pflag.FlagSet, name string) {
	flag := flags.Lookup(name)
	variable := "DPARETO_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	flag.Usage += " (env " + variable + ")"
	flag.Annotations = map[string][]string{environmentKey: {variable}}
}

// readEnvironment sets the flags that the environment sets and the arguments do not.
func readEnvironment(flags *pflag.FlagSet) error {
	var failed error
	flags.VisitAll(func(flag *pflag.Flag) {
		variable := flag.Annotations[environmentKey]
		if len(variable) == 0 || flag.Changed || failed != nil {
			return
		}
		if value := os.Getenv(variable[0]); value != "" {
			if err := flags.Set(flag.Name, value); err != nil {
				failed = &usageError{fmt.Errorf("environment variable %s: %w", variable[0], err)}
			}
		}
	})
	return failed
}

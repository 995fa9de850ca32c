package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dpareto/dpareto/cmd/internal/console"
)

// Env is what the commands of a program share.
type Env struct {
	Stdin   io.Reader
	Stdout  io.Writer
	Console *console.Console // on standard error
	Logger  *slog.Logger     // set before a command runs
	// Interactive reports whether a user at a terminal can be asked.
	Interactive bool

	line      []string // of Main: the program's name and the arguments
	logLevel  slog.Level
	logFormat string
}

// Sayf prints a message to standard error.
func (e *Env) Sayf(format string, args ...any) {
	_, _ = fmt.Fprintf(e.Console, format, args...) // there is no other place to report a failure
}

// Main runs a program with the given arguments, without its name, until it is done or ctx
// is, and returns the exit code. newRoot returns the program's root command.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, newRoot func(*Env) *cobra.Command) int {
	env := &Env{Stdin: stdin, Stdout: stdout, Console: console.New(stderr)}
	env.Interactive = isTerminal(stdin) && env.Console.IsTerminal()
	root := Root(env, newRoot)
	env.line = append([]string{root.Name()}, args...)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	code := ExitCode(err)
	if code != ExitOK && code != ExitInterrupted {
		env.Sayf("%s: %s\n", root.Name(), OneLine(err))
	}
	return code
}

// CommandLine returns the command that Main was given, with more arguments, as a shell reads it.
func (e *Env) CommandLine(more ...string) string {
	words := slices.Concat(e.line, more)
	for i, word := range words {
		if !plainWord.MatchString(word) {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// plainWord matches what a shell takes as it is.
var plainWord = regexp.MustCompile(`^[\pL\pN_@%+=:,./-]+$`)

// Root returns the root command of a program, with what every program has: streams, the
// flags of the log, and values of flags from the environment.
func Root(e *Env, newRoot func(*Env) *cobra.Command) *cobra.Command {
	root := newRoot(e)
	root.SetIn(e.Stdin)
	root.SetOut(e.Stdout)
	root.SetErr(e.Console)
	root.Version = Version()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := ReadEnvironment(cmd.Flags()); err != nil {
			return err
		}
		return e.OpenLog()
	}
	root.SetFlagErrorFunc(flagError)
	e.addLogFlags(root.PersistentFlags())
	root.AddCommand(versionCommand(e, root.Name()))
	fitHelp(root, e.HelpWidth())
	return root
}

// Group returns a command that only has subcommands.
func Group(name, summary, text string, subcommands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:                        name,
		Short:                      summary,
		Long:                       text,
		Args:                       cobra.ArbitraryArgs,
		ValidArgsFunction:          cobra.NoFileCompletions,
		SuggestionsMinimumDistance: suggestionDistance,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return Usagef("unknown command %q for %q%s; see %s --help", args[0], cmd.CommandPath(),
					didYouMean("", suggestions(cmd, args[0])), cmd.CommandPath())
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(subcommands...)
	return cmd
}

// suggestions returns subcommands of a command that are like a name, and otherwise commands anywhere with
// just that name.
func suggestions(cmd *cobra.Command, name string) []string {
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return near
	}
	var paths []string
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Name() == name && c.Runnable() && !c.Hidden {
			paths = append(paths, c.CommandPath())
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(cmd.Root())
	return paths
}

// NoArgs refuses arguments, and says which flag takes the name of a store.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	for _, name := range []string{"store", "from", "to", "study"} {
		if flag := cmd.Flags().Lookup(name); flag != nil {
			return fmt.Errorf("unknown command or argument %q for %q; did you mean --%s %s?", args[0], cmd.CommandPath(), name, args[0])
		}
	}
	return fmt.Errorf("unknown command or argument %q for %q", args[0], cmd.CommandPath())
}

// suggestionDistance is the number of edits within which an unknown word is taken for a known one.
const suggestionDistance = 2

// didYouMean proposes names, each with a prefix, in the words of an error.
func didYouMean(prefix string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + prefix + strings.Join(names, " or "+prefix) + "?"
}

// flagError is the usage error of flags that could not be read. An unknown flag comes with the known
// ones that are like it: cobra compares the names of commands, so the flags are made such.
func flagError(cmd *cobra.Command, err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return Usagef("--%s: %w", bad.GetFlag().Name, badValue(bad.GetFlag().Value.Type(), bad.GetValue(), bad.Unwrap()))
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return Usage(err)
	}
	known := &cobra.Command{SuggestionsMinimumDistance: suggestionDistance}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		known.AddCommand(&cobra.Command{Use: flag.Name, Hidden: flag.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	return Usagef("%w%s", err, didYouMean("--", known.SuggestionsFor(unknown.GetSpecifiedName())))
}

// badValue is what is wrong with the value of a flag of a type, in place of the words of Go's parsers.
func badValue(kind, value string, err error) error {
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("is out of range: %s", value)
	}
	const whole = "a whole number"
	takes := map[string]string{
		"bool": "true or false", "float64": "a number", "float64Slice": "numbers with commas between them",
		"int": whole, "int32": whole, "int64": whole,
		"intSlice": "whole numbers with commas between them", "int64Slice": "whole numbers with commas between them",
		"uint": whole + " of at least 0", "uint64": whole + " of at least 0",
		"duration": "a duration, such as 90s or 1h30m", "stringToString": "NAME=VALUE",
		"": "debug, info, warn or error", // of the log, the only flag of pflag.TextVar
	}
	if what, ok := takes[kind]; ok {
		return fmt.Errorf("must be %s, is %q", what, value)
	}
	return fmt.Errorf("%w, is %q", err, value)
}

// Args makes the errors of a check of arguments usage errors.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return Usagef("%w; usage: %s", err, cmd.UseLine())
		}
		return nil
	}
}

// usageError is a mistake in the arguments.
type usageError struct{ err error }

// Error implements error.
func (e *usageError) Error() string { return e.err.Error() }

// Unwrap returns the mistake.
func (e *usageError) Unwrap() error { return e.err }

// Usage marks an error as a mistake in the arguments: the program exits with [ExitUsage].
// It returns nil for nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &usageError{err}
}

// Usagef returns a mistake in the arguments, formatted as by fmt.Errorf.
func Usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// IsUsage reports whether an error is a mistake in the arguments.
func IsUsage(err error) bool {
	_, ok := errors.AsType[*usageError](err)
	return ok
}

// OneLine returns the message of an error on one line.
func OneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}

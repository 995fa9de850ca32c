package command_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dpareto/dpareto/cmd/internal/command"
)

// run runs a program with commands of the same names under two parents.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, log bytes.Buffer
	code = command.Main(t.Context(), args, strings.NewReader(""), &out, &log, func(*command.Env) *cobra.Command {
		nothing := func(*cobra.Command, []string) error { return nil }
		leaf := func(name, long string) *cobra.Command {
			return &cobra.Command{Use: name, Short: name, Long: long, Args: command.Args(command.NoArgs), RunE: nothing}
		}
		long := strings.Repeat("A paragraph is filled ", 10) + "up\nto its end.\n\n  - " + strings.Repeat("an item ", 20) + "\n\n    code stays  as it is" +
			"\n\n  an entry  " + strings.Repeat("is explained ", 6) + "and\n            continued"
		check := leaf("check", long)
		check.Example = "  dpareto check --store a-file-with-a-long-name.db --epsilon 0.25 --trials 16 --after 1h30m --max error=0.25" +
			"\n  dpareto check --store another-file-with-a-long-name.db --epsilon 0.25 --trials 16 \\\n      --after 1h30m --max error=0.25"
		check.Flags().String("store", "", strings.Repeat("a file that is explained at length ", 4))
		check.Flags().Float64("epsilon", 0, "a number")
		check.Flags().Int("trials", 0, "a whole number")
		check.Flags().Bool("all", false, "all")
		check.Flags().Duration("after", 0, "a time")
		check.Flags().StringToString("max", nil, "bounds")
		connection := pflag.NewFlagSet("", pflag.ContinueOnError)
		connection.String("address", "", "where the server is")
		command.InTopic("connection", "--address", connection)
		check.Flags().AddFlagSet(connection)
		return command.Group("program", "A program", "A program.", check,
			command.Group("study", "Studies", "", leaf("create", ""), leaf("list", "")), command.Group("trial", "Trials", "", leaf("create", "")))
	})
	return out.String(), log.String(), code
}

func TestHelpFitsIntoTheWidth(t *testing.T) {
	help, _, _ := run(t, "check", "--help")
	for line := range strings.Lines(help) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("more than 80 characters: %s", line)
		}
	}
	for _, want := range []string{"up to its end.", "\n  - an item", "\n    an item", "\n    code stays  as it is", "\n            explained and continued\n",
		"--trials 16 \\\n      --after 1h30m --max error=0.25\n", "--epsilon 0.25 \\\n      --trials 16 --after 1h30m --max error=0.25\n", `Flags of the connection, such as --address: see "program help connection".`} {
		if !strings.Contains(help, want) {
			t.Errorf("%q is missing in\n%s", want, help)
		}
	}
	if strings.Contains(help, "--address string") {
		t.Errorf("a flag of a topic is listed:\n%s", help)
	}
}

// What is mistyped is told in our own words, with what may have been meant.
func TestMistyped(t *testing.T) {
	for line, want := range map[string]string{
		"check studies.db":      `unknown command or argument "studies.db" for "program check"; did you mean --store studies.db?`,
		"list":                  `did you mean program study list?`,
		"create":                `did you mean program study create or program trial create?`,
		"chekc":                 `did you mean check?`,
		"check --stroe x":       `did you mean --store?`,
		"check --addresx x":     `did you mean --address?`,
		"check --epsilon x":     `--epsilon: must be a number, is "x"`,
		"check --epsilon 1e999": `--epsilon: is out of range: 1e999`,
		"check --trials 1.5":    `--trials: must be a whole number, is "1.5"`,
		"check --all=perhaps":   `--all: must be true or false, is "perhaps"`,
		"check --after 3":       `--after: must be a duration, such as 90s or 1h30m, is "3"`,
		"check --max x":         `--max: must be NAME=VALUE, is "x"`,
		"check --log-level x":   `--log-level: must be debug, info, warn or error, is "x"`,
	} {
		_, stderr, code := run(t, strings.Fields(line)...)
		if code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %s want %s", line, code, stderr, want)
		}
	}
	t.Setenv("DPARETO_LOG_LEVEL", "loud")
	if _, stderr, _ := run(t, "check"); !strings.Contains(stderr, `environment variable DPARETO_LOG_LEVEL: must be debug, info, warn or error, is "loud"`) {
		t.Error(stderr)
	}
}

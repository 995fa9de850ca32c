package cli_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/cli"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
)

// leaves calls a function with every command that does something, and its path without the program's.
func leaves(cmd *cobra.Command, visit func(path string, cmd *cobra.Command)) {
	for _, sub := range cmd.Commands() {
		leaves(sub, visit)
	}
	if _, path, ok := strings.Cut(cmd.CommandPath(), " "); ok && cmd.Runnable() && !cmd.HasSubCommands() {
		visit(path, cmd)
	}
}

// Every command that prints data prints them in every format.
func TestOutputFlags(t *testing.T) {
	without := map[string]string{ // and why
		"agent": "logs", "backup": "logs", "compact": "logs", "import": "logs", "restore": "logs", "store copy": "logs", "trial import": "logs",
		"study delete": "logs", "study pause": "logs", "study resume": "logs", "token revoke": "logs", "trial delete": "logs", "trial stop": "logs",
		"context add": "logs", "context use": "logs", "context remove": "logs",
		"export":       "JSON lines for import alone",
		"serve":        "the address it listens at",
		"data example": "a CSV file",
		"data schema":  "a schema file",
		"predict":      "CSV for other programs",
		"study init":   "a study file",
		"study page":   "the URL alone",
		"report":       "an HTML file",
		"token create": "the token alone",
		"train":        "the folder of the model",
	}
	leaves(root(), func(path string, cmd *cobra.Command) {
		_, isListed := without[path]
		if has := cmd.Flags().Lookup("output") != nil; has == isListed {
			t.Errorf("%s: has --output: %v, is listed as a command without: %v", path, has, isListed)
		}
		delete(without, path)
	})
	if len(without) > 0 {
		t.Errorf("these commands do not exist: %v", without)
	}
}

// What is wrong with the value of a flag is told with the flag and the value, without the words of Go's parsers.
func TestValuesOfFlags(t *testing.T) {
	refused := 0
	leaves(root(), func(path string, cmd *cobra.Command) {
		var names []string
		cmd.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
		for _, name := range names {
			for _, value := range []string{"?x", "1e999", "99999999999999999999"} {
				err := cmd.ParseFlags([]string{"--" + name + "=" + value})
				if err == nil {
					continue
				}
				refused++
				said := cmd.FlagErrorFunc()(cmd, err).Error()
				if !strings.HasPrefix(said, "--"+name+": ") || !strings.Contains(said, value) {
					t.Errorf("dpareto %s --%s=%s: %q", path, name, value, said)
				}
				for _, internal := range []string{"strconv", "parsing", "invalid syntax", "invalid argument", "time: invalid", "slog"} {
					if strings.Contains(said, internal) {
						t.Errorf("dpareto %s --%s=%s: %q", path, name, value, said)
					}
				}
			}
		}
	})
	if refused < 100 {
		t.Errorf("%d values were refused", refused)
	}
}

// All help fits into 80 columns, except for words that are longer.
func TestHelpFits(t *testing.T) {
	leaves(root(), func(path string, _ *cobra.Command) {
		for line := range strings.Lines(clitest.Succeed(t, path+" --help")) {
			if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > 80 && len(strings.Fields(strings.TrimSuffix(line, ` \`))) > 2 {
				t.Errorf("dpareto %s --help: %s", path, line)
			}
		}
	})
}

// A shell reads every example of the help as it is printed: what continues a command follows a backslash.
func TestExamplesCanBeCopied(t *testing.T) {
	continued := 0
	leaves(root(), func(path string, _ *cobra.Command) {
		_, examples, _ := strings.Cut(clitest.Succeed(t, path+" --help"), "\nExamples:\n")
		examples, _, _ = strings.Cut(examples, "\n\n")
		open := false
		for line := range strings.SplitSeq(examples, "\n") {
			if indented := strings.HasPrefix(line, "    "); indented != open {
				t.Errorf("dpareto %s --help: %q continues a command: %v, after a backslash: %v", path, line, indented, open)
			}
			if open = strings.HasSuffix(line, ` \`); open {
				continued++
			}
		}
	})
	if continued < 20 {
		t.Errorf("%d lines are continued", continued)
	}
}

// The help has the commands in groups, and every command of dpareto's own is in one.
func TestGroups(t *testing.T) {
	program := root()
	for _, cmd := range program.Commands() {
		if cmd.GroupID == "" && cmd.Runnable() && cmd.Name() != "version" {
			t.Errorf("%s is in no group", cmd.Name())
		}
	}
	help := clitest.Succeed(t, "--help")
	at := -1
	for _, group := range []string{"Studies:\n", "Results:\n", "Privacy:\n", "Publishing:\n", "Data:\n", "Server:\n"} {
		next := strings.Index(help, group)
		if next <= at {
			t.Errorf("the group %q is missing or misplaced:\n%s", group, help)
		}
		at = next
	}
}

// The page of the help and docs/reference/command-line.md have the same exit codes.
func TestExitCodesAreDocumented(t *testing.T) {
	docs := strings.Join(strings.Fields(clitest.Document(t, "docs/reference/command-line.md")), " ")
	rows := 0
	for line := range strings.Lines(clitest.Succeed(t, "help exit-codes")) {
		code, meaning, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			continue
		}
		rows++
		meaning, _, _ = strings.Cut(meaning, " (")
		if row := "| " + code + " | " + meaning; !strings.Contains(docs, row) {
			t.Errorf("docs/reference/command-line.md lacks the row %q", row)
		}
	}
	if rows != 8 {
		t.Errorf("%d exit codes", rows)
	}
}

// Every command, flag and environment variable of docs/reference/command-line.md exists.
func TestCommandLineNamesWhatExists(t *testing.T) {
	checkDocument(t, "reference/command-line.md", 7)
}

// completions returns what the shell would propose for the last argument.
func completions(t *testing.T, args ...string) []string {
	t.Helper()
	stdout, _ := clitest.Must(t, "", append([]string{cobra.ShellCompRequestCmd}, args...)...)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	for i := range lines {
		lines[i], _, _ = strings.Cut(lines[i], "\t")
	}
	return lines[:len(lines)-1] // without the directive
}

// waitToComplete sets how long completion waits for a server in a test.
func waitToComplete(t *testing.T, patience time.Duration) {
	t.Helper()
	before := *cli.CompletionPatience
	t.Cleanup(func() { *cli.CompletionPatience = before })
	*cli.CompletionPatience = patience
}

func TestCompletion(t *testing.T) {
	isolateContexts(t)
	waitToComplete(t, time.Hour)
	address, _ := clitest.StartServer(t, "--listen", "127.0.0.1:0")
	t.Setenv("DPARETO_SERVER", address)
	clitest.Must(t, clitest.SmallStudy, "study", "create", "-")
	clitest.Must(t, clitest.SmallStudy, "study", "create", "-", "--id", "other")
	clitest.Succeed(t, "trial suggest small --worker-id w --count 2")
	clitest.Succeed(t, "ledger create books --records 100 --epsilon 1 --delta 1e-5 --adjacency replace-one")
	for _, tt := range []struct{ line, want string }{
		{"study get |", "small other"},
		{"study get s|", "small"},
		{"front |", "small other"},
		{"agent --study |", "small other"},
		{"trial get small |", "1 2"},
		{"trial get small 1 |", ""},
		{"trial get none |", ""},
		{"ledger get |", "books"},
		{"ledger charges |", "books"},
		{"front small --kind |", "observed posterior best worst"},
		{"front small --output |", "table json csv"},
		{"release best small --metric |", "error size"},
		{"study init --trainer dp|", "dp-adam dp-mf dp-sgd"},
		{"data fetch adult m|", "mnist"},
		{"context use |", ""},
		{"token create --role |", "viewer worker admin"},
		{"study g|", "get"},
		{"trial import small |", ""}, // files
	} {
		got := completions(t, strings.Split(strings.TrimSuffix(tt.line, "|"), " ")...)
		want := strings.Fields(tt.want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", tt.line, got, want)
		}
	}
	if got := completions(t, "study", "get", "--server", address, ""); len(got) != 2 {
		t.Errorf("with a flag: %q", got)
	}
}

// Completion says nothing and gives up where there is no server, or one that does not answer.
func TestCompletionWithoutServer(t *testing.T) {
	isolateContexts(t)
	waitToComplete(t, 10*time.Millisecond)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { silent.Close() })
	for _, address := range []string{"127.0.0.1:1", silent.Addr().String(), "nowhere"} {
		if got := completions(t, "study", "get", "--server", address, ""); len(got) != 0 {
			t.Errorf("%s: %q", address, got)
		}
	}
}

// isolateContexts has the user of a test know no contexts, and returns the file they go to.
func isolateContexts(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, variable := range []string{"XDG_CONFIG_HOME", "HOME", "AppData"} {
		t.Setenv(variable, folder)
	}
	config, err := os.UserConfigDir()
	require.NoError(t, err)
	return filepath.Join(config, "dpareto", "contexts.yaml")
}

func TestContexts(t *testing.T) {
	path := isolateContexts(t)
	credentials, token := clitest.NewToken(t, "--name", "ann", "--role", "admin")
	locked, _ := clitest.StartServer(t, "--listen", "127.0.0.1:0", "--auth-file", credentials)
	open, _ := clitest.StartServer(t, "--listen", "127.0.0.1:0")
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("ann.token", []byte(token+"\n"), 0o600))

	clitest.Succeed(t, "context add locked --server "+locked+" --token-file ann.token")
	clitest.Succeed(t, "context add open --server "+open)
	for name, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700 | os.ModeDir} {
		if info, err := os.Stat(name); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v, want mode %v", name, info.Mode(), err, mode)
		}
	}
	content, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(content), token) {
		t.Errorf("the file holds the token: %v", err)
	}
	if list := clitest.Succeed(t, "context list -o csv"); !strings.Contains(list, "locked,yes,"+locked) || !strings.Contains(list, "open,no,"+open) {
		t.Errorf("contexts:\n%s", list)
	}

	t.Chdir(t.TempDir()) // paths in a context do not depend on the folder
	clitest.Must(t, clitest.SmallStudy, "study", "create", "-")
	clitest.Succeed(t, "study get small --context locked")
	if names := completions(t, "study", "get", ""); !slices.Equal(names, []string{"small"}) {
		t.Errorf("completed %q", names)
	}
	clitest.Fail(t, command.ExitNotFound, "study get small --context open")
	clitest.Succeed(t, "context use open")
	clitest.Fail(t, command.ExitNotFound, "study get small")
	t.Setenv("DPARETO_CONTEXT", "locked")
	clitest.Succeed(t, "study get small")
	if got := completions(t, "context", "use", ""); !slices.Equal(got, []string{"locked", "open"}) {
		t.Errorf("completed %q", got)
	}
	clitest.Fail(t, command.ExitNotFound, "study get small --server "+open) // an argument counts more
	clitest.Fail(t, command.ExitUsage, "study get small --context locked --server "+open)
	t.Setenv("DPARETO_SERVER", open)
	clitest.Fail(t, command.ExitUsage, "study get small")
	clitest.Succeed(t, "study get small --context locked")
	t.Setenv("DPARETO_CONTEXT", "")
	clitest.Fail(t, command.ExitNotFound, "study get small")
	t.Setenv("DPARETO_SERVER", "")

	// The token of a context goes to no other server.
	clitest.Succeed(t, "context use locked")
	clitest.Fail(t, command.ExitDenied, "study get small --server "+locked)

	if _, stderr := clitest.Fail(t, command.ExitUsage, "study list --context opne"); !strings.Contains(stderr, "must be one of locked, open") {
		t.Errorf("error %q", stderr)
	}
	clitest.Succeed(t, "context add odd --server "+open+" --plaintext")
	if content, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(content), `"true"`, "perhaps")), 0o600))
	if _, stderr := clitest.Fail(t, command.ExitFailure, "study list --context odd"); !strings.Contains(stderr, `context odd: plaintext: must be true or false, is "perhaps"`) {
		t.Errorf("error %q", stderr)
	}
	clitest.Succeed(t, "context remove odd")
	clitest.Succeed(t, "context remove locked")
	clitest.Fail(t, command.ExitUsage, "context use locked")
	clitest.Fail(t, command.ExitUsage, "context add other")
	if list := clitest.Succeed(t, "context list"); strings.Contains(list, "locked") || strings.Contains(list, "yes") {
		t.Errorf("contexts:\n%s", list)
	}
}

package cli

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/privacy/mechanism"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/publish"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/server/auth"
)

// completionPatience is how long the shell waits for a server. Tests change it.
var completionPatience = time.Second

// completion proposes the words that an argument or a flag can be, given the arguments before it.
type completion func(cmd *cobra.Command, args []string) []string

// begun is a cobra.CompletionFunc: it proposes the words that begin as what is typed.
func (c completion) begun(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	words := slices.DeleteFunc(c(cmd, args), func(word string) bool { return !strings.HasPrefix(word, typed) })
	return words, cobra.ShellCompDirectiveNoFileComp
}

// addCompletion has the shell complete the arguments of all commands below cmd by the names that their
// usage gives them, and the flags by theirs.
func addCompletion(cmd *cobra.Command, env *command.Env) {
	for _, sub := range cmd.Commands() {
		addCompletion(sub, env)
	}
	server := fromServer(env)
	if cmd.ValidArgsFunction == nil && cmd.Runnable() {
		completeArguments(cmd, map[string]completion{
			"STUDY": server(studyIDs), "STUDY...": server(studyIDs), "TRIAL": server(trialNumbers), "LEDGER": server(ledgerIDs),
			"STUDY|ledgers/LEDGER": server(studyIDs), "NAME...": fixed(datasets), "NAME": contextNames,
		})
	}
	flags := map[string]completion{
		"dataset": fixed(datasets), "trainer": fixed(trainers), "mechanism": fixed(mechanism.Names),
		"role": fixed(auth.Roles), "context": contextNames,
	}
	if cmd.Flags().Lookup("server") != nil { // others take studies that are in no server
		flags["study"] = server(studyIDs)
		flags["ledger"], flags["metric"] = server(ledgerIDs), server(metricIDs)
	}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		complete := flags[flag.Name]
		switch value := flag.Value.(type) {
		case *output.Format:
			complete = fixed(func() []string { return strings.Split(output.Names(output.Text, output.JSON, output.CSV), ", ") })
		case interface{ Names() []string }: // of an enum
			complete = fixed(value.Names)
		}
		if complete == nil {
			return
		}
		if _, isKnown := cmd.GetFlagCompletionFunc(flag.Name); isKnown {
			return
		}
		err := cmd.RegisterFlagCompletionFunc(flag.Name, complete.begun)
		if err != nil {
			panic(err) // the flag exists, and has no function
		}
	})
}

// placeholder is an argument in the usage of a command: a word in capitals that belongs to no flag.
var placeholder = regexp.MustCompile(`^\[?([A-Z]+[A-Za-z|/.]*)\]?$`)

// completeArguments completes the arguments that have a name in a usage such as "get STUDY TRIAL". Files
// are completed by the shell.
func completeArguments(cmd *cobra.Command, known map[string]completion) {
	var names []string
	for _, word := range strings.Fields(cmd.Use)[1:] {
		found := placeholder.FindStringSubmatch(word)
		if found == nil {
			break
		}
		names = append(names, found[1])
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		i := len(args)
		if len(names) > 0 && strings.HasSuffix(names[len(names)-1], "...") {
			i = min(i, len(names)-1)
		}
		switch {
		case i >= len(names):
			return nil, cobra.ShellCompDirectiveNoFileComp
		case names[i] == "FILE":
			return nil, cobra.ShellCompDirectiveDefault
		case known[names[i]] == nil:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return known[names[i]].begun(cmd, args, begun)
	}
}

// fixed completes by names that the program knows.
func fixed(names func() []string) completion {
	return func(*cobra.Command, []string) []string { return names() }
}

// fromServer returns a function that completes by the resources on the server of a command. A server
// that does not answer soon, or refuses, has nothing.
func fromServer(env *command.Env) func(ask func(context.Context, *dpareto.Client, []string) ([]string, error)) completion {
	return func(ask func(context.Context, *dpareto.Client, []string) ([]string, error)) completion {
		return func(cmd *cobra.Command, args []string) []string {
			ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
			defer cancel()
			client, err := remote.ForCompletion(env, cmd)
			if err != nil {
				return nil
			}
			defer remote.Close(client)
			names, err := ask(ctx, client, args)
			if err != nil {
				return nil
			}
			return names
		}
	}
}

// studyIDs returns the ids of studies, with their display names.
func studyIDs(ctx context.Context, client *dpareto.Client, _ []string) ([]string, error) {
	studies, err := remote.Collect(client.FindStudies(ctx, dpareto.Query{}))
	names := make([]string, len(studies))
	for i, s := range studies {
		names[i] = described(view.ID(s.GetName()), s.GetDisplayName())
	}
	return names, err
}

// trialNumbers returns the numbers of the trials of the study in the arguments, with their states.
func trialNumbers(ctx context.Context, client *dpareto.Client, args []string) ([]string, error) {
	trials, err := remote.Collect(client.Study(remote.StudyID(args[0])).Trials(ctx))
	names := make([]string, len(trials))
	for i, t := range trials {
		names[i] = described(strconv.FormatInt(t.GetNumber(), 10), view.State(t))
	}
	return names, err
}

// metricIDs returns the ids of the metrics of the study in the arguments.
func metricIDs(ctx context.Context, client *dpareto.Client, args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	study, err := client.Study(remote.StudyID(args[0])).Get(ctx)
	var names []string
	for _, m := range study.GetSpec().GetMetrics() {
		names = append(names, described(m.GetId(), m.GetUnit()))
	}
	return names, err
}

func ledgerIDs(ctx context.Context, client *dpareto.Client, _ []string) ([]string, error) {
	ledgers, err := publish.ListLedgers(ctx, client)
	names := make([]string, len(ledgers))
	for i, l := range ledgers {
		names[i] = described(view.ID(l.GetName()), l.GetDescription())
	}
	return names, err
}

// described returns a word with what the shell shows beside it.
func described(word, description string) string {
	if description == "" {
		return word
	}
	return cobra.CompletionWithDesc(word, strings.Join(strings.Fields(description), " "))
}

func contextNames(*cobra.Command, []string) []string {
	names, err := remote.ContextNames()
	if err != nil {
		return nil
	}
	return names
}

func datasets() []string {
	var names []string
	for _, info := range dataset.Catalog() {
		names = append(names, described(info.Name, info.Summary))
	}
	return names
}

func trainers() []string {
	var names []string
	for _, d := range builtin.Registry().Definitions() {
		names = append(names, described(d.Name, d.Summary))
	}
	return names
}

package trial

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// importLabel is the label of imported trials: their source.
const importLabel = "import"

func importCommand(env *command.Env) *cobra.Command {
	var renames, ignore []string
	cmd := remote.Action(env, &cobra.Command{
		Use:   "import STUDY FILE",
		Short: "Create trials from results of other tools",
		Long: `Creates a completed trial for every line of a CSV file with a header, or every JSON object of a
file, one after another or in a list. The file "-" is standard input. Names are the ids of the
study's parameters and reported metrics:

    cutoff,noise_scale,error
    3,2.5,0.125

    {"cutoff": 3, "noise_scale": 2.5, "error": [0.1, 0.15]}

A JSON list, also in a cell, holds the values of repeated runs. An empty cell has no value.
Computed metrics, such as ε, follow from the parameters. Further columns are step, state
(succeeded, infeasible or failed), state_reason, seconds, note and trial. Lines with ascending
steps, and the same trial or configuration, are one learning curve; in JSON it can be a list:

    {"cutoff": 3, "measurements": [{"step": 1, "error": 0.4}, {"step": 2, "error": 0.2}]}

Exports of "dpareto trial list" as csv or json, data frames of Optuna and Ax, and trials of
Vizier as JSON are known. Trials without an outcome are left out. The flags --map and --ignore
do the rest. Cells are separated by commas, semicolons or tabs; numbers may have decimal
commas where commas do not separate. A file is UTF-8, or UTF-16 with a byte order mark.

The server checks all lines before the first trial is created. Every trial gets the label
"import" with a digest of its lines. Lines whose trial exists are skipped, so a command that
was interrupted can be repeated.`,
		Example: `  dpareto trial import svt results.csv
  dpareto trial import svt optuna.csv --map values_0=error --ignore values_1
  dpareto trial list svt --output json | dpareto trial import copy -`,
		Args: cobra.ExactArgs(2),
	}, func(ctx context.Context, call *remote.Call) error {
		mapping := Mapping{Rename: make(map[string]string), Ignore: ignore}
		for _, text := range renames {
			at := strings.LastIndexByte(text, '=')
			if at < 1 {
				return command.Usagef("--map must be COLUMN=ID, is %q", text)
			}
			if _, ok := mapping.Rename[text[:at]]; ok {
				return command.Usagef("--map %s: is given twice", text[:at])
			}
			mapping.Rename[text[:at]] = text[at+1:]
		}
		path := call.Args[1]
		content, err := env.ReadFile(path)
		if err != nil {
			return err
		}
		t, err := readTable(content)
		if err != nil {
			return inSource(command.SourceName(path), err)
		}
		return importTable(ctx, call.Client, env.Logger, call.Handle(call.Args[0]), command.SourceName(path), t, mapping)
	})
	cmd.Flags().StringArrayVar(&renames, "map", nil, "column of the file and the id of the study that it stands for, as COLUMN=ID")
	cmd.Flags().StringArrayVar(&ignore, "ignore", nil, "column of the file to leave out")
	return cmd
}

// Import creates a completed trial for each result that has none yet, after all results have been
// checked. source names the results in errors.
func Import(ctx context.Context, client *dpareto.Client, logger *slog.Logger, handle *dpareto.Study, source string, results []Result) error {
	return importTable(ctx, client, logger, handle, source, &table{results: results}, Mapping{})
}

func importTable(ctx context.Context, client *dpareto.Client, logger *slog.Logger, handle *dpareto.Study, source string, t *table, mapping Mapping) error {
	study, err := handle.Get(ctx)
	if err != nil {
		return err
	}
	trials, columns, skipped, err := importedTrials(study.GetSpec(), mapping, t)
	if err != nil {
		return inSource(source, err)
	}
	occurrences := make(map[string]int)
	labels := make([]string, len(trials))
	for i, one := range trials {
		occurrences[one.digest]++ // two equal lines are two results
		labels[i] = one.digest + "-" + strconv.Itoa(occurrences[one.digest])
		if one.trial.Labels == nil {
			one.trial.Labels = make(map[string]string)
		}
		one.trial.Labels[importLabel] = labels[i]
	}
	existing := make(map[string]string) // names of trials by label
	for trial, err := range handle.Trials(ctx) {
		if err != nil {
			return err
		}
		existing[trial.GetLabels()[importLabel]] = trial.GetName()
	}
	request := func(one imported) *dparetov1.CreateTrialRequest {
		return &dparetov1.CreateTrialRequest{Parent: handle.Name(), Trial: one.trial}
	}
	for i, one := range trials {
		if existing[labels[i]] != "" {
			continue
		}
		check := request(one)
		check.ValidateOnly = true
		if _, err := client.Studies.CreateTrial(ctx, check); err != nil {
			return &remote.CallError{Action: fmt.Sprintf("%s:%d: nothing was imported", source, one.line), Err: err}
		}
	}
	created := 0
	names := make(map[string]string) // of trials by their names in the file
	for i, one := range trials {
		name := existing[labels[i]]
		if name == "" {
			one.trial.ReplicateOf = names[one.of]
			resp, err := client.Studies.CreateTrial(ctx, request(one))
			if err != nil {
				// Logged, since the error may become that no server can be reached.
				logger.Warn("the import was interrupted: repeat the command for the other trials", "trials", created, "of", len(trials))
				return &remote.CallError{Action: fmt.Sprintf("%s:%d", source, one.line), Err: err}
			}
			name = resp.GetTrial().GetName()
			created++
		}
		if one.source != "" {
			names[one.source] = name
		}
	}
	if ignored := columns.ignored(); len(ignored) > 0 {
		logger.Info("left out columns", "columns", strings.Join(ignored, ", "))
	}
	if skipped > 0 {
		logger.Warn("left out trials without an outcome", "trials", skipped)
	}
	logger.Info("imported", "study", handle.Name(), "trials", created, "existed", len(trials)-created)
	return nil
}

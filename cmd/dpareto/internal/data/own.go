package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset/table"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
)

func schemaCommand(env *command.Env) *cobra.Command {
	var sample table.Sample
	var rowsPublic bool
	cmd := &cobra.Command{
		Use:   "schema FILE --public-rows N --label COLUMN",
		Short: "Propose a schema of your data",
		Long: `Proposes a schema of a file from its first rows, which you declare public, and prints it.
No row after them is read: ranges, categories and labels are public constants and never come
from private rows. Read the proposal, and write into it what you know: wider ranges, further
categories, an id (group), how the rows are divided (split).`,
		Example: `  dpareto data schema my.csv --public-rows 200 --label income > my.yaml`,
		Args:    command.Args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if sample.Label == "" {
				return command.Usage(errors.New("--label is required: the column to predict"))
			}
			sample.Path = args[0]
			return propose(env, sample, rowsPublic)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&sample.Rows, "public-rows", 0, "number of first rows that are public (required)")
	flags.StringVar(&sample.Label, "label", "", "column to predict (required)")
	flags.StringSliceVar(&sample.Missing, "missing", nil, "texts that stand for a missing value, in addition to empty, NA and the like")
	flags.BoolVar(&rowsPublic, "number-public", false, "state that everyone may know the number of rows, which trainers need")
	return cmd
}

func exampleCommand(env *command.Env) *cobra.Command {
	rows, seed := 0, uint64(0)
	cmd := &cobra.Command{
		Use:   "example {" + strings.Join(table.Examples(), " | ") + "}",
		Short: "Make up a table to begin with",
		Long: `Prints a CSV file of made-up rows, the same for the same seed. In loans there are two classes, mixed
columns and missing values. In rents there is a number to predict, and in crops there are seven
classes. How they are drawn is documented: go doc
github.com/dpareto/dpareto/clients/go/trainer/dataset/table.WriteExample.`,
		Example: `  dpareto data example loans > loans.csv`,
		Args:    command.Args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			return table.WriteExample(env.Stdout, args[0], rows, seed)
		},
	}
	cmd.Flags().IntVar(&rows, "rows", 20000, "number of rows")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "seed of the random numbers")
	return cmd
}

// propose prints a schema.
func propose(env *command.Env, sample table.Sample, rowsPublic bool) error {
	schema, notes, err := table.Propose(sample)
	if err != nil {
		return fmt.Errorf("%s: %w", sample.Path, err)
	}
	if rowsPublic {
		schema.Rows = table.Public
	}
	content, err := schema.YAML()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Proposed from the first %d rows of %s, which were declared public.\n", sample.Rows, sample.Path)
	if !rowsPublic {
		b.WriteString("# Trainers need rows: public, the statement that everyone may know the number of rows.\n")
	}
	for _, note := range notes {
		fmt.Fprintf(&b, "# %s.\n", note)
	}
	b.Write(content)
	_, err = env.Stdout.Write(b.Bytes())
	return err
}

func checkCommand(env *command.Env) *cobra.Command {
	var schema string
	out := command.NewPrinter(env)
	cmd := &cobra.Command{
		Use:   "check FILE --schema FILE",
		Short: "Check your own data before training",
		Long: `Reads a file as a trainer would, and lists its findings: errors, with which no trainer
takes the file, warnings, and facts. It has names of columns and counts, and no value of the
file. Counts are exact, and so for you alone: do not publish them.`,
		Example: `  dpareto data check my.csv --schema my.yaml`,
		Args:    command.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if schema == "" {
				return command.Usage(errors.New("--schema: is required, the file that describes the columns"))
			}
			return check(cmd.Context(), out, args[0], schema)
		},
	}
	cmd.Flags().StringVar(&schema, "schema", "", "schema of the file (required)")
	out.AddFlag(cmd)
	return cmd
}

// check prints what a file has.
func check(ctx context.Context, out *command.Printer, path, schemaPath string) error {
	content, err := os.ReadFile(schemaPath)
	if err != nil {
		return err
	}
	schema, err := table.ParseSchema(content)
	if err != nil {
		return fmt.Errorf("%s: %w", schemaPath, err)
	}
	shown := &output.Table{Columns: []string{"level", "column", "finding", "count"}}
	add := func(level, column, finding string, count int) {
		var name, n any
		if column != "" {
			name = column
		}
		if count > 0 {
			n = int64(count)
		}
		shown.Rows = append(shown.Rows, []any{level, name, finding, n})
	}
	t, err := table.Load(ctx, table.Request{Path: path, Schema: schema, Seed: 1})
	invalid, isInvalid := errors.AsType[*table.InvalidError](err)
	if err != nil && !isInvalid {
		return err
	}
	var findings []table.Finding
	if isInvalid {
		findings = invalid.Findings
	} else {
		findings = t.Findings
	}
	for _, f := range findings {
		level := "warning"
		if f.Fatal {
			level = "error"
		}
		add(level, f.Column, f.Problem, f.Count)
	}
	if t != nil {
		across, within := table.Duplicates(t.Parts)
		if across > 0 {
			add("warning", "", "validation and test examples equal a training example: errors on them flatter a model", across)
		}
		if within > 0 {
			add("warning", "", "training examples equal an earlier one", within)
		}
		split := t.Parts.Split
		add("fact", "", "training examples", split.Train)
		add("fact", "", "validation examples", split.Validation)
		add("fact", "", "test examples", split.Test)
		add("fact", "", "features", t.Parts.Train.Dim)
		if t.Parts.Train.Numeric() {
			add("fact", "", fmt.Sprintf("a number to predict, from %.4g to %.4g", schema.Label.Range[0], schema.Label.Range[1]), 0)
		} else {
			add("fact", "", "classes", t.Parts.Train.Classes)
		}
		add("fact", "", fmt.Sprintf("bound on the norm of a row: %.4g", schema.FeatureNorm()), 0)
		if key, err := table.ReadKey(path); err == nil {
			add("fact", "", "data_digest "+t.Digest(key), 0)
		}
	}
	add("fact", "", "schema_digest "+schema.Digest(), 0)
	return errors.Join(out.Table(shown), err)
}

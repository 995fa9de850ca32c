package study

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/document"
)

func updateCommand(env *command.Env) *cobra.Command {
	var labels remote.LabelFlags
	var set []string
	cmd := remote.Command(env, &cobra.Command{
		Use:   "update STUDY [FILE]",
		Short: "Change a study",
		Long: `Changes a study and shows it: all fields, by a file (or standard input, if FILE is
"-"); or only the fields that flags name.

The description, the labels, the budget, the lease, early stopping and the units of metrics can
change, and domains of parameters can grow: wider ranges, more values, more categories. A study
without a test_ledger can be given one (see "dpareto release"), unless it has private_mode or
random_stopping, which charge theirs when they are created. Fields that earlier trials depend on
cannot change. If the budget or a domain of a fixed design changes after the first trial, the study
can no longer be released. If somebody else changes the study at the same time, the command fails.`,
		Example: `  dpareto study update svt --set spec.budget.max_trials=128 --label team=vision
  dpareto study update svt --set display_name="Sparse vectors" --unlabel team
  dpareto study update svt svt.yaml`,
		Args: cobra.RangeArgs(1, 2),
	}, func(ctx context.Context, call *remote.Call) error {
		change, fields, err := parseChange(env, call.Args[1:], set, &labels)
		if err != nil {
			return err
		}
		handle := call.Handle(call.Args[0])
		if !labels.IsEmpty() {
			before, err := handle.Get(ctx)
			if err != nil {
				return err
			}
			change.Labels, change.Etag = labels.Apply(before.GetLabels()), before.GetEtag()
			fields = append(fields, remote.LabelsField)
		}
		study, err := handle.Update(ctx, change, fields...)
		if err != nil {
			return err
		}
		return view.Print(call.Out, view.Study(study), study)
	})
	cmd.Flags().StringArrayVar(&set, "set", nil, "field and its new value in YAML, such as spec.budget.max_trials=128; nothing after = clears it")
	labels.Add(cmd)
	return cmd
}

// parseChange returns the study that a file or the flags describe, and the paths of the
// fields to change. Changed labels are not part of it.
func parseChange(env *command.Env, files, set []string, labels *remote.LabelFlags) (*dparetov1.Study, []string, error) {
	switch hasFlags := len(set) > 0 || !labels.IsEmpty(); {
	case len(files) > 0 && hasFlags:
		return nil, nil, command.Usage(errors.New("give a file or flags, not both"))
	case len(files) > 0:
		file, err := readFile(env, files[0])
		if err != nil {
			return nil, nil, err
		}
		return file.Study, []string{"*"}, nil
	case hasFlags:
		return parseSettings(set)
	default:
		return nil, nil, command.Usage(remote.ErrNoChange)
	}
}

// parseSettings returns the study and the paths of fields that settings of the form
// path=value name.
func parseSettings(settings []string) (*dparetov1.Study, []string, error) {
	tree := make(map[string]any)
	var paths []string
	for _, setting := range settings {
		path, text, ok := strings.Cut(setting, "=")
		if !ok {
			return nil, nil, command.Usagef("--set must be FIELD=VALUE, is %q", setting)
		}
		value, err := document.Parse([]byte(text))
		if err != nil {
			return nil, nil, command.Usagef("--set %s: %w", path, err)
		}
		at := tree
		names := strings.Split(path, ".")
		for _, name := range names[:len(names)-1] {
			below, ok := at[name].(map[string]any)
			if !ok {
				below = make(map[string]any)
				at[name] = below
			}
			at = below
		}
		last := names[len(names)-1]
		if _, ok := at[last]; ok {
			return nil, nil, command.Usagef("--set %s: is given twice", path)
		}
		at[last] = value.Root
		paths = append(paths, path)
	}
	file, err := studyfile.FromTree(tree)
	if err != nil {
		return nil, nil, command.Usagef("--set: %w", err)
	}
	return file.Study, paths, nil
}

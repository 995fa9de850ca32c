package cli

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// labelsField is the field with the labels of studies and trials.
const labelsField = "labels"

// errNoChange is returned where nothing is to be changed.
var errNoChange = errors.New("nothing to change; see --help")

func (a *app) studyUpdateCommand() *cobra.Command {
	var labels labelFlags
	var set []string
	cmd := &cobra.Command{
		Use:   "update STUDY [FILE]",
		Short: "Change a study",
		Long: `Changes a study and shows it: to what a file says (or standard input, if FILE is "-"), as it
could have been created from; or only the fields that flags name.

The description, the labels, the budget, the lease, early stopping and the units of metrics can
change, and domains of parameters can grow: wider ranges, more values, more categories. A study
without a test_ledger can be given one (see "dpareto release"), unless it has private_mode or
random_stopping, which charge theirs when they are created. What the trials so far depend on
cannot. A change of another user in the meantime is an error.`,
		Example: `  dpareto study update svt --set spec.budget.max_trials=128 --label team=vision
  dpareto study update svt --set display_name="Sparse vectors" --unlabel team
  dpareto study update svt svt.yaml`,
		Args: command.Args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var change *dparetov1.Study
			var fields []string
			var err error
			switch flags := len(set) > 0 || !labels.isEmpty(); {
			case len(args) == 2 && flags:
				return command.Usage(errors.New("give a file or flags, not both"))
			case len(args) == 2:
				var file *studyfile.File
				if file, err = a.readStudy(args[1]); err == nil {
					change, fields = file.Study, []string{"*"}
				}
			case flags:
				change, fields, err = parseSettings(set)
			default:
				err = command.Usage(errNoChange)
			}
			if err != nil {
				return err
			}
			return a.session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
				handle := client.Study(studyID(args[0]))
				if !labels.isEmpty() {
					before, err := handle.Get(ctx)
					if err != nil {
						return err
					}
					change.Labels, change.Etag = labels.apply(before.GetLabels()), before.GetEtag()
					fields = append(fields, labelsField)
				}
				study, err := handle.Update(ctx, change, fields...)
				if err != nil {
					return err
				}
				return a.print(view.Study(study), study)
			})
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "field and its new value in YAML, such as spec.budget.max_trials=128; nothing after = clears it")
	labels.add(cmd)
	a.addClientFlags(cmd)
	command.OutputFlag(cmd, &a.output)
	return cmd
}

// parseSettings returns the study and the paths of fields that settings of the form
// path=value say.
func parseSettings(settings []string) (*dparetov1.Study, []string, error) {
	tree := make(map[string]any)
	var paths []string
	for _, setting := range settings {
		path, text, ok := strings.Cut(setting, "=")
		if !ok {
			return nil, nil, command.Usagef("--set %q, want FIELD=VALUE", setting)
		}
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
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
		at[names[len(names)-1]] = value
		paths = append(paths, path)
	}
	content, err := yaml.Marshal(tree)
	if err != nil {
		return nil, nil, err
	}
	file, err := studyfile.Parse(content)
	if err != nil {
		return nil, nil, command.Usagef("--set: %w", err)
	}
	return file.Study, paths, nil
}

// labelFlags change labels.
type labelFlags struct {
	set    map[string]string
	remove []string
}

func (l *labelFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringToStringVar(&l.set, "label", nil, "label to set, such as team=vision")
	cmd.Flags().StringSliceVar(&l.remove, "unlabel", nil, "key of a label to remove")
}

func (l *labelFlags) isEmpty() bool { return len(l.set) == 0 && len(l.remove) == 0 }

// apply returns the labels after the change.
func (l *labelFlags) apply(before map[string]string) map[string]string {
	after := make(map[string]string)
	maps.Copy(after, before)
	for _, key := range l.remove {
		delete(after, key)
	}
	maps.Copy(after, l.set)
	return after
}

package trial

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/document"
)

func createCommand(env *command.Env) *cobra.Command {
	var parameters, note string
	cmd := remote.Command(env, &cobra.Command{
		Use:   "create STUDY --parameters JSON",
		Short: "Queue a configuration for the next worker",
		Long: `Creates a trial of a configuration, which the next worker that asks is handed, and shows it.
The configuration is a JSON object with a value for every parameter whose condition holds.`,
		Example: `  dpareto trial create svt --parameters '{"cutoff": 3, "noise_scale": 2.5}'`,
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, call *remote.Call) error {
		values, err := readObject(parameters)
		if err != nil {
			return command.Usagef("--parameters: %w", err)
		}
		handle := call.Handle(call.Args[0])
		study, err := handle.Get(ctx)
		if err != nil {
			return err
		}
		configuration := make(map[string]*dparetov1.Value)
		columns := newColumns(study.GetSpec(), Mapping{}, nil)
		for name, value := range values {
			switch p := columns.parameter(name); {
			case p == nil && columns.metric(name) != nil:
				return command.Usagef("--parameters: %s is a metric; \"dpareto trial import\" creates trials with results", name)
			case p == nil:
				return command.Usagef("--parameters: %q is neither a parameter nor a metric of the study", name)
			default:
				if configuration[name], err = view.ParameterValue(p, value); err != nil {
					return command.Usagef("--parameters: parameter %s: %w", name, err)
				}
			}
		}
		resp, err := call.Studies.CreateTrial(ctx, &dparetov1.CreateTrialRequest{
			Parent: handle.Name(), Trial: &dparetov1.Trial{Parameters: configuration, Note: note},
		})
		if err != nil {
			return &remote.CallError{Action: "create a trial of " + handle.Name(), Err: err}
		}
		return view.Print(call.Out, view.Trial(study.GetSpec(), resp.GetTrial()), resp.GetTrial())
	})
	cmd.Flags().StringVar(&parameters, "parameters", "", "the configuration, as a JSON object")
	cmd.Flags().StringVar(&note, "note", "", "free text")
	return cmd
}

// readObject reads one JSON object, with integers of 64 bits.
func readObject(text string) (map[string]any, error) {
	objects, _, err := document.ParseObjects([]byte(text))
	switch {
	case err != nil:
		return nil, fmt.Errorf("must be a JSON object such as {\"cutoff\": 3}: %w", err)
	case len(objects) == 0:
		return nil, errors.New("must be a JSON object such as {\"cutoff\": 3}")
	case len(objects) > 1:
		return nil, errors.New("must be one JSON object alone")
	}
	return objects[0], nil
}

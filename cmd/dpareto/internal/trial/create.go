package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
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
		trial, err := Result{Values: values}.trial(study.GetSpec())
		if err != nil {
			return command.Usagef("--parameters: %w", err)
		}
		for id := range trial.GetFinalMeasurement().GetMetrics() {
			return command.Usagef("--parameters: %s is a metric; \"dpareto trial import\" creates trials with results", id)
		}
		resp, err := call.Studies.CreateTrial(ctx, &dparetov1.CreateTrialRequest{
			Parent: handle.Name(), Trial: &dparetov1.Trial{Parameters: trial.GetParameters(), Note: note},
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
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var values map[string]any
	if err := decoder.Decode(&values); err != nil {
		return nil, fmt.Errorf("must be a JSON object such as {\"cutoff\": 3}: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("must be one JSON object alone")
	}
	return values, nil
}

package builtin_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
	"github.com/dpareto/dpareto/clients/go/trainer/objectiveperturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/outputperturbation"
)

func TestRegistry(t *testing.T) {
	registry := builtin.Registry()
	generated := map[string]string{dpsgd.SettingGenerated: "true", dpsgd.SettingTrainRows: "100"}
	options := map[string]map[string]string{
		dpsgd.Name:                 generated,
		outputperturbation.Name:    generated,
		objectiveperturbation.Name: generated,
	}
	for _, d := range registry.Definitions() {
		made, err := registry.New(t.Context(), d.Name, trainer.Options{Settings: options[d.Name]})
		if err != nil {
			t.Fatal(err)
		}
		if made.Name() != d.Name {
			t.Errorf("the trainer registered as %s calls itself %s", d.Name, made.Name())
		}
		if d.Summary == "" {
			t.Errorf("%s has no summary", d.Name)
		}
	}
}

func TestRegistrySharesData(t *testing.T) {
	registry := builtin.Registry()
	options := trainer.Options{Settings: map[string]string{
		dpsgd.SettingGenerated: "true", dpsgd.SettingEvaluation: dpsgd.EvaluationTest,
	}}
	load := func(name string) *dpsgd.Trainer {
		made, err := registry.New(t.Context(), name, options)
		if err != nil {
			t.Fatal(err)
		}
		return made.(*dpsgd.Trainer)
	}
	if load(dpsgd.Name).Data() != load(dpsgd.NameAdam).Data() {
		t.Error("two trainers of one registry have loaded their data twice")
	}
}

func Example() {
	t, err := builtin.Registry().New(context.Background(), "sparse-vector", trainer.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := t.Train(context.Background(), trainer.Run{
		Parameters: trainer.Parameters{"cutoff": int64(10), "noise_scale": 0.01},
		Replicates: 5,
		Seed:       1,
	}, nil)
	fmt.Println(m.Metrics["error"], err)
	// Output: [0 0 0 0 0] <nil>
}

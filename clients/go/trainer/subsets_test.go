package trainer_test

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/clients/go/subset"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

// subsetOptions make trainers with 900 generated training examples.
func subsetOptions() trainer.Options {
	return trainer.Options{Settings: trainer.Settings{"generated": "true", "train_rows": "1000", "validation_rows": "100"}}
}

// sgd is a configuration of DP-SGD.
var sgd = trainer.Parameters{"epochs": int64(1), "lot_size": int64(16), "learning_rate": 0.5, "clipping_norm": 1.0, "noise_multiplier": 1.0}

// seededLoss trains one seeded run and returns its loss.
func seededLoss(t *testing.T, tr trainer.Trainer) float64 {
	t.Helper()
	m, err := tr.Train(t.Context(), trainer.Run{Parameters: sgd, Replicates: 1, Seed: new(uint64(1))}, nil)
	require.NoError(t, err)
	return m.Metrics["loss"][0]
}

// A trainer on a subset trains on its examples and no others, in the order drawn, and accounts for as
// many; the trainer itself keeps training on all.
func TestSubsets(t *testing.T) {
	registry := builtin.Registry()
	all, err := registry.NewDivisible(t.Context(), "dp-sgd", subsetOptions(), 1)
	require.NoError(t, err)
	plain, err := registry.New(t.Context(), "dp-sgd", subsetOptions())
	require.NoError(t, err)
	asked := subset.Subset{Key: bytes.Repeat([]byte{7}, subset.KeySize), Size: 90, Of: 900}
	part, err := all.On(t.Context(), trainer.Rows{Subset: &asked})
	require.NoError(t, err)
	parts := plain.(*dpsgd.Trainer).Parts()
	byHand, err := dpsgd.New(&dataset.Parts{
		Train: parts.Train.Select("part", asked.Indices()), Validation: parts.Validation, Test: parts.Test, Split: parts.Split,
	}, dpsgd.Options{})
	require.NoError(t, err)
	if got, want := seededLoss(t, part), seededLoss(t, byHand); got != want {
		t.Errorf("loss %g on the subset, want %g", got, want)
	}
	if got, want := seededLoss(t, all), seededLoss(t, plain); got != want {
		t.Errorf("loss %g on all examples, want %g", got, want)
	}
	for name, tt := range map[string]struct {
		trainer trainer.Trainer
		size    int64
	}{"subset": {part, 90}, "all": {all, 900}} {
		mechanism, err := tt.trainer.(trainer.PrivateTrainer).Mechanism(sgd)
		require.NoError(t, err)
		step := mechanism.(privacy.Composition)[0].Mechanism.(privacy.FixedSizeGaussian)
		if step.DatasetSize != tt.size {
			t.Errorf("%s: accounts for %d examples, want %d", name, step.DatasetSize, tt.size)
		}
	}
	if again, err := all.On(t.Context(), trainer.Rows{Subset: &asked}); err != nil || again != part {
		t.Errorf("another trainer for the same subset: %v", err)
	}
	other := asked
	other.Key = bytes.Repeat([]byte{8}, subset.KeySize)
	if part, err = all.On(t.Context(), trainer.Rows{Subset: &other}); err != nil {
		t.Fatal(err)
	}
	if seededLoss(t, part) == seededLoss(t, byHand) {
		t.Error("another key gives the same subset")
	}
	other.Of = 1000
	if _, err := all.On(t.Context(), trainer.Rows{Subset: &other}); err == nil || !strings.Contains(err.Error(), "has 900 training examples, but the study draws its subset from 1000") {
		t.Errorf("a subset of other examples: %v", err)
	}
}

// All trainers on datasets take subsets, also with parameters fixed and on parts; others refuse them.
func TestSubsetsOfTrainers(t *testing.T) {
	registry := builtin.Registry()
	asked := &subset.Subset{Key: bytes.Repeat([]byte{7}, subset.KeySize), Size: 90, Of: 900}
	settings := map[string]trainer.Settings{
		"dp-sgd": {"epochs": "1", "parts": "3"}, "dp-adam": {"lot_size": "8"}, "dp-mf": {"lot_size": "8", "bands": "2"}, "output-perturbation": nil, "objective-perturbation": nil,
	}
	for _, d := range registry.Definitions() {
		options := subsetOptions()
		own, takes := settings[d.Name]
		if !takes {
			options = trainer.Options{Subset: asked}
			_, err := registry.New(t.Context(), d.Name, options)
			_, without := registry.NewDivisible(t.Context(), d.Name, trainer.Options{}, 1)
			for _, err := range []error{err, without} {
				if err == nil || !strings.Contains(err.Error(), "cannot train on a subset of its examples") {
					t.Errorf("%s: error %v", d.Name, err)
				}
			}
			continue
		}
		maps.Copy(options.Settings, own)
		tr, err := registry.NewDivisible(t.Context(), d.Name, options, 1)
		require.NoError(t, err)
		part, err := tr.On(t.Context(), trainer.Rows{Subset: asked})
		require.NoError(t, err)
		options.Subset = asked
		want, err := registry.New(t.Context(), d.Name, options)
		require.NoError(t, err)
		_, isPrivate := part.(trainer.PrivateTrainer)
		if _, want := want.(trainer.PrivateTrainer); isPrivate != want || part.Name() != d.Name {
			t.Errorf("%s: on a subset it is %s, and knows its mechanism: %v, want %v", d.Name, part.Name(), isPrivate, want)
		}
	}
}

package trainer_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

// A trainer on shards trains each run on the examples of its shard, and accounts for as
// many.
func TestSharded(t *testing.T) {
	registry := builtin.Registry()
	options := trainer.Options{Settings: trainer.Settings{"generated": "true", "train_rows": "1000", "validation_rows": "100"}}
	parameters := trainer.Parameters{"epochs": int64(1), "lot_size": int64(16), "learning_rate": 0.5, "clipping_norm": 1.0, "noise_multiplier": 1.0}
	const shards = 4
	for _, name := range []string{"dp-sgd", "dp-adam"} {
		all, err := registry.NewSharded(t.Context(), name, options, shards)
		require.NoError(t, err)
		if s, ok := all.(trainer.ShardedTrainer); !ok || s.Shards() != shards || all.Name() != name {
			t.Fatalf("%s: %T", name, all)
		}
		mechanism, err := all.(trainer.PrivateTrainer).Mechanism(parameters)
		require.NoError(t, err)
		part := mechanism.(privacy.Composition)[0].Mechanism.(privacy.FixedSizeGaussian)
		if part.DatasetSize != 900/shards {
			t.Errorf("%s: accounts for %d examples, want %d", name, part.DatasetSize, 900/shards)
		}
		seen := make(map[float64]bool)
		for shard := range shards {
			run := trainer.Run{Parameters: parameters, Replicates: 1, Seed: new(uint64(1)), Shard: shard}
			got, err := all.Train(t.Context(), run, nil)
			require.NoError(t, err)
			own := options
			own.Settings = trainer.Settings{"training_shard": string(rune('0' + shard)), "training_shards": "4"}
			maps.Copy(own.Settings, options.Settings)
			one, err := registry.New(t.Context(), name, own)
			require.NoError(t, err)
			run.Shard = 0
			want, err := one.Train(t.Context(), run, nil)
			require.NoError(t, err)
			if diff := cmp.Diff(want.Metrics, got.Metrics); diff != "" {
				t.Errorf("%s, shard %d (-want +got):\n%s", name, shard, diff)
			}
			seen[got.Metrics["loss"][0]] = true
		}
		if len(seen) != shards {
			t.Errorf("%s: %d different losses on %d shards", name, len(seen), shards)
		}
		if _, err := all.Train(t.Context(), trainer.Run{Parameters: parameters, Replicates: 1, Shard: shards, Seed: new(uint64(0))}, nil); err == nil {
			t.Errorf("%s: shard %d is accepted", name, shards)
		}
	}
	if one, err := registry.NewSharded(t.Context(), "dp-sgd", options, 1); err != nil {
		t.Fatal(err)
	} else if _, ok := one.(trainer.ShardedTrainer); ok {
		t.Error("one shard is a trainer on shards")
	}
	for _, tt := range []struct {
		name, want string
		shards     int
	}{
		{"sparse-vector", "cannot train on shards", 2}, {"dp-sgd", "cannot cut 900 rows into 901 shards", 901}, {"none", "unknown", 2},
	} {
		if _, err := registry.NewSharded(t.Context(), tt.name, options, tt.shards); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s on %d shards: error %v, want %q", tt.name, tt.shards, err, tt.want)
		}
	}
	options.Settings["training_shard"] = "1"
	if _, err := registry.New(t.Context(), "dp-sgd", options); err == nil || !strings.Contains(err.Error(), "training_shard") {
		t.Errorf("shard 1 of 1: error %v", err)
	}
}

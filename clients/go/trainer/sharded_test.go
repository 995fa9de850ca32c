package trainer_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
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
		all, err := registry.NewDivisible(t.Context(), name, options, shards)
		require.NoError(t, err)
		if all.Shards() != shards || all.Name() != name {
			t.Fatalf("%s on %d shards", all.Name(), all.Shards())
		}
		mechanism, err := all.(trainer.PrivateTrainer).Mechanism(parameters)
		require.NoError(t, err)
		part := mechanism.(privacy.Composition)[0].Mechanism.(privacy.FixedSizeGaussian)
		if part.DatasetSize != 900/shards {
			t.Errorf("%s: accounts for %d examples, want %d", name, part.DatasetSize, 900/shards)
		}
		seen := make(map[float64]bool)
		for shard := range shards {
			run := trainer.Run{Parameters: parameters, Replicates: 1, Seed: new(uint64(1))}
			on, err := all.On(t.Context(), trainer.Rows{Shard: shard, Shards: shards})
			require.NoError(t, err)
			got, err := on.Train(t.Context(), run, nil)
			require.NoError(t, err)
			own := options
			own.Settings = trainer.Settings{"training_shard": string(rune('0' + shard)), "training_shards": "4"}
			maps.Copy(own.Settings, options.Settings)
			one, err := registry.New(t.Context(), name, own)
			require.NoError(t, err)
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
		for _, rows := range []trainer.Rows{{Shard: shards, Shards: shards}, {Shard: -1, Shards: shards}, {}, {Shards: shards - 1}} {
			if _, err := all.On(t.Context(), rows); err == nil {
				t.Errorf("%s: %+v is accepted", name, rows)
			}
		}
	}
	for _, tt := range []struct {
		name, want string
		shards     int
	}{
		{"sparse-vector", "cannot train on shards", 2}, {"dp-sgd", "cannot cut 900 rows into 901 shards", 901}, {"none", "unknown", 2},
	} {
		if _, err := registry.NewDivisible(t.Context(), tt.name, options, tt.shards); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s on %d shards: error %v, want %q", tt.name, tt.shards, err, tt.want)
		}
	}
	options.Settings["training_shard"] = "1"
	if _, err := registry.New(t.Context(), "dp-sgd", options); err == nil || !strings.Contains(err.Error(), "training_shard") {
		t.Errorf("shard 1 of 1: error %v", err)
	}
}

// Each shard has the rows of the dataset's shard, in order.
func TestShardsAreOfDataset(t *testing.T) {
	registry := builtin.Registry()
	const shards = 4
	plain, err := registry.New(t.Context(), "dp-sgd", subsetOptions())
	require.NoError(t, err)
	all, err := registry.NewDivisible(t.Context(), "dp-sgd", subsetOptions(), shards)
	require.NoError(t, err)
	for shard := range shards {
		on, err := all.On(t.Context(), trainer.Rows{Shard: shard, Shards: shards})
		require.NoError(t, err)
		want, err := plain.(*dpsgd.Trainer).Parts().Shard(shard, shards)
		require.NoError(t, err)
		if diff := cmp.Diff(want, on.(*dpsgd.Trainer).Parts()); diff != "" {
			t.Errorf("shard %d (-want +got):\n%s", shard, diff)
		}
	}
}

// plain is a trainer without a mechanism, private one with a mechanism.
type (
	plain   struct{ trainer.Trainer }
	private struct{ trainer.PrivateTrainer }
)

// A trainer on some rows states a mechanism only if the trainer itself does, and one on shards never
// opens all rows.
func TestDivisibleClaimsAndOpensNoMore(t *testing.T) {
	for name, inner := range map[string]trainer.Trainer{"plain": plain{}, "private": private{}} {
		_, accounted := inner.(trainer.PrivateTrainer)
		var opened []string // the numbers of shards
		var registry trainer.Registry
		registry.Register(trainer.Definition{
			Name: name, Subsets: true, Settings: []trainer.Setting{{Name: trainer.SettingShard}, {Name: trainer.SettingShards}},
			New: func(_ context.Context, options trainer.Options) (trainer.Trainer, error) {
				opened = append(opened, options.Settings[trainer.SettingShards])
				return inner, nil
			},
		})
		whole, err := registry.NewDivisible(t.Context(), name, trainer.Options{}, 1)
		require.NoError(t, err)
		opened = nil
		sharded, err := registry.NewDivisible(t.Context(), name, trainer.Options{}, 2)
		require.NoError(t, err)
		on, err := sharded.On(t.Context(), trainer.Rows{Shard: 1, Shards: 2})
		require.NoError(t, err)
		parts, err := registry.New(t.Context(), name, trainer.Options{Settings: trainer.Settings{"parts": "2"}})
		require.NoError(t, err)
		if want := []string{"2", "2", "2"}; !slices.Equal(opened, want) {
			t.Errorf("%s: opened on %q shards, want %q", name, opened, want)
		}
		for kind, tr := range map[string]trainer.Trainer{"whole": whole, "sharded": sharded, "on a shard": on, "on parts": parts} {
			if _, claims := tr.(trainer.PrivateTrainer); claims != accounted {
				t.Errorf("%s trainer, %s: states a mechanism: %v", name, kind, claims)
			}
		}
	}
}

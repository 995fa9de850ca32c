package trainer_test

import (
	"errors"
	"maps"
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/internal/require"
)

// A run on parts measures the means of the runs on every part, at every checkpoint, and
// accounts for one part.
func TestParts(t *testing.T) {
	registry := builtin.Registry()
	const parts = 3
	settings := trainer.Settings{"generated": "true", "train_rows": "1000", "validation_rows": "100"}
	with := func(more trainer.Settings) trainer.Options {
		all := maps.Clone(settings)
		maps.Copy(all, more)
		return trainer.Options{Settings: all}
	}
	for name, parameters := range map[string]trainer.Parameters{
		"dp-sgd":                 {"epochs": int64(2), "lot_size": int64(16), "learning_rate": 0.5, "clipping_norm": 1.0, "noise_multiplier": 1.0},
		"objective-perturbation": {"target_epsilon": 1.0, "regularization": 0.01, "regularizer_share": 0.1},
	} {
		run := trainer.Run{Parameters: parameters, Replicates: 2, Seed: new(uint64(1))}
		all, err := registry.New(t.Context(), name, with(trainer.Settings{"parts": strconv.Itoa(parts)}))
		require.NoError(t, err)
		var reported []trainer.Measurement
		got, err := all.Train(t.Context(), run, func(m trainer.Measurement) error { reported = append(reported, m); return nil })
		require.NoError(t, err)
		want := make(map[string][]float64)
		for part := range parts {
			one, err := registry.New(t.Context(), name, with(trainer.Settings{"training_shards": strconv.Itoa(parts), "training_shard": strconv.Itoa(part)}))
			require.NoError(t, err)
			m, err := one.Train(t.Context(), run, nil)
			require.NoError(t, err)
			for metric, values := range m.Metrics {
				if want[metric] == nil {
					want[metric] = make([]float64, len(values))
				}
				for i, v := range values {
					want[metric][i] += v / parts
				}
			}
		}
		for metric, values := range want {
			for i, v := range values {
				if math.Abs(got.Metrics[metric][i]-v) > 1e-12 {
					t.Errorf("%s, %s of replicate %d: %v, want the mean %v", name, metric, i, got.Metrics[metric][i], v)
				}
			}
		}
		if len(reported) == 0 || reported[len(reported)-1].Step != got.Step || name == "dp-sgd" && len(reported) != 2 {
			t.Errorf("%s: %d reports, the last %+v", name, len(reported), got)
		}
		mechanism, err := all.(trainer.PrivateTrainer).Mechanism(parameters)
		require.NoError(t, err)
		first, err := registry.New(t.Context(), name, with(trainer.Settings{"training_shards": strconv.Itoa(parts)}))
		require.NoError(t, err)
		one, err := first.(trainer.PrivateTrainer).Mechanism(parameters)
		require.NoError(t, err)
		if diff := cmp.Diff(one, mechanism); diff != "" {
			t.Errorf("%s: accounts for another mechanism than a part's (-part +all):\n%s", name, diff)
		}
		stop := errors.New("stop")
		if _, err := all.Train(t.Context(), run, func(trainer.Measurement) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("%s: %v, want the error of the report", name, err)
		}
		if m, err := all.Train(t.Context(), run, func(trainer.Measurement) error { return trainer.ErrStop }); err != nil || m.Step != reported[0].Step {
			t.Errorf("%s: stopped at %+v, %v", name, m, err)
		}
	}
	for _, bad := range []trainer.Settings{{"parts": "0"}, {"parts": "many"}, {"parts": "3", "training_shards": "2"}, {"parts": "901"}} {
		if _, err := registry.New(t.Context(), "dp-sgd", with(bad)); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	if _, err := registry.New(t.Context(), "svt", trainer.Options{Settings: trainer.Settings{"parts": "3"}}); err == nil {
		t.Error("a trainer without shards trains on parts")
	}
	// The declaration is of one part.
	declared := func(s trainer.Settings) trainer.Declaration {
		d, err := registry.Declare(t.Context(), "dp-sgd", with(s))
		require.NoError(t, err)
		return d
	}
	if all, one := declared(trainer.Settings{"parts": "3"}), declared(trainer.Settings{"training_shards": "3"}); all.Privacy == nil || !cmp.Equal(all, one) {
		t.Errorf("declares %+v, a part %+v", all.Privacy, one.Privacy)
	}
}

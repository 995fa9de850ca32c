package sparsevector

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/internal/require"
)

func train(t *testing.T, run trainer.Run) []float64 {
	t.Helper()
	m, err := Trainer{}.Train(t.Context(), run, nil)
	require.NoError(t, err)
	if m.Step != 1 {
		t.Errorf("step %d, want 1", m.Step)
	}
	return m.Metrics[MetricError]
}

func configuration(cutoff, noiseScale any) trainer.Parameters {
	return trainer.Parameters{ParameterCutoff: cutoff, ParameterNoiseScale: noiseScale}
}

func TestTrain(t *testing.T) {
	const runs = 20000
	errs := train(t, trainer.Run{Parameters: configuration(int64(10), 1.0), Replicates: runs, Seed: new(uint64(3))})
	if len(errs) != runs {
		t.Fatalf("%d values, want %d", len(errs), runs)
	}
	var sum, squares float64
	for _, e := range errs {
		if e < 0 || e > 1 {
			t.Fatalf("error %v is outside [0, 1]", e)
		}
		sum += e
		squares += e * e
	}
	mean := sum / runs
	standardError := math.Sqrt((squares/runs - mean*mean) / runs)
	if want := ExpectedError(10, 1); math.Abs(mean-want) > 4*standardError {
		t.Errorf("mean error %v ± %v, want %v", mean, standardError, want)
	}
}

// The values below may not change: stored results depend on them.
func TestTrainGolden(t *testing.T) {
	got := train(t, trainer.Run{Parameters: configuration(int64(10), 0.5), Replicates: 8, Seed: new(uint64(42))})
	want := []float64{0.4, 0.7, 0.6, 0.6, 0.6, 0.6, 0.5, 0.3}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

func TestTrainReplicatesAreIndependentOfTheirNumber(t *testing.T) {
	p := configuration(int64(20), 1.0)
	few := train(t, trainer.Run{Parameters: p, Replicates: 3, Seed: new(uint64(9))})
	many := train(t, trainer.Run{Parameters: p, Replicates: 30, Seed: new(uint64(9))})
	if diff := cmp.Diff(few, many[:3]); diff != "" {
		t.Errorf("first replicates (-of 3 +of 30):\n%s", diff)
	}
	if diff := cmp.Diff(few, train(t, trainer.Run{Parameters: p, Replicates: 3, Seed: new(uint64(10))})); diff == "" {
		t.Error("another seed gives the same errors")
	}
}

// No noise to speak of: exactly C positives are found.
func TestTrainWithoutNoise(t *testing.T) {
	for _, e := range train(t, trainer.Run{Parameters: configuration(int64(4), 1e-6), Replicates: 50, Seed: new(uint64(0))}) {
		if want := 1 - 8.0/14; math.Abs(e-want) > 1e-15 {
			t.Errorf("error %v, want %v", e, want)
		}
	}
}

func TestTrainBadParameters(t *testing.T) {
	for _, tt := range []struct {
		name       string
		parameters trainer.Parameters
		want       string // the parameter named by the error
	}{
		{"missing cutoff", trainer.Parameters{ParameterNoiseScale: 1.0}, ParameterCutoff},
		{"missing noise", trainer.Parameters{ParameterCutoff: int64(1)}, ParameterNoiseScale},
		{"fractional cutoff", configuration(2.5, 1.0), ParameterCutoff},
		{"zero cutoff", configuration(int64(0), 1.0), ParameterCutoff},
		{"zero noise", configuration(int64(1), 0.0), ParameterNoiseScale},
		{"NaN noise", configuration(int64(1), math.NaN()), ParameterNoiseScale},
		{"infinite noise", configuration(int64(1), math.Inf(1)), ParameterNoiseScale},
		{"textual noise", configuration(int64(1), "1"), ParameterNoiseScale},
		{"unknown", trainer.Parameters{"Cutoff": int64(1)}, "Cutoff"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Trainer{}.Train(t.Context(), trainer.Run{Parameters: tt.parameters, Replicates: 1, Seed: new(uint64(0))}, nil)
			if pe, ok := errors.AsType[*trainer.ParameterError](err); !ok || pe.Name != tt.want {
				t.Errorf("error %v, want one about %q", err, tt.want)
			}
		})
	}
	if _, err := (Trainer{}).Train(t.Context(), trainer.Run{Parameters: configuration(int64(1), 1.0), Seed: new(uint64(0))}, nil); err == nil {
		t.Error("no replicates: no error")
	}
}

func TestTrainCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	run := trainer.Run{Parameters: configuration(int64(1), 1.0), Replicates: 1, Seed: new(uint64(0))}
	if _, err := (Trainer{}).Train(ctx, run, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

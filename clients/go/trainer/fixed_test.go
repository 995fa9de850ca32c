package trainer

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

// recorder keeps the parameters of its last run.
type recorder struct{ got Parameters }

func (*recorder) Name() string { return "recorder" }

func (r *recorder) Train(_ context.Context, run Run, _ Report) (Measurement, error) {
	r.got = run.Parameters
	return Measurement{}, nil
}

// Mechanism implements PrivateTrainer.
func (*recorder) Mechanism(p Parameters) (privacy.Mechanism, error) {
	noise, err := p.Float("noise")
	return privacy.Gaussian{Sensitivity: 1, StandardDeviation: noise, Neighbours: privacy.AddRemove}, err
}

// A setting with the name of a parameter fixes it: for the trainer, and in what it
// declares.
func TestFixedParameters(t *testing.T) {
	made := new(recorder)
	var r Registry
	r.Register(Definition{
		Name:     "recorder",
		Settings: []Setting{{Name: "data"}},
		New:      func(context.Context, Options) (Trainer, error) { return made, nil },
		Declare: func(context.Context, Options) (Declaration, error) {
			return Declaration{
				Parameters: []ParameterDeclaration{
					{Name: "epochs", Integer: true}, {Name: "lot", Integer: true}, {Name: "noise"},
				},
				Privacy: &PrivacyDeclaration{Fields: map[string]string{
					"length": "epochs", "batch": "lot", "noise": "math.sqrt(noise) * other.noise", "sampling": "FIXED_SIZE",
				}},
				CheckpointParameter: "epochs",
			}, nil
		},
	})
	options := Options{Settings: map[string]string{"data": "x", "lot": "600", "noise": "16"}}
	trainer, err := r.New(t.Context(), "recorder", options)
	require.NoError(t, err)
	require.NoError(t, require.ErrOf(trainer.Train(t.Context(), Run{Parameters: Parameters{"epochs": int64(3)}, Replicates: 1}, nil)))
	if diff := cmp.Diff(Parameters{"epochs": int64(3), "lot": int64(600), "noise": 16.0}, made.got); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	private, ok := trainer.(PrivateTrainer)
	if !ok {
		t.Fatal("a trainer with fixed parameters does not know its mechanism")
	}
	if m, err := private.Mechanism(Parameters{"epochs": int64(3)}); err != nil || m.(privacy.Gaussian).StandardDeviation != 16 {
		t.Errorf("mechanism %+v, %v", m, err)
	}
	_, err = trainer.Train(t.Context(), Run{Parameters: Parameters{"lot": int64(3)}, Replicates: 1}, nil)
	if wrong, ok := errors.AsType[*ParameterError](err); !ok || wrong.Name != "lot" {
		t.Errorf("a fixed parameter in the study: %v", err)
	}

	declared, err := r.Declare(t.Context(), "recorder", options)
	require.NoError(t, err)
	want := Declaration{
		Parameters: []ParameterDeclaration{{Name: "epochs", Integer: true}},
		Privacy: &PrivacyDeclaration{Fields: map[string]string{
			"length": "epochs", "batch": "600", "noise": "math.sqrt(16.0) * other.noise", "sampling": "FIXED_SIZE",
		}},
		CheckpointParameter: "epochs",
	}
	if diff := cmp.Diff(want, declared); diff != "" {
		t.Errorf("declaration (-want +got):\n%s", diff)
	}
	options.Settings["epochs"] = "9"
	if declared, err = r.Declare(t.Context(), "recorder", options); err != nil || declared.CheckpointParameter != "" {
		t.Errorf("declaration %+v, error %v", declared, err)
	}

	for setting, wanted := range map[string]string{
		"lot": "setting lot is \"x\", want a whole number", "noise": "want a finite number", "rows": "is unknown, want one of data, epochs, lot, noise",
	} {
		if _, err := r.New(t.Context(), "recorder", Options{Settings: map[string]string{setting: "x"}}); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("setting %s: error %v, want %q", setting, err, wanted)
		}
	}
}

package agent

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dpareto/dpareto/clients/go/trainer"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

// noisyTrainer is a trainer that states its mechanism.
type noisyTrainer struct {
	funcTrainer
	mechanism func(trainer.Parameters) (privacy.Mechanism, error)
}

func (n noisyTrainer) Mechanism(p trainer.Parameters) (privacy.Mechanism, error) {
	return n.mechanism(p)
}

// gaussian returns the mechanism of one Gaussian release with a noise multiplier.
func gaussian(multiplier float64) func(trainer.Parameters) (privacy.Mechanism, error) {
	return func(trainer.Parameters) (privacy.Mechanism, error) {
		return privacy.Gaussian{Sensitivity: 1, StandardDeviation: multiplier, Neighbours: privacy.ReplaceOne}, nil
	}
}

// The agent trains only what costs no more than the study says. Parameters that the trainer
// does not take are the trial's failure, in the trainer's words: no ε is in question.
func TestPrivacyIsChecked(t *testing.T) {
	refused := func(trainer.Parameters) (privacy.Mechanism, error) {
		return nil, &trainer.ParameterError{Name: "model", Reason: `is "tree", want mlp`}
	}
	for _, tt := range []struct {
		name      string
		mechanism func(trainer.Parameters) (privacy.Mechanism, error)
		state     dparetov1.TrialState
		want      string // of the error, or of the trial's reason
	}{
		{"the same", gaussian(10), succeeded, ""},
		{"cheaper", gaussian(20), succeeded, ""},
		{"dearer", gaussian(5), queued, "metric epsilon of the study does not hold for trainer func: it states"},
		{"parameter", refused, failed, `parameter "model" is "tree", want mlp`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, 1)
				f.noisyStudy()
				a := &Agent{Study: f.study, WorkerID: "a", Trainer: noisyTrainer{checkpoints(1), tt.mechanism}}
				err := a.Run(t.Context())
				f.wantStates(tt.state)
				mismatch, isMismatch := errors.AsType[*PrivacyError](err)
				switch tt.state {
				case queued:
					if !isMismatch || !strings.Contains(mismatch.Error(), tt.want) {
						t.Errorf("error %v, want %s", err, tt.want)
					}
				default:
					if reason := f.trials()[0].GetStateReason(); err != nil || reason != tt.want {
						t.Errorf("error %v, reason %q, want %q", err, reason, tt.want)
					}
				}
			})
		})
	}
}

// noisyStudy creates a study whose ε is that of one Gaussian release with noise multiplier 10.
func (f *fixture) noisyStudy() {
	f.t.Helper()
	study, err := f.study.Get(f.t.Context())
	require.NoError(f.t, err)
	spec := study.GetSpec()
	spec.Metrics = append(spec.Metrics, &dparetov1.MetricSpec{
		Id: "epsilon", Role: dparetov1.MetricRole_METRIC_ROLE_TRACKED,
		Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{Function: &dparetov1.ComputedSource_Privacy{Privacy: &dparetov1.PrivacySpec{
			Mechanism: &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{Sensitivity: "1", StandardDeviation: "10.0"}},
			Delta:     1e-6, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
		}}}},
	})
	if f.study, err = f.client.CreateStudy(f.t.Context(), "noisy", &dparetov1.Study{Spec: spec}); err != nil {
		f.t.Fatal(err)
	}
}

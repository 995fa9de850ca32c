package server

import (
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
)

// Nothing is kept of the runs of complete trials, whatever their workers still say.
func TestCompleteTrialsAreForgotten(t *testing.T) {
	s := serviceWith(t, at(0.25, 64))
	s.learnsFromCheckpoints = (*spec.Study).Checkpoints
	study := runs(t, s, nil)
	cached, err := s.studies.get(study)
	if err != nil {
		t.Fatal(err)
	}
	trial := askRun(t, s)
	report(t, s, trial, errorAt(1, 0.5))
	if n := len(cached.stopping.useful); n != 1 {
		t.Errorf("the last useful step of %d trials is kept, want 1", n)
	}
	completeRun(t, s, trial, nil)
	late := &dparetov1.AddMeasurementRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: errorAt(2, 0.4)}
	if _, err := s.AddMeasurement(t.Context(), late); err == nil {
		t.Error("a complete trial was measured")
	}
	if n := len(cached.stopping.useful); n != 0 {
		t.Errorf("the last useful step of %d trials is kept, want 0", n)
	}
}

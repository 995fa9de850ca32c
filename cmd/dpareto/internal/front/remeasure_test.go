package front

import (
	"slices"
	"testing"

	dpareto "github.com/dpareto/dpareto/clients/go"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Both hypervolumes are of the points that were run again. Failures are counted: if all
// replicates fail, nothing is left of the claim.
func TestRemeasureFailures(t *testing.T) {
	spec := &dparetov1.StudySpec{Metrics: []*dparetov1.MetricSpec{
		{Id: "epsilon", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{}}},
		{Id: "error", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE},
	}}
	r := &remeasurement{
		handle: new(dpareto.Client).Study("s"), study: &dparetov1.Study{Spec: spec},
		front: &dparetov1.Front{Kind: dparetov1.FrontKind_FRONT_KIND_OBSERVED, Reference: map[string]float64{"epsilon": 4, "error": 1}},
	}
	point := func(epsilon, value float64, replicates ...*dparetov1.Trial) {
		r.chosen = append(r.chosen, &dparetov1.FrontPoint{Step: 8, Values: map[string]*dparetov1.FrontValue{"epsilon": {Value: epsilon}, "error": {Value: value}}})
		r.replicates = append(r.replicates, replicates)
	}
	ended := func(state dparetov1.TrialState) *dparetov1.Trial { return &dparetov1.Trial{State: state} }
	gave := func(step int64, value float64) *dparetov1.Trial {
		return &dparetov1.Trial{State: dparetov1.TrialState_TRIAL_STATE_SUCCEEDED, FinalMeasurement: &dparetov1.Measurement{
			Step: step, Metrics: map[string]*dparetov1.MetricValue{"error": {Value: &value}},
		}}
	}
	infeasible, failed := ended(dparetov1.TrialState_TRIAL_STATE_INFEASIBLE), ended(dparetov1.TrialState_TRIAL_STATE_FAILED)
	queued := ended(dparetov1.TrialState_TRIAL_STATE_QUEUED)
	point(3, 0.25, gave(8, 0.5), infeasible, failed, gave(4, 0.1), queued)
	point(2, 0.5, failed, infeasible)
	point(1, 0.75, queued, queued)
	got := r.result()
	failures := []int{got.Points[0].Failures, got.Points[1].Failures, got.Points[2].Failures}
	if !slices.Equal(failures, []int{3, 2, 0}) || got.Points[0].Runs != 1 {
		t.Errorf("failures %v, %d runs", failures, got.Points[0].Runs)
	}
	// Claimed is 2·0.5 + 1·0.25 of the two, and 1·0.5 was measured.
	if got.ComparedPoints != 2 || got.ClaimedHypervolume != 1.25 || got.Hypervolume != 0.5 {
		t.Errorf("comparison %+v", got)
	}
}

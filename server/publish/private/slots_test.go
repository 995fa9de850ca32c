package private

import (
	"testing"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// sigma returns the parameters of a run with a standard deviation.
func sigma(x float64) map[string]*dparetov1.Value {
	return map[string]*dparetov1.Value{"sigma": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: x}}}
}

// slotsSpec is a study with private_mode that declares its runs.
func slotsSpec() *dparetov1.StudySpec {
	return &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{{Id: "sigma", Scale: dparetov1.Scale_SCALE_LOG,
			Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 1, Max: 32}}}},
		Metrics: []*dparetov1.MetricSpec{
			{Id: "epsilon", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE, Transform: dparetov1.Transform_TRANSFORM_IDENTITY, ReferenceValue: proto.Float64(1), Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{
				Function: &dparetov1.ComputedSource_Privacy{Privacy: &dparetov1.PrivacySpec{
					Delta: 1e-6, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
					Mechanism: &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{Sensitivity: "1", StandardDeviation: "sigma"}},
				}}}}},
			{Id: "error", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE, Transform: dparetov1.Transform_TRANSFORM_IDENTITY, ReferenceValue: proto.Float64(1), Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}}},
		},
		Budget: &dparetov1.Budget{MaxTrials: 5},
		PrivateMode: &dparetov1.PrivateModeSpec{TestSetSize: 10_000, TestEpsilon: 1, TrainEpsilon: 3, Delta: 1e-6,
			Slots: []*dparetov1.Slot{{Parameters: sigma(4), Count: 3}}},
		TestLedger: "ledgers/test", TrainLedger: "ledgers/train",
	}
}

// A trial is compared with slots by the function of Assess, and not again.
func TestAssess(t *testing.T) {
	compiled := compile(t, slotsSpec())
	trial := &dparetov1.Trial{Parameters: sigma(5), Replicates: 1}
	compare := privateMode{}.Assess(compiled, trial)
	if compare == nil {
		t.Fatal("knows a trial that was never compared")
	}
	require.NoError(t, compare(t.Context()))
	if (privateMode{}).Assess(compiled, trial) != nil {
		t.Error("would compare the trial again")
	}
}

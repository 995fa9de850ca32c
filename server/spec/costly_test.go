package spec_test

import (
	"strings"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/spec"
)

// A spec whose ε would take half a minute at every configuration is refused after the work of one
// call, with its field: its accounting would hold up the computations of all studies.
func TestCostlyGuaranteesAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("uses the whole work of a call")
	}
	base := &dparetov1.PrivacySpec{
		Mechanism: &dparetov1.PrivacySpec_DpSgd{DpSgd: &dparetov1.DpSgdMechanism{
			Sampling: dparetov1.Sampling_SAMPLING_POISSON, Convention: dparetov1.Convention_CONVENTION_ROUNDED,
			DatasetSize: "25523516157", BatchSize: "5073", NoiseMultiplier: "0.5379046 + 0.0001*x",
			Length: &dparetov1.DpSgdMechanism_Steps{Steps: "131154"},
		}},
	}
	asked := &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{{
			Id: "x", Scale: dparetov1.Scale_SCALE_LINEAR,
			Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 0, Max: 1}},
		}},
		Metrics: []*dparetov1.MetricSpec{{
			Id: "epsilon", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE, ReferenceValue: new(10.0),
			Transform: dparetov1.Transform_TRANSFORM_LOG,
			Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{Function: &dparetov1.ComputedSource_Privacy{Privacy: &dparetov1.PrivacySpec{
				Mechanism: &dparetov1.PrivacySpec_RepeatedSelection{RepeatedSelection: &dparetov1.RepeatedSelectionMechanism{
					Base: base, MeanRuns: "87.83793", Distribution: &dparetov1.RepeatedSelectionMechanism_Poisson{Poisson: new(dparetov1.PoissonDistribution)},
				}},
				Delta: 1.4769195341559599e-07, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
				Accountant: dparetov1.Accountant_ACCOUNTANT_RDP, Conversion: dparetov1.Conversion_CONVERSION_IMPROVED,
			}}}},
		}},
		Algorithm: &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
	}
	_, err := spec.Compile("spec", asked)
	if err == nil || !strings.Contains(err.Error(), "spec.metrics[0].computed: takes too long") {
		t.Errorf("error %v", err)
	}
	var fields invalid.Fields
	spec.CompileInto(&fields, "spec", asked, true)
	if err := fields.Err(); err != nil {
		t.Errorf("a stored spec is tried again: %v", err)
	}
}

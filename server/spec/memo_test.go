package spec

import (
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// What is remembered is what was computed, also for a caller who changes it and after
// more configurations than are kept.
func TestComputedIsRemembered(t *testing.T) {
	study, err := Compile("spec", &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{{
			Id: "noise", Scale: dparetov1.Scale_SCALE_LOG,
			Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 1, Max: 100}},
		}},
		Metrics: []*dparetov1.MetricSpec{{
			Id: "epsilon", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
			Transform: dparetov1.Transform_TRANSFORM_LOG, ReferenceValue: new(float64(100)),
			Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{
				Function: &dparetov1.ComputedSource_Privacy{Privacy: &dparetov1.PrivacySpec{
					Mechanism: &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{Sensitivity: "1", StandardDeviation: "noise"}},
					Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, Delta: 1e-5,
					Accountant: dparetov1.Accountant_ACCOUNTANT_EXACT,
				}},
			}},
		}},
		Algorithm: &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
	})
	if err != nil {
		t.Fatal(err)
	}
	if study.ComputesAtOnce() {
		t.Error("an accountant that searches computes at once")
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 3 * maxComputations {
		point := study.Problem.Space.Sample(random)
		want, _ := study.compute(point)
		for range 3 {
			got, _ := study.Compute(point)
			if !proto.Equal(got["epsilon"], want["epsilon"]) || got["epsilon"].GetValue() <= 0 {
				t.Fatalf("%v at %v, want %v", got, point, want)
			}
			got["epsilon"].Value = nil
		}
	}
	if n := len(study.computed.kept); n != maxComputations || len(study.computed.keys) != n {
		t.Errorf("%d configurations of %d keys are kept, want %d", n, len(study.computed.keys), maxComputations)
	}
}

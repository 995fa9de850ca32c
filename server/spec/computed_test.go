package spec

import (
	"math"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest/space"
)

// The stand-ins of computed objectives agree with the functions: exactly for an
// expression, within 2 % for an ε below the reference.
func TestSearch(t *testing.T) {
	metric := func(id string, reference float64, source *dparetov1.ComputedSource) *dparetov1.MetricSpec {
		return &dparetov1.MetricSpec{
			Id: id, Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
			Transform: dparetov1.Transform_TRANSFORM_LOG, ReferenceValue: &reference,
			Source: &dparetov1.MetricSpec_Computed{Computed: source},
		}
	}
	study, err := Compile("study.spec", &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{
			{
				Id: "optimizer",
				Domain: &dparetov1.ParameterSpec_CategoricalDomain{
					CategoricalDomain: &dparetov1.CategoricalDomain{Categories: []string{"sgd", "adam"}},
				},
			},
			{
				Id: "epochs", Scale: dparetov1.Scale_SCALE_LINEAR,
				Domain: &dparetov1.ParameterSpec_IntegerDomain{IntegerDomain: &dparetov1.IntegerDomain{Min: 1, Max: 20}},
			},
			{
				Id: "variance", Scale: dparetov1.Scale_SCALE_LOG,
				Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 1, Max: 16}},
			},
		},
		Metrics: []*dparetov1.MetricSpec{
			metric("size", 100, &dparetov1.ComputedSource{
				Function: &dparetov1.ComputedSource_Expression{Expression: "double(epochs * 3) / math.sqrt(variance)"},
			}),
			metric("epsilon", 10, &dparetov1.ComputedSource{Function: &dparetov1.ComputedSource_Privacy{Privacy: &dparetov1.PrivacySpec{
				Mechanism: &dparetov1.PrivacySpec_DpSgd{DpSgd: &dparetov1.DpSgdMechanism{
					Sampling: dparetov1.Sampling_SAMPLING_FIXED_SIZE, DatasetSize: "10000",
					BatchSize:       `optimizer == "sgd" ? 100 : 50`, // has no Go form
					NoiseMultiplier: "math.sqrt(variance)",
					Length:          &dparetov1.DpSgdMechanism_Epochs{Epochs: "epochs"},
				}},
				Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
			}}}),
			metric("choice", 10, &dparetov1.ComputedSource{
				Function: &dparetov1.ComputedSource_Expression{Expression: `optimizer == "sgd" ? 1 : 2`},
			}),
		},
		Algorithm: &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
	})
	require.NoError(t, err)
	size, epsilon, choice := study.Problem.Objectives[0], study.Problem.Objectives[1], study.Problem.Objectives[2]
	if choice.Search != nil {
		t.Error("an expression without a Go form has a stand-in")
	}
	for i := range 40 {
		q := space.Point{float64(i % 2), float64(1 + i/2), math.Pow(16, float64(i)/40)}
		if got, want := size.Search(q), size.Known(q); got != want {
			t.Errorf("size at %v: %g, want %g", q, got, want)
		}
		if got, want := epsilon.Search(q), epsilon.Known(q); math.Abs(got-want) > 0.02*want {
			t.Errorf("epsilon at %v: %g, want %g", q, got, want)
		}
	}
}

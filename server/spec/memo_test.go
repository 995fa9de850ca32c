package spec

import (
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest/space"
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
	require.NoError(t, err)
	if study.Metrics.ComputesAtOnce() {
		t.Error("an accountant that searches computes at once")
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 3 * maxComputations {
		point := study.Problem.Space.Sample(random)
		want, _ := study.Metrics.compute(point)
		for range 3 {
			got, _ := study.Metrics.Compute(point)
			if !proto.Equal(got["epsilon"], want["epsilon"]) || got["epsilon"].GetValue() <= 0 {
				t.Fatalf("%v at %v, want %v", got, point, want)
			}
			got["epsilon"].Value = nil
		}
	}
	if n := study.Metrics.latest.kept.Len(); n != maxComputations {
		t.Errorf("%d configurations are kept, want %d", n, maxComputations)
	}
}

// adult is a study of DP-SGD with lots of a fixed size.
const adult = `{
	"parameters": [
		{"id": "epochs", "scale": "SCALE_LINEAR", "integer_domain": {"min": 1, "max": 64}},
		{"id": "lot", "scale": "SCALE_LOG", "integer_domain": {"min": 8, "max": 512}},
		{"id": "noise", "scale": "SCALE_LOG", "double_domain": {"min": 0.5, "max": 16}}
	],
	"metrics": [
		{"id": "error", "role": "METRIC_ROLE_OBJECTIVE", "goal": "GOAL_MINIMIZE", "transform": "TRANSFORM_LOGIT", "reference_value": 1, "reported": {}},
		{"id": "epsilon", "role": "METRIC_ROLE_OBJECTIVE", "goal": "GOAL_MINIMIZE", "transform": "TRANSFORM_LOG", "reference_value": 10, "computed": {"privacy":
			{"dp_sgd":{"sampling":"SAMPLING_FIXED_SIZE","dataset_size":"32561","batch_size":"lot","noise_multiplier":"noise","epochs":"epochs"},"delta":1e-5,"adjacency":"ADJACENCY_REPLACE_ONE"}}}
	],
	"checkpoint_parameter": "epochs",
	"algorithm": {"name": "ALGORITHM_RANDOM"}
}`

// BenchmarkCompute computes ε with and without the memo: at new configurations, at one
// again, and at the 64 steps of one run, all of which share a curve in package accounting.
func BenchmarkCompute(b *testing.B) {
	for _, accountant := range []dparetov1.Accountant{
		dparetov1.Accountant_ACCOUNTANT_TIGHTEST, dparetov1.Accountant_ACCOUNTANT_EXACT, dparetov1.Accountant_ACCOUNTANT_PLD,
	} {
		message := new(dparetov1.StudySpec)
		require.NoError(b, protojson.Unmarshal([]byte(adult), message))
		message.Metrics[1].GetComputed().GetPrivacy().Accountant = accountant
		study, err := Compile("spec", message)
		require.NoError(b, err)
		run := func(name string, f func(i int)) {
			b.Run(accountant.String()+"/"+name, func(b *testing.B) {
				i := 0
				for b.Loop() {
					f(i)
					i++
				}
			})
		}
		rng := rand.New(rand.NewPCG(1, 2))
		run("new", func(int) { study.Metrics.Compute(study.Problem.Space.Sample(rng)) })
		point := space.Point{64, 256, 1.5}
		run("again", func(int) { study.Metrics.Compute(point) })
		run("again without memo", func(int) { study.Metrics.compute(point) })
		run("steps without memo", func(i int) { study.Metrics.compute(study.Points.At(point, int64(1+i%64))) })
	}
}

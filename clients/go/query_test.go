package dpareto_test

import (
	"math"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dpareto "github.com/dpareto/dpareto/clients/go"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// laplaceStudy minimises ε of the Laplace mechanism, 1/b, and an error that workers
// measure.
func laplaceStudy() *dparetov1.Study {
	reference, worst, seed := 10.0, 1.0, uint64(1)
	return &dparetov1.Study{Spec: &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{{
			Id: "b", Scale: dparetov1.Scale_SCALE_LOG,
			Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: 0.1, Max: 10}},
		}},
		Metrics: []*dparetov1.MetricSpec{
			{
				Id: "epsilon", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_LOG, ReferenceValue: &reference,
				Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{
					Function: &dparetov1.ComputedSource_Privacy{Privacy: laplace("b")},
				}},
			},
			{
				Id: "error", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_IDENTITY, ReferenceValue: &worst,
				Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
			},
		},
		Algorithm: &dparetov1.AlgorithmSpec{Name: dparetov1.Algorithm_ALGORITHM_RANDOM},
		Seed:      &seed,
	}}
}

func laplace(scale string) *dparetov1.PrivacySpec {
	return &dparetov1.PrivacySpec{
		Mechanism: &dparetov1.PrivacySpec_Laplace{Laplace: &dparetov1.LaplaceMechanism{Sensitivity: "1", Scale: scale}},
		Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
	}
}

func TestAskAStudy(t *testing.T) {
	address, stop, err := startServer("127.0.0.1:0", filepath.Join(t.TempDir(), "store.db"))
	require.NoError(t, err)
	defer stop()
	client, err := dpareto.Dial(address)
	require.NoError(t, err)
	defer func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}()
	study, err := client.CreateStudy(t.Context(), "laplace", laplaceStudy())
	require.NoError(t, err)
	two := &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: 2}}
	trials, reason, err := study.AskWithin(t.Context(), "w",
		&dparetov1.SuggestionCondition{AtMost: map[string]float64{"epsilon": 0.2}},
		&dparetov1.SuggestionCondition{FixedParameters: map[string]*dparetov1.Value{"b": two}},
		&dparetov1.SuggestionCondition{AtMost: map[string]float64{"epsilon": 0.01}}) // b = 100
	if err != nil || reason != dparetov1.EndReason_END_REASON_CONDITION || len(trials) != 2 {
		t.Fatalf("%d trials, %v, %v", len(trials), reason, err)
	}
	sum := 0.0
	for i, trial := range trials {
		epsilon := trial.Message().GetComputedMetrics()["epsilon"].GetValue()
		if want := []float64{0.2, 0.5}[i]; epsilon > want {
			t.Errorf("ε = %g, want at most %g", epsilon, want)
		}
		sum += epsilon
		resp, err := client.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
			Name: trial.Name(), LeaseToken: trial.Message().GetLease().GetToken(),
			Outcome: &dparetov1.CompleteTrialRequest_Measurement{Measurement: &dparetov1.Measurement{
				Metrics: map[string]*dparetov1.MetricValue{"error": {Runs: []float64{0.4}}},
			}},
		})
		if err != nil {
			t.Fatal(resp, err)
		}
	}
	answer, err := study.QueryFront(t.Context(), map[string]float64{"epsilon": 1}, 0.5)
	if err != nil || !answer.GetReachable() || answer.GetPrivacy().GetEpsilon() > 1 {
		t.Errorf("%v, %v", answer, err)
	}
	predictions, err := study.Predict(t.Context(), map[string]*dparetov1.Value{"b": two})
	if err != nil || len(predictions) != 1 || predictions[0].GetComputedMetrics()["epsilon"].GetValue() != 0.5 || math.Abs(predictions[0].GetPredictions()["error"].GetMedian()-0.4) > 0.1 {
		t.Errorf("%v, %v", predictions, err)
	}
	ledger, err := study.PrivacyLedger(t.Context(), 0)
	if err != nil || ledger.GetRuns() != 2 || math.Abs(ledger.GetComposed().GetEpsilon()-sum) > 1e-12 {
		t.Errorf("%v, %v, want ε = %g", ledger, err, sum)
	}
	again, err := study.Reaccount(t.Context(), "epsilon", laplace("b / 2.0"), false)
	if err != nil || again.GetTrials() != 2 {
		t.Errorf("%v, %v", again, err)
	}
	if ledger, err = study.PrivacyLedger(t.Context(), 0); err != nil || math.Abs(ledger.GetComposed().GetEpsilon()-2*sum) > 1e-12 {
		t.Errorf("%v, %v, want ε = %g", ledger, err, 2*sum)
	}

	none := client.Study("none")
	_, queryErr := none.QueryFront(t.Context(), map[string]float64{"epsilon": 1}, 0)
	_, predictErr := none.Predict(t.Context(), map[string]*dparetov1.Value{"b": two})
	_, _, askErr := none.AskWithin(t.Context(), "w", &dparetov1.SuggestionCondition{})
	_, ledgerErr := none.PrivacyLedger(t.Context(), 0)
	_, reaccountErr := none.Reaccount(t.Context(), "epsilon", laplace("b"), true)
	for _, err := range []error{queryErr, predictErr, askErr, ledgerErr, reaccountErr} {
		if status.Code(err) != codes.NotFound {
			t.Errorf("error %v", err)
		}
	}
}

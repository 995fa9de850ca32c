package engine_test

import (
	"math"
	"testing"

	"google.golang.org/grpc/codes"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// condition is a condition on trials of the sparse vector study.
func condition(cutoff int64, epsilon float64) *dparetov1.SuggestionCondition {
	c := new(dparetov1.SuggestionCondition)
	if cutoff > 0 {
		c.FixedParameters = map[string]*dparetov1.Value{"cutoff": {Kind: &dparetov1.Value_IntValue{IntValue: cutoff}}}
	}
	if epsilon > 0 {
		c.AtMost = map[string]float64{"epsilon": epsilon}
	}
	return c
}

// Every algorithm obeys conditions: with few trials and with a model, and in a space with
// a checkpoint parameter, where the bound is that of the whole run.
func TestConditions(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []dparetov1.Algorithm{
		dparetov1.Algorithm_ALGORITHM_DEFAULT, dparetov1.Algorithm_ALGORITHM_RANDOM, dparetov1.Algorithm_ALGORITHM_GRID,
		dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM, dparetov1.Algorithm_ALGORITHM_DPARETO, dparetov1.Algorithm_ALGORITHM_EHVI,
		dparetov1.Algorithm_ALGORITHM_NSGA2,
	} {
		t.Run(algorithm.String(), func(t *testing.T) {
			f := servertest.Start(t)
			spec := servertest.SparseSpec()
			spec.Algorithm = &dparetov1.AlgorithmSpec{Name: algorithm, InitialTrials: 3}
			study := f.Create("svt", spec)
			rounds := 2
			if algorithm == dparetov1.Algorithm_ALGORITHM_GRID { // has one level of noise that is enough
				rounds = 1
			}
			for round := range rounds {
				resp := f.AskFor(study, "w", condition(7, 0), condition(0, 1.5), condition(12, 2))
				if len(resp.GetTrials()) != 3 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_UNSPECIFIED {
					t.Fatalf("round %d: %d trials, %s", round, len(resp.GetTrials()), resp.GetEndReason())
				}
				for i, trial := range resp.GetTrials() {
					cutoff, epsilon := trial.GetParameters()["cutoff"].GetIntValue(), trial.GetComputedMetrics()["epsilon"].GetValue()
					if want := []int64{7, cutoff, 12}[i]; cutoff != want || epsilon > []float64{math.Inf(1), 1.5, 2}[i] {
						t.Errorf("round %d: trial %d has a cutoff of %d and ε = %g", round, i, cutoff, epsilon)
					}
					f.Tell(trial, 0.5)
				}
				f.TrialsOfSparse(study)
			}

			sgd := servertest.SGDSpec()
			sgd.Algorithm = spec.GetAlgorithm()
			runs := f.Create("sgd", sgd)
			trials := f.AskFor(runs, "w", &dparetov1.SuggestionCondition{
				FixedParameters: map[string]*dparetov1.Value{"epochs": {Kind: &dparetov1.Value_IntValue{IntValue: 32}}},
				AtMost:          map[string]float64{"epsilon": 1},
			}).GetTrials()
			if len(trials) != 1 || trials[0].GetParameters()["epochs"].GetIntValue() != 32 || trials[0].GetComputedMetrics()["epsilon"].GetValue() > 1 {
				t.Errorf("DP-SGD: %v", trials)
			}
		})
	}
}

// What exists already is handed out where it meets a condition, and only there.
func TestConditionsAndExistingTrials(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	held := f.One(study, "w")
	queued, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{Parameters: servertest.Sparse(9, 10)}})
	require.NoError(t, err)
	other := held.GetParameters()["cutoff"].GetIntValue()%30 + 1
	if other == 9 {
		other = 11
	}
	resp := f.AskFor(study, "w", condition(other, 0), condition(9, 0), condition(held.GetParameters()["cutoff"].GetIntValue(), 0))
	if len(resp.GetTrials()) != 3 {
		t.Fatalf("%d trials, %s", len(resp.GetTrials()), resp.GetEndReason())
	}
	if got := resp.GetTrials(); got[0].GetParameters()["cutoff"].GetIntValue() != other ||
		got[1].GetName() != queued.GetTrial().GetName() || got[2].GetName() != held.GetName() {
		t.Errorf("trials %v", got)
	}
	// Without resumption its own trials are not there, and nobody else gets them.
	no := false
	again, err := f.Studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{
		Parent: study, WorkerId: "w", Resume: &no, Conditions: []*dparetov1.SuggestionCondition{condition(9, 0)},
	})
	if err != nil || len(again.GetTrials()) != 1 || again.GetTrials()[0].GetName() == queued.GetTrial().GetName() {
		t.Errorf("%v, %v", again, err)
	}
}

func TestConditionsOutOfReach(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	// A cutoff of 30 has at least ε = (1+60^(1/3))(1+60^(2/3))/100 = 0.80.
	resp := f.AskFor(study, "w", condition(30, 0.5), condition(0, 2))
	if len(resp.GetTrials()) != 1 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_CONDITION ||
		resp.GetTrials()[0].GetComputedMetrics()["epsilon"].GetValue() > 2 {
		t.Errorf("%v", resp)
	}
	for field, conditions := range map[string][]*dparetov1.SuggestionCondition{
		"conditions:": {condition(1, 0), condition(2, 0)},
		`conditions[0].fixed_parameters["cutoff"]`:                             {condition(31, 0)},
		`conditions[0].fixed_parameters["lot_size"]`:                           {{FixedParameters: map[string]*dparetov1.Value{"lot_size": nil}}},
		`conditions[0].at_most["error"]`:                                       {{AtMost: map[string]float64{"error": 0.1}}},
		`conditions[0].at_most["cutoff"]`:                                      {{AtMost: map[string]float64{"cutoff": 1}}},
		`conditions[0].at_most["epsilon"]`:                                     {{AtMost: map[string]float64{"epsilon": math.NaN()}}},
		`conditions[0].at_most["epsilon"]: must be positive and finite, is 0`:  {{AtMost: map[string]float64{"epsilon": 0}}},
		`conditions[0].at_most["epsilon"]: must be positive and finite, is -1`: {{AtMost: map[string]float64{"epsilon": -1}}},
		`conditions[0].at_most:`:                                               {{FixedParameters: servertest.Sparse(4, 15), AtMost: map[string]float64{"epsilon": 0.9}}},
	} {
		_, err := f.Studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{
			Parent: study, WorkerId: "w", Conditions: conditions,
		})
		servertest.WantCode(t, err, codes.InvalidArgument, field)
	}
	// Of the only configuration that is left it is known before.
	if got := f.AskFor(study, "w2", &dparetov1.SuggestionCondition{FixedParameters: servertest.Sparse(4, 15), AtMost: map[string]float64{"epsilon": 1.1}}); len(got.GetTrials()) != 1 ||
		math.Abs(got.GetTrials()[0].GetComputedMetrics()["epsilon"].GetValue()-1) > 1e-12 {
		t.Errorf("%v", got)
	}
}

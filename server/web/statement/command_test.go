package statement

import (
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// The command names every field of a mechanism that ε depends on, at the values of a configuration, and no
// other. The tests of dpareto statement run such commands.
func TestRecompute(t *testing.T) {
	parameters := map[string]*dparetov1.Value{
		"epochs": {Kind: &dparetov1.Value_IntValue{IntValue: 12}},
		"noise":  {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 1.25}},
		"kind":   {Kind: &dparetov1.Value_StringValue{StringValue: "adam"}},
	}
	e, err := newEvaluator(parameters)
	require.NoError(t, err)
	for spec, want := range map[string]string{
		`{"dp_sgd": {"sampling": "SAMPLING_FIXED_SIZE", "dataset_size": "32561", "batch_size": "2 * 64", "noise_multiplier": "kind == 'adam' ? noise : 1.0", "epochs": "epochs",
			"learning_rate": "noise", "clipping_norm": "noise", "optimizer": "DP_SGD_OPTIMIZER_NORMALIZED"}, "delta": 1e-5, "adjacency": "ADJACENCY_REPLACE_ONE"}`: "dpareto privacy epsilon --mechanism dp-sgd --sampling fixed-size --dataset-size 32561 --batch-size 128 --noise-multiplier 1.25 --epochs 12 --adjacency replace-one --delta 1e-05",
		`{"dp_sgd": {"sampling": "SAMPLING_POISSON", "sampling_probability": "0.1", "noise_multiplier": "2.0 * noise", "steps": "10 * epochs"}, "delta": 1e-6, "adjacency": "ADJACENCY_ADD_REMOVE",
			"accountant": "ACCOUNTANT_RDP", "conversion": "CONVERSION_CLASSIC"}`: "dpareto privacy epsilon --mechanism dp-sgd --sampling poisson --noise-multiplier 2.5 --steps 120 --sampling-probability 0.1 --adjacency add-remove --delta 1e-06 --accountant rdp --conversion classic",
		`{"laplace": {"sensitivity": "1.0", "scale": "noise"}, "adjacency": "ADJACENCY_ADD_REMOVE"}`:                                                                                                                                      "dpareto privacy epsilon --mechanism laplace --sensitivity 1 --scale 1.25 --adjacency add-remove",
		`{"repeated_selection": {"base": {"gaussian": {"sensitivity": "1.0", "standard_deviation": "noise"}}, "mean_runs": "10.0", "eta": "0.5"}, "delta": 1e-6, "adjacency": "ADJACENCY_ADD_REMOVE"}`:                                    "dpareto privacy epsilon --mechanism repeated-selection --base gaussian --mean-runs 10 --distribution 0.5 --sensitivity 1 --standard-deviation 1.25 --adjacency add-remove --delta 1e-06",
		`{"repeated_selection": {"base": {"laplace": {"sensitivity": "1.0", "scale": "noise"}}, "mean_runs": "10.0", "poisson": {}}, "delta": 1e-6, "adjacency": "ADJACENCY_ADD_REMOVE"}`:                                                 "dpareto privacy epsilon --mechanism repeated-selection --base laplace --distribution poisson --mean-runs 10 --sensitivity 1 --scale 1.25 --adjacency add-remove --delta 1e-06",
		`{"composition": {"parts": [{"mechanism": {"laplace": {"sensitivity": "1.0", "scale": "noise"}}, "count": "epochs"}, {"mechanism": {"zero_concentrated": {"rho": "0.1"}}}]}, "delta": 1e-6, "adjacency": "ADJACENCY_ADD_REMOVE"}`: "dpareto privacy compose --adjacency add-remove --delta 1e-06 --part mechanism=laplace,sensitivity=1,scale=1.25,count=12 --part mechanism=zero-concentrated,rho=0.1",
	} {
		p := new(dparetov1.PrivacySpec)
		require.NoError(t, protojson.Unmarshal([]byte(spec), p))
		if got, err := e.recompute(p); err != nil || got != want {
			t.Errorf("%s:\n%s, %v\nwant\n%s", spec, got, err, want)
		}
	}
	nested := &dparetov1.PrivacySpec{Mechanism: &dparetov1.PrivacySpec_RepeatedSelection{RepeatedSelection: &dparetov1.RepeatedSelectionMechanism{
		Base: &dparetov1.PrivacySpec{Mechanism: &dparetov1.PrivacySpec_Composition{Composition: new(dparetov1.CompositionMechanism)}},
	}}}
	if got, err := e.recompute(nested); err == nil {
		t.Errorf("a command that does not exist: %s", got)
	}
}

// An attack under (ε, δ) is as strong as guessing without a loss, certain without privacy, and the value of
// Dong, Roth and Su in between.
func TestAttack(t *testing.T) {
	for _, tt := range []struct{ epsilon, delta, rate, want float64 }{
		{0, 0, 0.01, 0.01}, {0, 1e-3, 0.01, 0.011}, {1, 0, 0.01, 0.027182818284590454}, {50, 0, 0.01, 1}, {0, 1, 0.5, 1}, {1, 0, 0.9, 0.9632120558828558},
	} {
		if got := attack(tt.epsilon, tt.delta, tt.rate); got < tt.want*(1-1e-12) || got > tt.want*(1+1e-12) {
			t.Errorf("ε %g, δ %g, rate %g: %v, want %v", tt.epsilon, tt.delta, tt.rate, got, tt.want)
		}
	}
}

// Of the ways to search, the cheapest of each kind is shown, and none with far fewer runs.
func TestPrices(t *testing.T) {
	way := func(name string, adaptive bool, runs, epsilon float64) *dparetov1.SearchPrice {
		return &dparetov1.SearchPrice{Way: name, Released: "a model", Adaptive: adaptive, MeanRuns: runs, Training: &dparetov1.PrivacyGuarantee{Epsilon: epsilon, Delta: 1e-6, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE}}
	}
	items := prices([]*dparetov1.SearchPrice{way("one run", false, 1, 0.3), way("shown", false, 32, 2.9), way("filter", true, 32, 3.1), way("other filter", true, 32, 6), way("best", false, 32, 0.53)}, 32)
	if len(items) != 2 || items[0].Text != `of as many runs, with configurations fixed or drawn beforehand, by "best", which releases a model: ε at most 0.5300, δ = 1e-6, replace-one adjacency` ||
		items[1].Text != `of as many runs, with configurations chosen by earlier results, by "filter", which releases a model: ε at most 3.100, δ = 1e-6, replace-one adjacency` {
		t.Errorf("%+v", items)
	}
}

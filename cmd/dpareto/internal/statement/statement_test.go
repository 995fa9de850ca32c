package statement_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/require"
)

// A statement of a bundled study: its ε, its forms, and what is refused.
func TestStatement(t *testing.T) {
	clitest.RunStudy(t, "sgd", "--trainer dp-sgd --set generated=true --set train_rows=200 --set epochs=2 --trials 2", 1)
	var s struct {
		Claim     string `json:"claim"`
		Seeded    bool   `json:"seeded"`
		Guarantee struct {
			Epsilon float64 `json:"epsilon"`
		} `json:"guarantee"`
		Recompute string `json:"recompute"`
	}
	require.NoError(t, json.Unmarshal([]byte(clitest.Succeed(t, "statement sgd --trial 1 --price=false --output json")), &s))
	rest, ok := strings.CutPrefix(s.Recompute, "dpareto ")
	if !ok {
		t.Fatalf("command %q", s.Recompute)
	}
	var computed struct {
		Epsilon float64 `json:"epsilon"`
	}
	require.NoError(t, json.Unmarshal([]byte(clitest.Succeed(t, rest+" --output json")), &computed))
	if computed.Epsilon != s.Guarantee.Epsilon || s.Guarantee.Epsilon <= 0 {
		t.Errorf("stated ε %v, computed again %v", s.Guarantee.Epsilon, computed.Epsilon)
	}
	// RunStudy gives the agent a seed.
	if !s.Seeded || !strings.Contains(s.Claim, "has no ε against anybody who knows its seed, and must not be published") {
		t.Errorf("claim %q", s.Claim)
	}
	if html := clitest.Succeed(t, "statement sgd --trial 1 --price=false --output html"); !strings.HasPrefix(html, "<!doctype html>") {
		t.Error(html)
	}
	for line, code := range map[string]int{
		"statement sgd --epsilon 1e-9": command.ExitFailure, "statement sgd": command.ExitFailure, "statement sgd --trial 1 --sampler poisson": command.ExitFailure,
		"statement sgd --epsilon -1": command.ExitUsage, "statement sgd --trial 0": command.ExitUsage, "statement sgd --trial 1 --output csv": command.ExitUsage,
		"statement other --epsilon 1": command.ExitNotFound, "statement sgd --trial 99": command.ExitNotFound,
	} {
		clitest.Fail(t, code, line)
	}
}

// mechanisms are specs of every mechanism, as in studies, with the sampler that a person attests.
var mechanisms = map[string]struct{ spec, sampler string }{
	"fixed":        {`{dp_sgd: {sampling: FIXED_SIZE, dataset_size: "1000", batch_size: "100", noise_multiplier: noise, epochs: "2"}, delta: 1e-6, adjacency: REPLACE_ONE}`, "fixed-size"},
	"fixed-add":    {`{dp_sgd: {sampling: FIXED_SIZE, dataset_size: "1000", batch_size: "100", noise_multiplier: noise, epochs: "2"}, delta: 1e-6, adjacency: ADD_REMOVE}`, "fixed-size"},
	"poisson":      {`{dp_sgd: {sampling: POISSON, convention: OPACUS, dataset_size: "1000", batch_size: "100", noise_multiplier: noise, epochs: "2"}, delta: 1e-6, adjacency: ADD_REMOVE}`, "poisson"},
	"probability":  {`{dp_sgd: {sampling: POISSON, sampling_probability: "0.1", noise_multiplier: noise, steps: "20"}, delta: 1e-6, adjacency: REPLACE_ONE, accountant: RDP, conversion: IMPROVED}`, "poisson"},
	"truncated":    {`{dp_sgd: {sampling: POISSON, convention: ROUNDED, dataset_size: "1000", batch_size: "100", noise_multiplier: noise, epochs: "2", physical_batch_size: "130"}, delta: 1e-6, adjacency: ADD_REMOVE}`, "truncated-poisson"},
	"users":        {`{dp_sgd: {sampling: POISSON, convention: ROUNDED, dataset_size: "1000", batch_size: "100", noise_multiplier: noise, epochs: "2", records_per_user: "2"}, delta: 1e-6, adjacency: ADD_REMOVE}`, "poisson"},
	"adaptive":     {`{dp_sgd: {sampling: POISSON, convention: ROUNDED, dataset_size: "1000", batch_size: "100", noise_multiplier: noise, epochs: "2", clipping_count_deviation: "10.0"}, delta: 1e-6, adjacency: ADD_REMOVE}`, "poisson"},
	"banded":       {`{dp_sgd: {sampling: POISSON, convention: ROUNDED, dataset_size: "1000", batch_size: "50", noise_multiplier: noise, epochs: "2", bands: "4"}, delta: 1e-6, adjacency: ADD_REMOVE}`, "banded-poisson"},
	"shuffled":     {`{dp_sgd: {sampling: SHUFFLED, dataset_size: "1000", batch_size: "100", noise_multiplier: noise, epochs: "2"}, delta: 1e-6, adjacency: ADD_REMOVE}`, "shuffled"},
	"allocated":    {`{dp_sgd: {sampling: RANDOM_ALLOCATION, dataset_size: "1000", batch_size: "100", noise_multiplier: noise, epochs: "2"}, delta: 1e-6, adjacency: ADD_REMOVE}`, "random-allocation"},
	"allocation":   {`{random_allocation: {steps_per_epoch: "10", picks: "2", noise_multiplier: noise, epochs: "2", allocation: SAME}, delta: 1e-6, adjacency: ADD_REMOVE}`, "random-allocation-once"},
	"gaussian":     {`{gaussian: {sensitivity: "1.0", standard_deviation: noise}, delta: 1e-6, adjacency: ADD_REMOVE}`, ""},
	"laplace":      {`{laplace: {sensitivity: "1.0", scale: noise}, adjacency: ADD_REMOVE}`, ""},
	"ftrl":         {`{dp_ftrl: {steps: "200", separation: "100", matrix: BLT, buffer_scale: [0.25], buffer_decay: [0.5], noise_multiplier: noise}, delta: 1e-6, adjacency: ADD_REMOVE}`, ""},
	"discrete":     {`{discrete_gaussian: {sensitivity: "1", sigma: noise}, delta: 1e-6, adjacency: ADD_REMOVE}`, ""},
	"geometric":    {`{discrete_laplace: {sensitivity: "1", scale: noise}, adjacency: ADD_REMOVE}`, ""},
	"sparse":       {`{sparse_vector: {cutoff: "3", noise_scale: noise}, adjacency: ADD_REMOVE}`, ""},
	"output":       {`{output_perturbation: {dataset_size: "1000", regularization: "0.1", feature_norm: "1.0", standard_deviation: noise, radius: "10.0"}, delta: 1e-6, adjacency: REPLACE_ONE}`, ""},
	"objective":    {`{objective_perturbation: {epsilon: noise, dataset_size: "1000", regularization: "0.1", curvature: "0.25"}, adjacency: REPLACE_ONE}`, ""},
	"response":     {`{randomized_response: {epsilon: noise, categories: "2"}, adjacency: REPLACE_ONE}`, ""},
	"selection":    {`{selection: {epsilon: noise, method: EXPONENTIAL}, adjacency: ADD_REMOVE}`, ""},
	"concentrated": {`{zero_concentrated: {rho: noise}, delta: 1e-6, adjacency: ADD_REMOVE}`, ""},
	"repeated":     {`{repeated_selection: {base: {gaussian: {sensitivity: "1.0", standard_deviation: noise}}, mean_runs: "10.0", eta: "0.5"}, delta: 1e-6, adjacency: ADD_REMOVE}`, ""},
	"composed":     {`{composition: {parts: [{mechanism: {laplace: {sensitivity: "1.0", scale: noise}}, count: "2"}, {mechanism: {zero_concentrated: {rho: "0.1"}}}, {mechanism: {dp_ftrl: {steps: "9", matrix: TOEPLITZ, column: [1, 0.5], noise_multiplier: "3.0"}}}]}, delta: 1e-6, adjacency: ADD_REMOVE}`, ""},
}

// The command that a statement gives computes the ε that it states, to the last digit, for every mechanism.
func TestRecompute(t *testing.T) {
	address, _ := clitest.StartServer(t, "--listen", "localhost:0")
	t.Setenv("DPARETO_SERVER", address)
	for id, m := range mechanisms {
		t.Run(id, func(t *testing.T) { recompute(t, id, m.spec, m.sampler) })
	}
}

// recompute states a study of one trial with a mechanism, and runs the command of the statement.
func recompute(t *testing.T, id, spec, sampler string) {
	t.Helper()
	clitest.Must(t, fmt.Sprintf(`
study_id: %s
spec:
  parameters: [{id: noise, double_domain: {min: 0.1, max: 100}, scale: LOG}]
  metrics:
    - {id: epsilon, role: OBJECTIVE, goal: MINIMIZE, transform: LOG, reference_value: 100, computed: {privacy: %s}}
    - {id: error, role: OBJECTIVE, goal: MINIMIZE, transform: LOGIT, reference_value: 1, reported: {}}
`, id, spec), "study", "create", "-")
	clitest.Must(t, `{"noise": 5.3, "error": 0.1}`, "trial", "import", id, "-")
	flags := ""
	if sampler != "" {
		flags = " --sampler " + sampler
	}
	var s struct {
		Guarantee struct {
			Epsilon float64 `json:"epsilon"`
		} `json:"guarantee"`
		Recompute   string `json:"recompute"`
		Assumptions []struct {
			Premise   string `json:"premise"`
			CheckedBy string `json:"checked_by"`
		} `json:"assumptions"`
	}
	require.NoError(t, json.Unmarshal([]byte(clitest.Succeed(t, "statement "+id+" --trial 1 --price=false --output json"+flags)), &s))
	var computed struct {
		Epsilon float64 `json:"epsilon"`
	}
	require.NoError(t, json.Unmarshal([]byte(clitest.Succeed(t, strings.TrimPrefix(s.Recompute, "dpareto ")+" --output json")), &computed))
	if computed.Epsilon != s.Guarantee.Epsilon || !(s.Guarantee.Epsilon > 0) {
		t.Errorf("%s: stated ε %v, computed again %v by %s", id, s.Guarantee.Epsilon, computed.Epsilon, s.Recompute)
	}
	if len(s.Assumptions) == 0 || s.Assumptions[0].Premise == "" || s.Assumptions[0].CheckedBy == "" {
		t.Errorf("%s: assumptions %+v", id, s.Assumptions)
	}
}

// Every mechanism and sampler of the contract is among those that are computed again.
func TestAllMechanisms(t *testing.T) {
	all := fmt.Sprint(mechanisms)
	names := enum.Names(dparetov1.Sampling(0).Descriptor())
	fields := new(dparetov1.PrivacySpec).ProtoReflect().Descriptor().Oneofs().ByName("mechanism").Fields()
	for i := range fields.Len() {
		names = append(names, string(fields.Get(i).Name()))
	}
	for _, name := range names {
		if !strings.Contains(strings.ToLower(all), strings.ReplaceAll(name, "-", "_")+":") && !strings.Contains(all, "sampling: "+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))) {
			t.Errorf("%s is not tested", name)
		}
	}
}

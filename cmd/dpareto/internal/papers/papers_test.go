package papers_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
)

func utilitiesFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "utilities.csv")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// The caps for a budget follow the theorems (independent computation), and the plan
// stays within the budget.
func TestProposeTestPlan(t *testing.T) {
	r := clitest.RunReport(t, "privacy propose-test --budget 3 --round-epsilon 0.1 --delta 1e-6 --parts 100 --validation-records 1000")
	for rule, want := range map[string]float64{"optimal": 46, "filter": 29, "basic": 30} {
		if got := r.Value(t, "rules", "rule", rule, "cap_for_budget"); got != want {
			t.Errorf("%s: cap %v, want %g", rule, got, want)
		}
	}
	if epsilon := r.Value(t, "search", "field", "epsilon", "value").(float64); !(epsilon <= 3 && epsilon > 2.9) {
		t.Errorf("ε = %g", epsilon)
	}
	if rounds := r.Value(t, "search", "field", "cap", "value"); rounds != 46.0 {
		t.Errorf("cap %v", rounds)
	}
	// 46 rounds of 0.1·100/1000 for a validation record, less by composition.
	if epsilon := r.Value(t, "validation", "field", "epsilon", "value").(float64); !(epsilon <= 0.46*(1+1e-6) && epsilon > 0.2) {
		t.Errorf("ε of a validation record is %g", epsilon)
	}
	for _, label := range []string{"protects records of the training set", "not covered: records of the validation set", "close to a random one"} {
		if !r.Says(label) {
			t.Errorf("the plan does not say %q", label)
		}
	}
	for _, row := range r.Sections {
		if row.Name == "paper_claim" || row.Name == "selected" {
			t.Errorf("a plan has no section %s", row.Name)
		}
	}
}

// A run with little noise selects the best candidate; with a seed it repeats itself and is
// labelled, without one it is not, and says nothing that is not private.
func TestProposeTestRun(t *testing.T) {
	path := utilitiesFile(t, "name,part 1,part 2,part 3\nweak,0.1,0.2,0.1\nstrong,0.9,0.8,0.9\nmiddling,0.5,0.5,0.4\n")
	line := "privacy propose-test --cap 20 --round-epsilon 1000 --granularity 0.05 --utilities"
	simulated := clitest.RunReport(t, line, path, "--seed", "7")
	if name := simulated.Value(t, "selected", "field", "name", "value"); name != "strong" {
		t.Errorf("selected %v", name)
	}
	if !simulated.Says("SIMULATION") || !simulated.Says("no guarantee, because") {
		t.Error("a simulation that is not labelled, or without what the paper claims")
	}
	if again := clitest.RunReport(t, line, path, "--seed", "7"); len(again.Rows(t, "rounds")) != len(simulated.Rows(t, "rounds")) {
		t.Error("the same seed gives another run")
	}
	released := clitest.RunReport(t, line, path)
	if released.Says("SIMULATION") || !released.Says("charged to no ledger") {
		t.Errorf("a release that is not labelled as one: %+v", released)
	}
	for _, s := range released.Sections {
		if s.Name == "paper_claim" {
			t.Error("a release with the paper's claim, which looks at the data")
		}
	}
	if k := released.Value(t, "search", "field", "sensitivity", "value").(float64); math.Abs(k-1.0/3) > 1e-15 {
		t.Errorf("sensitivity %g for 3 parts", k)
	}
}

func TestProposeTestUsage(t *testing.T) {
	path := utilitiesFile(t, "name,a,b\nx,0.1,0.2\n")
	for line, want := range map[string]string{
		"--parts 10":                                  "one of --budget and --cap",
		"--budget 1 --cap 3":                          "one of --budget and --cap",
		"--cap 0":                                     "--cap",
		"--budget -1":                                 "--budget",
		"--cap 3 --adjacency both":                    "--adjacency",
		"--cap 3 --seed 1":                            "--seed",
		"--cap 3 --granularity 2":                     "--granularity",
		"--cap 3 --round-epsilon 0":                   "--round-epsilon",
		"--budget 0.01":                               "--budget",
		"--cap 3 --validation-records 0":              "--validation-records",
		"--cap 3 --parts 5 --utilities " + path:       "--parts",
		"--cap 3 --default 1 --utilities " + path:     "--default",
		"--cap 3 --default 1 --utilities no/such.csv": "no/such.csv",
	} {
		_, stderr, code := clitest.Invoke(t, "", append(strings.Fields("privacy propose-test"), strings.Fields(line)...)...)
		if code == command.ExitOK || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d: %s", line, code, stderr)
		}
	}
	for _, text := range []string{"", "name\n", "name,a\n", "name,a\nx,1.5\n", "name,a\nx,much\n", "name,a\nx\n"} {
		file := utilitiesFile(t, text)
		_, stderr, code := clitest.Invoke(t, "", "privacy", "propose-test", "--cap", "3", "--utilities", file)
		if code != command.ExitFailure || !strings.Contains(stderr, "utilities.csv") {
			t.Errorf("%q: exit code %d: %s", text, code, stderr)
		}
	}
}

// Independent computation of the quantities of Algorithms 1 to 3, with their labels.
func TestBayesianOptimization(t *testing.T) {
	r := clitest.RunReport(t, "privacy bayesian-optimization --algorithm 1 --candidates 100 --evaluations 50 --epsilon 1 --delta 0.05 "+
		"--observation-noise 0.1 --correlation 0.95 --information-gain 69.230")
	for quantity, want := range map[string]float64{
		"choice: beta": 33.3108, "choice: c": 1.3191, "choice: sensitivity": 12.8622, "maximum: C1": 1.7334,
		"maximum: Omega/T": 8.9308, "maximum: q": 0.4047, "maximum: Laplace scale": 10.6546,
	} {
		if got := r.Value(t, "scales", "quantity", quantity, "paper").(float64); math.Abs(got-want) > 1e-4 {
			t.Errorf("%s: %g, want %g", quantity, got, want)
		}
	}
	// Theorem 2, corrected: √(2·log(3·100/δ)) + (2Δ/ε)(log 100 + 3).
	beta := 2 * math.Log(300/0.05)
	distance := 2 * math.Sqrt(0.05*math.Log(300/0.05))
	if got, want := r.Value(t, "scales", "quantity", "choice: loss of the mean at most (Theorem 2)", "corrected").(float64), math.Sqrt(beta)+2*(2*math.Sqrt(beta)+distance)*(math.Log(100)+3); math.Abs(got-want) > 1e-9 {
		t.Errorf("Theorem 2: %g, want %g", got, want)
	}
	if !r.Says("not differential privacy in the worst case") || !r.Says("VACUOUS") {
		t.Errorf("Algorithm 1 without its labels: %v", r.Notes)
	}
	if r = clitest.RunReport(t, "privacy bayesian-optimization --algorithm 2 --candidates 100 --correlation 0.95 --dimension 2 --regret-constant 1 --regret-rate 0.1"); math.Abs(r.Value(t, "scales", "field", "regret", "value").(float64)-0.7865) > 1e-4 {
		t.Errorf("Algorithm 2: %+v", r.Rows(t, "scales"))
	}
	if !r.Says("no value of A or τ is known") || !r.Says("not differential privacy in the worst case") {
		t.Errorf("Algorithm 2 without its labels: %v", r.Notes)
	}
	r = clitest.RunReport(t, "privacy bayesian-optimization --algorithm 3 --records 15000 --lipschitz 0.25 --penalty-min 0.5 --penalty-max 1")
	if got := r.Value(t, "scales", "quantity", "sensitivity", "corrected").(float64); math.Abs(got-0.25006667) > 1e-8 || r.Says("VACUOUS") {
		t.Errorf("Algorithm 3: sensitivity %g, %v", got, r.Sections)
	}
	if r = clitest.RunReport(t, "privacy bayesian-optimization --algorithm 3 --records 1000 --lipschitz 1 --penalty-min 1e-4 --penalty-max 1"); !r.Says("VACUOUS") {
		t.Error("a range of penalties over four decades is not vacuous")
	}
}

// A bound on what one record does replaces k1, and the information gain on given candidates
// is below that for any.
func TestBayesianOptimizationCandidates(t *testing.T) {
	line := "privacy bayesian-optimization --algorithm 1 --evaluations 50 --observation-noise 0.1 --correlation 0.5 --records 1000 --prior-deviation 0.05 "
	anyKernel := clitest.RunReport(t, line+"--candidates 4")
	points := utilitiesFile(t, "x,y\n0,0\n0,0.1\n1,0\n1,0.1\n")
	given := clitest.RunReport(t, line+"--points", points, "--kernel", "squared-exponential")
	gain := func(r clitest.Report) float64 {
		return r.Value(t, "scales", "quantity", "maximum: gamma_T", "corrected").(float64)
	}
	if want := 2 * math.Log1p(50/(4*0.01)); math.Abs(gain(anyKernel)-want) > 1e-9 || !(gain(given) < want && gain(given) > 0.5*want) {
		t.Errorf("information gain %g for any kernel, want %g; %g for the candidates", gain(anyKernel), want, gain(given))
	}
	if !given.Says("That much must be charged") {
		t.Errorf("no ε of the worst case: %+v", given.Sections)
	}
	if c := given.Value(t, "scales", "quantity", "choice: c", "corrected_in_utility").(float64); math.Abs(c-1e-3) > 1e-12 {
		t.Errorf("c = %g, want 1/m", c)
	}
	if loss := given.Value(t, "fixed_candidates", "mechanism", "permute-and-flip", "expected_loss_at_most").(float64); math.Abs(loss-2e-3*math.Log(4)) > 1e-12 {
		t.Errorf("permute-and-flip loses %g", loss)
	}
	for more, want := range map[string]string{
		"--candidates 0": "--candidates", "--candidates 5 --points " + points: "--candidates", "--information-gain 1 --points " + points: "--points",
		"--points no/such.csv": "no/such.csv", "--points " + points + " --kernel linear": "--kernel", "--points " + points + " --length-scale 0": "--length-scale",
		"--candidates 3 --prior-deviation -1": "--prior-deviation", "--candidates 3 --delta 2": "--delta", "--candidates 3 --algorithm 4": "--algorithm",
	} {
		_, stderr, code := clitest.Invoke(t, "", strings.Fields(line+more)...)
		if code == command.ExitOK || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d: %s", more, code, stderr)
		}
	}
}

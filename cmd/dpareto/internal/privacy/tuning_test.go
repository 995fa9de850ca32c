package privacy_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/show"
)

// printedReport is a report as programs read it: the rows of every section.
type printedReport struct {
	Title    string   `json:"title"`
	Notes    []string `json:"notes"`
	Sections []struct {
		Name  string           `json:"name"`
		Notes []string         `json:"notes"`
		Rows  []map[string]any `json:"rows"`
	} `json:"sections"`
}

// report runs a command with --output json.
func report(t *testing.T, line string, more ...string) printedReport {
	t.Helper()
	stdout, stderr, code := clitest.Invoke(t, "", append(append(strings.Fields(line), more...), "--output", "json")...)
	if code != 0 {
		t.Fatalf("%s: exit code %d: %s", line, code, stderr)
	}
	var r printedReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, stdout)
	}
	return r
}

// rows returns a section.
func (r printedReport) rows(t *testing.T, name string) []map[string]any {
	t.Helper()
	for _, s := range r.Sections {
		if s.Name == name {
			return s.Rows
		}
	}
	t.Fatalf("no section %s in %+v", name, r)
	return nil
}

// value returns the cell of a column in the row that another column names.
func (r printedReport) value(t *testing.T, section, key, row, column string) any {
	t.Helper()
	for _, line := range r.rows(t, section) {
		if line[key] == row {
			return line[column]
		}
	}
	t.Fatalf("no row %s in section %s", row, section)
	return nil
}

// says reports whether a note of the report, or of a section, contains a text.
func (r printedReport) says(text string) bool {
	all := strings.Join(r.Notes, "\n")
	for _, s := range r.Sections {
		all += "\n" + strings.Join(s.Notes, "\n")
	}
	return strings.Contains(all, text)
}

func utilitiesFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "utilities.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The caps for a budget follow the theorems (independent computation), and the plan
// stays within the budget.
func TestProposeTestPlan(t *testing.T) {
	r := report(t, "privacy propose-test --budget 3 --round-epsilon 0.1 --delta 1e-6 --parts 100 --validation-records 1000")
	for rule, want := range map[string]float64{"optimal": 46, "filter": 29, "basic": 30} {
		if got := r.value(t, "rules", "rule", rule, "cap_for_budget"); got != want {
			t.Errorf("%s: cap %v, want %g", rule, got, want)
		}
	}
	if epsilon := r.value(t, "search", "field", "epsilon", "value").(float64); !(epsilon <= 3 && epsilon > 2.9) {
		t.Errorf("ε = %g", epsilon)
	}
	if rounds := r.value(t, "search", "field", "cap", "value"); rounds != 46.0 {
		t.Errorf("cap %v", rounds)
	}
	// 46 rounds of 0.1·100/1000 for a validation record, less by composition.
	if epsilon := r.value(t, "validation", "field", "epsilon", "value").(float64); !(epsilon <= 0.46*(1+1e-6) && epsilon > 0.2) {
		t.Errorf("ε of a validation record is %g", epsilon)
	}
	for _, label := range []string{"protects records of the training set", "not covered: records of the validation set", "close to a random one"} {
		if !r.says(label) {
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
	simulated := report(t, line, path, "--seed", "7")
	if name := simulated.value(t, "selected", "field", "name", "value"); name != "strong" {
		t.Errorf("selected %v", name)
	}
	if !simulated.says("SIMULATION") || !simulated.says("no guarantee, because") {
		t.Error("a simulation that is not labelled, or without what the paper claims")
	}
	if again := report(t, line, path, "--seed", "7"); len(again.rows(t, "rounds")) != len(simulated.rows(t, "rounds")) {
		t.Error("the same seed gives another run")
	}
	released := report(t, line, path)
	if released.says("SIMULATION") || !released.says("charged to no ledger") {
		t.Errorf("a release that is not labelled as one: %+v", released)
	}
	for _, s := range released.Sections {
		if s.Name == "paper_claim" {
			t.Error("a release with the paper's claim, which looks at the data")
		}
	}
	if k := released.value(t, "search", "field", "sensitivity", "value").(float64); math.Abs(k-1.0/3) > 1e-15 {
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
	r := report(t, "privacy bayesian-optimization --algorithm 1 --candidates 100 --evaluations 50 --epsilon 1 --delta 0.05 "+
		"--observation-noise 0.1 --correlation 0.95 --information-gain 69.230")
	for quantity, want := range map[string]float64{
		"choice: beta": 33.3108, "choice: c": 1.3191, "choice: sensitivity": 12.8622, "maximum: C1": 1.7334,
		"maximum: Omega/T": 8.9308, "maximum: q": 0.4047, "maximum: Laplace scale": 10.6546,
	} {
		if got := r.value(t, "scales", "quantity", quantity, "paper").(float64); math.Abs(got-want) > 1e-4 {
			t.Errorf("%s: %g, want %g", quantity, got, want)
		}
	}
	// Theorem 2, corrected: √(2·log(3·100/δ)) + (2Δ/ε)(log 100 + 3).
	beta := 2 * math.Log(300/0.05)
	distance := 2 * math.Sqrt(0.05*math.Log(300/0.05))
	if got, want := r.value(t, "scales", "quantity", "choice: loss of the mean at most (Theorem 2)", "corrected").(float64), math.Sqrt(beta)+2*(2*math.Sqrt(beta)+distance)*(math.Log(100)+3); math.Abs(got-want) > 1e-9 {
		t.Errorf("Theorem 2: %g, want %g", got, want)
	}
	if !r.says("not differential privacy in the worst case") || !r.says("VACUOUS") {
		t.Errorf("Algorithm 1 without its labels: %v", r.Notes)
	}
	if r = report(t, "privacy bayesian-optimization --algorithm 2 --candidates 100 --correlation 0.95 --dimension 2 --regret-constant 1 --regret-rate 0.1"); math.Abs(r.value(t, "scales", "field", "regret", "value").(float64)-0.7865) > 1e-4 {
		t.Errorf("Algorithm 2: %+v", r.rows(t, "scales"))
	}
	if !r.says("no value of A or τ is known") || !r.says("not differential privacy in the worst case") {
		t.Errorf("Algorithm 2 without its labels: %v", r.Notes)
	}
	r = report(t, "privacy bayesian-optimization --algorithm 3 --records 15000 --lipschitz 0.25 --penalty-min 0.5 --penalty-max 1")
	if got := r.value(t, "scales", "quantity", "sensitivity", "corrected").(float64); math.Abs(got-0.25006667) > 1e-8 || r.says("VACUOUS") {
		t.Errorf("Algorithm 3: sensitivity %g, %v", got, r.Sections)
	}
	if r = report(t, "privacy bayesian-optimization --algorithm 3 --records 1000 --lipschitz 1 --penalty-min 1e-4 --penalty-max 1"); !r.says("VACUOUS") {
		t.Error("a range of penalties over four decades is not vacuous")
	}
}

// A bound on what one record does replaces k1, and the information gain on given candidates
// is below that for any.
func TestBayesianOptimizationCandidates(t *testing.T) {
	line := "privacy bayesian-optimization --algorithm 1 --evaluations 50 --observation-noise 0.1 --correlation 0.5 --records 1000 --prior-deviation 0.05 "
	anyKernel := report(t, line+"--candidates 4")
	points := utilitiesFile(t, "x,y\n0,0\n0,0.1\n1,0\n1,0.1\n")
	given := report(t, line+"--points", points, "--kernel", "squared-exponential")
	gain := func(r printedReport) float64 {
		return r.value(t, "scales", "quantity", "maximum: gamma_T", "corrected").(float64)
	}
	if want := 2 * math.Log1p(50/(4*0.01)); math.Abs(gain(anyKernel)-want) > 1e-9 || !(gain(given) < want && gain(given) > 0.5*want) {
		t.Errorf("information gain %g for any kernel, want %g; %g for the candidates", gain(anyKernel), want, gain(given))
	}
	if !given.says("that much must be charged") {
		t.Errorf("no ε of the worst case: %+v", given.Sections)
	}
	if c := given.value(t, "scales", "quantity", "choice: c", "corrected_in_utility").(float64); math.Abs(c-1e-3) > 1e-12 {
		t.Errorf("c = %g, want 1/m", c)
	}
	if loss := given.value(t, "fixed_candidates", "mechanism", "permute-and-flip", "expected_loss_at_most").(float64); math.Abs(loss-2e-3*math.Log(4)) > 1e-12 {
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

// The totals of random stopping agree with an independent program's location bound, and the
// probabilities with closed forms. Those of dp_accounting's RepeatAndSelect, by Rényi divergences,
// are larger.
func TestRandomStopping(t *testing.T) {
	for _, test := range []struct {
		mu                   float64
		distribution         string
		mean                 string
		total, renyi, p5, p1 float64
	}{
		{0.1, "geometric", "10", 0.5939, 0.898080, 0.3448, 0.0917},
		{0.1, "logarithmic", "100", 0.6918, 0.878410, 0.5418, 0.3107},
		{0.25, "geometric", "10", 1.5567, 2.271369, 0.3448, 0.0917},
		{0.25, "logarithmic", "10", 1.4742, 1.901966, 0.2856, 0.0854},
		{0.25, "0.5", "10", 0, 2.097049, 0.3254, 0.0900},
		{0.25, "2", "10", 0, 2.577066, 0.3631, 0.0932},
		{0.25, "poisson", "10", 1.9702, 2.039366, 0.3935, 0.0952},
		{1, "logarithmic", "10", 0, 7.869161, 0.2856, 0.0854},
	} {
		r := report(t, "privacy random-stopping --delta 1e-6 --mean-runs "+test.mean+" --distribution "+test.distribution, "--base-mu", show.Plain(test.mu))
		total := r.value(t, "plan", "field", "epsilon", "value").(float64)
		if test.total > 0 && math.Abs(total-test.total) > 5e-4*test.total || !(total < test.renyi) {
			t.Errorf("%+v: ε = %.6f", test, total)
		}
		attack := r.value(t, "plan", "field", "epsilon_attack", "value").(float64)
		lower := r.value(t, "plan", "field", "epsilon_lower", "value").(float64)
		if attack > total || attack < total/1.02 || lower != attack { // a Gaussian run has all of its profile
			t.Errorf("%+v: ε = %.6f, attacks show %.6f and %.6f", test, total, attack, lower)
		}
		for i, want := range []float64{test.p5, test.p1} {
			if p := r.rows(t, "top")[i]["probability"].(float64); math.Abs(p-want) > 0.51e-4 {
				t.Errorf("%+v: probability %g, want %g", test, p, want)
			}
		}
		if !r.says("independent draws") || !r.says("not covered: candidates that are suggested from earlier results") {
			t.Errorf("random stopping without its conditions: %v", r.Notes)
		}
	}
}

// The flags of a mechanism describe one run.
func TestRandomStoppingMechanism(t *testing.T) {
	line := "privacy random-stopping --mechanism dp-sgd --sampling fixed-size --dataset-size 32561 --batch-size 256 --noise-multiplier 2 --epochs 10 --delta 1e-6"
	r := report(t, line+" --mean-runs 32")
	one := printed[printedGuarantee](t, strings.TrimPrefix(strings.Replace(line, "random-stopping", "epsilon", 1), "privacy "))
	if got := r.value(t, "plan", "field", "epsilon_of_one_run", "value"); got != one.Epsilon {
		t.Errorf("ε of one run is %v, want %g", got, one.Epsilon)
	}
	if ratio := r.value(t, "plan", "field", "ratio", "value").(float64); !(ratio > 1 && ratio < 3) {
		t.Errorf("geometric stopping costs %g times one run", ratio)
	}
	for more, want := range map[string]string{
		"": "--mean-runs", " --mean-runs 0.5": "--mean-runs", " --mean-runs 10 --distribution -3": "--distribution", " --mean-runs 10 --top 2": "--top", " --mean-runs 10 --base-mu 1": "--base-mu",
	} {
		_, stderr, code := clitest.Invoke(t, "", strings.Fields(line+more)...)
		if code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d: %s", more, code, stderr)
		}
	}
	_, stderr, code := clitest.Invoke(t, "", strings.Fields("privacy random-stopping --mean-runs 3 --mechanism repeated-selection")...)
	if code != command.ExitUsage || !strings.Contains(stderr, "one run") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

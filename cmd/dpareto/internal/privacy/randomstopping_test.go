package privacy_test

import (
	"math"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/show"
)

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
		r := clitest.RunReport(t, "privacy random-stopping --delta 1e-6 --mean-runs "+test.mean+" --distribution "+test.distribution, "--base-mu", show.Plain(test.mu))
		total := r.Value(t, "plan", "field", "epsilon", "value").(float64)
		if test.total > 0 && math.Abs(total-test.total) > 5e-4*test.total || !(total < test.renyi) {
			t.Errorf("%+v: ε = %.6f", test, total)
		}
		attack := r.Value(t, "plan", "field", "epsilon_attack", "value").(float64)
		lower := r.Value(t, "plan", "field", "epsilon_lower", "value").(float64)
		if attack > total || attack < total/1.02 || lower != attack { // a Gaussian run has all of its profile
			t.Errorf("%+v: ε = %.6f, attacks show %.6f and %.6f", test, total, attack, lower)
		}
		for i, want := range []float64{test.p5, test.p1} {
			if p := r.Rows(t, "top")[i]["probability"].(float64); math.Abs(p-want) > 0.51e-4 {
				t.Errorf("%+v: probability %g, want %g", test, p, want)
			}
		}
		if !r.Says("independent draws") || !r.Says("not covered: candidates that are suggested from earlier results") {
			t.Errorf("random stopping without its conditions: %v", r.Notes)
		}
	}
}

// The flags of a mechanism describe one run.
func TestRandomStoppingMechanism(t *testing.T) {
	line := "privacy random-stopping --mechanism dp-sgd --sampling fixed-size --dataset-size 32561 --batch-size 256 --noise-multiplier 2 --epochs 10 --delta 1e-6"
	r := clitest.RunReport(t, line+" --mean-runs 32")
	one := printed[printedGuarantee](t, strings.TrimPrefix(strings.Replace(line, "random-stopping", "epsilon", 1), "privacy "))
	if got := r.Value(t, "plan", "field", "epsilon_of_one_run", "value"); got != one.Epsilon {
		t.Errorf("ε of one run is %v, want %g", got, one.Epsilon)
	}
	if ratio := r.Value(t, "plan", "field", "ratio", "value").(float64); !(ratio > 1 && ratio < 3) {
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

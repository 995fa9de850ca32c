package privacy_test

import (
	"math"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
)

func TestPrivacyTradeoff(t *testing.T) {
	const gaussian = "tradeoff --mechanism gaussian --sensitivity 1 --standard-deviation 1 --delta 1e-5 --adjacency add-remove "
	got := printed[struct {
		Guarantee    printedGuarantee
		ExactProfile bool `json:"exact_profile"`
		Points       []struct {
			FPR float64 `json:"false_positive_rate"`
			TPR float64 `json:"true_positive_rate"`
		}
		Advantage   float64
		BayesErrors []struct{ Prior, Error float64 } `json:"bayes_errors"`
		Mu          float64
	}](t, gaussian+"--rates 0.1,0.01 --priors 0.5")
	// Φ(Φ⁻¹(0.1) + 1) and Φ(Φ⁻¹(0.01) + 1).
	if len(got.Points) != 2 || math.Abs(got.Points[0].TPR/0.389143691645-1) > 1e-4 || math.Abs(got.Points[1].TPR/0.0923622480737-1) > 1e-4 ||
		!got.ExactProfile || got.Guarantee.Delta != 1e-5 || !(got.Guarantee.Epsilon > 4) {
		t.Errorf("%+v", got)
	}
	if math.Abs(got.Advantage/0.3829249225-1) > 1e-3 || len(got.BayesErrors) != 1 || math.Abs(got.BayesErrors[0].Error-(1-0.3829249225)/2) > 1e-4 || !(got.Mu > 1) {
		t.Errorf("%+v", got)
	}
	stdout, _, code := clitest.Invoke(t, "", strings.Fields("privacy "+gaussian)...)
	for _, want := range []string{"add-remove adjacency, accountant exact: ε at most 4.3", "δ = 1e-5, for one run", "whether one record was in it, and guesses from what the run releases", "about at most 9.23", "Advantage, the true minus the false positive rate: at most 0.383", "provided that"} {
		if !strings.Contains(stdout, want) || code != 0 {
			t.Errorf("exit code %d, %q is missing in\n%s", code, want, stdout)
		}
	}
	stdout, _, _ = clitest.Invoke(t, "", strings.Fields("privacy tradeoff --mechanism sparse-vector --cutoff 5 --noise-scale 10 --adjacency add-remove")...)
	if !strings.Contains(stdout, "not known to be attained") {
		t.Errorf("printed\n%s", stdout)
	}
	if _, stderr, code := clitest.Invoke(t, "", strings.Fields("privacy "+gaussian+"--rates 0.1,2")...); code != 2 || !strings.Contains(stderr, "--rates must be in [0, 1], holds 2") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

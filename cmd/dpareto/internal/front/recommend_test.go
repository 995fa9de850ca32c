package front_test

import (
	"encoding/csv"
	"math"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer/sparsevector"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// The commands that ask a study: what is recommended has the ε that was asked for and the
// error that was predicted, the ledger adds up pure mechanisms, and accounting again
// changes what is shown.
func TestAskingAStudy(t *testing.T) {
	clitest.RunStudy(t, "svt", initSVT, 30)

	t.Run("recommend", func(t *testing.T) {
		resp := new(dparetov1.QueryFrontResponse)
		require.NoError(t, studyfile.Decode([]byte(clitest.Succeed(t, "recommend --study svt --epsilon 5 -o json")), resp))
		cutoff, noise := resp.GetParameters()["cutoff"].GetIntValue(), resp.GetParameters()["noise_scale"].GetDoubleValue()
		c := 2 * float64(cutoff)
		exact := (1 + math.Cbrt(c)) * (1 + math.Cbrt(c*c)) / noise // Avent et al. 2020, Algorithm 1
		if g := resp.GetPrivacy().GetEpsilon(); !resp.GetReachable() || g > 5 || math.Abs(g-exact) > 1e-9 {
			t.Errorf("%v", resp)
		}
		p := resp.GetPredictions()["error"]
		if truth := sparsevector.ExpectedError(cutoff, noise); truth < p.GetLower()-0.1 || truth > p.GetUpper()+0.1 {
			t.Errorf("error %g, predicted %v", truth, p)
		}
		text := clitest.Succeed(t, "recommend svt --epsilon 5")
		for _, want := range []string{"the best error with epsilon ≤ 5, confidence 0.5", "pure (δ = 0)", "reachable"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
		rows, err := csv.NewReader(strings.NewReader(clitest.Succeed(t, "recommend --study svt --max error=0.9 --measured-only -o csv"))).ReadAll()
		if err != nil || len(rows) != 2 || len(rows[0]) != len(rows[1]) || rows[1][len(rows[1])-1] != "30" {
			t.Errorf("%q, %v", rows, err)
		}
		stdout, stderr := clitest.Fail(t, command.ExitFailure, "recommend --study svt --max error=0.9 --epsilon 1e-6")
		if !strings.Contains(stdout, "not reachable; this is the nearest configuration") || !strings.Contains(stderr, "no configuration meets the bounds") {
			t.Errorf("%s%s", stdout, stderr)
		}
		clitest.Fail(t, command.ExitUsage, "recommend --study svt")
		clitest.Fail(t, command.ExitUsage, "recommend svt --study svt --epsilon 1")
		clitest.Fail(t, command.ExitUsage, "privacy ledger")
		clitest.Fail(t, command.ExitUsage, "recommend --epsilon 1")
		clitest.Fail(t, command.ExitUsage, "recommend --study svt --max error=much")
		for _, bound := range []string{"0", "-1", "-0.25", "nan", "inf", "-inf"} {
			if stdout, stderr := clitest.Fail(t, command.ExitUsage, "recommend svt --epsilon="+bound); stdout != "" || !strings.Contains(stderr, "--epsilon: must be positive") {
				t.Errorf("--epsilon %s: %q", bound, stderr)
			}
			if _, stderr := clitest.Fail(t, command.ExitUsage, "recommend svt --max epsilon="+bound); !strings.Contains(stderr, `bounds["epsilon"]: must be positive`) {
				t.Errorf("--max epsilon=%s: %q", bound, stderr)
			}
		}
		if _, stderr := clitest.Fail(t, command.ExitUsage, "recommend --study svt --min error=0.1"); !strings.Contains(stderr, "--max") {
			t.Error(stderr)
		}
	})
	t.Run("ledger", func(t *testing.T) {
		resp := new(dparetov1.GetPrivacyLedgerResponse)
		require.NoError(t, studyfile.Decode([]byte(clitest.Succeed(t, "privacy ledger --study svt -o json")), resp))
		rows, err := csv.NewReader(strings.NewReader(clitest.Succeed(t, "trial list svt -o csv"))).ReadAll()
		if err != nil || resp.GetRuns() != int64(30*(len(rows)-1)) {
			t.Errorf("%d runs of %d trials, %v", resp.GetRuns(), len(rows)-1, err)
		}
		text := clitest.Succeed(t, "privacy ledger svt --delta 1e-6")
		for _, want := range []string{"runs of", "no ε, since trials were seeded", "not covered", "succeeded"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
		clitest.Fail(t, command.ExitUsage, "privacy ledger")
	})
	t.Run("reaccount", func(t *testing.T) {
		before := clitest.Succeed(t, "trial list svt -o csv")
		dry := clitest.Succeed(t, "study reaccount svt --accountant pure-advanced --delta 1e-3 --validate-only")
		if !strings.Contains(dry, "pure-advanced") || clitest.Succeed(t, "trial list svt -o csv") != before {
			t.Errorf("%s", dry)
		}
		clitest.Succeed(t, "study reaccount svt --accountant tightest --delta 1e-3")
		if clitest.Succeed(t, "trial list svt -o csv") == before {
			t.Error("nothing has changed")
		}
		clitest.Succeed(t, "study reaccount svt --accountant pure --delta 0")
		if after := clitest.Succeed(t, "trial list svt -o csv"); after != before {
			t.Errorf("not restored:\n%s\n%s", before, after)
		}
		clitest.Fail(t, command.ExitUsage, "study reaccount svt --accountant magic")
		clitest.Fail(t, command.ExitUsage, "study reaccount svt --metric error")
	})
	t.Run("suggest", func(t *testing.T) {
		if _, stderr := clitest.Fail(t, command.ExitFailure, "trial suggest --study svt --worker-id w"); !strings.Contains(stderr, "0 of 1 trials: budget spent") {
			t.Error(stderr)
		}
		id := "again"
		file := clitest.Succeed(t, "study init --id "+id+" "+initSVT) + "\n  seed: 1\n"
		if _, stderr, code := clitest.Invoke(t, file, "study", "create", "-"); code != command.ExitOK {
			t.Fatal(stderr)
		}
		rows, err := csv.NewReader(strings.NewReader(clitest.Succeed(t, "trial suggest again --worker-id w --count 2 --fix cutoff=7 --at-most epsilon=1 -o csv"))).ReadAll()
		if err != nil || len(rows) != 3 || rows[1][3] != "7" || rows[2][3] != "7" {
			t.Errorf("%q, %v", rows, err)
		}
		clitest.Fail(t, command.ExitUsage, "trial suggest --study again --worker-id w --fix lots=7")
		clitest.Fail(t, command.ExitUsage, "trial suggest --study again --worker-id w --fix cutoff=seven")
		clitest.Fail(t, command.ExitUsage, "trial suggest --study again")
	})
}

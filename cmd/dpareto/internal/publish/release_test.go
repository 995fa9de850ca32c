package publish_test

import (
	"encoding/csv"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// A complete study of a random design is given a ledger, and its best, its front and a
// selection are released, charged, and repeated by the id that was printed.
func TestReleasing(t *testing.T) {
	address, _ := clitest.StartServer(t, "--listen", "localhost:0")
	t.Setenv("DPARETO_SERVER", address)
	t.Chdir(t.TempDir())
	file := strings.Replace(clitest.Succeed(t, "study init --id svt --trainer sparse-vector --trials 6"), "spec:\n", "spec:\n  algorithm: {name: RANDOM}\n", 1)
	if _, stderr, code := clitest.Invoke(t, file+"\n  seed: 1\n  replicates: 3\n", "study", "create", "-"); code != command.ExitOK {
		t.Fatal(stderr)
	}
	clitest.Succeed(t, "agent --workers 1 --seed 1 --study svt")
	release := func(line string) *dparetov1.Release {
		t.Helper()
		r := new(dparetov1.Release)
		require.NoError(t, studyfile.Decode([]byte(clitest.Succeed(t, line+" -o json")), r))
		return r
	}
	if _, stderr := clitest.Fail(t, command.ExitRefused, "release best svt --epsilon 1"); !strings.Contains(stderr, "has no test_ledger to charge") {
		t.Error(stderr)
	}
	text := clitest.Succeed(t, "ledger create queries --records 10 --epsilon 10 --delta 1e-3 --description test")
	if !strings.Contains(text, "queries") || !strings.Contains(text, "replace_one") {
		t.Error(text)
	}
	if _, stderr := clitest.Fail(t, command.ExitRefused, "ledger create queries --records 9 --epsilon 10 --delta 1e-3 --adjacency add-remove --description test"); !strings.Contains(stderr,
		"ledgers/queries exists with other fields; fields that differ: adjacency is ADJACENCY_REPLACE_ONE, not ADJACENCY_ADD_REMOVE; records is 10, not 9") {
		t.Error(stderr)
	}
	clitest.Succeed(t, "study update svt --set spec.test_ledger=ledgers/queries")

	stdout, stderr := clitest.Fail(t, command.ExitOK, "release best svt --epsilon 1 --at-most epsilon=1e6")
	id := regexp.MustCompile(`--request-id (release-\S+)`).FindStringSubmatch(stderr)
	if id == nil {
		t.Fatalf("no id was printed: %s", stderr)
	}
	for _, want := range []string{"studies/svt/releases/1: permute-and-flip among 6 configurations", "ε at most 1.000, pure (δ = 0), replace-one adjacency", "charged to ledgers/queries", "provided that", "\nε of one run, pure (δ = 0), replace-one adjacency", "not covered: the training records"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
	again := clitest.Succeed(t, "release best svt --epsilon 1 --at-most epsilon=1e6 --request-id "+id[1])
	if again != stdout || clitest.Succeed(t, "release get studies/svt/releases/1") != stdout {
		t.Errorf("repeated:\n%s", again)
	}
	front := release("release front svt --epsilon 2 --delta 1e-4 --request-id front")
	if len(front.GetPoints()) == 0 || front.GetNoiseStandardDeviation() == 0 {
		t.Errorf("front %v", front)
	}
	require.NoError(t, os.WriteFile("utilities.txt", []byte("0.1\n\n0.9\n0.3\n"), 0o600))
	selected := release("release select queries --utilities utilities.txt --sensitivity 1e-3 --epsilon 3 --request-id s")
	if selected.Index == nil || selected.GetIndex() != 1 {
		t.Errorf("selected %v", selected)
	}
	for line, rows := range map[string]int{
		"ledger charges queries -o csv": 4, "ledger list -o csv": 2, "release list svt -o csv": 3, "release list ledgers/queries -o csv": 2,
		"release get studies/svt/releases/2 -o csv": 1 + len(front.GetPoints()),
	} {
		all, err := csv.NewReader(strings.NewReader(clitest.Succeed(t, line))).ReadAll()
		if err != nil || len(all) != rows {
			t.Errorf("%s: %d rows, want %d; %v", line, len(all), rows, err)
		}
	}
	if _, stderr := clitest.Fail(t, command.ExitRefused, "release best svt --epsilon 5"); !strings.Contains(stderr, "remaining budget of ledgers/queries") || !strings.Contains(stderr, "ResourceExhausted") {
		t.Error(stderr)
	}
	ledger := new(dparetov1.Ledger)
	if err := studyfile.Decode([]byte(clitest.Succeed(t, "ledger get queries -o json")), ledger); err != nil || ledger.GetCharges() != 3 || ledger.GetRemainingEpsilon() > 5 {
		t.Errorf("ledger %v, %v", ledger, err)
	}

	if clitest.Succeed(t, "release get svt/releases/1") != stdout {
		t.Error("the short name of a release names another one")
	}

	// An export takes the releases along; the charges stay.
	exported := clitest.Succeed(t, "export --study svt")
	want := "studies/svt has 2 releases, which are deleted with it; what it was charged to ledgers/queries stays"
	if _, stderr := clitest.Fail(t, command.ExitUsage, "study delete svt"); !strings.Contains(stderr, want) || !strings.Contains(stderr, "--yes: required") {
		t.Errorf("said %q, want %q", stderr, want)
	}
	clitest.Succeed(t, "study delete svt --yes")
	if _, stderr, code := clitest.Invoke(t, exported, "import", "-"); code != command.ExitOK {
		t.Fatal(stderr)
	}
	if clitest.Succeed(t, "release get studies/svt/releases/1") != stdout {
		t.Error("the release has changed on its way")
	}

	// The methods of Kusner et al. need no fixed design, and say that their claim is none.
	text = clitest.Succeed(t, "release best svt --method kusner-1 --epsilon 0.5 --prior-mean 0.2 --prior-deviation 0.05 --observation-noise 0.01 --length-scale 0.2")
	for _, want := range []string{"Algorithm 1 of Kusner et al. (2015)", "guarantee: ε at most 0.5000, pure", "claim of a paper, under a model, and not differential privacy", "nearly a random choice"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if text := clitest.Succeed(t, "release best svt --method kusner-3 --epsilon 0.5"); !strings.Contains(text, "Laplace noise for a sensitivity of 1 ") || strings.Contains(text, "claim") {
		t.Error(text)
	}

	for _, line := range []string{"release best svt --metric epsilon --epsilon 1", "release best svt --epsilon -1", "release front svt --epsilon 1 --delta 2", "release best none --epsilon 1"} {
		if _, stderr, code := clitest.Invoke(t, "", strings.Fields(line)...); code == command.ExitOK || strings.Contains(stderr, "--request-id") {
			t.Errorf("%s: a refusal has nothing to repeat: %s", line, stderr)
		}
	}
	if _, stderr := clitest.Must(t, "", strings.Fields("ledger create large --records 100 --epsilon 1 --delta 0.5")...); !strings.Contains(stderr, "delta 0.5 is not below 1/n = 0.01 (n = 100 records)") {
		t.Error(stderr)
	}
	clitest.Fail(t, command.ExitUsage, "release best")
	clitest.Fail(t, command.ExitUsage, "release best svt --epsilon 1 --method kusner-2")
	for flag, line := range map[string]string{
		"epsilon": "release best svt --epsilon 0", "epsilon of a front": "release front svt --epsilon 0 --delta 1e-6", "delta": "release front svt --epsilon 1 --delta 0",
	} {
		name, _, _ := strings.Cut(flag, " ")
		if _, stderr := clitest.Fail(t, command.ExitUsage, line); !strings.Contains(stderr, "--"+name+" must be positive, is 0") {
			t.Errorf("%s: %s", line, stderr)
		}
	}
	if _, stderr := clitest.Fail(t, command.ExitUsage, "release best svt --epsilon 1 --at-most epsilon=0"); !strings.Contains(stderr, `at_most["epsilon"]: must be positive`) {
		t.Error(stderr)
	}
	clitest.Fail(t, command.ExitUsage, "release best svt --epsilon 1 --at-most epsilon=much")
	clitest.Fail(t, command.ExitUsage, "release select queries --epsilon 1")
	clitest.Fail(t, command.ExitUsage, "release select queries --utilities utilities.txt --method best")
	clitest.Fail(t, command.ExitUsage, "ledger create l --adjacency none")
	clitest.Fail(t, command.ExitUsage, "ledger create l --records 1")
	if _, stderr, code := clitest.Invoke(t, "0.5\nsecret\n", "release", "select", "queries", "--utilities", "-"); code != command.ExitUsage || strings.Contains(stderr, "secret") || !strings.Contains(stderr, ":2: must be a number") {
		t.Errorf("%d: %s", code, stderr)
	}
}

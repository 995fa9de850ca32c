package privacy

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

// checkPremises tests that assumptions have premises of the table, in their order.
func checkPremises(t *testing.T, of string, all []Assumption) {
	t.Helper()
	if len(all) == 0 {
		t.Errorf("%s assumes nothing", of)
	}
	for i, a := range all {
		if !slices.Contains(Premises(), a.Premise) || a.Text == "" || i > 0 && a.Premise < all[i-1].Premise {
			t.Errorf("%s: assumption %d, %q, has the premise %d", of, i, a.Text, a.Premise)
		}
	}
}

// Every mechanism names the premise of each of its assumptions, in their order.
func TestPremises(t *testing.T) {
	for i, p := range Premises() {
		if int(p) != i+1 || p.String() == "" || p.Meaning() == "" || p.Checker() < CheckedByServer || p.Checker() > CheckedByNobody {
			t.Errorf("premise %d: %q, %q, checked by %d", p, p, p.Meaning(), p.Checker())
		}
	}
	for _, m := range []Mechanism{
		PoissonGaussian{Neighbours: ReplaceOne}, PoissonGaussian{Neighbours: AddRemove}, PoissonGaussian{Neighbours: AddRemove, PublicSize: true},
		FixedSizeGaussian{}, FixedSizeAddRemoveGaussian{}, TruncatedPoissonGaussian{Neighbours: AddRemove}, TruncatedPoissonGaussian{Neighbours: ReplaceOne},
		UserPoissonGaussian{}, RandomAllocation{Neighbours: AddRemove}, RandomAllocation{Neighbours: ReplaceOne, SameSteps: true}, BandMF{Neighbours: AddRemove}, BandMF{PublicSize: true}, DPFTRL{Neighbours: AddRemove},
		ShuffledGaussian{Steps: 10, EvenSteps: true, NoiseMultiplier: 1, Neighbours: ReplaceOne}, ShuffledGaussian{Steps: 10, NoiseMultiplier: 1, Neighbours: AddRemove},
		Gaussian{}, Laplace{}, DiscreteGaussian{}, DiscreteLaplace{}, RandomizedResponse{}, Selection{}, SparseVector{}, ZeroConcentrated{}, OutputPerturbation{}, ObjectivePerturbation{},
		Composition{{Gaussian{}, 1}, {PoissonGaussian{Neighbours: ReplaceOne}, 1}},
	} {
		checkPremises(t, fmt.Sprintf("%T%+v", m, m), m.Assumptions())
	}
}

// Every type of this package that has assumptions is in the list above.
func TestAllMechanismsHavePremises(t *testing.T) {
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	test, err := os.ReadFile("premise_test.go")
	require.NoError(t, err)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		source, err := os.ReadFile(e.Name())
		require.NoError(t, err)
		for line := range strings.Lines(string(source)) {
			receiver, ok := strings.CutSuffix(strings.TrimSpace(line), ") Assumptions() []Assumption {")
			if name := receiver[strings.LastIndexByte(receiver, ' ')+1:]; ok && !strings.Contains(string(test), name+"{") {
				t.Errorf("%s: the assumptions of %s are not tested", e.Name(), name)
			}
		}
	}
}

// Lists are joined in the order of the premises, each assumption once.
func TestJoinAssumptions(t *testing.T) {
	a, b, c := PremiseNoise.Assume("a"), PremiseSampler.Assume("b"), PremiseNoise.Assume("c")
	if got, want := JoinAssumptions([]Assumption{a, c}, []Assumption{b, a}), []Assumption{b, a, c}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := a.String(), "a (noise, checked by the client)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The table of docs/reference/privacy.md has the premises, in their order.
func TestDocumentedPremises(t *testing.T) {
	document, err := os.ReadFile("../docs/reference/privacy.md")
	require.NoError(t, err)
	table := "| premise | subject | checked by |\n|---|---|---|\n"
	for _, p := range Premises() {
		table += fmt.Sprintf("| %s | %s | %s |\n", p, p.Meaning(), p.Checker())
	}
	if !strings.Contains(string(document), table+"\n") {
		t.Errorf("docs/reference/privacy.md does not have the table\n%s", table)
	}
}

func hasText(all []Assumption, text string) bool {
	return slices.ContainsFunc(all, func(a Assumption) bool { return a.Text == text })
}

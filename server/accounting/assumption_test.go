package accounting_test

import (
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy"
)

// Messages have the premise and the checker of the assumption, and people read the same of both. The
// contract knows no other premises.
func TestAssumptions(t *testing.T) {
	for _, p := range privacy.Premises() {
		a := p.Assume("it holds")
		m := show.Assumptions([]privacy.Assumption{a})[0]
		if got, want := show.Assumption(m), a.String(); got != want || int(m.GetPremise()) != int(p) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got, want := len(enum.Names(dparetov1.Premise(0).Descriptor())), len(privacy.Premises()); got != want {
		t.Errorf("the contract has %d premises, want %d", got, want)
	}
}

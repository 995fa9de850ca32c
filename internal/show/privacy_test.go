package show

import (
	"strings"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
)

// What an attacker may know follows from the adjacency.
func TestAttacker(t *testing.T) {
	for want, g := range map[string]*dparetov1.PrivacyGuarantee{
		"whether one record was in it, and":                            {Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE},
		"whether one record was in it, or was blank in its place, and": {Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, Assumptions: []string{privacy.PublicSizeAssumption}},
		"whether one record was in it, or another in its place, and":   {Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE},
	} {
		if got := Attacker(g); !strings.Contains(got, want) || strings.Contains(got, "model") {
			t.Errorf("%v: %q lacks %q", g, got, want)
		}
	}
}

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
		"whether one record was in it, or was blank in its place, and": {Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, Assumptions: []*dparetov1.Assumption{{Text: privacy.PublicSizeAssumption.Text}}},
		"whether one record was in it, or another in its place, and":   {Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE},
	} {
		if got := Attacker(g); !strings.Contains(got, want) || strings.Contains(got, "model") {
			t.Errorf("%v: %q lacks %q", g, got, want)
		}
	}
}

func TestLargeDelta(t *testing.T) {
	for _, tt := range []struct {
		delta   float64
		records int64
		want    string
	}{
		{0.5, 426, "delta 0.5 is not below 1/n = 0.00235 (n = 426 records): publishing one record would be allowed"},
		{1e-3, 1000, "delta 0.001 is not below 1/n = 0.001 (n = 1000 records): publishing one record would be allowed"},
		{9e-4, 1000, ""},
		{0.5, 0, ""}, // an unknown number
	} {
		if got := LargeDelta(tt.delta, tt.records); got != tt.want {
			t.Errorf("delta %g of %d records: %q, want %q", tt.delta, tt.records, got, tt.want)
		}
	}
}

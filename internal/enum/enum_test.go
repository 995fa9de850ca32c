package enum

import (
	"strings"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

func TestName(t *testing.T) {
	for want, got := range map[string]string{
		"add-remove":             Name(dparetov1.Adjacency_ADJACENCY_ADD_REMOVE),
		"replace_one":            Underscored(dparetov1.Adjacency_ADJACENCY_REPLACE_ONE),
		"unspecified":            Name(dparetov1.TrialState_TRIAL_STATE_UNSPECIFIED),
		"77":                     Name(dparetov1.TrialState(77)),
		"add-remove replace-one": strings.Join(Names(dparetov1.Adjacency(0).Descriptor()), " "),
	} {
		if got != want {
			t.Errorf("name %q, want %q", got, want)
		}
	}
}

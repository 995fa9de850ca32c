package privacy

import (
	"testing"
)

// A number of records that decides the probability is public, where it is not public anyway.
func TestPoissonStatesWhatIsPublic(t *testing.T) {
	for _, tc := range []struct {
		neighbours Adjacency
		publicSize bool
		want       string
	}{
		{AddRemove, true, PublicSizeAssumption.Text},
		{AddRemove, false, "the sampling probability and the number of steps are settings, which do not depend on the number of records"},
		{ReplaceOne, true, assumePublicSize.Text},
		{ReplaceOne, false, assumePublicSize.Text},
	} {
		m := PoissonGaussian{0.1, 1, tc.neighbours, tc.publicSize}
		if got := epsilonOf(t, Exact{}, m, 1, 1e-5).Assumptions; !hasText(got, tc.want) {
			t.Errorf("%+v: assumptions %q", m, got)
		}
	}
}

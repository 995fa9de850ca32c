package study

import (
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Another adjacency is another sensitivity of the same noise, and the way back restores
// the expression.
func TestReaccountingKeepsTheNoise(t *testing.T) {
	const original = "math.sqrt(variance)"
	for _, there := range []dparetov1.Adjacency{dparetov1.Adjacency_ADJACENCY_REPLACE_ONE, dparetov1.Adjacency_ADJACENCY_ADD_REMOVE} {
		back := dparetov1.Adjacency_ADJACENCY_REPLACE_ONE + dparetov1.Adjacency_ADJACENCY_ADD_REMOVE - there
		spec := &dparetov1.PrivacySpec{Adjacency: back, Mechanism: &dparetov1.PrivacySpec_DpSgd{DpSgd: &dparetov1.DpSgdMechanism{NoiseMultiplier: original}}}
		want := map[dparetov1.Adjacency]string{
			there: "double(math.sqrt(variance)) / 2.0", back: original,
		}
		if there == dparetov1.Adjacency_ADJACENCY_ADD_REMOVE {
			want[there] = "double(math.sqrt(variance)) * 2.0"
		}
		for _, to := range []dparetov1.Adjacency{there, there, back} {
			f := reaccountFlags{adjacency: to}
			if f.apply(spec, false); spec.GetAdjacency() != to ||
				spec.GetDpSgd().GetNoiseMultiplier() != want[to] {
				t.Errorf("to %v: %v", to, spec)
			}
		}
	}
}

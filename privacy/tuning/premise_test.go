package tuning

import (
	"slices"
	"testing"

	"github.com/dpareto/dpareto/privacy"
)

// Every mechanism of this package names the premise of each of its assumptions, in their order.
func TestPremises(t *testing.T) {
	base := privacy.Gaussian{Sensitivity: 1, StandardDeviation: 5, Neighbours: privacy.AddRemove}
	for _, m := range []privacy.Mechanism{
		RepeatedSelection{Base: base}, PoissonSelection{Base: base}, BinomialSelection{Base: base}, CappedSelection{Base: base}, SubsetSampled{Base: base}, Mixture{choices: []Choice{{Mechanism: base}}},
	} {
		all := m.Assumptions()
		if len(all) <= len(base.Assumptions()) {
			t.Errorf("%s assumes no more than a run: %v", m.Name(), all)
		}
		for i, a := range all {
			if !slices.Contains(privacy.Premises(), a.Premise) || i > 0 && a.Premise < all[i-1].Premise {
				t.Errorf("%s: assumption %d, %q, has the premise %d", m.Name(), i, a.Text, a.Premise)
			}
		}
	}
}
